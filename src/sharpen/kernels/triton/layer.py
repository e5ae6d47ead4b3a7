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
        self.like = like
        block = triton.next_power_of_2(width)
        tile_rows = max(1, _TILE // block)
        self.steps = max(1, _REDUCED_ROWS // tile_rows)
        self.blocks = triton.cdiv(self.rows, tile_rows * self.steps)
        self.tiles = (triton.cdiv(self.rows, tile_rows), self.members)
        self.reductions = (self.blocks, self.members)
        self.tile = {"ROWS": tile_rows, "BLOCK": block, "num_warps": 4}
        self.reduction = {"STEPS": self.steps, **self.tile}

    def empty(self, *size: int) -> Tensor:
        """Room on the same device."""
        return torch.empty(size, dtype=self.like.dtype, device=self.like.device)

    def stack(self) -> Tensor:
        """Room for [R, N, H]."""
        return self.empty(self.members, self.rows, self.width)

    def sums(self, kinds: int) -> Tensor:
        """Room for partial sums over rows."""
        return self.empty(self.members, self.blocks, kinds, self.width)


class _Drop:
    """Dropout's operands, or stand-ins for kernels that do not read them."""

    def __init__(self, like: Tensor, dropout: Dropout | None) -> None:
        self.on = dropout is not None
        self.threshold = thresholds(dropout.p) if dropout else like
        self.scale = (1 / (1 - dropout.p)).to(like.dtype) if dropout else like
        self.keys = dropout.keys.contiguous() if dropout else like

    @property
    def operands(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.threshold, self.scale, self.keys


@dataclass
class _Plan:
    """What does not change between the forward and the backward pass."""

    blocks: Blocks
    graph: Csr | None
    norm: Norm | None
    training: bool
    drop: _Drop
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
        """Scale and shift of each column, where the kind is affine."""
        if self.norm is None or self.norm.running_mean is None or self.norm.running_var is None:
            return None, bias
        a = self.norm.weight * (self.norm.running_var + EPSILON).rsqrt()
        mean = self.norm.running_mean if bias is None else self.norm.running_mean - bias
        return a, self.norm.bias - mean * a


def _gather_layer(plan: _Plan, z: Tensor, bias: Tensor | None) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """For fixed propagation: (output unless batch norm is to follow, what precedes the norm, moments)."""
    near, own, _ = plan.parts(z)
    shape, graph = _Shape(z, plan.blocks.width), plan.graph
    assert graph is not None
    finish, norm = plan.kind != "batch", plan.kind == "layer"
    keep = not finish or (norm and plan.recorded)
    a, c = plan.affine(bias) if plan.kind == "affine" else (None, bias if norm else None)
    out = shape.stack() if finish else None
    pre = shape.stack() if keep else None
    moments = shape.empty(shape.members, shape.rows, 2) if norm and keep else None
    weight, shift = (plan.norm.weight, plan.norm.bias) if norm and plan.norm else (z, z)

    def given(t: Tensor | None) -> Tensor:
        return z if t is None else t

    block = triton.next_power_of_2(shape.width)
    launch = shape_of(block, graph.degree)
    _gather_forward[(triton.cdiv(shape.rows, launch["ROWS"]), shape.members)](
        graph.rowptr, graph.col, graph.value, near, given(own), given(a), given(c), weight, shift,
        given(out), given(pre), given(moments), *plan.drop.operands, shape.rows, shape.width, row_stride(near), EPSILON,
        OWN=own is not None, SCALED=a is not None, SHIFTED=c is not None, NORM=norm, FINISH=finish, KEEP=keep,
        DROPOUT=plan.drop.on, BLOCK=block, **launch,
    )  # fmt: skip
    return out, pre, moments


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, bias: Tensor | None, weight: Any, shift: Any, plan: _Plan) -> Tensor:
        shape = _Shape(z, plan.blocks.width)
        near, own, score = plan.parts(z)
        y = norm = moments = mean = rstd = None
        out: Tensor | None = None
        if not plan.blocks.neighbors:
            x: Tensor = z
            addend: Tensor | None = None
        elif score is None:
            out, pre, moments = _gather_layer(plan, z, bias)
            x = z if pre is None else pre
            addend = None
        else:
            assert plan.graph is not None
            y, norm = attend_forward(near, score, plan.graph)
            x, addend = y, own
        add = (x if addend is None else addend, 0 if addend is None else row_stride(addend))

        if out is None:
            out = shape.stack()
            operands = plan.drop.operands
            flags = {"ADD": addend is not None, "DROPOUT": plan.drop.on, **shape.tile}
            if plan.kind == "layer":
                moments = shape.empty(shape.members, shape.rows, 2)
                kernel.layer_forward[shape.tiles](
                    x, add[0], x if bias is None else bias, weight, shift, out, moments, *operands,
                    shape.rows, shape.width, add[1], EPSILON, BIASED=bias is not None, **flags,
                )  # fmt: skip
            else:
                a, c = plan.affine(bias)
                if plan.kind == "batch":
                    mean, rstd, a, c = _batch_statistics(plan, shape, x, add, bias, weight, shift)
                kernel.affine_forward[shape.tiles](
                    x, add[0], x if a is None else a, x if c is None else c, out, *operands,
                    shape.rows, shape.width, add[1], SCALED=a is not None, SHIFTED=c is not None, **flags,
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
        add = (x if addend is None else addend, 0 if addend is None else row_stride(addend))

        flags = {"DROPOUT": plan.drop.on, **shape.reduction}
        scale, dx_stride = plan.drop.scale, row_stride(d_pre)
        size = (shape.rows, shape.width, shape.blocks)
        d_bias = d_weight = d_shift = None
        if plan.kind == "layer":
            sums = shape.sums(3)
            kernel.layer_backward[shape.reductions](
                g, out, x, add[0], x if bias is None else bias, weight, moments, d_pre, sums, scale, *size, add[1], dx_stride,
                ADD=addend is not None, BIASED=bias is not None, **flags,
            )  # fmt: skip
            d_bias, d_weight, d_shift = sums.sum(1).unbind(1)
        elif plan.kind == "batch":
            sums = shape.sums(2)
            for reduce in (True, False):
                means = (mean, mean) if reduce else (sums.sum(1) / shape.rows).transpose(0, 1).contiguous().unbind(0)
                kernel.batch_backward[shape.reductions](
                    g, out, x, add[0], mean, rstd, weight, *means, d_pre, sums, scale, *size, add[1], dx_stride,
                    ADD=addend is not None, REDUCE=reduce, **flags,
                )  # fmt: skip
            d_shift, d_weight = sums.sum(1).unbind(1)
            d_bias = None if bias is None else torch.zeros_like(bias)  # a bias before a batch norm has no effect
        else:
            sums = shape.sums(1)
            kernel.plain_backward[shape.reductions](g, out, d_pre, sums, scale, *size, dx_stride, **flags)
            d_bias = sums.sum((1, 2))

        if plan.blocks.neighbors:
            assert plan.graph is not None
            if score is None:
                spmm_triton(d_near, plan.graph.t, d_pre)
            else:
                assert d_score is not None
                attend_backward(near, score, y, norm, d_pre, d_near, d_score, plan.graph)
        return dz, None if bias is None else d_bias, d_weight, d_shift, None


def _batch_statistics(
    plan: _Plan, shape: _Shape, x: Tensor, add: tuple[Tensor, int], bias: Tensor | None, weight: Tensor, shift: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Batch norm in training: mean and reciprocal deviation of each column, and the affine map they give."""
    sums, has_addend = shape.sums(2), add[0] is not x
    kernel.batch_moments[shape.reductions](
        x, add[0], sums, shape.rows, shape.width, shape.blocks, add[1], ADD=has_addend, **shape.reduction
    )
    first, second = (sums.sum(1) / shape.rows).unbind(1)
    origin = x[:, 0] + add[0][:, 0] if has_addend else x[:, 0]
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
    z = z.contiguous()
    # Asked here: inside a Function's forward pass, autograd always seems to be off.
    plan = _Plan(blocks, graph, norm, training, _Drop(z, dropout), torch.is_grad_enabled())
    scale, shift = (None, None) if norm is None else (norm.weight, norm.bias)
    out: Tensor = _Layer.apply(z, bias, scale, shift, plan)
    return out
