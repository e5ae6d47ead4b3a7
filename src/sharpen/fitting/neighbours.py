r"""Predictions that listen to the neighbours: smoothed over the graph, or spread together with the known labels.

Smoothed, each node listens to its neighbours' predictions, and theirs, as well as to its own:

.. math:: Q_0 = P, \qquad Q_{k+1} = 0.9 \, D^{-1} A \, Q_k + 0.1 \, P

It knows no label (Gasteiger et al., *Predict then Propagate*, 2019). Spread, known labels :math:`Y` are held fast, the
predictions fill in far from them, and neighbours with similar features are listened to more:

.. math:: Q_{k+1} = 0.99 \, D_S^{-1} S \, Q_k + 0.01 \, P \text{ (then } Q_i = Y_i \text{ where known)}, \qquad
    S_{ij} = A_{ij} \exp(-|x_i - x_j|^2 / m)

with m the median of the distances along edges (Zhu, Ghahramani and Lafferty, *Semi-Supervised Learning Using Gaussian Fields and
Harmonic Functions*, 2003; with predictions as in Huang et al., *Correct and Smooth*, 2021). Two layers of a network see two steps
far; where classes are regions of the graph, this carries what they see, and what is known, further. Both learn nothing: labels
that are held out can judge them like any model.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import softmax

from sharpen.graph import Graph

SMOOTH_STEPS, SMOOTH_LISTENS = 20, 0.9
SPREAD_STEPS, SPREAD_LISTENS = 50, 0.99
_CHUNK = 4096


class Neighbours:
    """Who listens to whom in a graph, and how much.

    >>> graph = Graph(x=np.eye(3), edge_index=[[0, 1], [1, 2]])
    >>> logits = np.log([[0.9, 0.1], [0.5, 0.5], [0.8, 0.2]])
    >>> np.exp(Neighbours(graph).smoothed(logits)).round(2).tolist()
    [[0.72, 0.28], [0.68, 0.32], [0.7, 0.3]]
    >>> np.exp(Neighbours(graph).spread(logits, np.array([0, -1, 1]))).round(2)[1].tolist()
    [0.5, 0.5]
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @cached_property
    def mean(self) -> Any:
        """Every row a mean over neighbours, the node itself among them; by the weights of the edges if there are any."""
        return _rows_sum_to_one(self._graph.adjacency.to_scipy())

    @cached_property
    def similar(self) -> Any:
        """The same, with more weight on neighbours whose features are similar."""
        adjacency = self._graph.adjacency.to_scipy().astype(np.float64)
        distance = _squared_distances(self._graph, adjacency)
        along_edges = distance[distance > 0]  # to others; the node itself is at distance 0
        if along_edges.size:
            adjacency.data *= np.exp(-distance / np.median(along_edges))
        return _rows_sum_to_one(adjacency)

    def smoothed(self, logits: np.ndarray) -> np.ndarray:
        """The logarithm of the smoothed probabilities, [N, C]."""
        own = softmax(logits.astype(np.float64), axis=1)
        heard = own
        for _ in range(SMOOTH_STEPS):
            heard = SMOOTH_LISTENS * (self.mean @ heard) + (1 - SMOOTH_LISTENS) * own
        return _log(heard)

    def spread(self, logits: np.ndarray, known: np.ndarray) -> np.ndarray:
        """The logarithm of the probabilities after known labels were spread, [N, C].

        A node of known class is told last what its neighbours say, like any other.

        Args:
            logits: Class scores of all nodes, [N, C].
            known: The class of each node, −1 where it is not to be used.
        """
        own = softmax(logits.astype(np.float64), axis=1)
        held = np.flatnonzero(known >= 0)
        labels = np.eye(own.shape[1])[known[held]]
        heard = own
        for _ in range(SPREAD_STEPS):
            heard = heard.copy()
            heard[held] = labels
            heard = SPREAD_LISTENS * (self.similar @ heard) + (1 - SPREAD_LISTENS) * own
        return _log(heard)


def _rows_sum_to_one(matrix: Any) -> Any:
    return scipy.sparse.csr_array(scipy.sparse.diags_array(1 / matrix.sum(axis=1, dtype=np.float64)) @ matrix)


def _squared_distances(graph: Graph, adjacency: Any) -> np.ndarray:
    """Between the features of the two ends of every entry, in the order of the entries."""
    x: Any = graph.x.numpy() if not graph.is_sparse else _to_scipy(graph)
    row, col = np.repeat(np.arange(graph.num_nodes), np.diff(adjacency.indptr)), adjacency.indices
    out = np.empty(len(col))
    for start in range(0, len(col), _CHUNK):
        part = slice(start, start + _CHUNK)
        gap = x[row[part]] - x[col[part]]
        out[part] = (gap.multiply(gap) if graph.is_sparse else np.square(gap, dtype=np.float64)).sum(axis=1)
    return out


def _to_scipy(graph: Graph) -> Any:
    x = graph.x
    parts: Any = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return scipy.sparse.csr_array(parts, shape=(x.shape[0], x.shape[1]))


def _log(probabilities: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(np.maximum(probabilities, 1e-300)))
