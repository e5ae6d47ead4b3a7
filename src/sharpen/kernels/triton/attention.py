"""Edge softmax and weighted sum in one kernel, forward and backward, on the GPU.

The forward pass keeps, of the softmax, only its logarithmic normaliser per node; the backward pass recomputes the weights. With
``D_i = <dy_i, y_i>`` the gradient of an edge's score needs no sum over the node's other edges:

.. math:: de_{ij} = w_{ij} (<dy_i, h_j> - D_i)

The transpose is walked row by row, so no two programs write to the same place, and the result is the same every time. What is
gathered and its scores are columns of one matrix, rows ``stride`` apart, and so are their gradients.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from sharpen.kernels.edges import NEGATIVE_SLOPE
from sharpen.kernels.sparse import Csr
from sharpen.kernels.triton.spmm import row_stride, shape_of


@triton.jit
def _forward(
    rowptr, col, h, score, out, norm, nodes, width, stride,
    SLOPE: tl.constexpr, SCORES: tl.constexpr, EDGES: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(1).to(tl.int64)
    score += r * nodes * stride
    h += r * nodes * stride
    lane = tl.arange(0, BLOCK)
    many = tl.arange(0, SCORES)
    edge = tl.arange(0, EDGES)
    for step in range(ROWS):
        i = tl.program_id(0) * ROWS + step
        if i < nodes:
            start = tl.load(rowptr + i)
            end = tl.load(rowptr + i + 1)
            target = tl.load(score + tl.cast(i, tl.int64) * stride + 1)
            # A running maximum and sum for each lane, joined at the end.
            peaks = tl.full([SCORES], float("-inf"), dtype=tl.float32)
            totals = tl.zeros([SCORES], dtype=tl.float32)
            for first in range(start, end, SCORES):
                here = first + many < end
                j = tl.load(col + first + many, mask=here, other=0).to(tl.int64)
                e = tl.load(score + j * stride, mask=here, other=0.0) + target
                e = tl.where(here, tl.where(e > 0, e, e * SLOPE), float("-inf"))
                higher = tl.maximum(peaks, e)
                known = higher > float("-inf")
                totals = tl.where(known, totals * tl.exp(peaks - higher) + tl.exp(e - higher), 0.0)
                peaks = higher
            peak = tl.max(peaks, 0)
            log_norm = peak + tl.log(tl.sum(totals * tl.exp(peaks - peak), 0))
            tl.store(norm + r * nodes + i, log_norm)

            y = tl.zeros([EDGES, BLOCK], dtype=tl.float32)
            for first in range(start, end, EDGES):
                here = first + edge < end
                j = tl.load(col + first + edge, mask=here, other=0).to(tl.int64)
                e = tl.load(score + j * stride, mask=here, other=0.0) + target
                w = tl.where(here, tl.exp(tl.where(e > 0, e, e * SLOPE) - log_norm), 0.0)
                inside = here[:, None] & (lane < width)[None, :]
                y += w[:, None] * tl.load(h + j[:, None] * stride + lane[None, :], mask=inside, other=0.0)
            tl.store(out + (r * nodes + i) * width + lane, tl.sum(y, 0), mask=lane < width)


@triton.jit
def _row_dot(a, b, out, nodes, width, a_stride, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out[r, i] = <a[r, i], b[r, i]>"""
    r = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lane = tl.arange(0, BLOCK)
    inside = (row < nodes)[:, None] & (lane < width)[None, :]
    at = (r * nodes + row)[:, None]
    product = tl.load(a + at * a_stride + lane[None, :], mask=inside, other=0.0)
    product *= tl.load(b + at * width + lane[None, :], mask=inside, other=0.0)
    tl.store(out + r * nodes + row, tl.sum(product, 1), mask=row < nodes)


@triton.jit
def _backward(
    rowptr, col, h, score, norm, dy, dot, dh, d_score, d_edge, nodes, width, edges, stride, dy_stride,
    SLOPE: tl.constexpr, EDGES: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """For node j: its neighbours i are the rows of the transpose. d_edge is in the transpose's order."""
    r = tl.program_id(1).to(tl.int64)
    score += r * nodes * stride
    norm += r * nodes
    dot += r * nodes
    dy += r * nodes * dy_stride
    lane = tl.arange(0, BLOCK)
    edge = tl.arange(0, EDGES)
    for step in range(ROWS):
        j = tl.program_id(0) * ROWS + step
        if j < nodes:
            start = tl.load(rowptr + j)
            end = tl.load(rowptr + j + 1)
            own_row = (r * nodes + j) * stride
            source = tl.load(score + tl.cast(j, tl.int64) * stride)
            own = tl.load(h + own_row + lane, mask=lane < width, other=0.0)
            total = tl.zeros([EDGES, BLOCK], dtype=tl.float32)
            d_source = tl.zeros([EDGES], dtype=tl.float32)
            for first in range(start, end, EDGES):
                here = first + edge < end
                i = tl.load(col + first + edge, mask=here, other=0).to(tl.int64)
                e = source + tl.load(score + i * stride + 1, mask=here, other=0.0)
                w = tl.exp(tl.where(e > 0, e, e * SLOPE) - tl.load(norm + i, mask=here, other=0.0))
                w = tl.where(here, w, 0.0)
                inside = here[:, None] & (lane < width)[None, :]
                g = tl.load(dy + i[:, None] * dy_stride + lane[None, :], mask=inside, other=0.0)
                d_e = w * (tl.sum(g * own[None, :], 1) - tl.load(dot + i, mask=here, other=0.0))
                d_e = tl.where(e > 0, d_e, d_e * SLOPE)
                tl.store(d_edge + r * edges + first + edge, d_e, mask=here)
                d_source += d_e
                total += w[:, None] * g
            tl.store(dh + own_row + lane, tl.sum(total, 0), mask=lane < width)
            tl.store(d_score + own_row, tl.sum(d_source, 0))


@triton.jit
def _target_gradient(
    rowptr, place, d_edge, d_score, nodes, edges, stride,
    ROWS: tl.constexpr, EDGES: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The sums of d_edge over rows, whose entries stand at ``place`` in the transpose's order; padding columns become 0."""
    r = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    start = tl.load(rowptr + i, mask=i < nodes, other=0)
    end = tl.load(rowptr + i + 1, mask=i < nodes, other=0)
    total = tl.zeros([ROWS, EDGES], dtype=tl.float32)
    for first in range(0, tl.max(end - start, 0), EDGES):
        k = start[:, None] + first + tl.arange(0, EDGES)[None, :]
        here = k < end[:, None]
        at = tl.load(place + k, mask=here, other=0)
        total += tl.load(d_edge + r * edges + at, mask=here, other=0.0)
    column = tl.arange(0, COLUMNS)[None, :]
    value = tl.where(column == 1, tl.sum(total, 1)[:, None], 0.0)
    at = (r * nodes + i)[:, None] * stride + column
    tl.store(d_score + at, value, mask=(column > 0) & (i < nodes)[:, None])


def attend_forward(h: Tensor, score: Tensor, pattern: Csr) -> tuple[Tensor, Tensor]:
    """Every node's weighted mean of its neighbours, [R, N, H], and its logarithmic normaliser, [R, N].

    ``h`` and ``score`` are blocks of columns of one stack; the first column of ``score`` is the source's, the second the target's.
    """
    members, nodes, width = h.shape
    out = torch.empty(members, nodes, width, dtype=h.dtype, device=h.device)
    norm = torch.empty(members, nodes, dtype=h.dtype, device=h.device)
    block = triton.next_power_of_2(width)
    launch = shape_of(block, pattern.degree)
    _forward[(triton.cdiv(nodes, launch["ROWS"]), members)](
        pattern.rowptr, pattern.col, h, score, out, norm, nodes, width, row_stride(h),
        SLOPE=NEGATIVE_SLOPE, SCORES=32, BLOCK=block, **launch,
    )  # fmt: skip
    return out, norm


def attend_backward(
    h: Tensor, score: Tensor, out: Tensor, norm: Tensor, dy: Tensor, dh: Tensor, d_score: Tensor, pattern: Csr
) -> None:
    """Writes the gradients in ``h`` and ``score`` from ``dy``, that in ``out``."""
    members, nodes, width = h.shape
    block = triton.next_power_of_2(width)
    rows = max(1, 4096 // block)
    dot = torch.empty_like(norm)
    d_edge = torch.empty(members, pattern.nnz, dtype=h.dtype, device=h.device)
    stride, dy_stride, edges = row_stride(h), row_stride(dy), pattern.nnz
    _row_dot[(triton.cdiv(nodes, rows), members)](dy, out, dot, nodes, width, dy_stride, ROWS=rows, BLOCK=block)
    # One warp for each row: its sums over columns need no other's.
    launch = {"EDGES": max(2, min(8, 256 // block)), "ROWS": 4 if block <= 128 else 1, "num_warps": 1}
    _backward[(triton.cdiv(nodes, launch["ROWS"]), members)](
        pattern.t.rowptr, pattern.t.col, h, score, norm, dy, dot, dh, d_score, d_edge, nodes, width, edges, stride, dy_stride,
        SLOPE=NEGATIVE_SLOPE, BLOCK=block, **launch,
    )  # fmt: skip
    _target_gradient[(triton.cdiv(nodes, 8), members)](
        pattern.rowptr, pattern.place, d_edge, d_score, nodes, edges, stride,
        ROWS=8, EDGES=16, COLUMNS=d_score.shape[2], num_warps=1,
    )  # fmt: skip
