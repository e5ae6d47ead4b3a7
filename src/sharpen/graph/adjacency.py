"""The pattern along which messages travel: edges in both directions, and one self-loop per node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The message-passing pattern of a graph in compressed rows.

    Row ``i`` is ``col[rowptr[i]:rowptr[i + 1]]``: the nodes whose messages reach node ``i``, in increasing order. The
    pattern is symmetric and holds each node once in its own row.

    Args:
        rowptr: int32, ``[num_nodes + 1]``.
        col: int32, ``[nnz]``.
        num_nodes: The number of rows.
        weight: float64, ``[nnz]``, symmetric as well; None: all messages count the same.

    >>> from sharpen import Graph
    >>> graph = Graph(x=torch.eye(3), edge_index=[[0, 1], [1, 2]])
    >>> graph.adjacency.rowptr.tolist(), graph.adjacency.col.tolist()
    ([0, 2, 5, 7], [0, 1, 0, 1, 2, 1, 2])
    >>> graph.adjacency.nnz, graph.adjacency.degree().tolist(), graph.adjacency.row.tolist()
    (7, [2, 3, 2], [0, 0, 1, 1, 1, 2, 2])
    """

    rowptr: Tensor
    col: Tensor
    num_nodes: int
    weight: Tensor | None = None

    @property
    def nnz(self) -> int:
        """The number of messages in one round, those to oneself included."""
        return self.col.numel()

    def degree(self) -> Tensor:
        """How many messages each node receives (int32), its own included, so never below 1."""
        return self.rowptr[1:] - self.rowptr[:-1]

    @property
    def row(self) -> Tensor:
        """The row of each message, its receiver, int64: what ``col`` is for its sender."""
        return torch.repeat_interleave(torch.arange(self.num_nodes), self.degree().long())

    def to_scipy(self) -> scipy.sparse.csr_array:
        """The pattern as a SciPy matrix: of its weights (float64), or of ones (float32) if it has none.

        >>> from sharpen import Graph
        >>> Graph(x=torch.eye(2), edge_index=[[0], [1]]).adjacency.to_scipy().toarray().tolist()
        [[1.0, 1.0], [1.0, 1.0]]
        """
        value = np.ones(self.nnz, dtype=np.float32) if self.weight is None else self.weight.numpy().copy()
        parts: Any = (value, self.col.cpu().numpy().copy(), self.rowptr.cpu().numpy().copy())
        return scipy.sparse.csr_array(parts, shape=(self.num_nodes, self.num_nodes))

    def __repr__(self) -> str:
        return f"Adjacency(num_nodes={self.num_nodes}, nnz={self.nnz})"
