"""Parts of a graph with few edges between them, by METIS."""

from __future__ import annotations

import numpy as np

from sharpen.errors import InputError, told_as
from sharpen.graph.adjacency import Adjacency

_SEED = 0
"""Of METIS: the same graph and number of parts give the same parts."""


def metis(adjacency: Adjacency, parts: int) -> np.ndarray:
    """The part of every node, from 0 to ``parts`` − 1: of about the same size, few edges between them.

    >>> from sharpen import Graph
    >>> two_pairs = Graph(x=np.eye(4), edge_index=[[0, 1], [2, 3]])
    >>> part = metis(two_pairs.adjacency, 2)
    >>> bool(part[0] == part[2] != part[1] == part[3])
    True
    """
    if parts > adjacency.num_nodes:
        raise InputError(f"{parts} parts are asked for, but there are {adjacency.num_nodes} nodes; ask for fewer")
    if parts == 1:
        return np.zeros(adjacency.num_nodes, dtype=np.int64)
    with told_as("parts of a graph need the package pymetis", 'pip install "graph-sharpen[large]"', ImportError):
        import pymetis
    rowptr, col = adjacency.rowptr.numpy(), adjacency.col.numpy()
    # METIS wants no self-loops. There is one in each row, so row i starts i entries earlier without them.
    row = np.repeat(np.arange(adjacency.num_nodes, dtype=np.int32), np.diff(rowptr))
    others = col[col != row].astype(np.int64)  # the width that METIS works in
    del row
    starts = rowptr.astype(np.int64) - np.arange(adjacency.num_nodes + 1)
    options = pymetis.Options(seed=_SEED)
    _, part = pymetis.part_graph(parts, pymetis.CSRAdjacency(starts, others), options=options)
    return np.asarray(part, dtype=np.int64)
