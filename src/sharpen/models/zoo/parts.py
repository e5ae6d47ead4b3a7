"""What several methods of the field are built of."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from sharpen.graph import Graph
from sharpen.kernels.sparse import Csr
from sharpen.models.inputs import Inputs


def features(graph: Inputs) -> Tensor:
    """X with every row divided by its sum, as many implementations prepare bags of words.

    >>> inputs = Inputs(Graph(x=[[1.0, 3.0], [0.0, 0.0]], edge_index=[[0], [1]]), torch.device("cpu"), torch.float32)
    >>> features(inputs).tolist()
    [[0.25, 0.75], [0.0, 0.0]]
    """
    return graph.once("rows of one", lambda x, matrix: rows_of_one(x))


def rows_of_one(x: Any) -> Any:
    """The same of a matrix, dense or sparse."""
    matrix: Any = x.astype(np.float64)
    total = np.asarray(abs(matrix).sum(1)).ravel()
    share = np.divide(1, total, out=np.zeros_like(total, dtype=float), where=total > 0)
    return sp.diags_array(share) @ matrix if sp.issparse(x) else share[:, None] * matrix


def inverse(matrix: Tensor) -> Tensor:
    """The inverse of a small matrix, symmetric and positive definite, by elimination: nothing in it waits for a GPU.

    >>> inverse(torch.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    unit = torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    both = torch.cat([matrix, unit], 1)
    for k in range(len(matrix)):
        both = both + (unit[k] - both[:, k]).unsqueeze(1) * (both[k] / both[k, k])
    return both[:, len(matrix) :]


def reflected(columns: Tensor) -> Tensor:
    """The product of the reflections along the columns of matrices [..., d, d]: orthogonal matrices.

    >>> turn = reflected(torch.tensor([[1.0, 0.0], [1.0, 1.0]]))
    >>> (turn @ turn.t()).allclose(torch.eye(2), atol=1e-6), round(turn[1, 0].item(), 3)
    (True, -1.0)
    """
    out = torch.eye(columns.shape[-1], dtype=columns.dtype, device=columns.device)
    for along in (columns / columns.norm(dim=-2, keepdim=True)).unbind(-1):
        out = torch.addcmul(out, out @ along.unsqueeze(-1), along.unsqueeze(-2), value=-2)
    return out


def adjacency(graph: Inputs) -> Csr:
    """Who is whose neighbour: ones, without self-loops."""
    return graph.own_matrix("adjacency", without_loops, symmetric=True)


def random_walk(graph: Inputs) -> Csr:
    """The same with every row divided by its sum."""
    return graph.own_matrix("random walk", lambda one: rows_of_one(without_loops(one)))


def without_loops(graph: Graph) -> Any:
    """The matrix of :func:`adjacency`, as SciPy has it."""
    matrix = graph.adjacency.to_scipy().astype(np.float64)
    matrix.data[:] = 1
    matrix = sp.csr_array(matrix - sp.diags_array(matrix.diagonal()))
    matrix.eliminate_zeros()
    return matrix
