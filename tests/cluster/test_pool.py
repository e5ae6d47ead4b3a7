"""What a pool asks of Ray for a population, on clusters that this machine is not; and how the view looks."""

import io
import os
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest
import torch
from rich.console import Console

from sharpen.cluster import connection, task
from sharpen.cluster import view as view_module
from sharpen.cluster.connection import connected
from sharpen.cluster.parcel import pack
from sharpen.cluster.pool import Pool
from sharpen.cluster.task import Report
from sharpen.cluster.view import WorkersView
from sharpen.errors import InputError
from sharpen.graph import Graph
from sharpen.trial import Trial

GB = 2**30


class Remote:
    """What ``ray.remote`` gives; remembers what it is asked for."""

    def __init__(self, asked: list[dict]) -> None:
        self._asked = asked

    def options(self, **options: object) -> "Remote":
        self._asked.append(options)
        return self

    def remote(self, *arguments: object) -> object:
        return object()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A cluster whose machines a test can name, in place of Ray."""
    made = SimpleNamespace(nodes=[], asked=[], sent=[], free=[])
    ray = ModuleType("ray")
    ray.nodes = lambda: made.nodes
    ray.remote = lambda what: Remote(made.asked)
    ray.get = lambda references: made.free[: len(references)]
    ray.exceptions = SimpleNamespace(RayTaskError=RuntimeError)
    ray.put = lambda content: made.sent.append(content) or object()
    ray.get_runtime_context = lambda: SimpleNamespace(get_node_id=lambda: "0")
    util, strategies = ModuleType("ray.util"), ModuleType("ray.util.scheduling_strategies")
    strategies.NodeAffinitySchedulingStrategy = lambda node, soft: node
    for module in (ray, util, strategies):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return made


def node(cpus: int, gpus: int = 0, memory: int = 64 * GB, alive: bool = True, name: str = "a") -> dict:
    resources = {"CPU": float(cpus), "memory": float(memory)} | ({"GPU": float(gpus)} if gpus else {})
    return {"NodeID": f"{name}{cpus}{gpus}", "Alive": alive, "NodeManagerHostname": name, "Resources": resources}


def path(nodes: int) -> Graph:
    return Graph(x=torch.ones(nodes, 2), edge_index=[[0], [1]], y=[0, 1] + [-1] * (nodes - 2))


def test_gpus_are_used_where_there_are_some_one_for_each_population(cluster):
    cluster.nodes = [node(64), node(8, gpus=2, name="b"), node(8, gpus=4, alive=False, name="c")]
    pool = Pool("auto", "tf32")
    assert (pool.kind, pool.slots, pool.room, pool.device) == ("cuda", 2, 2, None)
    assert pool.name == "Ray: 2 GPUs of 2 machines"
    pool.start(path(4), [Trial(model="gcn", hidden=8, layers=2, epochs=1)])
    asked = cluster.asked[-1]
    assert (asked["num_gpus"], asked["num_cpus"], asked["max_retries"]) == (1, 1, 0)
    assert "memory" not in asked
    assert pool.room == 1


def test_a_population_on_a_cpu_asks_for_the_memory_that_it_needs_and_never_for_more_than_there_is(cluster):
    cluster.nodes = [node(16, memory=32 * GB), node(4, name="b", memory=8 * GB)]
    pool = Pool("cpu")
    assert (pool.kind, pool.slots, pool.device) == ("cpu", 20, "cpu")
    small, large = Trial(model="gcn", hidden=8, layers=2, epochs=1), Trial(model="gat", hidden=4096, layers=3, epochs=1)
    for graph, trial in ((path(4), small), (path(100_000), small), (path(100_000), large)):
        pool.start(graph, [trial])
    memory = [asked["memory"] for asked in cluster.asked[1:]]
    assert memory == sorted(memory)
    assert memory[0] < GB
    assert memory[-1] == 32 * GB  # the estimate is above: what no machine has would be waited for for ever
    assert all("num_gpus" not in asked for asked in cluster.asked)


def test_a_population_in_batches_asks_for_less_than_one_on_the_whole_graph(cluster):
    cluster.nodes = [node(16, memory=32 * GB)]
    pool, graph, trial = Pool("cpu"), path(100_000), Trial(model="gcn", hidden=512, layers=3, epochs=1)
    for each in (trial, replace(trial, batching="clusters-32-4")):
        pool.start(graph, [each])
    whole, batches = (asked["memory"] for asked in cluster.asked[1:])
    assert batches < whole / 4


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([node(16, memory=32 * GB), node(4, memory=8 * GB)], 32 * GB - 600 * 2**20),  # less a bare process
        ([node(0, memory=64 * GB), node(4, memory=8 * GB)], 8 * GB - 600 * 2**20),  # a head that trains nothing
        ([node(4, gpus=2)], 5 * GB),
    ],
)
def test_what_one_population_can_have_is_known_before_it_is_cut(cluster, nodes, expected):
    cluster.nodes, cluster.free = nodes, [7 * GB, 5 * GB] * 10
    assert Pool().warm_up() == expected


class WorkerCrashedError(Exception):
    pass


@pytest.mark.parametrize("crashes", [0, 1, 3, 4])
def test_a_lost_worker_is_replaced_and_a_population_that_costs_too_many_is_given_up(cluster, crashes):
    """How many were lost is counted here: Ray would try one whose worker it killed for memory again without end."""
    cluster.nodes, ray = [node(2)], sys.modules["ray"]
    lost = dict.fromkeys(("NodeDiedError", "OutOfMemoryError", "ObjectLostError"), WorkerCrashedError)
    ray.exceptions = SimpleNamespace(RayTaskError=RuntimeError, WorkerCrashedError=WorkerCrashedError, **lost)
    pool, left = Pool("cpu"), [crashes]

    def get(reference):
        if left[0]:
            left[0] -= 1
            raise WorkerCrashedError
        return ["a record"], "3fa2"

    ray.get, ray.wait = get, lambda references, **_: (references[:1], references[1:])
    pool._board = SimpleNamespace(end=SimpleNamespace(remote=lambda number: None))
    number, found = pool.start(path(4), [Trial(model="gcn", hidden=8, layers=2, epochs=1)]), {}
    assert pool.finish(lambda number, result: found.update({number: result})) == number
    if crashes < 4:
        assert (found[number].outcome, found[number].attempts) == (["a record"], crashes + 1)
    else:
        said = "4 workers were lost over it (WorkerCrashedError); is there enough memory?"
        assert (str(found[number].outcome), found[number].attempts) == (said, 4)
    assert pool.room == 2


def test_a_ray_that_was_imported_before_is_not_started_for_others_to_reach(monkeypatch):
    """Ray reads on import whether it keeps to itself."""
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
    ray = ModuleType("ray")
    ray.is_initialized, ray.init = lambda: False, lambda **_: pytest.fail("started")
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(connection, "_imported", [])
    with (
        pytest.raises(InputError, match="set RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 before ray is imported"),
        connected("ray"),
    ):
        pass


def test_a_worker_makes_of_a_parcel_what_it_made_of_it_last_time():
    first, second = pack(path(4)), pack(path(4))
    made = task._unpacked(first)
    assert task._unpacked(replace(first, arrays=[a.copy() for a in first.arrays])) is made  # as Ray hands it over again
    assert task._unpacked(second) is not made
    assert task._unpacked(first) is not made  # only the last is kept


def test_the_same_graph_is_not_sent_again(cluster):
    cluster.nodes = [node(2)]
    pool, graph = Pool("cpu"), path(4)
    for seed in range(5):
        pool.start(graph, [Trial(model="gcn", hidden=8, layers=2, epochs=1, seed=seed)])
    assert len(cluster.sent) == 1
    pool.start(path(4), [Trial(model="gcn", hidden=8, layers=2, epochs=1)])
    assert len(cluster.sent) == 2


def test_machines_of_one_name_are_told_apart(cluster):
    cluster.nodes = [node(1), node(2), node(3, name="b")]
    assert Pool("cpu").labels() == {"a10": "a/a10", "a20": "a/a20", "b30": "b"}


@pytest.mark.parametrize(
    ("nodes", "device", "precision", "message"),
    [
        ([node(4)], "cuda", "float32", "has no GPU to train on; use device='cpu'"),
        ([node(0)], "auto", "float32", "has no CPU to train on"),
        ([node(4)], "cuda:1", "float32", "choose auto, cpu or cuda"),
        ([node(4)], "auto", "tf32", "on GPUs only"),
    ],
)
def test_what_a_cluster_cannot_do_is_named(cluster, nodes, device, precision, message):
    cluster.nodes = nodes
    with pytest.raises(InputError, match=message):
        Pool(device, precision)


def test_the_view_shows_who_trains_what_and_leaves_nothing_behind(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(view_module, "Console", lambda stderr: Console(file=screen, force_terminal=True, width=120))
    view = WorkersView()
    assert view.visible
    report = Report(number=7, node="3fa2", pid=17, attempt=1, done=50, total=200)
    view.update({7: ("node-1", "cora gcn, 40 runs", report)})
    shown = screen.getvalue()
    assert "node-1" in shown
    assert "cora gcn, 40 runs" in shown
    assert " 25 %" in shown
    view.rest()
    cleared = screen.getvalue()[len(shown) :]
    assert "\x1b[2K" in cleared  # the line is erased
    view.rest()
    assert screen.getvalue() == shown + cleared
