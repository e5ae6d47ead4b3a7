"""A population of one with the same weights is the PyG module: logits and gradients, in double precision."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from sharpen import Graph
from sharpen.models.initial import draw
from sharpen.models.inputs import Inputs
from sharpen.models.registry import model_info

NODES, FEATURES, CLASSES, HIDDEN = 9, 5, 3, 4
CPU = torch.device("cpu")


class Reference(nn.Module):
    """The paper's network in PyG's own layers."""

    def __init__(self, model: str, layers: int, norm: str, residual: bool, input_linear: bool) -> None:
        super().__init__()
        self.input = nn.Linear(FEATURES, HIDDEN) if input_linear else None
        widths = [HIDDEN if input_linear else FEATURES] + [HIDDEN] * layers
        make = {
            "mlp": lambda a, b: nn.Linear(a, b),
            "gcn": lambda a, b: GCNConv(a, b),
            "sage": lambda a, b: SAGEConv(a, b),
            "gat": lambda a, b: GATConv(a, b, bias=False),
        }[model]
        norms = {
            "none": lambda: nn.Identity(),
            "layer": lambda: nn.LayerNorm(HIDDEN),
            "batch": lambda: nn.BatchNorm1d(HIDDEN),
        }
        self.graph_free = model == "mlp"
        self.convs = nn.ModuleList([make(a, b) for a, b in itertools.pairwise(widths)])
        self.residuals = nn.ModuleList([nn.Linear(a, b) for a, b in itertools.pairwise(widths)]) if residual else None
        self.norms = nn.ModuleList([norms[norm]() for _ in range(layers)])
        self.head = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if self.input is not None:
            x = self.input(x)
        for i, conv in enumerate(self.convs):
            out = conv(x) if self.graph_free else conv(x, edge_index)
            if self.residuals is not None:
                out = out + self.residuals[i](x)
            x = torch.relu(self.norms[i](out))
        return self.head(x)

    def named(self) -> dict[str, tuple[nn.Parameter, bool]]:
        """Our name of each parameter, and whether ours is its transpose."""
        names: dict[str, tuple[nn.Parameter, bool]] = {}

        def linear(prefix: str, module: nn.Module) -> None:
            names[f"{prefix}.weight"] = (module.weight, True)
            if module.bias is not None:
                names[f"{prefix}.bias"] = (module.bias, False)

        if self.input is not None:
            linear("input", self.input)
        for i, conv in enumerate(self.convs):
            if isinstance(conv, nn.Linear):
                linear(f"layers.{i}", conv)
            elif isinstance(conv, GCNConv):
                names[f"layers.{i}.weight"] = (conv.lin.weight, True)
                names[f"layers.{i}.bias"] = (conv.bias, False)
            elif isinstance(conv, SAGEConv):
                linear(f"layers.{i}", conv.lin_l)
                names[f"layers.{i}.root"] = (conv.lin_r.weight, True)
            else:
                names[f"layers.{i}.weight"] = (conv.lin.weight, True)
                names[f"layers.{i}.source"] = (conv.att_src, False)
                names[f"layers.{i}.target"] = (conv.att_dst, False)
            if self.residuals is not None:
                linear(f"layers.{i}.residual", self.residuals[i])
            if not isinstance(self.norms[i], nn.Identity):
                names[f"layers.{i}.norm.weight"] = (self.norms[i].weight, False)
                names[f"layers.{i}.norm.bias"] = (self.norms[i].bias, False)
        linear("head", self.head)
        return names


def make_graph(sparse: bool) -> Graph:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(NODES, FEATURES, generator=generator)
    if sparse:
        x = (x * (x > 0.8)).to_sparse_csr()
    edges = torch.randint(NODES, (2, 14), generator=generator)
    return Graph(x=x, edge_index=edges, y=[i % CLASSES for i in range(NODES)])


def message_edges(graph: Graph) -> Tensor:
    """The protocol's graph, made by PyG: undirected, self-loops removed, one self-loop per node added."""
    from torch_geometric.utils import add_self_loops, remove_self_loops, to_undirected

    edges = remove_self_loops(to_undirected(graph.edge_index, num_nodes=NODES))[0]
    return add_self_loops(edges, num_nodes=NODES)[0]


OPTIONS = [
    (model, layers, norm, residual, input_linear)
    for model in ("mlp", "gcn", "sage", "gat")
    for layers in (1, 3)
    for norm in ("none", "layer", "batch")
    for residual in (False, True)
    for input_linear in (False, True)
]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("model", "layers", "norm", "residual", "input_linear"), OPTIONS)
def test_one_member_equals_pyg(model, layers, norm, residual, input_linear, sparse):
    torch.manual_seed(1)
    graph = make_graph(sparse)
    reference = Reference(model, layers, norm, residual, input_linear).double()
    for module in reference.norms:  # not the trivial values
        for p in module.parameters():
            nn.init.uniform_(p, 0.5, 1.5)
    network = model_info(model).load().fused(FEATURES, CLASSES, layers, HIDDEN, norm, residual, input_linear)
    inputs = Inputs(graph, CPU, torch.float64)
    parameters = {}
    for name, (theirs, transposed) in reference.named().items():
        ours = theirs.detach().t() if transposed else theirs.detach().reshape(network.initials[name].shape)
        parameters[name] = ours.clone()[None].requires_grad_()
    assert parameters.keys() == network.initials.keys()
    statistics = network.statistics(1, CPU, torch.float64)
    dense = graph.x.to_dense().double()

    for training in (True, False):
        reference.train(training)
        expected = reference(dense, message_edges(graph))
        projected = network.project(parameters, inputs)
        actual = network.logits(parameters, statistics, projected, inputs, training)[0]
        torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)

        reference.zero_grad()
        weight = torch.rand(expected.shape, dtype=torch.float64)
        (expected.sigmoid() * weight).sum().backward()
        gradients = torch.autograd.grad(
            (actual.sigmoid() * weight).sum(), list(parameters.values()), materialize_grads=True
        )
        for (name, (theirs, transposed)), ours in zip(reference.named().items(), gradients, strict=True):
            grad = theirs.grad.t() if transposed else theirs.grad.reshape(ours[0].shape)
            torch.testing.assert_close(ours[0], grad, rtol=1e-10, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}")


def with_weights(graph: Graph) -> Graph:
    weight = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(2)) * 3 + 0.1
    return dataclasses.replace(graph, edge_weight=weight)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("model", ["gcn", "sage", "gat"])
def test_edge_weights_are_those_of_pyg(model, layers, sparse):
    """GCNConv takes weights; SAGEConv does not, and is given the weighted mean; GATConv has no use for them."""
    from torch_geometric.utils import to_undirected

    torch.manual_seed(3)
    graph = with_weights(make_graph(sparse))
    reference = Reference(model, layers, "none", False, False).double()
    network = model_info(model).load().fused(FEATURES, CLASSES, layers, HIDDEN)
    inputs = Inputs(graph, CPU, torch.float64)
    parameters = {
        name: (p.detach().t() if transposed else p.detach().reshape(network.initials[name].shape)).clone()[None]
        for name, (p, transposed) in reference.named().items()
    }
    projected = network.project(parameters, inputs)
    actual = network.logits(parameters, {}, projected, inputs, False)[0]

    x = graph.x.to_dense().double()
    edges, weight = to_undirected(graph.edge_index, graph.edge_weight, num_nodes=NODES, reduce="max")
    dense = torch.zeros(NODES, NODES, dtype=torch.float64)
    dense[edges[0], edges[1]] = weight
    alone = dense.diagonal() == 0
    dense += torch.diag(alone.double())
    assert 0 < alone.sum() < NODES  # some self-loops are given, with weights
    for conv in reference.convs:
        if model == "gcn":
            x = conv(x, edges, weight)
        elif model == "sage":
            x = conv.lin_l(dense / dense.sum(1, keepdim=True) @ x) + conv.lin_r(x)
        else:
            x = conv(x, message_edges(graph))
        x = torch.relu(x)
    torch.testing.assert_close(actual, reference.head(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("model", ["gcn", "sage"])
def test_gradients_pass_through_weighted_edges(model):
    network = model_info(model).load().fused(FEATURES, CLASSES, 2, HIDDEN)
    inputs = Inputs(with_weights(make_graph(sparse=False)), CPU, torch.float64)
    parameters = draw(network.initials, [1], CPU, torch.float64)
    names = list(parameters)

    def logits(*values):
        given = dict(zip(names, values, strict=True))
        return network.logits(given, {}, network.project(given, inputs), inputs, False)

    assert torch.autograd.gradcheck(logits, [parameters[name].requires_grad_() for name in names])


@pytest.mark.parametrize("model", ["mlp", "gcn", "sage", "gat"])
@pytest.mark.parametrize(("residual", "input_linear"), [(False, False), (True, False), (True, True)])
def test_project_gradients_are_those_of_autograd(model, residual, input_linear):
    network = model_info(model).load().fused(FEATURES, CLASSES, 2, HIDDEN, "layer", residual, input_linear)
    inputs = Inputs(make_graph(sparse=True), CPU, torch.float64)
    parameters = draw(network.initials, [3, 4], CPU, torch.float64)
    first = [parameters[name].requires_grad_() for name in network.first_names]
    projected = network.project(parameters, inputs)
    weights = [torch.rand_like(block) for block in projected]
    expected = torch.autograd.grad(projected, first, weights)
    actual = network.project_gradients(weights, parameters, inputs)
    for name, gradient in zip(network.first_names, expected, strict=True):
        torch.testing.assert_close(actual[name], gradient, rtol=1e-12, atol=1e-12)

    into = [torch.full_like(block, torch.nan) for block in projected]
    network.project_into(into, parameters, inputs)
    for actually, block in zip(into, projected, strict=True):
        torch.testing.assert_close(actually, block.detach(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", ["mlp", "gcn", "sage", "gat"])
@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
def test_members_of_a_stack_equal_themselves_alone(model, norm):
    network = model_info(model).load().fused(FEATURES, CLASSES, 2, HIDDEN, norm, residual=True)
    inputs = Inputs(make_graph(sparse=False), CPU, torch.float64)

    def logits(seeds):
        parameters = draw(network.initials, seeds, CPU, torch.float64)
        statistics = network.statistics(len(seeds), CPU, torch.float64)
        return network.logits(parameters, statistics, network.project(parameters, inputs), inputs, True)

    together = logits([5, 6, 7])
    for r, seed in enumerate([5, 6, 7]):
        torch.testing.assert_close(together[r], logits([seed])[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", ["mlp", "gcn", "sage", "gat"])
def test_first_weights_are_distributed_as_in_pyg(model):
    """Many draws of one layer: the same bounds and the same spread as PyG's own initialisation."""
    network = model_info(model).load().fused(FEATURES, CLASSES, 1, HIDDEN, residual=True, input_linear=True)
    ours = draw(network.initials, range(300), CPU, torch.float64)
    theirs: dict[str, list[Tensor]] = {name: [] for name in ours}
    for seed in range(300):
        torch.manual_seed(seed)
        for name, (p, _) in Reference(model, 1, "none", True, True).named().items():
            theirs[name].append(p.detach().flatten())
    for name, values in ours.items():
        reference = torch.cat(theirs[name]).double()
        assert abs(values.max() - reference.max()) <= 0.05 * reference.max() + 1e-12, name
        assert abs(values.std() - reference.std()) <= 0.1 * reference.std() + 1e-12, name
        assert abs(values.mean()) <= 0.1 * reference.std() + 1e-12, name
