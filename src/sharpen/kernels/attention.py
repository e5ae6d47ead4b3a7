"""Attention over the edges of a graph, for a stack of members.

Node i gathers from its neighbours j with weights that are a softmax over the neighbours of

.. math:: e_{ij} = \\mathrm{LeakyReLU}(s_j + t_i), \\qquad y_i = \\sum_j \\mathrm{softmax}_j(e_{ij})\\, h_j
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sharpen.kernels.sparse import Csr

NEGATIVE_SLOPE = 0.2


class _WeightedSum(torch.autograd.Function):
    """y_i = Σ_j w_ij h_j with a weight for every edge of every member; w is [R, E] in the pattern's order."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, h: Tensor, pattern: Csr, onto: Tensor | None, overwrite: bool) -> Tensor:
        ctx.pattern, ctx.added = pattern, onto is not None
        ctx.save_for_backward(weight, h)
        if onto is None:
            out = torch.empty(h.shape[0], pattern.num_rows, h.shape[2], dtype=h.dtype, device=h.device)
        elif overwrite:
            ctx.mark_dirty(onto)
            out = onto
        else:
            out = onto.clone()
        for r in range(len(h)):
            out[r].addmm_(pattern.weighted(weight[r]), h[r], beta=int(ctx.added))
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, Tensor | None, None]:
        weight, h = ctx.saved_tensors
        return (
            _EdgeDot.apply(grad, h, ctx.pattern),
            _WeightedSum.apply(weight.index_select(1, ctx.pattern.order), grad, ctx.pattern.t, None, False),
            None,
            grad if ctx.added else None,
            None,
        )


class _EdgeDot(torch.autograd.Function):
    """w_ij = <g_i, h_j> for every edge: the adjoint of the weighted sum in its weights."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, h: Tensor, pattern: Csr) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(g, h)
        empty = pattern.weighted(torch.zeros_like(pattern.value))
        return torch.stack([torch.sparse.sampled_addmm(empty, g[r], h[r].t()).values() for r in range(len(h))])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        g, h = ctx.saved_tensors
        return (
            _WeightedSum.apply(grad, h, ctx.pattern, None, False),
            _WeightedSum.apply(grad.index_select(1, ctx.pattern.order), g, ctx.pattern.t, None, False),
            None,
        )


class _EdgeSoftmax(torch.autograd.Function):
    """The softmax over each row of the pattern; its backward pass needs the result alone."""

    @staticmethod
    def forward(ctx: Any, score: Tensor, pattern: Csr) -> Tensor:
        row = pattern.row.expand_as(score)
        offsets, _ = pattern.indices
        peak = torch.stack([torch.segment_reduce(each, "max", offsets=offsets) for each in score])
        out = torch.sub(score, peak.gather(1, row)).exp_()
        out.div_(score.new_zeros(peak.shape).scatter_add_(1, row, out).gather(1, row))
        ctx.pattern = pattern
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (out,) = ctx.saved_tensors
        row, rows = ctx.pattern.row.expand_as(out), (len(out), ctx.pattern.num_rows)
        each = grad * out
        return each - out * out.new_zeros(rows).scatter_add(1, row, each).gather(1, row), None


def edge_softmax(score: Tensor, pattern: Csr) -> Tensor:
    """The softmax of edge scores [R, E] over each row of the pattern; twice differentiable.

    >>> import scipy.sparse as sp
    >>> edge_softmax(torch.zeros(1, 3), Csr.from_scipy(sp.csr_array([[1.0, 1.0], [0.0, 1.0]]))).tolist()
    [[0.5, 0.5, 1.0]]
    """
    out: Tensor = _EdgeSoftmax.apply(score, pattern)
    return out


def attend(
    h: Tensor, source: Tensor, target: Tensor, pattern: Csr, onto: Tensor | None = None, overwrite: bool = False
) -> Tensor:
    """Every node's attention-weighted mean of its neighbours; twice differentiable.

    Args:
        h: What is gathered, [R, N, H].
        source: What each node offers as a neighbour, s in the formula, [R, N].
        target: What each node asks for, t in the formula, [R, N].
        pattern: The adjacency; row i holds the neighbours of i. Values are ignored.
        onto: What the mean is added to, if anything.
        overwrite: Whether the sum may take the place of ``onto``.

    >>> import scipy.sparse as sp
    >>> ring = Csr.from_scipy(sp.csr_array([[1.0, 1.0], [1.0, 1.0]]))
    >>> attend(torch.tensor([[[0.0], [4.0]]]), torch.zeros(1, 2), torch.zeros(1, 2), ring).flatten().tolist()
    [2.0, 2.0]
    """
    members, col = len(h), pattern.indices[1]
    score = source.gather(1, col.expand(members, -1)) + target.gather(1, pattern.row.expand(members, -1))
    score = F.leaky_relu(score, NEGATIVE_SLOPE, inplace=True)
    out: Tensor = _WeightedSum.apply(edge_softmax(score, pattern), h, pattern, onto, overwrite)
    return out
