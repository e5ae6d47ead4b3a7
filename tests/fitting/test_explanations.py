"""Parts of a prediction add up to it, and what decides is named."""

import numpy as np
import pytest
import scipy.sparse

from sharpen import Graph
from sharpen.fitting.explanations import Explainer, LinearScores, stand_in


def ten_nodes(*, sparse: bool = False, seed: int = 0) -> Graph:
    random = np.random.default_rng(seed)
    x = random.normal(size=(10, 4)) * (random.random((10, 4)) < 0.6)
    ends = [[0, 1, 2, 3, 4, 5, 6, 0, 2], [1, 2, 3, 4, 5, 6, 7, 7, 8]]  # node 9 has no edge
    return Graph(x=scipy.sparse.csr_array(x) if sparse else x, edge_index=ends)


def dense_hop(graph: Graph) -> np.ndarray:
    a = np.eye(graph.num_nodes)
    source, target = graph.edge_index.numpy()
    a[source, target] = a[target, source] = 1
    return a / np.sqrt(np.outer(a.sum(0), a.sum(0)))


def some_scores(seed: int = 1, hops: int = 3) -> LinearScores:
    random = np.random.default_rng(seed)
    own, around, labels = random.normal(size=(4, 3)), random.normal(size=(4, 3)), random.normal(size=(3, 3))
    return LinearScores(own, around, labels, random.normal(size=3), hops, random.uniform(0.5, 2, 10))


KNOWN = np.array([0, -1, 2, -1, -1, 1, -1, -1, -1, -1])


@pytest.mark.parametrize("sparse", [False, True])
def test_scores_are_those_of_the_dense_formula(sparse: bool) -> None:
    graph, model = ten_nodes(sparse=sparse), some_scores()
    hop, x = dense_hop(graph), graph.x.to_dense().numpy()
    y = np.array([[k == c for c in range(3)] for k in KNOWN], dtype=float)
    mean = sum(np.linalg.matrix_power(hop, k) for k in (1, 2, 3)) / 3
    wanted = model.scale[:, None] * (x @ model.own + mean @ (x @ model.around + y @ model.labels)) + model.bias
    np.testing.assert_allclose(Explainer(graph, KNOWN, model).scores(), wanted, atol=1e-6)


@pytest.mark.parametrize("block", [1, 512])
def test_parts_over_neighbours_and_over_columns_add_up_to_the_log_odds(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways of finding what columns around a node tell; every part by a formula of its own, and none left over."""
    monkeypatch.setattr("sharpen.fitting.explanations._BLOCK", block)
    graph, model = ten_nodes(), some_scores()
    hop, x, nodes = dense_hop(graph), graph.x.numpy().astype(float), list(range(10))
    y = np.array([[k == c for c in range(3)] for k in KNOWN], dtype=float)
    powers = [np.linalg.matrix_power(hop, k) for k in range(4)]
    sent = sum(powers[:3]) / 3 @ (x @ model.around + y @ model.labels)
    around, labels = sum(powers[1:]) / 3 @ x, sum(powers[1:]) / 3 @ y
    for why in Explainer(graph, KNOWN, model).explain(nodes, [0] * 10, [1] * 10, most=99):
        v, t = why.node, model.scale[why.node]
        by_neighbor = t * hop[v] * (sent[:, 0] - sent[:, 1])
        own = t * x[v] @ (model.own[:, 0] - model.own[:, 1]) + by_neighbor[v]
        others = {u: part for u, part in enumerate(by_neighbor) if u != v and part > 0}
        assert dict(why.neighbors) == pytest.approx(others, abs=1e-6)
        bias = model.bias[0] - model.bias[1]
        assert own + np.delete(by_neighbor, v).sum() + bias == pytest.approx(why.log_odds, abs=1e-6)
        columns = {(j, False): t * x[v, j] * (model.own[j, 0] - model.own[j, 1]) for j in range(4)}
        columns |= {(j, True): t * around[v, j] * (model.around[j, 0] - model.around[j, 1]) for j in range(4)}
        columns[None, True] = t * labels[v] @ (model.labels[:, 0] - model.labels[:, 1])
        assert sum(columns.values()) + bias == pytest.approx(why.log_odds, abs=1e-6)
        named = {(reason.feature, reason.around): reason.part for reason in why.columns}
        assert named == pytest.approx({key: part for key, part in columns.items() if part > 1e-12}, abs=1e-6)
        assert [reason.part for reason in why.columns] == sorted(named.values(), reverse=True)
        assert all(reason.low == (x[v, reason.feature] < 0) for reason in why.columns if not reason.around)


def test_a_node_without_an_edge_is_explained_by_its_columns() -> None:
    [why] = Explainer(ten_nodes(), KNOWN, some_scores()).explain([9], [0], [1])
    assert why.neighbors == []


def test_the_stand_in_is_the_ridge_regression_of_the_logarithms() -> None:
    graph = ten_nodes()
    p = np.random.default_rng(3).dirichlet(np.ones(3), size=10)
    model = stand_in(graph, KNOWN, p)
    hop, x = dense_hop(graph), graph.x.numpy().astype(float)
    y = np.array([[k == c for c in range(3)] for k in KNOWN], dtype=float)
    mean = sum(np.linalg.matrix_power(hop, k) for k in range(1, 9)) / 8
    free = KNOWN < 0
    features = np.hstack([x, mean @ x, mean @ y])[free]
    target = np.log(p) - np.log(p).mean(1, keepdims=True)
    wanted = target[free] - target[free].mean(0)
    ridge = 0.01 * (x**2).sum() / 4
    solved = np.linalg.solve(features.T @ features + ridge * np.eye(11), features.T @ wanted)
    np.testing.assert_allclose(np.vstack([model.own, model.around, model.labels]), solved, atol=1e-4)


def test_a_planted_column_and_a_planted_neighbour_are_named() -> None:
    """Class 1 is where column 2 is large; one node has it from a single neighbour alone."""
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 5)) * 0.1
    x[:30, 2] += 3
    x[30:, 2] -= 3
    x[59, 2] = 0  # knows nothing of itself; its neighbour 0 is of the other group
    ends = [[*range(29), *range(30, 58), 59], [*range(1, 30), *range(31, 59), 0]]
    graph = Graph(x=x, edge_index=ends)
    score = (x[:, 2] > 0) * 2.0 - 1
    score[59] = 1
    p = np.stack([1 / (1 + np.exp(2 * score)), 1 / (1 + np.exp(-2 * score))], axis=1)
    nothing = np.full(60, -1)
    explainer = Explainer(graph, nothing, stand_in(graph, nothing, p))
    near, far = explainer.explain([5, 59], [1, 1], [0, 0], most=1)
    assert near.columns[0][0] == 2
    assert far.neighbors[0][0] == 0
    assert far.columns[0][:2] == (2, True)
