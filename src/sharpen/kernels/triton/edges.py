"""Products and softmax on the edges of a graph, on the GPU: every row of the pattern by itself, so that no two programs write to
one place, and the result is the same every time."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from sharpen.kernels.sparse import Csr

_WIDEST = 256


@triton.jit
def _edge_dot(
    rowptr, col, g, h, out, rows, cols, width, edges,
    COLUMNS: tl.constexpr, BLOCK: tl.constexpr, EDGES: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """out[r, k] = <g[r, i], h[r, col[k]]> for the entries k of row i; columns are taken a block at a time."""
    r = tl.program_id(1).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    edge = tl.arange(0, EDGES)
    for step in range(ROWS):
        i = tl.program_id(0) * ROWS + step
        if i < rows:
            end = tl.load(rowptr + i + 1)
            for first in range(tl.load(rowptr + i), end, EDGES):
                here = first + edge < end
                j = tl.load(col + first + edge, mask=here, other=0).to(tl.int64)
                total = tl.zeros([EDGES], dtype=tl.float32)
                for block in range(0, COLUMNS, BLOCK):
                    at = block + lane
                    own = tl.load(g + (r * rows + i) * width + at, mask=at < width, other=0.0)
                    inside = here[:, None] & (at < width)[None, :]
                    other = tl.load(h + (r * cols + j[:, None]) * width + at[None, :], mask=inside, other=0.0)
                    total += tl.sum(own[None, :] * other, 1)
                tl.store(out + r * edges + first + edge, total, mask=here)


def edge_dot_triton(g: Tensor, h: Tensor, pattern: Csr) -> Tensor:
    """``<g_i, h_j>`` for every edge of every member, [R, E]."""
    g, h = g.contiguous(), h.contiguous()
    members, cols, width = h.shape
    out = torch.empty(members, pattern.nnz, dtype=h.dtype, device=h.device)
    block = min(triton.next_power_of_2(width), _WIDEST)
    rows = 4 if block <= 64 else 1
    _edge_dot[(triton.cdiv(pattern.num_rows, rows), members)](
        pattern.rowptr, pattern.col, g, h, out, pattern.num_rows, cols, width, pattern.nnz,
        COLUMNS=triton.cdiv(width, block) * block, BLOCK=block, EDGES=max(4, min(32, 512 // block)), ROWS=rows, num_warps=1,
    )  # fmt: skip
    return out


@triton.jit
def _softmax(rowptr, score, out, rows, edges, EDGES: tl.constexpr, ROWS: tl.constexpr):
    """A running maximum and sum for each lane, joined at the end of a row; then the row once more."""
    r = tl.program_id(1).to(tl.int64)
    edge = tl.arange(0, EDGES)
    score += r * edges
    out += r * edges
    for step in range(ROWS):
        i = tl.program_id(0) * ROWS + step
        if i < rows:
            start = tl.load(rowptr + i)
            end = tl.load(rowptr + i + 1)
            peaks = tl.full([EDGES], float("-inf"), dtype=tl.float32)
            totals = tl.zeros([EDGES], dtype=tl.float32)
            for first in range(start, end, EDGES):
                here = first + edge < end
                e = tl.load(score + first + edge, mask=here, other=float("-inf"))
                higher = tl.maximum(peaks, e)
                known = higher > float("-inf")
                totals = tl.where(known, totals * tl.exp(peaks - higher) + tl.exp(e - higher), 0.0)
                peaks = higher
            peak = tl.max(peaks, 0)
            log_norm = peak + tl.log(tl.sum(tl.where(totals > 0, totals * tl.exp(peaks - peak), 0.0), 0))
            for first in range(start, end, EDGES):
                here = first + edge < end
                e = tl.load(score + first + edge, mask=here, other=0.0)
                tl.store(out + first + edge, tl.exp(e - log_norm), mask=here)


def softmax_triton(score: Tensor, pattern: Csr) -> Tensor:
    """The softmax of edge scores [R, E] over each row of the pattern."""
    score = score.contiguous()
    out = torch.empty_like(score)
    _softmax[(triton.cdiv(pattern.num_rows, 4), len(score))](
        pattern.rowptr, score, out, pattern.num_rows, pattern.nnz, EDGES=32, ROWS=4, num_warps=1
    )
    return out
