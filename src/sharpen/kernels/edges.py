r"""Numbers on the edges of a graph, for a stack of members: weighted sums, scores, and their softmax.

A stack has a row for each member: node vectors are ``[R, N, H]``, numbers on edges ``[R, E]`` in the order of the pattern, whose
row i holds the edges into node i. All are differentiable, any number of times, and give the same bits every time: sums run along
the rows of the pattern or of its transpose, never by scattered additions.

Below the stacks stand the same operations for one run, with or without heads, as a model uses them (:func:`edge_sum`,
:func:`edge_scores`, :func:`edge_products`, :func:`edge_softmax`): heads are a stack, and :func:`torch.func.vmap` makes a larger
one of it, so that a population is one pass.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sharpen.kernels import backend
from sharpen.kernels.sparse import Csr, Stacked

NEGATIVE_SLOPE = 0.2


class _WeightedSum(Stacked):
    stacks = 2

    @staticmethod
    def forward(weight: Tensor, h: Tensor, pattern: Csr, onto: Tensor | None, overwrite: bool) -> Tensor:
        new = (len(h), pattern.num_rows, h.shape[2])
        out = h.new_empty(new) if onto is None else onto if overwrite else onto.clone()
        if backend.fused(h):
            from sharpen.kernels.triton.spmm import spmm_triton

            spmm_triton(out, pattern, h, onto is not None, weight.contiguous())
            return out
        for each, own, x in zip(out, weight, h, strict=True):
            each.addmm_(pattern.weighted(own), x, beta=int(onto is not None))
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Csr, Tensor | None, bool], output: Tensor) -> None:
        weight, h, ctx.pattern, onto, overwrite = inputs
        ctx.added = onto is not None
        if onto is not None and overwrite:
            ctx.mark_dirty(onto)
        ctx.save_for_backward(weight, h)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, Tensor | None, None]:
        weight, h = ctx.saved_tensors
        in_weight, in_h, *_ = ctx.needs_input_grad
        return (
            edge_dot(grad, h, ctx.pattern) if in_weight else None,
            weighted_sum(weight.index_select(1, ctx.pattern.order), grad, ctx.pattern.t) if in_h else None,
            None,
            grad if ctx.added else None,
            None,
        )


def weighted_sum(
    weight: Tensor, h: Tensor, pattern: Csr, onto: Tensor | None = None, overwrite: bool = False
) -> Tensor:
    """``y_i = Σ_j w_ij h_j`` with a weight for every edge of every member.

    Args:
        weight: [R, E].
        h: What is gathered, [R, N, H].
        pattern: The edges; its values are ignored.
        onto: What the sum is added to, if anything.
        overwrite: Whether the result may take the place of ``onto``.

    >>> import scipy.sparse as sp
    >>> both = Csr.from_scipy(sp.csr_array([[1.0, 1.0]]))
    >>> weighted_sum(torch.tensor([[0.5, 2.0]]), torch.tensor([[[4.0], [1.0]]]), both).tolist()
    [[[4.0]]]
    """
    return _WeightedSum.apply(weight, h, pattern, onto, overwrite)


class _EdgeDot(Stacked):
    stacks = 2

    @staticmethod
    def forward(g: Tensor, h: Tensor, pattern: Csr) -> Tensor:
        if backend.fused(h):
            from sharpen.kernels.triton.edges import edge_dot_triton

            return edge_dot_triton(g, h, pattern)
        empty = pattern.weighted(torch.zeros_like(pattern.value))
        return torch.stack([torch.sparse.sampled_addmm(empty, g[r], h[r].t()).values() for r in range(len(h))])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Csr], output: Tensor) -> None:
        g, h, ctx.pattern = inputs
        ctx.save_for_backward(g, h)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        g, h = ctx.saved_tensors
        in_g, in_h, _ = ctx.needs_input_grad
        return (
            weighted_sum(grad, h, ctx.pattern) if in_g else None,
            weighted_sum(grad.index_select(1, ctx.pattern.order), g, ctx.pattern.t) if in_h else None,
            None,
        )


def edge_dot(g: Tensor, h: Tensor, pattern: Csr) -> Tensor:
    """``<g_i, h_j>`` for every edge of every member, [R, E]: the adjoint of the weighted sum in its weights.

    >>> import scipy.sparse as sp
    >>> both = Csr.from_scipy(sp.csr_array([[1.0, 1.0]]))
    >>> edge_dot(torch.tensor([[[2.0, 1.0]]]), torch.tensor([[[1.0, 0.0], [0.0, 5.0]]]), both).tolist()
    [[2.0, 5.0]]
    """
    return _EdgeDot.apply(g, h, pattern)


def row_sum(value: Tensor, pattern: Csr) -> Tensor:
    """The sum of the numbers on the edges into each node, [R, N].

    >>> import scipy.sparse as sp
    >>> row_sum(torch.tensor([[1.0, 2.0, 3.0]]), Csr.from_scipy(sp.csr_array([[1.0, 1.0], [0.0, 1.0]]))).tolist()
    [[3.0, 3.0]]
    """
    return weighted_sum(value, value.new_ones(len(value), pattern.num_cols, 1), pattern).squeeze(2)


class _EdgeSum(Stacked):
    """source_j + target_i on every edge; sums along rows, not scattered additions, are its adjoint."""

    stacks = 2

    @staticmethod
    def forward(source: Tensor, target: Tensor, pattern: Csr) -> Tensor:
        return source.index_select(1, pattern.indices[1]).add_(target.index_select(1, pattern.row))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (pattern,) = ctx.rest
        return row_sum(grad.index_select(1, pattern.order), pattern.t), row_sum(grad, pattern), None


class _Softmax(Stacked):
    """Its backward pass needs the result alone."""

    @staticmethod
    def forward(score: Tensor, pattern: Csr) -> Tensor:
        if backend.fused(score):
            from sharpen.kernels.triton.edges import softmax_triton

            return softmax_triton(score, pattern)
        row = pattern.row.expand_as(score)
        offsets, _ = pattern.indices
        peak = torch.stack([torch.segment_reduce(each, "max", offsets=offsets) for each in score])
        out = torch.sub(score, peak.gather(1, row)).exp_()
        return out.div_(row_sum(out, pattern).gather(1, row))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Csr], output: Tensor) -> None:
        ctx.pattern = inputs[1]
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (out,) = ctx.saved_tensors
        each = grad * out
        return each - out * row_sum(each, ctx.pattern).index_select(1, ctx.pattern.row), None


def softmax(score: Tensor, pattern: Csr) -> Tensor:
    """The softmax of edge scores [R, E] over the edges into each node.

    >>> import scipy.sparse as sp
    >>> softmax(torch.zeros(1, 3), Csr.from_scipy(sp.csr_array([[1.0, 1.0], [0.0, 1.0]]))).tolist()
    [[0.5, 0.5, 1.0]]
    """
    return _Softmax.apply(score, pattern)


def attend(
    h: Tensor, source: Tensor, target: Tensor, pattern: Csr, onto: Tensor | None = None, overwrite: bool = False
) -> Tensor:
    """Every node's attention-weighted mean of its neighbours: ``softmax_j(LeakyReLU(source_j + target_i))`` times h_j.

    >>> import scipy.sparse as sp
    >>> ring = Csr.from_scipy(sp.csr_array([[1.0, 1.0], [1.0, 1.0]]))
    >>> attend(torch.tensor([[[0.0], [4.0]]]), torch.zeros(1, 2), torch.zeros(1, 2), ring).flatten().tolist()
    [2.0, 2.0]
    """
    score = F.leaky_relu(_EdgeSum.apply(source, target, pattern), NEGATIVE_SLOPE)
    return weighted_sum(softmax(score, pattern), h, pattern, onto, overwrite)


# The same for one run: vectors of nodes are [N, H], or [N, heads, H]; numbers on edges are [E], or [E, heads].


def edge_sum(x: Tensor, weight: Tensor, pattern: Csr) -> Tensor:
    """``y_i = Σ_j w_ij x_j``, with a weight for every edge, or for every edge and head.

    >>> import scipy.sparse as sp
    >>> both = Csr.from_scipy(sp.csr_array([[1.0, 1.0]]))
    >>> edge_sum(torch.tensor([[4.0], [1.0]]), torch.tensor([0.5, 2.0]), both).tolist()
    [[4.0]]
    """
    if weight.dim() == 1:
        return weighted_sum(weight.unsqueeze(0), x.unsqueeze(0), pattern).squeeze(0)
    return weighted_sum(weight.t(), x.transpose(0, 1), pattern).transpose(0, 1)


def edge_scores(source: Tensor, target: Tensor, pattern: Csr) -> Tensor:
    """Additive scores, ``source_j + target_i`` for an edge from j into i; from one number for each node, or each node and head.

    >>> import scipy.sparse as sp
    >>> both = Csr.from_scipy(sp.csr_array([[1.0, 1.0]]))
    >>> edge_scores(torch.tensor([1.0, 2.0]), torch.tensor([10.0]), both).tolist()
    [11.0, 12.0]
    """
    if source.dim() == 1:
        return _EdgeSum.apply(source.unsqueeze(0), target.unsqueeze(0), pattern).squeeze(0)
    return _EdgeSum.apply(source.t(), target.t(), pattern).t()


def edge_products(query: Tensor, key: Tensor, pattern: Csr) -> Tensor:
    """Query–key scores, ``<query_i, key_j>`` for an edge from j into i; with heads one for each.

    >>> import scipy.sparse as sp
    >>> both = Csr.from_scipy(sp.csr_array([[1.0, 1.0]]))
    >>> edge_products(torch.tensor([[2.0, 1.0]]), torch.tensor([[1.0, 0.0], [0.0, 5.0]]), both).tolist()
    [2.0, 5.0]
    """
    if query.dim() == 2:
        return edge_dot(query.unsqueeze(0), key.unsqueeze(0), pattern).squeeze(0)
    return edge_dot(query.transpose(0, 1), key.transpose(0, 1), pattern).t()


def edge_softmax(score: Tensor, pattern: Csr) -> Tensor:
    """The softmax of scores over the edges into each node; with heads, of each head by itself.

    >>> import scipy.sparse as sp
    >>> edge_softmax(torch.zeros(3), Csr.from_scipy(sp.csr_array([[1.0, 1.0], [0.0, 1.0]]))).tolist()
    [0.5, 0.5, 1.0]
    """
    return softmax(score.unsqueeze(0), pattern).squeeze(0) if score.dim() == 1 else softmax(score.t(), pattern).t()
