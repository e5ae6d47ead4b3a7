"""Bias, normalisation, ReLU and dropout in one pass, forward and backward.

Without a norm and with batch norm, what precedes the ReLU is an affine map of each column, ``x · a + c``; with layer norm it is
computed from the row. Dropout bits are recomputed from their keys, never stored; the backward pass needs none of them, since a
positive output was active and kept. Sums over nodes are written as partial sums of fixed blocks of rows and added up
afterwards, in the same order every time.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from sharpen.kernels.activation import EPSILON, MOMENTUM, Dropout, Norm
from sharpen.kernels.dropout import GOLDEN, MIX_1, MIX_2, thresholds

# Elements of one program's tile, and rows that one program of a reduction goes through.
_TILE = 4096
_REDUCED_ROWS = 256

_GOLDEN = tl.constexpr(GOLDEN)
_MIX_1 = tl.constexpr(MIX_1)
_MIX_2 = tl.constexpr(MIX_2)


@triton.jit
def _random_bits(position, key_1, key_2):
    """The 16 random bits of an element: see :func:`sharpen.kernels.dropout.random_bits`, bit for bit the same."""
    x = (position >> 1).to(tl.int32) * _GOLDEN + key_1
    x ^= (x >> 16) & 0xFFFF
    x = (x * _MIX_1) ^ key_2
    x ^= (x >> 15) & 0x1FFFF
    x = x * _MIX_2
    x ^= (x >> 16) & 0xFFFF
    half = ((position & 1) * 16).to(tl.int32)
    return ((x << (16 - half)) >> 16).to(tl.int32)  # the low or the high half, with its sign


@triton.jit
def _finish(y, r, row, lane, width, threshold, scale, keys, DROPOUT: tl.constexpr):
    """dropout(relu(y))"""
    y = tl.maximum(y, 0.0, propagate_nan=tl.PropagateNan.ALL)
    if DROPOUT:
        bits = _random_bits(
            row[:, None].to(tl.int64) * width + lane[None, :], tl.load(keys + 2 * r), tl.load(keys + 2 * r + 1)
        )
        y = tl.where(bits >= tl.load(threshold + r).to(tl.int32), y * tl.load(scale + r), 0.0)
    return y


@triton.jit
def _affine_forward(
    x, a, c, out, threshold, scale, keys, rows, width,
    SCALED: tl.constexpr, SHIFTED: tl.constexpr, DROPOUT: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lane = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (lane < width)[None, :]
    at = (r * rows + row[:, None]) * width + lane[None, :]
    y = tl.load(x + at, mask=inside, other=0.0)
    if SCALED:
        y *= tl.load(a + r * width + lane, mask=lane < width, other=0.0)[None, :]
    if SHIFTED:
        y += tl.load(c + r * width + lane, mask=lane < width, other=0.0)[None, :]
    tl.store(out + at, _finish(y, r, row, lane, width, threshold, scale, keys, DROPOUT), mask=inside)


@triton.jit
def _plain_backward(
    g, out, dx, sums, scale, rows, width, blocks,
    DROPOUT: tl.constexpr, ROWS: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """dx = g where out > 0, scaled; partial sums of it over rows."""
    r = tl.program_id(1).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    factor = tl.load(scale + r) if DROPOUT else 1.0
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for step in range(STEPS):
        row = (tl.program_id(0) * STEPS + step) * ROWS + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (lane < width)[None, :]
        at = (r * rows + row[:, None]) * width + lane[None, :]
        active = tl.load(out + at, mask=inside, other=0.0) > 0
        d = tl.where(active, tl.load(g + at, mask=inside, other=0.0) * factor, 0.0)
        tl.store(dx + at, d, mask=inside)
        total += tl.sum(d, 0)
    tl.store(sums + (r * blocks + tl.program_id(0)) * width + lane, total, mask=lane < width)


@triton.jit
def _layer_forward(
    x, bias, weight, shift, out, mean_rstd, threshold, scale, keys, rows, width, epsilon,
    BIASED: tl.constexpr, DROPOUT: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lane = tl.arange(0, BLOCK)
    in_row, in_lane = row < rows, lane < width
    inside = in_row[:, None] & in_lane[None, :]
    at = (r * rows + row[:, None]) * width + lane[None, :]
    y = tl.load(x + at, mask=inside, other=0.0)
    if BIASED:
        y += tl.load(bias + r * width + lane, mask=in_lane, other=0.0)[None, :]
    mean = tl.sum(y, 1) / width
    centered = tl.where(in_lane[None, :], y - mean[:, None], 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centered * centered, 1) / width + epsilon)
    tl.store(mean_rstd + 2 * (r * rows + row), mean, mask=in_row)
    tl.store(mean_rstd + 2 * (r * rows + row) + 1, rstd, mask=in_row)
    y = centered * rstd[:, None] * tl.load(weight + r * width + lane, mask=in_lane, other=0.0)[None, :]
    y += tl.load(shift + r * width + lane, mask=in_lane, other=0.0)[None, :]
    tl.store(out + at, _finish(y, r, row, lane, width, threshold, scale, keys, DROPOUT), mask=inside)


@triton.jit
def _layer_backward(
    g, out, x, bias, weight, mean_rstd, dx, sums, scale, rows, width, blocks,
    BIASED: tl.constexpr, DROPOUT: tl.constexpr, ROWS: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """dx, and partial sums over rows of dx, of dy · x̂ and of dy: the gradients of bias, weight and shift."""
    r = tl.program_id(1).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    in_lane = lane < width
    factor = tl.load(scale + r) if DROPOUT else 1.0
    w = tl.load(weight + r * width + lane, mask=in_lane, other=0.0)[None, :]
    sum_x = tl.zeros([BLOCK], dtype=tl.float32)
    sum_w = tl.zeros([BLOCK], dtype=tl.float32)
    sum_y = tl.zeros([BLOCK], dtype=tl.float32)
    for step in range(STEPS):
        row = (tl.program_id(0) * STEPS + step) * ROWS + tl.arange(0, ROWS)
        in_row = row < rows
        inside = in_row[:, None] & in_lane[None, :]
        at = (r * rows + row[:, None]) * width + lane[None, :]
        active = tl.load(out + at, mask=inside, other=0.0) > 0
        dy = tl.where(active, tl.load(g + at, mask=inside, other=0.0) * factor, 0.0)
        y = tl.load(x + at, mask=inside, other=0.0)
        if BIASED:
            y += tl.load(bias + r * width + lane, mask=in_lane, other=0.0)[None, :]
        mean = tl.load(mean_rstd + 2 * (r * rows + row), mask=in_row, other=0.0)
        rstd = tl.load(mean_rstd + 2 * (r * rows + row) + 1, mask=in_row, other=0.0)
        unit = tl.where(inside, (y - mean[:, None]) * rstd[:, None], 0.0)
        du = dy * w
        mean_du = tl.sum(du, 1) / width
        mean_duu = tl.sum(du * unit, 1) / width
        d = tl.where(inside, (du - mean_du[:, None] - unit * mean_duu[:, None]) * rstd[:, None], 0.0)
        tl.store(dx + at, d, mask=inside)
        sum_x += tl.sum(d, 0)
        sum_w += tl.sum(dy * unit, 0)
        sum_y += tl.sum(dy, 0)
    base = sums + ((r * blocks + tl.program_id(0)) * 3) * width + lane
    tl.store(base, sum_x, mask=in_lane)
    tl.store(base + width, sum_w, mask=in_lane)
    tl.store(base + 2 * width, sum_y, mask=in_lane)


@triton.jit
def _batch_moments(x, sums, rows, width, blocks, ROWS: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """Partial sums over rows of (x − x₀) and of its square; x₀, the first row, keeps the square's digits."""
    r = tl.program_id(1).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    in_lane = lane < width
    origin = tl.load(x + r * rows * width + lane, mask=in_lane, other=0.0)[None, :]
    first = tl.zeros([BLOCK], dtype=tl.float32)
    second = tl.zeros([BLOCK], dtype=tl.float32)
    for step in range(STEPS):
        row = (tl.program_id(0) * STEPS + step) * ROWS + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & in_lane[None, :]
        at = (r * rows + row[:, None]) * width + lane[None, :]
        y = tl.where(inside, tl.load(x + at, mask=inside, other=0.0) - origin, 0.0)
        first += tl.sum(y, 0)
        second += tl.sum(y * y, 0)
    base = sums + ((r * blocks + tl.program_id(0)) * 2) * width + lane
    tl.store(base, first, mask=in_lane)
    tl.store(base + width, second, mask=in_lane)


@triton.jit
def _batch_backward(
    g, out, x, mean, rstd, weight, mean_dy, mean_dyu, dx, sums, scale, rows, width, blocks,
    REDUCE: tl.constexpr, DROPOUT: tl.constexpr, ROWS: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """First pass (REDUCE): partial sums over rows of dy and dy · x̂. Second pass: dx from their means."""
    r = tl.program_id(1).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    in_lane = lane < width
    factor = tl.load(scale + r) if DROPOUT else 1.0
    m = tl.load(mean + r * width + lane, mask=in_lane, other=0.0)[None, :]
    s = tl.load(rstd + r * width + lane, mask=in_lane, other=0.0)[None, :]
    sum_y = tl.zeros([BLOCK], dtype=tl.float32)
    sum_yu = tl.zeros([BLOCK], dtype=tl.float32)
    for step in range(STEPS):
        row = (tl.program_id(0) * STEPS + step) * ROWS + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & in_lane[None, :]
        at = (r * rows + row[:, None]) * width + lane[None, :]
        active = tl.load(out + at, mask=inside, other=0.0) > 0
        dy = tl.where(active, tl.load(g + at, mask=inside, other=0.0) * factor, 0.0)
        unit = tl.where(inside, (tl.load(x + at, mask=inside, other=0.0) - m) * s, 0.0)
        if REDUCE:
            sum_y += tl.sum(dy, 0)
            sum_yu += tl.sum(dy * unit, 0)
        else:
            w = tl.load(weight + r * width + lane, mask=in_lane, other=0.0)[None, :]
            a = tl.load(mean_dy + r * width + lane, mask=in_lane, other=0.0)[None, :]
            b = tl.load(mean_dyu + r * width + lane, mask=in_lane, other=0.0)[None, :]
            tl.store(dx + at, (dy - a - unit * b) * (w * s), mask=inside)
    if REDUCE:
        base = sums + ((r * blocks + tl.program_id(0)) * 2) * width + lane
        tl.store(base, sum_y, mask=in_lane)
        tl.store(base + width, sum_yu, mask=in_lane)


class _Shape:
    """How a [R, N, H] tensor is cut into programs."""

    def __init__(self, x: Tensor) -> None:
        self.members, self.rows, self.width = x.shape
        self.block = triton.next_power_of_2(self.width)
        self.tile_rows = max(1, _TILE // self.block)
        self.steps = max(1, _REDUCED_ROWS // self.tile_rows)
        self.blocks = triton.cdiv(self.rows, self.tile_rows * self.steps)
        self.tiles = (triton.cdiv(self.rows, self.tile_rows), self.members)
        self.reductions = (self.blocks, self.members)
        self.tile = {
            "ROWS": self.tile_rows,
            "BLOCK": self.block,
            "num_warps": 4 if self.block * self.tile_rows <= 4096 else 8,
        }

    def sums(self, like: Tensor, kinds: int) -> Tensor:
        """Room for partial sums."""
        return torch.empty(self.members, self.blocks, kinds, self.width, dtype=like.dtype, device=like.device)


class _Drop:
    """Dropout's operands, or stand-ins for kernels that do not read them."""

    def __init__(self, x: Tensor, dropout: Dropout | None) -> None:
        self.on = dropout is not None
        self.threshold = thresholds(dropout.p) if dropout else x
        self.scale = (1 / (1 - dropout.p)).to(x.dtype) if dropout else x
        self.keys = dropout.keys.contiguous() if dropout else x


def _affine(x: Tensor, a: Tensor | None, c: Tensor | None, drop: _Drop) -> Tensor:
    shape, out = _Shape(x), torch.empty_like(x)
    _affine_forward[shape.tiles](
        x, x if a is None else a, x if c is None else c, out, drop.threshold, drop.scale, drop.keys, shape.rows, shape.width,
        SCALED=a is not None, SHIFTED=c is not None, DROPOUT=drop.on, **shape.tile,
    )  # fmt: skip
    return out


class _Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor | None, dropout: Dropout | None) -> Tensor:
        x, ctx.drop, ctx.biased = x.contiguous(), _Drop(x, dropout), bias is not None
        out = _affine(x, None, bias, ctx.drop)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor | None, None]:
        (out,) = ctx.saved_tensors
        shape, dx = _Shape(out), torch.empty_like(out)
        sums = shape.sums(out, 1)
        _plain_backward[shape.reductions](
            g.contiguous(), out, dx, sums, ctx.drop.scale, shape.rows, shape.width, shape.blocks,
            DROPOUT=ctx.drop.on, STEPS=shape.steps, **shape.tile,
        )  # fmt: skip
        return dx, sums.sum((1, 2)) if ctx.biased else None, None


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, bias: Tensor | None, weight: Tensor, shift: Tensor, dropout: Dropout | None
    ) -> Tensor:
        x, ctx.drop = x.contiguous(), _Drop(x, dropout)
        shape, out = _Shape(x), torch.empty_like(x)
        moments = torch.empty(shape.members, shape.rows, 2, dtype=x.dtype, device=x.device)
        _layer_forward[shape.tiles](
            x, x if bias is None else bias, weight, shift, out, moments, ctx.drop.threshold, ctx.drop.scale, ctx.drop.keys,
            shape.rows, shape.width, EPSILON, BIASED=bias is not None, DROPOUT=ctx.drop.on, **shape.tile,
        )  # fmt: skip
        ctx.save_for_backward(out, x, bias, weight, moments)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        out, x, bias, weight, moments = ctx.saved_tensors
        shape, dx = _Shape(out), torch.empty_like(out)
        sums = shape.sums(out, 3)
        _layer_backward[shape.reductions](
            g.contiguous(), out, x, x if bias is None else bias, weight, moments, dx, sums, ctx.drop.scale,
            shape.rows, shape.width, shape.blocks, BIASED=bias is not None, DROPOUT=ctx.drop.on, STEPS=shape.steps, **shape.tile,
        )  # fmt: skip
        d_bias, d_weight, d_shift = sums.sum(1).unbind(1)
        return dx, None if bias is None else d_bias, d_weight, d_shift, None


class _Batch(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, bias: Tensor | None, norm: Norm, weight: Tensor, shift: Tensor, drop: _Drop
    ) -> Tensor:
        x, ctx.drop = x.contiguous(), drop
        shape = _Shape(x)
        sums = shape.sums(x, 2)
        _batch_moments[shape.reductions](
            x, sums, shape.rows, shape.width, shape.blocks, STEPS=shape.steps, **shape.tile
        )
        first, second = (sums.sum(1) / shape.rows).unbind(1)
        mean, var = x[:, 0] + first, (second - first * first).clamp_(min=0)
        rstd = (var + EPSILON).rsqrt()
        assert norm.running_mean is not None
        assert norm.running_var is not None
        norm.running_mean.lerp_(mean if bias is None else mean + bias, MOMENTUM)
        norm.running_var.lerp_(var * (shape.rows / (shape.rows - 1)), MOMENTUM)
        a = weight * rstd
        out = _affine(x, a, shift - mean * a, drop)  # a bias before it cancels against the mean
        ctx.save_for_backward(out, x, mean, rstd, weight)
        ctx.biased = bias is not None
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        out, x, mean, rstd, weight = ctx.saved_tensors
        shape, dx = _Shape(out), torch.empty_like(out)
        sums = shape.sums(out, 2)
        g = g.contiguous()
        args = (shape.rows, shape.width, shape.blocks)
        tile = {"DROPOUT": ctx.drop.on, "STEPS": shape.steps, **shape.tile}
        _batch_backward[shape.reductions](
            g, out, x, mean, rstd, weight, mean, mean, dx, sums, ctx.drop.scale, *args, REDUCE=True, **tile
        )
        d_shift, d_weight = sums.sum(1).unbind(1)
        mean_dy, mean_dyu = d_shift / shape.rows, d_weight / shape.rows
        _batch_backward[shape.reductions](
            g, out, x, mean, rstd, weight, mean_dy, mean_dyu, dx, sums, ctx.drop.scale, *args, REDUCE=False, **tile
        )
        d_bias = torch.zeros_like(mean) if ctx.biased else None
        return dx, d_bias, None, d_weight, d_shift, None


def activate_triton(
    x: Tensor, bias: Tensor | None, norm: Norm | None, training: bool, dropout: Dropout | None
) -> Tensor:
    """``dropout(relu(norm(x + bias)))``, as :func:`sharpen.kernels.activation.activate` says it."""
    out: Tensor
    if norm is None:
        out = _Plain.apply(x, bias, dropout)
    elif norm.running_mean is None or norm.running_var is None:
        out = _Layer.apply(x, bias, norm.weight, norm.bias, dropout)
    elif training:
        out = _Batch.apply(x, bias, norm, norm.weight, norm.bias, _Drop(x, dropout))
    else:
        a = norm.weight * (norm.running_var + EPSILON).rsqrt()
        mean = norm.running_mean if bias is None else norm.running_mean - bias
        out = _affine(x.contiguous(), a, norm.bias - mean * a, _Drop(x, dropout))
    return out
