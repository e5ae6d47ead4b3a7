"""Bias, normalisation, ReLU and dropout in one pass, forward and backward, over tiles of rows.

Without a norm and with batch norm, what precedes the ReLU is an affine map of each column, ``x · a + c``; with layer norm it is
computed from the row. Dropout bits are recomputed from their keys, never stored; the backward pass needs none of them, since a
positive output was active and kept. Sums over nodes are written as partial sums of fixed blocks of rows and added up
afterwards, in the same order every time. Every kernel can add a second stack to ``x`` on the way in.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from sharpen.kernels.dropout import GOLDEN, MIX_1, MIX_2

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
def relu_dropout(y, r, position, threshold, scale, keys, DROPOUT: tl.constexpr):
    """dropout(relu(y)); ``position`` counts the member's elements."""
    y = tl.maximum(y, 0.0, propagate_nan=tl.PropagateNan.ALL)
    if DROPOUT:
        bits = _random_bits(position, tl.load(keys + 2 * r), tl.load(keys + 2 * r + 1))
        y = tl.where(bits >= tl.load(threshold + r).to(tl.int32), y * tl.load(scale + r), 0.0)
    return y


@triton.jit
def _dropout(x, out, threshold, scale, keys, size, BLOCK: tl.constexpr):
    r = tl.program_id(1).to(tl.int64)
    position = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = position < size
    y = tl.load(x + r * size + position, mask=inside, other=0.0)
    bits = _random_bits(position, tl.load(keys + 2 * r), tl.load(keys + 2 * r + 1))
    y = tl.where(bits >= tl.load(threshold + r).to(tl.int32), y * tl.load(scale + r), 0.0)
    tl.store(out + r * size + position, y, mask=inside)


def dropout_triton(x: Tensor, threshold: Tensor, scale: Tensor, keys: Tensor) -> Tensor:
    """Every member's x with some of its elements set to 0 and the others scaled; threshold and scale are [R], keys [R, 2]."""
    x = x.contiguous()
    out, size = torch.empty_like(x), x[0].numel()
    _dropout[(triton.cdiv(size, 1024), len(x))](x, out, threshold, scale, keys.contiguous(), size, BLOCK=1024)
    return out


@triton.jit
def _load(x, addend, at, lane, inside, width, addend_stride, ADD: tl.constexpr):
    y = tl.load(x + at * width + lane[None, :], mask=inside, other=0.0)
    if ADD:
        y += tl.load(addend + at * addend_stride + lane[None, :], mask=inside, other=0.0)
    return y


@triton.jit
def forward(
    x, addend, a, c, weight, shift, out, mean_rstd, threshold, scale, keys, rows, width, addend_stride, epsilon,
    ADD: tl.constexpr, SCALED: tl.constexpr, SHIFTED: tl.constexpr, NORM: tl.constexpr, DROPOUT: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """out = dropout(relu((x + addend) · a + c)), with a layer norm before the ReLU or without."""
    r = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lane = tl.arange(0, BLOCK)
    in_row, in_lane = row < rows, lane < width
    inside = in_row[:, None] & in_lane[None, :]
    at = (r * rows + row)[:, None]
    y = _load(x, addend, at, lane, inside, width, addend_stride, ADD)
    if SCALED:
        y *= tl.load(a + r * width + lane, mask=in_lane, other=0.0)[None, :]
    if SHIFTED:
        y += tl.load(c + r * width + lane, mask=in_lane, other=0.0)[None, :]
    if NORM:
        mean = tl.sum(y, 1) / width
        centered = tl.where(in_lane[None, :], y - mean[:, None], 0.0)
        rstd = 1 / tl.sqrt(tl.sum(centered * centered, 1) / width + epsilon)
        tl.store(mean_rstd + 2 * (r * rows + row), mean, mask=in_row)
        tl.store(mean_rstd + 2 * (r * rows + row) + 1, rstd, mask=in_row)
        y = centered * rstd[:, None] * tl.load(weight + r * width + lane, mask=in_lane, other=0.0)[None, :]
        y += tl.load(shift + r * width + lane, mask=in_lane, other=0.0)[None, :]
    position = row[:, None].to(tl.int64) * width + lane[None, :]
    y = relu_dropout(y, r, position, threshold, scale, keys, DROPOUT)
    tl.store(out + at * width + lane[None, :], y, mask=inside)


@triton.jit
def backward(
    g, out, x, addend, bias, weight, mean_rstd, dx, sums, scale, rows, width, blocks, addend_stride, dx_stride,
    ADD: tl.constexpr, BIASED: tl.constexpr, NORM: tl.constexpr, DROPOUT: tl.constexpr,
    ROWS: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """dx, and partial sums of it over rows; with a layer norm also of dy · x̂ and of dy: the gradients of bias, weight and shift."""
    r = tl.program_id(1).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    in_lane = lane < width
    factor = tl.load(scale + r) if DROPOUT else 1.0
    if NORM:
        w = tl.load(weight + r * width + lane, mask=in_lane, other=0.0)[None, :]
    sum_x = tl.zeros([BLOCK], dtype=tl.float32)
    sum_w = tl.zeros([BLOCK], dtype=tl.float32)
    sum_y = tl.zeros([BLOCK], dtype=tl.float32)
    for step in range(STEPS):
        row = (tl.program_id(0) * STEPS + step) * ROWS + tl.arange(0, ROWS)
        in_row = row < rows
        inside = in_row[:, None] & in_lane[None, :]
        at = (r * rows + row)[:, None]
        active = tl.load(out + at * width + lane[None, :], mask=inside, other=0.0) > 0
        d = tl.where(active, tl.load(g + at * width + lane[None, :], mask=inside, other=0.0) * factor, 0.0)
        if NORM:
            y = _load(x, addend, at, lane, inside, width, addend_stride, ADD)
            if BIASED:
                y += tl.load(bias + r * width + lane, mask=in_lane, other=0.0)[None, :]
            mean = tl.load(mean_rstd + 2 * (r * rows + row), mask=in_row, other=0.0)
            rstd = tl.load(mean_rstd + 2 * (r * rows + row) + 1, mask=in_row, other=0.0)
            unit = tl.where(inside, (y - mean[:, None]) * rstd[:, None], 0.0)
            sum_w += tl.sum(d * unit, 0)
            sum_y += tl.sum(d, 0)
            du = d * w
            mean_du = tl.sum(du, 1) / width
            mean_duu = tl.sum(du * unit, 1) / width
            d = tl.where(inside, (du - mean_du[:, None] - unit * mean_duu[:, None]) * rstd[:, None], 0.0)
        tl.store(dx + at * dx_stride + lane[None, :], d, mask=inside)
        sum_x += tl.sum(d, 0)
    base = sums + ((r * blocks + tl.program_id(0)) * (3 if NORM else 1)) * width + lane
    tl.store(base, sum_x, mask=in_lane)
    if NORM:
        tl.store(base + width, sum_w, mask=in_lane)
        tl.store(base + 2 * width, sum_y, mask=in_lane)


@triton.jit
def batch_moments(
    x, addend, sums, rows, width, blocks, addend_stride,
    ADD: tl.constexpr, ROWS: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Partial sums over rows of (x − x₀) and of its square; x₀, the first row, keeps the square's digits."""
    r = tl.program_id(1).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    in_lane = lane < width
    origin = tl.load(x + r * rows * width + lane, mask=in_lane, other=0.0)[None, :]
    if ADD:
        origin += tl.load(addend + r * rows * addend_stride + lane, mask=in_lane, other=0.0)[None, :]
    first = tl.zeros([BLOCK], dtype=tl.float32)
    second = tl.zeros([BLOCK], dtype=tl.float32)
    for step in range(STEPS):
        row = (tl.program_id(0) * STEPS + step) * ROWS + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & in_lane[None, :]
        at = (r * rows + row)[:, None]
        y = tl.where(inside, _load(x, addend, at, lane, inside, width, addend_stride, ADD) - origin, 0.0)
        first += tl.sum(y, 0)
        second += tl.sum(y * y, 0)
    base = sums + ((r * blocks + tl.program_id(0)) * 2) * width + lane
    tl.store(base, first, mask=in_lane)
    tl.store(base + width, second, mask=in_lane)


@triton.jit
def batch_backward(
    g, out, x, addend, mean, rstd, weight, mean_dy, mean_dyu, dx, sums, scale, rows, width, blocks, addend_stride, dx_stride,
    ADD: tl.constexpr, REDUCE: tl.constexpr, DROPOUT: tl.constexpr,
    ROWS: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """First pass (REDUCE): partial sums over rows of dy and dy · x̂. Second pass: dx from their means."""
    r = tl.program_id(1).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    in_lane = lane < width
    factor = tl.load(scale + r) if DROPOUT else 1.0
    m = tl.load(mean + r * width + lane, mask=in_lane, other=0.0)[None, :]
    s = tl.load(rstd + r * width + lane, mask=in_lane, other=0.0)[None, :]
    w = tl.load(weight + r * width + lane, mask=in_lane, other=0.0)[None, :]
    a = tl.load(mean_dy + r * width + lane, mask=in_lane, other=0.0)[None, :]
    b = tl.load(mean_dyu + r * width + lane, mask=in_lane, other=0.0)[None, :]
    sum_y = tl.zeros([BLOCK], dtype=tl.float32)
    sum_yu = tl.zeros([BLOCK], dtype=tl.float32)
    for step in range(STEPS):
        row = (tl.program_id(0) * STEPS + step) * ROWS + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & in_lane[None, :]
        at = (r * rows + row)[:, None]
        active = tl.load(out + at * width + lane[None, :], mask=inside, other=0.0) > 0
        dy = tl.where(active, tl.load(g + at * width + lane[None, :], mask=inside, other=0.0) * factor, 0.0)
        unit = tl.where(inside, (_load(x, addend, at, lane, inside, width, addend_stride, ADD) - m) * s, 0.0)
        if REDUCE:
            sum_y += tl.sum(dy, 0)
            sum_yu += tl.sum(dy * unit, 0)
        else:
            tl.store(dx + at * dx_stride + lane[None, :], (dy - a - unit * b) * (w * s), mask=inside)
    if REDUCE:
        base = sums + ((r * blocks + tl.program_id(0)) * 2) * width + lane
        tl.store(base, sum_y, mask=in_lane)
        tl.store(base + width, sum_yu, mask=in_lane)
