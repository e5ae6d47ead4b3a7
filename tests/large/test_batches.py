"""What a batch says of the whole graph, in expectation over all batches that there are."""

from itertools import combinations

import numpy as np
import pytest
import torch
from torch_geometric.utils import subgraph

from sharpen.errors import InputError
from sharpen.large import batches as batches_module
from sharpen.large import parted as parted_module
from sharpen.large.batches import ClusterBatches, NeighborBatches
from sharpen.large.inputs import BatchInputs
from sharpen.large.parted import arrange
from sharpen.loss import SharpeningLoss
from sharpen.models.initial import draw
from sharpen.models.inputs import Inputs
from sharpen.models.registry import model_info
from tests.large.neighbors import COMPILED, EveryNeighbor, OneNeighbor
from tests.large.towns import SPLIT, towns

CPU, DOUBLE = torch.device("cpu"), torch.float64


def full_batch(network, weights, graph):
    """Loss and gradients over the whole graph, by the public objective."""
    inputs = Inputs(graph, CPU, DOUBLE)
    logits = network.logits(weights, {}, network.project(weights, inputs), inputs, True)
    loss = SharpeningLoss(lam=0.7, lam_labeled=-0.4)(logits[0], graph.y, labeled=SPLIT.train)
    return [loss, *torch.autograd.grad(loss, list(weights.values()))]


def estimate(network, weights, graph, parted, batch):
    """The same from one batch, written out node by node as the docstring says it."""
    inputs = BatchInputs(parted, batch, CPU, DOUBLE)
    logits = network.logits(weights, {}, network.project(weights, inputs), inputs, True)[0]
    old = torch.from_numpy(parted.order[batch.nodes[: batch.core]])
    loss = torch.zeros((), dtype=DOUBLE)
    for place, node in enumerate(old.tolist()):
        p = logits[place].softmax(0)
        if node in SPLIT.train:
            count, term = len(SPLIT.train), -p[graph.y[node]].log() - 0.4 * (1 - p.square().sum())
        else:
            count, term = graph.num_nodes - len(SPLIT.train), 0.7 * (1 - p.square().sum())
        loss = loss + term / count / batch.probability
    return [loss, *torch.autograd.grad(loss, list(weights.values()), materialize_grads=True)]


def network_and_weights(model, layers, graph):
    network = model_info(model).load().fused(graph.num_features, 2, layers=layers, hidden=4)
    weights = {name: w.requires_grad_() for name, w in draw(network.initials, [0], CPU, DOUBLE).items()}
    return network, weights


def mean_over(estimates):
    return [torch.stack(values).mean(0) for values in zip(*estimates, strict=True)]


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(
    ("model", "layers", "roads"),
    [("gcn", 2, False), ("sage", 3, False), ("gat", 2, False), ("mlp", 2, True), ("gcn", 1, True), ("sage", 1, True)],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_all_cluster_batches_together_are_the_full_batch(weighted, model, layers, roads, size):
    """Value and gradient, wherever no edge that matters is cut: towns apart, or a first layer, which sees all edges."""
    graph = towns(roads, weighted=weighted)
    parted = arrange(graph, 4)
    network, weights = network_and_weights(model, layers, graph)
    batches = ClusterBatches(parted, size, per_step=1)
    everyone = [batches.build(np.array(parts)) for parts in combinations(range(4), size)]
    found = mean_over([estimate(network, weights, graph, parted, batch) for batch in everyone])
    for a, b in zip(found, full_batch(network, weights, graph), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_counting_in_the_batch_instead_would_be_biased():
    """The test above can fail: means over the batch's own counts do not average to the mean."""
    graph = towns(roads=True)
    parted = arrange(graph, 4)
    network, weights = network_and_weights("gcn", 1, graph)
    batches = ClusterBatches(parted, 2, per_step=1)
    inputs = Inputs(graph, CPU, DOUBLE)
    whole = network.logits(weights, {}, network.project(weights, inputs), inputs, True)[0]
    losses = []
    for parts in combinations(range(4), 2):
        old = parted.order[batches.build(np.array(parts)).nodes]
        labeled = [place for place, node in enumerate(old) if node in SPLIT.train]
        losses.append(SharpeningLoss(lam=0.7, lam_labeled=-0.4)(whole[old], graph.y[old], labeled=labeled))
    assert abs(torch.stack(losses).mean() - full_batch(network, weights, graph)[0]) > 1e-4


def test_a_cluster_batch_is_the_graph_on_its_parts():
    graph = towns(roads=True)
    parted = arrange(graph, 4)
    batch = ClusterBatches(parted, 2, per_step=1).build(np.array([3, 1]))
    old = torch.from_numpy(parted.order[batch.nodes])
    expected, _ = subgraph(old, graph.edge_index, num_nodes=12)
    row = np.repeat(np.arange(len(old)), np.diff(batch.rowptr))
    found = {(int(old[a]), int(old[b])) for a, b in zip(row, batch.col, strict=True) if a != b}
    assert found == {(a, b) for a, b in expected.T.tolist()} | {(b, a) for a, b in expected.T.tolist()}
    assert batch.probability == 0.5


@pytest.mark.parametrize("gather", ["gcn", "sage"])
def test_what_is_seen_of_the_neighbours_stands_for_all_of_them(gather, monkeypatch):
    """Every row of P in a batch weighs its neighbours, all in all, as the full graph does where degrees are equal."""
    graph = towns(roads=False)
    # Every node its own part: in a batch of ten, a node sees two neighbours, one, or none.
    monkeypatch.setattr(parted_module, "metis", lambda adjacency, parts: np.arange(12))
    parted = arrange(graph, 12)
    network, _ = network_and_weights(gather, 2, graph)
    batch = ClusterBatches(parted, 10, per_step=1).build(np.arange(10))
    csr = BatchInputs(parted, batch, CPU, DOUBLE).matrix(network.convolution.matrix)
    torch.testing.assert_close(csr.matrix.to_dense().sum(1), torch.ones(10, dtype=DOUBLE))
    torch.testing.assert_close(csr.t.matrix.to_dense(), csr.matrix.to_dense().T)


def test_an_epoch_meets_every_node_once_and_in_another_order_each_time():
    parted = arrange(towns(roads=True), 4)
    batches = ClusterBatches(parted, 1, per_step=2)
    epochs = [np.concatenate([batches.build(chosen).nodes for chosen in batches.draw(epoch)]) for epoch in range(4)]
    assert batches.per_epoch == 4
    assert all(sorted(nodes) == list(range(12)) for nodes in epochs)
    assert len({nodes.tobytes() for nodes in epochs}) > 1


@pytest.mark.parametrize(("model", "layers"), [("gcn", 2), ("gcn", 3), ("sage", 2), ("gat", 2), ("mlp", 2)])
def test_all_neighbor_batches_together_are_the_full_batch(model, layers, monkeypatch):
    """With all neighbours a batch is exact on any graph, so that the estimate is without bias there too."""
    if not COMPILED:
        monkeypatch.setattr(batches_module, "_neighbor_loader", EveryNeighbor)
    graph = towns(roads=True)
    parted = arrange(graph, 1)
    network, weights = network_and_weights(model, layers, graph)
    batches = NeighborBatches(parted, size=4, fanout=None, hops=network.hops, per_step=1)
    everyone = [batches.build(chosen) for chosen in batches.draw(epoch=5)]  # a partition: each node in one, 1 of 3
    assert {batch.probability for batch in everyone} == {4 / 12}
    found = mean_over([estimate(network, weights, graph, parted, batch) for batch in everyone])
    for a, b in zip(found, full_batch(network, weights, graph), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("loader", ["compiled", "stands in"])
def test_drawn_neighbors_depend_on_the_batch_alone(loader, monkeypatch):
    """Whoever builds which batches, and whatever else draws: so that the number of processes changes nothing."""
    if loader == "stands in":
        monkeypatch.setattr(batches_module, "_neighbor_loader", OneNeighbor)
    elif not COMPILED:
        pytest.skip("neither pyg-lib nor torch-sparse is installed")
    batches = NeighborBatches(arrange(towns(roads=True), 1), size=3, fanout=1, hops=1, per_step=2)
    drawn = batches.draw(epoch=2)
    torch.manual_seed(11)
    before = torch.get_rng_state()
    all_of_them = [batches.build(chosen, moment) for moment, chosen in enumerate(drawn)]
    assert torch.equal(torch.get_rng_state(), before), "the caller's draws go on as if nothing had been"
    torch.rand(5)
    batches.draw(epoch=2)
    every_second = [batches.build(drawn[moment], moment) for moment in (3, 1)]
    for a, b in zip(every_second, (all_of_them[3], all_of_them[1]), strict=True):
        assert a.nodes.tolist() == b.nodes.tolist()
    assert len({tuple(batches.build(drawn[0], moment).nodes) for moment in range(20)}) > 1, "other moments draw others"


def test_batches_built_one_after_the_other_do_not_see_each_other(monkeypatch):
    """One array of places serves all of them, and is left clean, even by one that failed."""
    parted = arrange(towns(roads=True), 4)
    batches = ClusterBatches(parted, 2, per_step=1)
    wanted = [np.array(parts) for parts in combinations(range(4), 2)]
    fresh = [ClusterBatches(parted, 2, per_step=1).build(parts) for parts in wanted]
    monkeypatch.setattr(np, "cumsum", lambda values: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        batches.build(np.array([0, 3]))
    monkeypatch.undo()
    for parts, expected in zip(wanted, fresh, strict=True):
        found = batches.build(parts)
        for name in ("nodes", "rowptr", "col"):
            assert np.array_equal(getattr(found, name), getattr(expected, name))


def test_a_batch_costs_nothing_for_nodes_outside_of_it(monkeypatch):
    """No array over all nodes is made for a batch."""
    batches = ClusterBatches(arrange(towns(roads=True), 4), 1, per_step=1)
    monkeypatch.setattr(np, "full", lambda *args, **kwargs: pytest.fail("an array over all nodes"))
    batches.build(np.array([2]))


def test_without_compiled_samplers_neighbors_are_refused(monkeypatch):
    import torch_geometric.typing as has

    monkeypatch.setattr(has, "WITH_PYG_LIB", False)
    monkeypatch.setattr(has, "WITH_TORCH_SPARSE", False)
    with pytest.raises(InputError, match="pyg-lib or torch-sparse"):
        NeighborBatches(arrange(towns(roads=True), 1), 4, 10, 2, 1)


def test_without_pymetis_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pymetis", None)
    with pytest.raises(InputError, match=r"graph-sharpen\[large\]"):
        arrange(towns(roads=True), 3)
