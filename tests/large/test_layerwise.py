"""Evaluation layer by layer equals the full batch, whatever the runs of nodes."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from sharpen import Graph
from sharpen.large import layerwise, open_graph, parted, store_graph
from sharpen.large.batches import ClusterBatches
from sharpen.large.inputs import BatchInputs
from sharpen.large.layerwise import layerwise_logits
from sharpen.large.parted import arrange
from sharpen.models.initial import draw
from sharpen.models.inputs import Inputs
from sharpen.models.registry import model_info

CPU, DOUBLE = torch.device("cpu"), torch.float64


def random_graph(sparse: bool, weighted: bool = False) -> Graph:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 7)) * (rng.random((60, 7)) < 0.3)
    edges, weight = rng.integers(60, size=(2, 150)), 0.1 + rng.random(150)
    x = sp.csr_array(x) if sparse else x
    return Graph(x=x, edge_index=edges, y=np.arange(60) % 3, edge_weight=weight if weighted else None)


@pytest.mark.parametrize("input_linear", [False, True])
@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
@pytest.mark.parametrize("model", ["mlp", "gcn", "sage", "gat"])
def test_equals_the_full_batch(model, norm, input_linear, monkeypatch):
    monkeypatch.setitem(layerwise._CHUNK_ACTIVATIONS, "cpu", 500)
    monkeypatch.setattr(parted, "_CHUNK_ENTRIES", 40)
    monkeypatch.setattr(parted.PartedGraph.chunks, "__defaults__", (40,))
    graph = random_graph(sparse=norm == "layer", weighted=norm == "batch")
    network = (
        model_info(model)
        .load()
        .fused(7, 3, layers=3, hidden=6, norm=norm, residual=norm != "none", input_linear=input_linear)
    )
    weights = draw(network.initials, [0, 4], CPU, DOUBLE)
    statistics = {name: value + 0.3 for name, value in network.statistics(2, CPU, DOUBLE).items()}
    inputs = Inputs(graph, CPU, DOUBLE)
    expected = network.logits(weights, statistics, network.project(weights, inputs), inputs, False)
    arranged = arrange(graph, 5)
    found = layerwise_logits(network, weights, statistics, arranged)
    torch.testing.assert_close(found, expected[:, arranged.order], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("model", ["gcn", "gat"])
def test_features_held_on_the_device_are_the_same_features(model, sparse, monkeypatch):
    network = model_info(model).load().fused(7, 3, layers=2, hidden=6)
    weights = draw(network.initials, [0], CPU, DOUBLE)
    graph, found = random_graph(sparse), []
    for room in (0, 10**9):
        monkeypatch.setattr(parted, "_room", lambda device, room=room: room)
        monkeypatch.setattr(parted, "_DENSE_ROWS", 13)
        arranged = parted._renumbered(graph, 5)
        batch = ClusterBatches(arranged, size=2, per_step=1).build(np.array([1, 3]))
        inputs = BatchInputs(arranged, batch, CPU, DOUBLE)
        logits = network.logits(weights, {}, network.project(weights, inputs), inputs, False)
        found.append((layerwise_logits(network, weights, {}, arranged), logits))
        assert all((held is not None) == (room > 0) for held in arranged._held.values())
    torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_stored_graph_is_the_same_graph(weighted, sparse, tmp_path):
    graph = random_graph(sparse, weighted)
    store_graph(graph, tmp_path / "graph")
    stored = open_graph(tmp_path / "graph")
    assert torch.equal(stored.adjacency.col, graph.adjacency.col)
    assert torch.equal(stored.x.to_dense(), graph.x.to_dense())
    assert (stored.adjacency.to_scipy() != graph.adjacency.to_scipy()).nnz == 0
    again = Graph(stored.x, stored.edge_index, stored.y, edge_weight=stored.edge_weight)
    assert stored.fingerprint == again.fingerprint
    assert torch.equal(again.adjacency.col, graph.adjacency.col)
    network = model_info("gcn").load().fused(7, 3, layers=2, hidden=6)
    weights = draw(network.initials, [0], CPU, DOUBLE)
    found = [layerwise_logits(network, weights, {}, arrange(g, 5)) for g in (graph, stored, open_graph(stored.folder))]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_features_of_a_stored_graph_stay_on_disk(tmp_path):
    stored = store_graph(random_graph(sparse=False), tmp_path / "graph")
    arranged = arrange(stored, 5)
    assert isinstance(arranged.x, np.memmap)
    assert isinstance(arranged.propagated("mean", torch.float32), np.memmap)
    assert sorted(p.name for p in (tmp_path / "graph").iterdir() if p.name.startswith(".")) == []


@pytest.mark.parametrize("parts", [1, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sparse_features_gathered_over_a_stored_graph_are_made_once(parts, dtype, tmp_path, monkeypatch):
    graph = random_graph(sparse=True, weighted=True)
    stored = store_graph(graph, tmp_path / "graph")
    expected = arrange(graph, parts).propagated("symmetric", dtype)
    first = arrange(stored, parts).propagated("symmetric", dtype)
    monkeypatch.setattr(parted.PartedGraph, "_make_rows", lambda *given: pytest.fail("gathered again"))
    again = arrange(open_graph(stored.folder), parts).propagated("symmetric", dtype)
    for matrix in (first, again):
        assert (matrix.data.dtype.name, matrix.data.flags.writeable) == (str(dtype).removeprefix("torch."), False)
        assert matrix.shape == expected.shape
        assert np.array_equal(matrix.toarray(), expected.toarray())
    assert list((tmp_path / "graph").rglob(".*")) == []


def test_sparse_features_that_another_process_gathered_first_serve_as_well(tmp_path, monkeypatch):
    stored = store_graph(random_graph(sparse=True), tmp_path / "graph")
    original, slow = parted._write_sparse, arrange(stored, 5)

    def overtaken(*given):
        monkeypatch.setattr(parted, "_write_sparse", original)
        arrange(open_graph(stored.folder), 5).propagated("mean", torch.float32)
        original(*given)

    monkeypatch.setattr(parted, "_write_sparse", overtaken)
    found = slow.propagated("mean", torch.float32)
    expected = arrange(random_graph(sparse=True), 5).propagated("mean", torch.float32)
    assert np.array_equal(found.toarray(), expected.toarray())
