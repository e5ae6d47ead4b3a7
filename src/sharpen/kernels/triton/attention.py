"""Edge softmax and weighted sum in one kernel, forward and backward, on the GPU.

The forward pass keeps, of the softmax, only its logarithmic normaliser per node; the backward pass recomputes the weights. With
``D_i = <dy_i, y_i>`` the gradient of an edge's score needs no sum over the node's other edges:

.. math:: de_{ij} = w_{ij} (<dy_i, h_j> - D_i)

The transpose is walked row by row, so no two programs write to the same place, and the result is the same every time.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from sharpen.kernels.attention import NEGATIVE_SLOPE
from sharpen.kernels.sparse import Csr


@triton.jit
def _score(source, target, SLOPE: tl.constexpr):
    e = source + target
    return tl.where(e > 0, e, e * SLOPE)


@triton.jit
def _forward(
    rowptr, col, h, source, target, out, norm, nodes, width,
    SLOPE: tl.constexpr, EDGES: tl.constexpr, UNROLL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    r = tl.program_id(1).to(tl.int64)
    start = tl.load(rowptr + i)
    end = tl.load(rowptr + i + 1)
    source += r * nodes
    t = tl.load(target + r * nodes + i)
    edge = tl.arange(0, EDGES)
    peak = float("-inf")
    total = 0.0
    for first in range(start, end, EDGES):
        here = first + edge < end
        j = tl.load(col + first + edge, mask=here, other=0)
        e = tl.where(here, _score(tl.load(source + j, mask=here, other=0.0), t, SLOPE), float("-inf"))
        higher = tl.maximum(peak, tl.max(e, 0))
        total = total * tl.exp(peak - higher) + tl.sum(tl.exp(e - higher), 0)
        peak = higher
    log_norm = peak + tl.log(total)
    tl.store(norm + r * nodes + i, log_norm)

    lane = tl.arange(0, BLOCK)
    inside = lane < width
    h += r * nodes * width
    y = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(start, end, UNROLL):
        for step in tl.static_range(UNROLL):
            k = first + step
            here = k < end
            j = tl.load(col + k, mask=here, other=0).to(tl.int64)
            w = tl.exp(_score(tl.load(source + j, mask=here, other=float("-inf")), t, SLOPE) - log_norm)
            y += tl.where(here, w, 0.0) * tl.load(h + j * width + lane, mask=lane < tl.where(here, width, 0), other=0.0)
    tl.store(out + (r * nodes + i) * width + lane, y, mask=inside)


@triton.jit
def _row_dot(a, b, out, nodes, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out[r, i] = <a[r, i], b[r, i]>"""
    r = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lane = tl.arange(0, BLOCK)
    inside = (row < nodes)[:, None] & (lane < width)[None, :]
    at = (r * nodes + row[:, None]) * width + lane[None, :]
    product = tl.load(a + at, mask=inside, other=0.0) * tl.load(b + at, mask=inside, other=0.0)
    tl.store(out + r * nodes + row, tl.sum(product, 1), mask=row < nodes)


@triton.jit
def _backward(
    rowptr, col, h, source, target, norm, dy, dot, dh, d_source, d_edge, nodes, width, edges,
    SLOPE: tl.constexpr, UNROLL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """For node j: its neighbours i are the rows of the transpose. d_edge is in the transpose's order."""
    j = tl.program_id(0)
    r = tl.program_id(1).to(tl.int64)
    start = tl.load(rowptr + j)
    end = tl.load(rowptr + j + 1)
    lane = tl.arange(0, BLOCK)
    inside = lane < width
    s = tl.load(source + r * nodes + j)
    own = tl.load(h + (r * nodes + j) * width + lane, mask=inside, other=0.0)
    target += r * nodes
    norm += r * nodes
    dot += r * nodes
    dy += r * nodes * width
    total = tl.zeros([BLOCK], dtype=tl.float32)
    d_s = 0.0
    for first in range(start, end, UNROLL):
        for step in tl.static_range(UNROLL):
            k = first + step
            here = k < end
            i = tl.load(col + k, mask=here, other=0).to(tl.int64)
            e = s + tl.load(target + i, mask=here, other=0.0)
            w = tl.exp(tl.where(e > 0, e, e * SLOPE) - tl.load(norm + i, mask=here, other=0.0))
            w = tl.where(here, w, 0.0)
            g = tl.load(dy + i * width + lane, mask=lane < tl.where(here, width, 0), other=0.0)
            d_e = w * (tl.sum(g * own, 0) - tl.load(dot + i, mask=here, other=0.0))
            d_e = tl.where(e > 0, d_e, d_e * SLOPE)
            tl.store(d_edge + r * edges + k, d_e, mask=here)
            d_s += d_e
            total += w * g
    tl.store(dh + (r * nodes + j) * width + lane, total, mask=inside)
    tl.store(d_source + r * nodes + j, d_s)


@triton.jit
def _gather_sum(rowptr, place, d_edge, out, nodes, edges, EDGES: tl.constexpr):
    """out[r, i] = Σ of d_edge over row i, whose entries stand at ``place`` in the transpose's order."""
    i = tl.program_id(0)
    r = tl.program_id(1).to(tl.int64)
    start = tl.load(rowptr + i)
    end = tl.load(rowptr + i + 1)
    edge = tl.arange(0, EDGES)
    total = tl.zeros([EDGES], dtype=tl.float32)
    for first in range(start, end, EDGES):
        here = first + edge < end
        at = tl.load(place + first + edge, mask=here, other=0)
        total += tl.load(d_edge + r * edges + at, mask=here, other=0.0)
    tl.store(out + r * nodes + i, tl.sum(total, 0))


def _warps(block: int) -> int:
    return max(1, min(4, block // 128))


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, source: Tensor, target: Tensor, pattern: Csr) -> Tensor:
        h, source, target = h.contiguous(), source.contiguous(), target.contiguous()
        members, nodes, width = h.shape
        out, norm = torch.empty_like(h), torch.empty_like(source)
        block = triton.next_power_of_2(width)
        _forward[(nodes, members)](
            pattern.rowptr, pattern.col, h, source, target, out, norm, nodes, width,
            SLOPE=NEGATIVE_SLOPE, EDGES=32, UNROLL=4, BLOCK=block, num_warps=_warps(block),
        )  # fmt: skip
        ctx.pattern = pattern
        ctx.save_for_backward(h, source, target, out, norm)
        return out

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        h, source, target, out, norm = ctx.saved_tensors
        pattern, dy = ctx.pattern, dy.contiguous()
        members, nodes, width = h.shape
        block = triton.next_power_of_2(width)
        rows = max(1, 4096 // block)
        dot, dh = torch.empty_like(source), torch.empty_like(h)
        d_source, d_target = torch.empty_like(source), torch.empty_like(target)
        d_edge = torch.empty(members, pattern.nnz, dtype=h.dtype, device=h.device)
        _row_dot[(triton.cdiv(nodes, rows), members)](dy, out, dot, nodes, width, ROWS=rows, BLOCK=block, num_warps=4)
        _backward[(nodes, members)](
            pattern.t.rowptr, pattern.t.col, h, source, target, norm, dy, dot, dh, d_source, d_edge, nodes, width, pattern.nnz,
            SLOPE=NEGATIVE_SLOPE, UNROLL=4, BLOCK=block, num_warps=_warps(block),
        )  # fmt: skip
        _gather_sum[(nodes, members)](
            pattern.rowptr, pattern.place, d_edge, d_target, nodes, pattern.nnz, EDGES=32, num_warps=1
        )
        return dh, d_source, d_target, None


def attend_triton(h: Tensor, source: Tensor, target: Tensor, pattern: Csr) -> Tensor:
    """Every node's attention-weighted mean of its neighbours, as :func:`sharpen.kernels.attention.attend` says it."""
    out: Tensor = _Attend.apply(h, source, target, pattern)
    return out
