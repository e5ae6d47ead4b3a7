"""What a graph is recognised by."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import scipy.sparse

from sharpen.fitting.spreading import features_of
from sharpen.graph import Graph

_ROWS = 4096


def identify(graph: Graph) -> str:
    """What stands for a graph apart from its labels: its features, and the pattern along which messages travel.

    >>> graph = Graph(x=np.eye(2), edge_index=[[0], [1]], y=[0, 1])
    >>> identify(graph) == identify(Graph(x=np.eye(2), edge_index=[[0], [1]]))
    True
    """
    adjacency, x = graph.adjacency, features_of(graph)
    digest = hashlib.sha256()

    def add(values: np.ndarray, dtype: str) -> None:
        contiguous: Any = np.ascontiguousarray(values, dtype=dtype)  # one byte order; no copy where it is that already
        digest.update(contiguous)

    add(np.array([graph.num_nodes, graph.num_features, adjacency.nnz]), "<i8")
    for start in range(0, graph.num_nodes, _ROWS):  # in blocks, so that a large graph is not held twice
        block = scipy.sparse.csr_array(x[start : start + _ROWS])  # the same for dense and sparse features
        add(block.indptr, "<i8")
        add(block.indices, "<i8")
        add(block.data, "<f4")
    add(adjacency.rowptr.numpy(), "<i4")
    add(adjacency.col.numpy(), "<i4")
    if adjacency.weight is not None:
        add(adjacency.weight.numpy(), "<f8")
    return digest.hexdigest()
