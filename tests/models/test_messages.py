"""Messages that are not written down give what PyG's layers give; and what is computed once, or given twice, stays right."""

import pytest
import torch
from torch import nn
from torch.func import functional_call

from sharpen import Graph, Trial
from sharpen.kernels.dropout import member_keys
from sharpen.models import messages
from sharpen.models.inputs import Inputs
from sharpen.training.decision import decide
from sharpen.training.trials import blueprint_of
from sharpen.training.ways import Moment

torch_geometric = pytest.importorskip("torch_geometric")
CONVS = {
    "GCN": lambda a, b: torch_geometric.nn.GCNConv(a, b),
    "SAGE": lambda a, b: torch_geometric.nn.SAGEConv(a, b),
    "GIN": lambda a, b: torch_geometric.nn.GINConv(nn.Linear(a, b)),
    "GATv2": lambda a, b: torch_geometric.nn.GATv2Conv(a, b, heads=2, concat=False),
    "GAT": lambda a, b: torch_geometric.nn.GATConv(a, b),
}


def ten_nodes() -> Graph:
    generator = torch.Generator().manual_seed(3)
    edges = torch.randint(10, (2, 24), generator=generator)
    x = torch.randn(10, 6, generator=generator, dtype=torch.float64)
    return Graph(x=x, edge_index=edges[:, edges[0] != edges[1]], y=torch.arange(10) % 3)


class Layers(nn.Module):
    def __init__(self, num_features: int, num_classes: int, conv: str) -> None:
        super().__init__()
        self.first, self.second = CONVS[conv](num_features, 4), CONVS[conv](4, num_classes)

    def forward(self, x, edge_index):
        return self.second(torch.tanh(self.first(x, edge_index)), edge_index)


class Written(nn.Module):
    """Sums into zeros that nothing but the graph decides on."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(num_features, num_classes)

    def forward(self, x, edge_index):
        out = torch.zeros(x.shape[0], self.linear.out_features, dtype=x.dtype)
        return out.index_add(0, edge_index[1], self.linear(x)[edge_index[0]]) * 2


class Scaled(nn.Module):
    """Rows that are picked, and then anything but weighed and summed."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(num_features, num_classes)

    def forward(self, x, edge_index):
        rows = self.linear(x).index_select(0, edge_index[0])
        gate = torch.cat([rows.exp(), 3 * rows], dim=1).mean(1, keepdim=True)
        total = rows.new_zeros(rows.shape[1], x.shape[0]).t()
        return total.scatter_add(0, edge_index[1][:, None].expand_as(rows), rows * gate)


def way_of(model: type, **arguments: object):
    graph = ten_nodes()
    blueprint = blueprint_of(6, 3, Trial(model=model, model_args=arguments or None))
    return decide(blueprint, Inputs(graph, torch.device("cpu"), torch.float64))


def check(way, steps: int = 3) -> None:
    """Scores and gradients of two members while their weights change, against the module called as it is."""
    parameters, statistics = way.start([Trial(seed=0), Trial(seed=1)])
    for each in parameters.values():
        each.requires_grad_()
    moment = Moment(member_keys([0, 1]), torch.tensor(0), None)
    args = (way.inputs.x, way.inputs.edge_index)
    for _ in range(steps):
        out = way.logits(parameters, statistics, [], True, moment)
        gradients = way.gradients(out.square().sum((1, 2)), parameters, [])
        for r in range(2):
            own = {name: p[r].detach().requires_grad_() for name, p in parameters.items()}
            expected = functional_call(way.base, own, args)
            torch.testing.assert_close(out[r], expected, rtol=1e-10, atol=1e-10)
            wanted = torch.autograd.grad(expected.square().sum(), list(own.values()))
            for found, each in zip(gradients, wanted, strict=True):
                torch.testing.assert_close(found[r], each, rtol=1e-9, atol=1e-9)
        with torch.no_grad():
            for each in parameters.values():
                each.add_(0.1)
            evaluated = way.logits(parameters, statistics, [], False, moment)
            own = {name: p[1] for name, p in parameters.items()}
            torch.testing.assert_close(evaluated[1], functional_call(way.base, own, args), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("conv", CONVS)
def test_layers_of_pyg(conv):
    way = way_of(Layers, conv=conv)
    assert (way.name, way.folds) == ("vmap", True)
    check(way)


@pytest.mark.parametrize("conv", ["GCN", "SAGE", "GIN"])
def test_a_weighted_sum_makes_no_vectors_of_edges(conv, monkeypatch):
    way = way_of(Layers, conv=conv)

    def refuse(*_):
        raise AssertionError("rows were picked")

    monkeypatch.setattr(messages, "pick", refuse)
    check(way)


@pytest.mark.parametrize("model", [Written, Scaled])
def test_whatever_else_is_asked_of_rows(model):
    check(way_of(model))


def test_products_are_not_given_again_after_the_weights_changed():
    class Linear(nn.Module):
        def __init__(self, num_features: int, num_classes: int) -> None:
            super().__init__()
            self.linear = nn.Linear(num_features, num_classes, bias=False)

        def forward(self, x, edge_index):
            return self.linear(x)

    way = way_of(Linear)
    parameters, statistics = way.start([Trial(seed=0)])
    moment = Moment(member_keys([0]), torch.tensor(0), None)
    (weight,) = parameters.values()
    with torch.no_grad():
        before = way.logits(parameters, statistics, [], False, moment)
        assert way.logits(parameters, statistics, [], True, moment).equal(before)
        way.logits(parameters, statistics, [], False, moment).zero_()  # who writes into scores spoils no later ones
        assert way.logits(parameters, statistics, [], True, moment).equal(before)
        way.logits(parameters, statistics, [], False, moment)
        weight.mul_(2)
        torch.testing.assert_close(way.logits(parameters, statistics, [], True, moment), 2 * before)
