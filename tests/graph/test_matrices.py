"""The named matrices against dense formulas on ten nodes."""

import numpy as np
import pytest

from sharpen import Graph, InputError
from sharpen.graph.matrices import is_symmetric, propagation_matrix

RNG = np.random.default_rng(1)
NODES = 10
EDGES = np.array([(i, j) for i in range(NODES) for j in range(NODES) if i != j and RNG.random() < 0.2]).T
WEIGHT = RNG.random(EDGES.shape[1]) + 0.5


def graph(weighted: bool) -> Graph:
    return Graph(x=np.eye(NODES), edge_index=EDGES, edge_weight=WEIGHT if weighted else None)


def half(sums: np.ndarray) -> np.ndarray:
    return np.diag([0 if s == 0 else s**-0.5 for s in sums])


@pytest.mark.parametrize("weighted", [False, True])
def test_every_matrix_is_its_formula(weighted):
    g = graph(weighted)
    a = g.adjacency.to_scipy().toarray().astype(float)
    loops = np.diag(np.diag(a))
    b = np.zeros((NODES, NODES))
    b[EDGES[0], EDGES[1]] = WEIGHT if weighted else 1.0
    near = a > 0
    far = ((near @ near) > 0) & ~near
    one, two = a - loops, far.astype(float)
    expected = {
        "symmetric": half(a.sum(1)) @ a @ half(a.sum(1)),
        "mean": np.diag(1 / a.sum(1)) @ a,
        "pattern": near.astype(float),
        "one-hop": half(one.sum(1)) @ one @ half(one.sum(1)),
        "two-hop": half(two.sum(1)) @ two @ half(two.sum(1)),
        "in": half(b.T.sum(1)) @ b.T @ half(b.T.sum(0)),
        "out": half(b.sum(1)) @ b @ half(b.sum(0)),
    }
    for name, dense in expected.items():
        matrix = propagation_matrix(g, name).toarray()
        np.testing.assert_allclose(matrix, dense, rtol=1e-12, atol=1e-15, err_msg=name)
        if is_symmetric(name):
            np.testing.assert_allclose(matrix, matrix.T, atol=1e-15)


def test_a_name_that_is_none_is_refused():
    with pytest.raises(InputError, match="did you mean 'symmetric'"):
        propagation_matrix(graph(False), "symetric")
