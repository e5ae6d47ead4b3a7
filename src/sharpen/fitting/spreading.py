r"""What known labels have to say about the other nodes: they are held fast and spread over the graph.

.. math:: R_0 = 0, \qquad R_{k+1} = 0.99 \, D^{-1} S \, R_k \text{ (with } R_i = Y_i \text{ where known)}, \qquad
    S_{ij} = A_{ij} \exp(-|x_i - x_j|^2 / m)

Labels Y travel along the edges, more between nodes whose features are similar; m is the median of the distances along edges (Zhu,
Ghahramani and Lafferty, *Semi-Supervised Learning Using Gaussian Fields and Harmonic Functions*, 2003). What of a node no label
has reached is no opinion: all classes alike.

A class whose labels happen to lie well reaches more nodes than it should. As in the same paper, what arrives of each class is
therefore brought nearer to its share of the labels; only halfway (the geometric mean), since labels are often picked evenly from
classes that are not of equal size.

A node with one labeled neighbour hears one voice, and hears it undivided: it would be surer than a node to which twenty labels
speak, and is more often wrong. So what arrives counts as what it is, n labels, beside CAUTION labels' worth of no opinion:

.. math:: p_i = \frac{n_i \hat p_i + a / C}{n_i + a}, \qquad n_i = \Big(\sum_l h_{il}\Big)^2 / \sum_l h_{il}^2

with :math:`h_{il}` the share of label l in what arrives at node i: n is 1 where all comes from one label, and k where k labels have
the same part in it. The sum of squares needs no list of labels: random signs are spread along with the labels, and the mean square
of what arrives of them is that sum (up to a quarter, with ``_SIGNS`` of them; the same signs every time).

Two layers of a network see two steps far; where classes are regions of the graph, this carries what is known further. It learns
nothing, so labels that are held out can judge it like any model.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from sharpen.graph import Graph

STEPS, LISTENS = 50, 0.99
# So many labels that say nothing stand beside those that arrive: between 1 and 3, which were best on the graphs tried.
CAUTION = 2.0
_SIGNS = 16
# How far the classes' shares of what arrives go towards their shares of the labels: 0 not at all, 1 all the way.
_EVENED = 0.5
_CHUNK = 4096


class Spreading:
    """How labels travel over one graph.

    >>> spreading = Spreading(Graph(x=np.eye(3), edge_index=[[0, 1], [1, 2]]))
    >>> np.exp(spreading.spread(np.array([0, -1, -1]), num_classes=2)).round(2)[1:].tolist()
    [[0.65, 0.35], [0.65, 0.35]]
    >>> np.exp(spreading.spread(np.array([0, -1, -1]), num_classes=2, caution=0)).round(2)[1:].tolist()
    [[0.96, 0.04], [0.94, 0.06]]
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @cached_property
    def similar(self) -> Any:
        """Every row a mean over neighbours, the node itself among them: by the weights of the edges if there are any, and by how
        similar features are; float32, with the places of the entries in the arrays of the graph's own adjacency."""
        adjacency, total = self._graph.adjacency, np.zeros(self._graph.num_nodes)
        rowptr, col = adjacency.rowptr.numpy(), adjacency.col.numpy()
        value = _squared_distances(self._graph, rowptr, col)
        along_edges = value[value > 0]  # to others; the node itself is at distance 0
        typical = float(np.median(along_edges)) if along_edges.size else 1.0
        del along_edges
        for part, row in _blocks(rowptr):
            similar = np.exp(-value[part].astype(np.float64) / typical)
            value[part] = similar if adjacency.weight is None else similar * adjacency.weight[part].numpy()
            total[row[0] : row[-1] + 1] += np.bincount(row - row[0], value[part])
        for part, row in _blocks(rowptr):
            value[part] /= total[row]
        parts: Any = (value, col, rowptr)
        return scipy.sparse.csr_array(parts, shape=(len(total), len(total)))

    def spread(self, known: np.ndarray, num_classes: int, caution: float = CAUTION) -> np.ndarray:
        """The logarithm of the probabilities that known labels alone give, [N, C]; all classes alike where none arrives.

        A node of known class is told last what its neighbours say, like any other.

        Args:
            known: The class of each node, −1 where it is not to be used.
            num_classes: How many there are.
            caution: How many labels that say nothing stand beside those that arrive; 0: none.
        """
        held, signs = np.flatnonzero(known >= 0), _SIGNS if caution else 0
        labels = np.eye(num_classes, dtype=np.float32)[known[held]]
        random = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.float32), (len(held), signs))
        sent = np.hstack([labels, random])
        both = np.zeros((len(known), num_classes + signs), dtype=np.float32)
        for _ in range(STEPS if len(held) else 0):
            both[held] = sent
            both = self.similar @ both
            both *= LISTENS
        arrived = both[:, :num_classes]
        reached = arrived.sum(axis=1, keepdims=True, dtype=np.float64)
        evened = arrived * _evened(
            arrived.sum(axis=0, where=(known < 0)[:, None], dtype=np.float64), labels.sum(axis=0)
        )
        total = evened.sum(axis=1, keepdims=True)
        evened *= np.divide(reached, total, out=np.zeros_like(total), where=total > 0)
        p = evened + (1 - reached) / num_classes
        if caution:
            squares = np.square(both[:, num_classes:], dtype=np.float64).mean(axis=1, keepdims=True)
            count = np.divide(reached**2, squares, out=np.zeros_like(reached), where=squares > 0)
            p = (count * p + caution / num_classes) / (count + caution)
        return np.asarray(np.log(p))


def _evened(arrived: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The factor of each class that brings its share of what arrived nearer to its share of the labels."""
    if not arrived.any():
        return np.ones(len(labels))
    # Half a label more of each class: one that has none is not ruled out.
    wanted, found = (labels + 0.5) / (labels + 0.5).sum(), arrived / arrived.sum()
    return np.divide(wanted, found, out=np.ones(len(labels)), where=found > 0) ** _EVENED


def _blocks(rowptr: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """All entries, some at a time, and the row of each: so that nothing but a value is held for every entry of a large graph."""
    for start in range(0, int(rowptr[-1]), _CHUNK):
        stop = min(start + _CHUNK, int(rowptr[-1]))
        first, last = np.searchsorted(rowptr, start, side="right") - 1, np.searchsorted(rowptr, stop, side="left")
        count = np.diff(np.clip(rowptr[first : last + 1], start, stop))
        yield slice(start, stop), np.repeat(np.arange(first, last), count)


def _squared_distances(graph: Graph, rowptr: np.ndarray, col: np.ndarray) -> np.ndarray:
    """Between the features of the two ends of every entry, in the order of the entries; float32."""
    x, out = features_of(graph), np.empty(len(col), dtype=np.float32)
    for part, row in _blocks(rowptr):
        gap = x[row] - x[col[part]]
        out[part] = (gap.multiply(gap) if graph.is_sparse else np.square(gap, dtype=np.float64)).sum(axis=1)
    return out


def features_of(graph: Graph) -> Any:
    """The features as NumPy or SciPy holds them, not copied.

    >>> features_of(Graph(x=np.eye(2), edge_index=[[0], [1]])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = graph.x
    if not graph.is_sparse:
        return x.numpy()
    parts: Any = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return scipy.sparse.csr_array(parts, shape=(x.shape[0], x.shape[1]))
