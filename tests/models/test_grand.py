"""Random propagation with consistency, against its formulas on ten nodes."""

import numpy as np
import pytest
import torch

from sharpen.graph import Graph
from sharpen.models.grand import GRAND
from sharpen.models.inputs import Inputs


@pytest.fixture
def ring() -> Graph:
    rng = np.random.default_rng(0)
    nodes = np.arange(10)
    return Graph(x=rng.random((10, 4)), edge_index=np.stack([nodes, (nodes + 1) % 10]), y=nodes % 3)


def dense(graph: Graph, hops: int) -> torch.Tensor:
    """The mean of the powers of the normalised adjacency, times rows of length 1."""
    a = graph.adjacency.to_scipy().toarray()
    a = a / np.sqrt(np.outer(a.sum(1), a.sum(1)))
    x = graph.x.numpy() / np.linalg.norm(graph.x.numpy(), axis=1, keepdims=True)
    return torch.tensor(
        sum(np.linalg.matrix_power(a, k) @ x for k in range(hops + 1)) / (hops + 1), dtype=torch.float32
    )


def test_predictions_are_those_of_an_mlp_of_averaged_features(ring: Graph) -> None:
    torch.manual_seed(0)
    model = GRAND(4, 3, hidden=5, hops=3).eval()
    inputs = Inputs(ring, torch.device("cpu"), torch.float32)
    with torch.no_grad():
        wanted = model.head(model.first(dense(ring, 3)).relu())
        assert model(inputs.x, inputs).numpy() == pytest.approx(wanted.numpy(), abs=1e-5)


def test_agreement_is_part_of_every_gradient(ring: Graph) -> None:
    """With nothing dropped, the two draws are one: what consistency adds is its distance to itself, sharpened."""
    torch.manual_seed(0)
    inputs = Inputs(ring, torch.device("cpu"), torch.float32)
    model = GRAND(4, 3, hidden=5, hops=2, dropout=0.0, dropnode=0.0, consistency=0.7)
    log_p, own = model(inputs.x, inputs)
    (-log_p[torch.arange(10), ring.y].mean() + own).backward()
    got = model.first.weight.grad.clone()
    model.zero_grad()
    p = model.head(model.first(dense(ring, 2)).relu()).softmax(-1)
    target = p.detach() ** 2 / (p.detach() ** 2).sum(-1, keepdim=True)
    loss = -p.log()[torch.arange(10), ring.y].mean() + 0.7 * (p - target).square().sum(-1).mean()
    loss.backward()
    assert got.numpy() == pytest.approx(model.first.weight.grad.numpy(), abs=1e-6)


def test_whole_nodes_are_dropped(ring: Graph) -> None:
    """Without hops and hidden dropout, a draw is the node itself, twice as large, or nothing; the mean of two has three values."""
    torch.manual_seed(0)
    model = GRAND(4, 2, hidden=5, hops=0, dropout=0.0, dropnode=0.5)
    inputs = Inputs(ring, torch.device("cpu"), torch.float32)
    seen = torch.stack([model(inputs.x, inputs)[0].detach().exp()[:, 0] for _ in range(60)])
    assert all(len(np.unique(column.numpy().round(5))) == 3 for column in seen.T)


def test_columns_below_0_are_scaled_as_a_whole() -> None:
    graph = Graph(x=[[-3.0, 0.0], [4.0, 0.0]], edge_index=[[0], [1]])
    inputs = Inputs(graph, torch.device("cpu"), torch.float32)
    model = GRAND(2, 2, hidden=2, hops=0).eval()
    scale = np.sqrt((9 + 16) / 2)
    with torch.no_grad():
        wanted = model.head(model.first(graph.x / scale).relu())
        assert model(inputs.x, inputs).numpy() == pytest.approx(wanted.numpy(), abs=1e-5)
