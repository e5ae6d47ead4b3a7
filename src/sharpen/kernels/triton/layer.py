"""A layer after its matrix product, fused: see :func:`sharpen.kernels.layer.finish_layer`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from sharpen.kernels.activation import EPSILON, MOMENTUM, Dropout, Norm
from sharpen.kernels.dropout import thresholds
from sharpen.kernels.layer import Blocks
from sharpen.kernels.sparse import Csr
from sharpen.kernels.triton import activation as kernel
from sharpen.kernels.triton.attention import attend_backward, attend_forward
from sharpen.kernels.triton.spmm import gather, row_stride, shape_of, spmm_triton

# Elements of one program's tile, and rows that one program of a reduction goes through.
_TILE = 4096
_REDUCED_ROWS = 256


@triton.jit
def _gather_forward(
    rowptr, col, value, z, own, a, c, weight, shift, out, pre, mean_rstd, threshold, scale, keys,
    rows, width, stride, epsilon,
    OWN: tl.constexpr, SCALED: tl.constexpr, SHIFTED: tl.constexpr, NORM: tl.constexpr, FINISH: tl.constexpr,
    KEEP: tl.constexpr, DROPOUT: tl.constexpr, BLOCK: tl.constexpr, EDGES: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """A node: gather, add its own, then affine map or layer norm, ReLU and dropout; or stop before them (not FINISH).

    KEEP stores what precedes the norm, for the backward pass.
    """
    r = tl.program_id(1).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    inside = lane < width
    for step in range(ROWS):
        i = tl.program_id(0) * ROWS + step
        if i < rows:
            y = gather(rowptr, col, value, z + r * rows * stride, stride, i, lane, width, BLOCK, EDGES)
            if OWN:
                y += tl.load(own + (r * rows + i) * stride + lane, mask=inside, other=0.0)
            at = (r * rows + i) * width + lane
            if KEEP:
                tl.store(pre + at, y, mask=inside)
            if FINISH:
                if SCALED:
                    y *= tl.load(a + r * width + lane, mask=inside, other=0.0)
                if SHIFTED:
                    y += tl.load(c + r * width + lane, mask=inside, other=0.0)
                if NORM:
                    mean = tl.sum(y, 0) / width
                    y = tl.where(inside, y - mean, 0.0)
                    rstd = 1 / tl.sqrt(tl.sum(y * y, 0) / width + epsilon)
                    if KEEP:
                        tl.store(mean_rstd + 2 * (r * rows + i), mean)
                        tl.store(mean_rstd + 2 * (r * rows + i) + 1, rstd)
                    y = y * rstd * tl.load(weight + r * width + lane, mask=inside, other=0.0)
                    y += tl.load(shift + r * width + lane, mask=inside, other=0.0)
                position = tl.cast(i, tl.int64) * width + lane
                y = kernel.relu_dropout(y, r, position, threshold, scale, keys, DROPOUT)
                tl.store(out + at, y, mask=inside)


class _Shape:
    """How a stack [R, N, H] is cut into programs."""

    def __init__(self, like: Tensor, width: int) -> None:
        self.members, self.rows, self.width = like.shape[0], like.shape[1], width
        self.empty = like.new_empty
        block = triton.next_power_of_2(width)
        tile_rows = max(1, _TILE // block)
        steps = max(1, _REDUCED_ROWS // tile_rows)
        self.blocks = triton.cdiv(self.rows, tile_rows * steps)
        self.tiles = (triton.cdiv(self.rows, tile_rows), self.members)
        self.reductions = (self.blocks, self.members)
        self.tile = {"ROWS": tile_rows, "BLOCK": block, "num_warps": 4}
        self.reduction = {"STEPS": steps, **self.tile}

    def stack(self) -> Tensor:
        """Room for [R, N, H]."""
        return self.empty(self.members, self.rows, self.width)

    def sums(self, kinds: int) -> Tensor:
        """Room for partial sums over rows."""
        return self.empty(self.members, self.blocks, kinds, self.width)


@dataclass
class _Plan:
    """What does not change between the forward and the backward pass; ``drop`` are thresholds, scales and keys of dropout."""

    blocks: Blocks
    graph: Csr | None
    norm: Norm | None
    training: bool
    drop: tuple[Tensor, Tensor, Tensor] | None
    recorded: bool

    @property
    def kind(self) -> str:
        """``affine``: the norm is none, or a batch norm that uses its running statistics; ``layer``; ``batch``."""
        if self.norm is None:
            return "affine"
        if self.norm.running_mean is None:
            return "layer"
        return "batch" if self.training else "affine"

    def parts(self, z: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The blocks of a product or of its gradient: neighbours (or all), own, scores."""
        width, b = self.blocks.width, self.blocks
        if not b.neighbors:
            return z, None, None
        own = z[..., width : 2 * width] if b.own else None
        return z[..., :width], own, z[..., -(b.columns - width * (1 + b.own)) :] if b.scores else None

    def affine(self, bias: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """Scale and shift of each column, before a layer norm too; batch norm in training has its own."""
        return (None, bias) if self.norm is None or self.norm.running_mean is None else self.norm.line(bias)


def _or(given: Tensor | None, stand_in: Tensor) -> Tensor:
    """What a kernel is given in the place of nothing, which it does not look at."""
    return stand_in if given is None else given


def _gather_layer(plan: _Plan, z: Tensor, bias: Tensor | None) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """For fixed propagation: (output unless batch norm is to follow, what precedes the norm, moments)."""
    near, own, _ = plan.parts(z)
    shape, graph = _Shape(z, plan.blocks.width), plan.graph
    assert graph is not None
    finish, norm = plan.kind != "batch", plan.kind == "layer"
    keep = not finish or (norm and plan.recorded)
    a, c = plan.affine(bias) if finish else (None, None)
    out = shape.stack() if finish else None
    pre = shape.stack() if keep else None
    moments = shape.empty(shape.members, shape.rows, 2) if norm and keep else None
    weight, shift = (plan.norm.weight, plan.norm.bias) if norm and plan.norm else (z, z)
    block = triton.next_power_of_2(shape.width)
    launch = shape_of(block, graph.degree)
    _gather_forward[(triton.cdiv(shape.rows, launch["ROWS"]), shape.members)](
        graph.rowptr, graph.col, graph.value, near, _or(own, z), _or(a, z), _or(c, z), weight, shift,
        _or(out, z), _or(pre, z), _or(moments, z), *(plan.drop or (z, z, z)), shape.rows, shape.width, row_stride(near), EPSILON,
        OWN=own is not None, SCALED=a is not None, SHIFTED=c is not None, NORM=norm, FINISH=finish, KEEP=keep,
        DROPOUT=plan.drop is not None, BLOCK=block, **launch,
    )  # fmt: skip
    return out, pre, moments


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, bias: Tensor | None, weight: Any, shift: Any, plan: _Plan) -> Tensor:
        shape = _Shape(z, plan.blocks.width)
        near, own, score = plan.parts(z)
        out: Tensor | None = None
        y = norm = moments = mean = rstd = addend = None
        x = z
        if plan.blocks.scores:
            assert plan.graph is not None
            assert score is not None
            x, norm = attend_forward(near, score, plan.graph)
            y, addend = x, own
        elif plan.blocks.neighbors:
            out, pre, moments = _gather_layer(plan, z, bias)
            x = _or(pre, z)
        if out is None:
            out = shape.stack()
            if plan.kind != "batch":
                a, c = plan.affine(bias)
            else:
                mean, rstd, a, c = _batch_statistics(plan, shape, x, addend, bias, weight, shift)
            if plan.kind == "layer":
                moments = shape.empty(shape.members, shape.rows, 2)
            kernel.forward[shape.tiles](
                x, _or(addend, x), _or(a, x), _or(c, x), _or(weight, x), _or(shift, x), out, _or(moments, x),
                *(plan.drop or (z, z, z)), shape.rows, shape.width, _stride(addend), EPSILON, ADD=addend is not None,
                SCALED=a is not None, SHIFTED=c is not None, NORM=plan.kind == "layer", DROPOUT=plan.drop is not None,
                **shape.tile,
            )  # fmt: skip
        ctx.plan, ctx.columns = plan, z.shape[2]
        needs_z = plan.blocks.scores or (plan.kind != "affine" and not plan.blocks.neighbors)
        kept = (z if needs_z else None, None if x is z or plan.blocks.scores else x, bias, weight)
        ctx.save_for_backward(out, *kept, moments, mean, rstd, y, norm)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        plan: _Plan = ctx.plan
        if plan.kind == "affine" and plan.norm is not None:
            raise NotImplementedError("a batch norm that uses its running statistics is not differentiated")
        out, z, x, bias, weight, moments, mean, rstd, y, norm = ctx.saved_tensors
        shape, g = _Shape(out, plan.blocks.width), g.contiguous()
        dz = shape.empty(shape.members, shape.rows, ctx.columns)
        near, own, score = plan.parts(dz if z is None else z)  # only looked at where z was kept
        d_near, d_own, d_score = plan.parts(dz)
        if plan.blocks.scores:
            x = y
        elif x is None:
            x = dz if z is None else z
        into_own = shape.stack() if d_own is None else d_own
        d_pre = into_own if plan.blocks.neighbors else dz
        addend = own if plan.blocks.scores else None
        flags = {"ADD": addend is not None, "DROPOUT": plan.drop is not None, **shape.reduction}
        scale = g if plan.drop is None else plan.drop[1]
        size = (shape.rows, shape.width, shape.blocks, _stride(addend), row_stride(d_pre))
        d_weight = d_shift = None
        if plan.kind == "batch":
            sums = shape.sums(2)
            for reduce in (True, False):
                means = (mean, mean) if reduce else (sums.sum(1) / shape.rows).transpose(0, 1).contiguous().unbind(0)
                kernel.batch_backward[shape.reductions](
                    g, out, x, _or(addend, x), mean, rstd, weight, *means, d_pre, sums, scale, *size, REDUCE=reduce, **flags
                )  # fmt: skip
            d_shift, d_weight = sums.sum(1).unbind(1)
            d_bias = None if bias is None else torch.zeros_like(bias)  # a bias before a batch norm has no effect
        else:
            norms = plan.kind == "layer"
            sums = shape.sums(3 if norms else 1)
            kernel.backward[shape.reductions](
                g, out, x, _or(addend, x), _or(bias, x), _or(weight, x), _or(moments, x), d_pre, sums, scale, *size,
                BIASED=bias is not None, NORM=norms, **flags,
            )  # fmt: skip
            d_bias, *others = sums.sum(1).unbind(1)
            if others:
                d_weight, d_shift = others

        if plan.blocks.neighbors:
            assert plan.graph is not None
            if score is None:
                spmm_triton(d_near, plan.graph.t, d_pre)
            else:
                assert d_score is not None
                attend_backward(near, score, y, norm, d_pre, d_near, d_score, plan.graph)
        return dz, None if bias is None else d_bias, d_weight, d_shift, None


def _stride(addend: Tensor | None) -> int:
    return 0 if addend is None else row_stride(addend)


def _batch_statistics(
    plan: _Plan, shape: _Shape, x: Tensor, addend: Tensor | None, bias: Tensor | None, weight: Tensor, shift: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Batch norm in training: mean and reciprocal deviation of each column, and the affine map they give."""
    sums, adds = shape.sums(2), addend is not None
    kernel.batch_moments[shape.reductions](
        x, _or(addend, x), sums, shape.rows, shape.width, shape.blocks, _stride(addend), ADD=adds, **shape.reduction
    )
    first, second = (sums.sum(1) / shape.rows).unbind(1)
    origin = x[:, 0] if addend is None else x[:, 0] + addend[:, 0]
    mean, var = origin + first, (second - first * first).clamp_(min=0)
    rstd = (var + EPSILON).rsqrt()
    assert plan.norm is not None
    assert plan.norm.running_mean is not None
    assert plan.norm.running_var is not None
    plan.norm.running_mean.lerp_(mean if bias is None else mean + bias, MOMENTUM)
    plan.norm.running_var.lerp_(var * (shape.rows / (shape.rows - 1)), MOMENTUM)
    a = weight * rstd
    return mean, rstd, a, shift - mean * a  # a bias before it cancels against the mean


def finish_layer_triton(
    z: Tensor,
    blocks: Blocks,
    graph: Csr | None,
    bias: Tensor | None,
    norm: Norm | None,
    training: bool,
    dropout: Dropout | None,
) -> Tensor:
    """What a layer makes of its matrix product; arguments as in :func:`sharpen.kernels.layer.finish_layer`."""
    drop = None
    if dropout is not None:
        drop = thresholds(dropout.p), (1 / (1 - dropout.p)).to(z.dtype), dropout.keys.contiguous()
    # Asked here: inside a Function's forward pass, autograd always seems to be off.
    plan = _Plan(blocks, graph, norm, training, drop, torch.is_grad_enabled())
    scale, shift = (None, None) if norm is None else (norm.weight, norm.bias)
    return _Layer.apply(z.contiguous(), bias, scale, shift, plan)
