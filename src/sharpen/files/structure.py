r"""Features for nodes that have none: how connected a node is, and where in the graph it stands.

For every node: the logarithm of its degree, that of its PageRank, and how many of the random walks that begin at each of
K anchor nodes pass by:

.. math:: P_{:,k} = \alpha \sum_{t \ge 0} (1 - \alpha)^t (A D^{-1})^t e_k, \qquad x_{ik} = \log(1 + N P_{ik})

Anchors are nodes of high degree that are not neighbors of each other. They are remembered by id, so that the features of a
node mean the same after the graph has grown; eigenvectors, the usual positions, turn and change sign with every new edge.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

_ANCHORS = 64
_RESTART = 0.15
_STEPS = 30


def pattern(edge_index: np.ndarray, num_nodes: int) -> scipy.sparse.csr_array:
    """The edges in both directions, each once, without self-loops.

    >>> pattern(np.array([[0, 0, 2], [1, 1, 2]]), 3).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    source, target = edge_index[:, edge_index[0] != edge_index[1]]
    ones = np.ones(2 * source.size, dtype=np.float32)
    ends = (np.concatenate([source, target]), np.concatenate([target, source]))
    matrix = scipy.sparse.coo_array((ones, ends), shape=(num_nodes, num_nodes)).tocsr()
    matrix.data[:] = 1
    return scipy.sparse.csr_array(matrix)


def choose_anchors(adjacency: scipy.sparse.csr_array, most: int = _ANCHORS) -> np.ndarray:
    """Nodes of high degree, largest first, no two of them neighbors; ties go to the first in the file.

    >>> star_and_pair = pattern(np.array([[0, 0, 0, 4], [1, 2, 3, 5]]), 6)
    >>> choose_anchors(star_and_pair, most=2)
    array([0, 4])
    """
    degree = np.diff(adjacency.indptr)
    covered = np.zeros(degree.size, dtype=bool)
    anchors: list[int] = []
    for node in np.argsort(-degree, kind="stable"):
        if len(anchors) == most or degree[node] == 0:
            break
        if not covered[node]:
            anchors.append(int(node))
            covered[adjacency.indices[adjacency.indptr[node] : adjacency.indptr[node + 1]]] = True
    return np.array(anchors, dtype=np.int64)


def structural_features(adjacency: scipy.sparse.csr_array, anchors: np.ndarray) -> np.ndarray:
    """``[N, 2 + K]`` numbers (float64, not standardised): log-degree, log-PageRank, and a position per anchor.

    Args:
        anchors: Row numbers of the anchors; -1 for one that is not in this graph, whose column is 0.

    >>> path = pattern(np.array([[0, 1], [1, 2]]), 3)
    >>> structural_features(path, np.array([0])).round(2).tolist()
    [[0.69, -0.27, 0.71], [1.1, 0.37, 0.86], [0.69, -0.27, 0.46]]
    """
    count = adjacency.shape[0]
    degree = np.diff(adjacency.indptr).astype(np.float64)
    step = scipy.sparse.csr_array(adjacency @ scipy.sparse.diags_array((1 - _RESTART) / np.maximum(degree, 1)))
    here = np.flatnonzero(anchors >= 0)
    start = np.zeros((count, 1 + anchors.size), dtype=np.float64)
    start[:, 0] = 1 / count
    start[anchors[here], 1 + here] = 1
    walks = _RESTART * start
    for _ in range(_STEPS):
        walks = step @ walks + _RESTART * start
    out = np.empty((count, 2 + anchors.size))
    out[:, 0] = np.log1p(degree)
    out[:, 1] = np.log(count * walks[:, 0])
    out[:, 2:] = np.log1p(count * walks[:, 1:])
    return out
