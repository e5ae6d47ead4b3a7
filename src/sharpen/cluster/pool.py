"""The workers of a Ray cluster as one thing that trains populations, several at a time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from sharpen.cluster.connection import HERE, check_place, connected
from sharpen.cluster.parcel import pack
from sharpen.cluster.task import Board, OtherCode, Report, ready, source, train_population
from sharpen.cluster.view import WorkersView
from sharpen.datasets import Dataset
from sharpen.errors import InputError, as_given
from sharpen.graph import Graph
from sharpen.training import train
from sharpen.training.device import check_precision
from sharpen.training.trials import populations
from sharpen.trial import Record, Trial

_UNITS = {"cuda": "GPU", "cpu": "CPU"}
_LOOK_SECONDS = 0.5
# A population whose worker is lost is trained again, on another; one that costs so many workers is the cause itself.
_RETRIES = 3
# Where trials are shared out all at once: more shares than CPUs, because some take longer than others.
_SHARES_OF_A_CPU = 2
# What a process on a CPU takes, at most as far as was seen: of itself, and of one layer's activations.
_PROCESS_BYTES = 600 * 2**20
_ACTIVATIONS = 10
_LEAST_ACTIVATION_BYTES = 2 * 2**20
# What cutting a graph into parts takes for each entry of the adjacency (docs/scale.md).
_METIS_BYTES = 100


@dataclass(frozen=True)
class Result:
    """What came of a population: its records, or why it cannot be trained; on which machine; and how many workers took it up.

    >>> Result(InputError("one gat does not fit in memory; use a smaller width")).attempts
    1
    """

    outcome: list[Record] | InputError
    node: str = ""
    attempts: int = 1


@dataclass
class _Task:
    """A population under way: how to hand it to a worker, and which worker, counted from 1, has it."""

    number: int
    what: str
    hand_out: Callable[[int], Any] = field(repr=False)
    attempt: int = 1


class Pool:
    """Trains populations on a connected cluster (:func:`sharpen.cluster.connection.connected`).

    A population has one GPU for itself, or one CPU and the memory that it will need; Ray chooses the machine, and another one
    if that is lost. A graph is put into Ray's object store once, and from there comes once to every machine that needs it.
    Workers write nothing: all that they have learnt comes back.

    Args:
        device: ``cpu``, ``cuda``, or ``auto``: GPUs if the cluster has some.
        precision: As :func:`sharpen.train` takes it.
        view: Is told now and then, while the end of a population is waited for, what is under way.
    """

    def __init__(self, device: str = "auto", precision: str = "float32", view: WorkersView | None = None) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray, self._view, self._next_look = ray, view or WorkersView(show=False), 0.0
        self.kind = self._choose_kind(device)
        check_precision(precision, self.kind)
        self._options = {"device": self.kind, "precision": precision}
        self._tasks: dict[Any, _Task] = {}
        self._started = 0
        self._parcels: dict[int, tuple[Dataset | Graph, Any, int]] = {}
        self._remote = ray.remote(train_population)
        # Beside the driver: it lives as long as somebody looks at it.
        near = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        board = ray.remote(Board).options(num_cpus=0, max_restarts=-1, scheduling_strategy=near)
        try:
            self._board = board.remote()
        except ModuleNotFoundError as error:  # from a client server, which has to know what passes through it
            raise _no_code(str(error)) from None

    def _choose_kind(self, device: str) -> str:
        if device not in ("auto", "cpu", "cuda"):
            raise InputError(f"is {device!r}; on a cluster choose auto, cpu or cuda", field="device")
        kind = ("cuda" if self._count("cuda") else "cpu") if device == "auto" else device
        if not self._count(kind):
            other = f"; use {as_given('device', 'cpu')}" if kind == "cuda" else ""
            raise InputError(f"the Ray cluster has no {_UNITS[kind]} to train on{other}")
        return kind

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"]]

    def _count(self, kind: str) -> int:
        return sum(int(node["Resources"].get(_UNITS[kind], 0)) for node in self._nodes())

    @property
    def device(self) -> str | None:
        """The name that records will have; None if there may be several."""
        return "cpu" if self.kind == "cpu" else None

    # A population has its GPU or CPU for itself.
    sharers = 1

    @property
    def slots(self) -> int:
        """How many populations the cluster can train at a time, now."""
        return max(1, self._count(self.kind))

    @property
    def room(self) -> int:
        """How many more can be started before some would wait for others."""
        return max(0, self.slots - len(self._tasks))

    @property
    def name(self) -> str:
        """The workers, for people."""
        return f"Ray: {_many(self.slots, _UNITS[self.kind])} of {_many(len(self._nodes()), 'machine')}"

    def start(self, data: Dataset | Graph, trials: Sequence[Trial], keep: Collection[str] = (), **options: Any) -> int:
        """Has a population trained; gives the number by which :meth:`finish` will tell of it.

        The same data is sent once. Of ``traces``, ``logits`` and ``weights`` only what is to be kept comes back.
        """
        parcel, size = self._sent(data)
        share = {"num_cpus": 1, "num_gpus": 1}
        if self.kind == "cpu":  # what no machine has would be waited for in vain
            share = {"num_cpus": 1, "memory": min(_bytes_needed(data, size, trials[0]), self._largest_memory())}
        number, what = self._started, f"{trials[0].dataset} {trials[0].model}, {_many(len(trials), 'run')}"
        # Handed out again here, and not by Ray, which would not tell a worker how many were lost before it.
        task = self._remote.options(name=what, max_retries=0, scheduling_strategy="SPREAD", **share)
        given = (parcel, list(trials), options | self._options, tuple(keep), number, self._board, source())
        self._tasks[task.remote(*given, 1)] = _Task(number, what, lambda attempt: task.remote(*given, attempt))
        self._started += 1
        return number

    def train(
        self, data: Dataset | Graph, trials: Iterable[Trial], *, keep_weights: bool = False, **options: Any
    ) -> list[Record]:
        """As :func:`sharpen.train`, shared out among all workers; where and in which precision is the pool's own decision."""
        wanted = list(trials)
        keep = ("traces", "logits", "weights") if keep_weights else ("traces", "logits")
        places: dict[int, list[int]] = {}
        records: dict[int, Record] = {}

        def take(number: int, result: Result) -> None:
            if isinstance(result.outcome, InputError):
                raise result.outcome
            records.update(zip(places[number], result.outcome, strict=True))

        for share in _shares(wanted, self.slots * (1 if self.kind == "cuda" else _SHARES_OF_A_CPU)):
            population = [wanted[place] for place in share]
            places[self.start(data, population, keep, keep_weights=keep_weights, **options)] = share
        while places:
            del places[self.finish(take)]
        return [records[place] for place in range(len(wanted))]

    def warm_up(self) -> int:
        """Has workers start, so that what is measured next is training; gives the bytes that one population can have.

        On CPUs that is what the largest machine sets aside for tasks, since Ray waits for memory that a task asks for; on GPUs,
        what is free on the fullest one.
        """
        gpus = {"num_gpus": 1} if self.kind == "cuda" else {}
        task = self._ray.remote(ready).options(num_cpus=1, scheduling_strategy="SPREAD", **gpus)
        free = self._get([task.remote(self.kind) for _ in range(self.slots)])
        return int(min(free)) if self.kind == "cuda" else max(0, self._largest_memory() - _PROCESS_BYTES)

    def finish(self, take: Callable[[int, Result], None]) -> int:
        """Waits until one of the populations is done; gives its number, after ``take`` was told what came of it."""
        result = None
        try:
            while result is None:
                self._look()
                done, _ = self._ray.wait(list(self._tasks), num_returns=1, timeout=_LOOK_SECONDS)
                if done:
                    task = self._tasks.pop(done[0])
                    result = self._result(done[0], task)
        finally:
            self._view.rest()
        self._board.end.remote(task.number)
        take(task.number, result)
        return task.number

    def _result(self, reference: Any, task: _Task) -> Result | None:
        """What came of a population; None if its worker was lost and another one has it now."""
        lost = self._ray.exceptions
        try:
            outcome, node = self._get(reference)
        except (lost.WorkerCrashedError, lost.NodeDiedError, lost.OutOfMemoryError, lost.ObjectLostError) as error:
            if task.attempt <= _RETRIES:
                again = replace(task, attempt=task.attempt + 1)
                self._tasks[task.hand_out(again.attempt)] = again
                return None
            reason = f"{_RETRIES + 1} workers were lost over it ({type(error).__name__}); is there enough memory?"
            return Result(InputError(reason), attempts=task.attempt)
        return Result(outcome, self.labels().get(node, node[:4]), task.attempt)

    def _get(self, reference: Any) -> Any:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, OtherCode):
                raise OtherCode(str(error.cause)) from None
            if "failed to import on the worker" in str(error.cause):
                raise _no_code("its workers cannot import sharpen") from None
            raise

    def labels(self) -> dict[str, str]:
        """By id, the names of the machines; of several with one name, with the beginning of their id."""
        names = {node["NodeID"]: node["NodeManagerHostname"] for node in self._ray.nodes()}
        times = Counter(names.values())
        return {id_: f"{name}/{id_[:4]}" if times[name] > 1 else name for id_, name in names.items()}

    def _look(self) -> None:
        if not self._view.visible or time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _LOOK_SECONDS
        try:
            reports: list[Report] = self._ray.get(self._board.look.remote(), timeout=_LOOK_SECONDS)
        except self._ray.exceptions.RayError:  # nothing to see is no reason to end
            return
        labels, known = self.labels(), {task.number: task.what for task in self._tasks.values()}
        under_way = [report for report in reports if report.number in known]
        named = {each.number: (labels.get(each.node, each.node[:4]), known[each.number], each) for each in under_way}
        self._view.update(named)

    def close(self) -> None:
        """Gives up what is under way."""
        for reference in self._tasks:
            self._ray.cancel(reference, force=True)
        self._tasks.clear()
        self._ray.kill(self._board)

    def _sent(self, data: Dataset | Graph) -> tuple[Any, int]:
        if id(data) not in self._parcels:
            graph = data.graph if isinstance(data, Dataset) else data
            _ = graph.adjacency  # made here, once, and not by every worker
            parcel = pack(data)
            self._parcels[id(data)] = (data, self._ray.put(parcel), parcel.nbytes)
        return self._parcels[id(data)][1:]

    def _largest_memory(self) -> int:
        # A machine without CPUs, as the head of a cluster often is, trains nothing.
        working = [node["Resources"] for node in self._nodes() if node["Resources"].get("CPU", 0) >= 1]
        return max((int(resources.get("memory", 0)) for resources in working), default=0)


@contextmanager
def pool_on(
    on: str,
    device: str = "auto",
    precision: str = "float32",
    progress: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[Pool]:
    """A pool for the time of the block; with ``progress`` it draws a bar for every population under way."""
    with connected(on, say):
        pool = Pool(device, precision, WorkersView(progress))
        try:
            yield pool
        finally:
            pool.close()


@dataclass(frozen=True)
class Trainer:
    """Who trains, and the bytes that one population can have there; None: what is free here, when it is needed.

    >>> IN_THIS_PROCESS.train is train
    True
    """

    train: Callable[..., list[Record]]
    memory_left: int | None = None


IN_THIS_PROCESS = Trainer(train)


@contextmanager
def trainer_on(
    on: str, device: str = "auto", progress: bool = False, say: Callable[[str], None] = lambda line: None
) -> Iterator[Trainer]:
    """Who trains, for the time of the block: this process, or the workers of a cluster.

    >>> with trainer_on("here") as trainer:
    ...     trainer.train is train
    True
    """
    check_place(on)
    if on == HERE:
        yield IN_THIS_PROCESS
        return
    with pool_on(on, device, progress=progress, say=say) as pool:
        say(f"{pool.name}: its workers start ...")
        yield Trainer(pool.train, pool.warm_up())


def _no_code(reason: str) -> InputError:
    return InputError(f"the Ray cluster lacks code ({reason}); install the same graph-sharpen on every machine of it")


def _bytes_needed(data: Dataset | Graph, size: int, trial: Trial) -> int:
    """Memory that a population on a CPU will take at most; :func:`sharpen.train` keeps to few members at a time there."""
    graph = data.graph if isinstance(data, Dataset) else data
    if trial.batching is not None:
        # Of all nodes, to evaluate it.
        one_layer = 4 * graph.num_nodes * (2 * (trial.hidden or 1) + 2 * graph.num_classes)
        return _PROCESS_BYTES + 2 * size + max(one_layer, _METIS_BYTES * graph.adjacency.nnz)
    activation = max(4 * graph.num_nodes * (trial.hidden or 1), _LEAST_ACTIVATION_BYTES)
    return _PROCESS_BYTES + 2 * size + _ACTIVATIONS * (trial.layers or 1) * activation


def _shares(trials: Sequence[Trial], wanted: int) -> list[list[int]]:
    """Places of trials that are trained together, in about so many shares.

    >>> _shares([Trial(model="mlp"), Trial(model="gcn"), Trial(model="gcn", seed=1), Trial(model="gcn", seed=2)], 2)
    [[0], [1, 2], [3]]
    """
    size = -(-len(trials) // wanted)
    return [group[i : i + size] for group in populations(trials) for i in range(0, len(group), size)]


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
