"""Training in batches: the same as the full batch where a batch is all, the same on any number of processes, and resumable."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from sharpen import InputError, Trial, to_frame, train
from sharpen.graph import Graph
from sharpen.graph.splits import Split, class_balanced
from sharpen.large import batches, open_graph, store_graph
from sharpen.models.registry import model_info
from sharpen.training import batched, memory
from sharpen.training import in_batches as training
from sharpen.training.memory import choose_batching, full_batch_bytes
from sharpen.training.ranks import Ranks
from tests.large.neighbors import COMPILED, EveryNeighbor
from tests.training import job
from tests.training.job import ring_of_towns, trials

GRAPH = ring_of_towns()
SPLIT = class_balanced(GRAPH.y, per_class=3, val=15, test=20, seed=0)


def run(some, graph=GRAPH, **more):
    return train(
        graph, some, splits=[SPLIT], device="cpu", precision="float64", progress=False, keep_weights=True, **more
    )


@pytest.mark.parametrize("model", ["mlp", "gcn", "sage", "gat"])
def test_one_batch_of_all_parts_is_the_full_batch(model):
    """Every step sees everything, so that weights, traces and scores are those of the full batch."""
    settings = {"model": model, "layers": 2, "hidden": 8, "norm": "batch", "dropout": 0.0, "epochs": 8, "lam": 0.4}
    (whole,) = run([Trial(**settings)])
    (parts,) = run([Trial(**settings, batching="clusters-6-6")])
    for name, weight in whole.weights.items():
        np.testing.assert_allclose(parts.weights[name], weight, rtol=1e-8, atol=1e-10)
    for name, trace in whole.traces.items():
        np.testing.assert_allclose(parts.traces[name], trace, rtol=1e-5)
    np.testing.assert_allclose(parts.logits, whole.logits, rtol=1e-8, atol=1e-8)
    assert (parts.val, parts.test, parts.best_epoch) == (whole.val, whole.test, whole.best_epoch)


def test_class_weights_and_the_last_epoch_mean_the_same_in_batches():
    """The weighted mean's normaliser is that of all labels: one batch is the full batch, and few labels in one are no harm."""
    settings = {"hidden": 8, "dropout": 0.0, "epochs": 5, "lam": 0.4}
    terms = {"class_weight": [1.0, 5.0, 0.5], "choose": "last"}
    (whole,) = run([Trial(**settings)], **terms)
    (parts,) = run([Trial(**settings, batching="clusters-6-6")], **terms)
    np.testing.assert_allclose(parts.logits, whole.logits, rtol=1e-8, atol=1e-8)
    assert whole.best_epoch == parts.best_epoch == 4
    (few,) = run([Trial(**settings, batching="clusters-12-1")], **terms)
    assert few.status == "ok"


def test_a_member_does_not_depend_on_who_trains_beside_it():
    both = run(trials(4))
    for record, trial in zip(both, trials(4), strict=True):
        (alone,) = run([trial])
        np.testing.assert_allclose(alone.traces["loss"], record.traces["loss"], rtol=1e-6)
        np.testing.assert_allclose(alone.logits, record.logits, rtol=1e-9, atol=1e-9)


def test_a_diverging_member_spoils_no_other():
    good, bad = run([trials(5)[1], Trial(**(trials(5)[1].__dict__ | {"lr": 1e200}))])
    (alone,) = run([trials(5)[1]])
    assert bad.status == "diverged"
    np.testing.assert_allclose(good.logits, alone.logits, rtol=1e-9, atol=1e-9)


def test_batches_learn_what_the_full_batch_learns():
    full = run([Trial(hidden=16, epochs=30, lam=0.1, dropout=0.2)])[0]
    some = run([Trial(hidden=16, epochs=30, lam=0.1, dropout=0.2, batching="clusters-12-3")])[0]
    assert some.test >= full.test - 0.1


def test_a_stored_graph_gives_the_same_records(tmp_path):
    stored = store_graph(GRAPH, tmp_path / "ring")
    for a, b in zip(run(trials(3)), run(trials(3), graph=stored), strict=True):
        assert np.array_equal(a.logits, b.logits)


def test_weights_and_logits_are_not_kept_unless_asked_for():
    (record,) = train(GRAPH, trials(1)[:1], splits=[SPLIT], device="cpu", progress=False)
    assert record.logits is None
    assert record.weights == {}
    assert to_frame([record])["batching"].tolist() == ["clusters-12-2-2"]


def same(a, b):
    assert set(a.files) == set(b.files)
    for name in a.files:
        if name != "world":
            np.testing.assert_allclose(
                a[name], b[name], rtol=1e-6 if "traces" in name else 1e-10, atol=1e-12, err_msg=name
            )


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")
def test_two_processes_train_as_one_and_go_on_as_any_number(tmp_path):
    """torchrun with 2 processes equals 1; stopped as 1 it goes on as 2; killed as 2 it goes on as 1.

    The two find different amounts of memory, and evaluate runs of nodes that the one evaluates at once.
    """
    job.run(tmp_path / "one.npz", None)
    with pytest.raises(job.Stopped), job.stopping_at(3, job.stop):
        job.run(None, tmp_path / "stopped-as-one")
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")])
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    ended = subprocess.run(
        [*start, str(root / "tests/training/job.py"), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode != 0, "its last part kills itself"
    job.run(tmp_path / "went-on-as-one.npz", tmp_path / "stopped-as-two")
    one = np.load(tmp_path / "one.npz")
    for name, world in (("two", 2), ("went-on-as-two", 2), ("went-on-as-one", 1)):
        assert (tmp_path / f"{name}.npz").exists(), ended.stderr.decode()[-2000:]
        other = np.load(tmp_path / f"{name}.npz")
        assert other["world"] == world
        same(one, other)
    kept = [path for path in (tmp_path / "stopped-as-two").iterdir() if path.suffix != ".part"]  # killed as it wrote
    assert [path.suffix for path in kept] == [".safetensors"]
    told = json.loads((tmp_path / "compare/comparison.json").read_text())
    assert told["settings"]["batching"].startswith("clusters-"), (
        "the first process found too little memory, the other enough"
    )
    assert told["settings"]["batching"].endswith("-4-2"), "two batches a step, for two processes"


def test_a_finished_checkpoint_trains_nothing_again(tmp_path, monkeypatch):
    first = run(trials(3), checkpoints=tmp_path)
    monkeypatch.setattr(batched.BatchedPopulation, "epoch", lambda self: pytest.fail("trained again"))
    second = run(trials(3), checkpoints=tmp_path)
    for a, b in zip(first, second, strict=True):
        assert (a.test, a.best_epoch) == (b.test, b.best_epoch)
        assert np.array_equal(a.logits, b.logits)


@pytest.mark.parametrize("later", [1, 4])
def test_it_goes_on_with_more_or_less_memory_than_before(later, tmp_path, monkeypatch):
    """As many train together as when it was stopped, in the second population of two."""
    four = [Trial(**(trials(3)[1].__dict__ | {"seed": seed})) for seed in range(4)]
    whole = run(four)
    original, seen = batched.BatchedPopulation.epoch, []

    def epoch(self):
        seen.append((self.members, int(self.epoch_number)))
        if len(seen) == 6:
            raise job.Stopped
        original(self)

    monkeypatch.setattr(batched.BatchedPopulation, "epoch", epoch)
    monkeypatch.setattr(training, "members_in_batches", lambda *given: 2)
    with pytest.raises(job.Stopped):
        run(four, checkpoints=tmp_path)
    monkeypatch.setattr(training, "members_in_batches", lambda *given: later)
    resumed = run(four, checkpoints=tmp_path)
    assert seen == [(2, 0), (2, 1), (2, 2), (2, 0), (2, 1), (2, 2), (2, 2)]
    for a, b in zip(whole, resumed, strict=True):
        np.testing.assert_allclose(a.logits, b.logits, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("stored", [False, True])
def test_a_checkpoint_of_other_data_is_not_taken_for_this(stored, tmp_path):
    """Of as many nodes and edges, and of splits of the same name."""
    turned = np.roll(GRAPH.y.numpy(), 1)
    other = Graph(GRAPH.x, GRAPH.edge_index, turned, name="ring")
    graphs = [store_graph(g, tmp_path / str(i)) if stored else g for i, g in enumerate((GRAPH, other))]
    run(trials(2), graph=graphs[0], checkpoints=tmp_path / "kept")
    with pytest.raises(InputError, match=r"another training .content"):
        run(trials(2), graph=graphs[1], checkpoints=tmp_path / "kept")
    with pytest.raises(InputError, match=r"another training .splits"):
        train(
            graphs[0], trials(2), splits=[Split(SPLIT.name, SPLIT.val, SPLIT.train, SPLIT.test)], device="cpu",
            precision="float64", progress=False, keep_weights=True, checkpoints=tmp_path / "kept",
        )  # fmt: skip
    with pytest.raises(InputError, match=r"another training .precision float64, now float32"):
        train(graphs[0], trials(2), splits=[SPLIT], device="cpu", progress=False, checkpoints=tmp_path / "kept")


def same_degrees(graph):
    """Two edges that change one end with each other: rows are as long as before."""
    edges = {tuple(sorted(edge)) for edge in graph.edge_index.T.tolist()}
    a, b = sorted(edges)[0]
    c, d = next(
        (c, d) for c, d in sorted(edges) if len({a, b, c, d}) == 4 and not {(a, d), tuple(sorted((c, b)))} & edges
    )
    swapped = edges - {(a, b), (c, d)} | {(a, d), (c, b)}
    return Graph(graph.x, np.array(sorted(swapped)).T, graph.y, name=graph.name)


@pytest.mark.parametrize("differs", ["features", "sparse", "ends", "weights", "labels"])
@pytest.mark.parametrize("recorded", [True, False])
def test_a_checkpoint_of_another_stored_graph_is_not_taken_for_this(differs, recorded, tmp_path):
    """Of the same degrees and, but for one case, the same labels; also where no hash was kept when they were stored."""
    first, weight = GRAPH, 1 + np.arange(GRAPH.num_edges) % 3
    if differs == "features":
        other = Graph(GRAPH.x * 2, GRAPH.edge_index, GRAPH.y, name="ring")
    elif differs == "sparse":
        first, other = (
            Graph(sp.csr_array(f * GRAPH.x.numpy()), GRAPH.edge_index, GRAPH.y, name="ring") for f in (1, 2)
        )
    elif differs == "weights":
        first, other = (
            Graph(GRAPH.x, GRAPH.edge_index, GRAPH.y, name="ring", edge_weight=w) for w in (weight, weight**2)
        )
    else:
        other = same_degrees(GRAPH) if differs == "ends" else GRAPH
    graphs = [store_graph(graph, tmp_path / str(i)) for i, graph in enumerate((first, other))]
    for graph in graphs:
        assert torch.equal(graph.adjacency.rowptr, graphs[0].adjacency.rowptr)
        if not recorded:
            about = json.loads((graph.folder / "graph.json").read_text())
            del about["content"]
            (graph.folder / "graph.json").write_text(json.dumps(about))
    if differs == "labels":
        graphs[1] = dataclasses.replace(graphs[0], y=np.roll(GRAPH.y.numpy(), 1))
    some = [Trial(hidden=4, epochs=1, batching="clusters-6-3")]
    run(some, graph=graphs[0], checkpoints=tmp_path / "kept")
    run(some, graph=open_graph(graphs[0].folder), checkpoints=tmp_path / "kept")
    with pytest.raises(InputError, match=r"another training .content"):
        run(some, graph=graphs[1], checkpoints=tmp_path / "kept")


def test_a_damaged_checkpoint_is_named(tmp_path):
    run(trials(2), checkpoints=tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="remove it to start anew"):
        run(trials(2), checkpoints=tmp_path)


def test_more_processes_than_batches_a_step_are_refused():
    network = model_info("gcn").load().fused(3, 3, layers=2, hidden=8)
    with pytest.raises(InputError, match="give at least 3, as a last number: clusters-12-2-3"):
        batched.BatchedPopulation(
            network, GRAPH, batched.Batching.parse("clusters-12-2-2"), "accuracy", trials(1), [SPLIT] * 2,
            torch.device("cpu"), torch.float64, ranks=Ranks(0, 3),
        )  # fmt: skip


def test_the_full_batch_is_cut_only_where_it_does_not_fit(monkeypatch):
    network, cpu = model_info("gcn").load().fused(3, 3, layers=2, hidden=8), torch.device("cpu")
    need = full_batch_bytes(network, GRAPH, torch.float32)
    # A batch and the evaluation's vectors are to fit: the less is free, the smaller the batches.
    for free, expected in (
        (2 * need, None),
        (need, "clusters-16-4"),
        (need // 2, "clusters-20-4"),
        (need // 9, "clusters-60-2"),
    ):
        monkeypatch.setattr(memory, "memory_left", lambda device, free=free: free)
        name, note = choose_batching("auto", network, GRAPH, cpu, torch.float32)
        assert name == expected
        assert ("batches" in note) == (expected is not None)
        assert choose_batching("full", network, GRAPH, cpu, torch.float32) == (None, "")
    name, note = choose_batching("auto", network, GRAPH, cpu, torch.float32, left=need)  # elsewhere is not here
    assert name is not None
    assert "free on a worker" in note
    assert choose_batching("clusters-9-3", network, GRAPH, cpu, torch.float32)[0] == "clusters-9-3"
    with pytest.raises(InputError, match="choose auto, full, clusters or neighbors"):
        choose_batching("clumps", network, GRAPH, cpu, torch.float32)


def test_members_are_planned_for_training_too(monkeypatch):
    """Deep attention takes more in a batch's training step than in the evaluation of all nodes."""
    network = model_info("gat").load().fused(3, 3, layers=15, hidden=64)
    batching, gpu = batched.Batching.parse("clusters-4-2"), torch.device("cuda")
    monkeypatch.setattr(memory, "memory_left", lambda device: 10**7)
    many = memory.members_in_batches(network, GRAPH, batching, 1000, gpu, torch.float32)
    assert many < 1000
    assert many * full_batch_bytes(network, GRAPH, torch.float32, "cuda") / 2 <= 10**7


def test_out_of_memory_halves_a_population_in_batches(monkeypatch, tmp_path):
    some = [Trial(hidden=8, epochs=2, seed=seed, batching="clusters-6-2") for seed in range(5)]
    expected = run(some)
    epoch, sizes = batched.BatchedPopulation.epoch, []

    def small_card(self, most):
        sizes.append(self.members)
        if self.members > most:
            raise torch.OutOfMemoryError("out of memory")
        epoch(self)

    monkeypatch.setattr(training, "members_in_batches", lambda *args: 5)
    monkeypatch.setattr(batched.BatchedPopulation, "epoch", lambda self: small_card(self, 2))
    found = run(some, checkpoints=tmp_path)
    assert sizes[:3] == [5, 3, 2]
    assert [record.trial for record in found] == [record.trial for record in expected]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.logits, b.logits, rtol=1e-10, atol=1e-10)
    monkeypatch.setattr(batched.BatchedPopulation, "epoch", lambda self: small_card(self, 0))
    with pytest.raises(
        InputError, match="clusters-6-2 with 1 runs at once do not fit in memory on cpu; cut the graph finer"
    ):
        run(some)


def test_seconds_go_on_from_a_checkpoint(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(training.time, "perf_counter", lambda: clock[0])
    epoch = batched.BatchedPopulation.epoch

    def slowly(self):
        if clock[0] == 30:
            clock[0] += 1000  # while it is down
            raise job.Stopped
        epoch(self)
        clock[0] += 10

    monkeypatch.setattr(batched.BatchedPopulation, "epoch", slowly)
    one = [Trial(hidden=8, epochs=5, batching="clusters-6-2")]
    with pytest.raises(job.Stopped):
        run(one, checkpoints=tmp_path)
    (record,) = run(one, checkpoints=tmp_path)
    assert record.seconds == 50


@pytest.mark.parametrize("model", ["mlp", "gcn", "sage", "gat"])
def test_one_batch_of_all_nodes_with_all_neighbors_is_the_full_batch(model, monkeypatch):
    if not COMPILED:
        monkeypatch.setattr(batches, "_neighbor_loader", EveryNeighbor)
    settings = {"model": model, "layers": 2, "hidden": 8, "norm": "layer", "dropout": 0.0, "epochs": 4, "lam": 0.4}
    (whole,) = run([Trial(**settings)])
    (drawn,) = run([Trial(**settings, batching=f"neighbors-all-{GRAPH.num_nodes}")])
    np.testing.assert_allclose(drawn.logits, whole.logits, rtol=1e-8, atol=1e-8)
    (few,) = run([Trial(**settings, batching="neighbors-all-10")])
    assert (few.status, few.traces["loss"].shape) == ("ok", whole.traces["loss"].shape)


def test_learned_lambda_and_batches_are_refused_together():
    with pytest.raises(InputError, match="whole graph only"):
        Trial(lam_max=1.0, batching="clusters-4-2")
