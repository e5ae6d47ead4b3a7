"""What the neighbours of each node have in common, the node itself not among them: means, extremes, and known labels."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse

from sharpen.graph import Graph
from sharpen.graph.matrices import propagation_matrix

_BLOCK = 2**18


class Neighbors:
    """One graph's neighbourhoods; each neighbour counts once, whatever its edge weighs.

    >>> near = Neighbors(Graph(x=np.eye(3), edge_index=[[0, 0], [1, 2]]))
    >>> near.count.tolist(), near.mean(np.array([[1.0], [2.0], [4.0]])).ravel().tolist()
    ([2, 1, 1], [3.0, 1.0, 1.0])
    """

    def __init__(self, graph: Graph) -> None:
        pattern = propagation_matrix(graph, "pattern")
        pattern = scipy.sparse.csr_array(pattern - scipy.sparse.diags_array(pattern.diagonal()))
        pattern.eliminate_zeros()
        self._pattern, self.count = pattern, np.diff(pattern.indptr)

    def mean(self, columns: Any) -> Any:
        """Means over neighbours; 0 where there are none."""
        return (self._pattern @ columns) / np.maximum(1, self.count)[:, None]

    def mean_rows(self, matrix: Any, nodes: np.ndarray) -> Any:
        """The same of some nodes, of a matrix that may be sparse, and then is."""
        scale = scipy.sparse.diags_array(1 / np.maximum(1, self.count[nodes]))
        return scale @ (self._pattern[nodes] @ matrix)

    def reduced(self, reduce: Any, columns: np.ndarray) -> np.ndarray:
        """An extreme over neighbours; a node without any stands for itself."""
        out, rowptr = columns.copy(), self._pattern.indptr
        rows = np.flatnonzero(self.count)
        size = np.cumsum(self.count[rows]) // max(1, _BLOCK // columns.shape[1])
        for part in np.split(rows, np.flatnonzero(np.diff(size)) + 1) if len(rows) else ():
            first, last = rowptr[part[0]], rowptr[part[-1] + 1]
            # Rows without a neighbour have no entry, so that those of this part lie side by side.
            out[part] = reduce.reduceat(columns[self._pattern.indices[first:last]], rowptr[part] - first, axis=0)
        return out

    def labels(self, known: np.ndarray, num_classes: int) -> np.ndarray:
        """The share of each class among labeled neighbours, beside one label's worth of no opinion, and how many there are."""
        held = np.flatnonzero(known >= 0)
        one_hot = scipy.sparse.csr_array((np.ones(len(held)), (held, known[held])), shape=(len(known), num_classes))
        votes = (self._pattern @ one_hot).toarray()
        total = votes.sum(1, keepdims=True)
        return np.hstack([(votes + 1 / num_classes) / (total + 1), np.log1p(total)]).astype(np.float32)


_NEIGHBORS: WeakKeyDictionary[Graph, Neighbors] = WeakKeyDictionary()


def neighbors_of(graph: Graph) -> Neighbors:
    """The neighbourhoods of a graph, found once."""
    if graph not in _NEIGHBORS:
        _NEIGHBORS[graph] = Neighbors(graph)
    return _NEIGHBORS[graph]
