"""One sparse matrix times a stack of dense ones, on the GPU."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from sharpen.kernels.sparse import Csr


@triton.jit
def gather(rowptr, col, value, x, stride, i, lane, width, BLOCK: tl.constexpr, EDGES: tl.constexpr):
    """Σ_k value[k] · x[col[k]] over row i; rows of x are ``stride`` apart. So many edges are loaded at once."""
    start = tl.load(rowptr + i)
    end = tl.load(rowptr + i + 1)
    edge = tl.arange(0, EDGES)
    total = tl.zeros([EDGES, BLOCK], dtype=tl.float32)
    for first in range(start, end, EDGES):
        here = first + edge < end
        c = tl.load(col + first + edge, mask=here, other=0).to(tl.int64)
        v = tl.load(value + first + edge, mask=here, other=0.0)
        inside = here[:, None] & (lane < width)[None, :]
        total += v[:, None] * tl.load(x + c[:, None] * stride + lane[None, :], mask=inside, other=0.0)
    return tl.sum(total, 0)


@triton.jit
def _spmm(
    rowptr, col, value, x, out, rows, cols, width, x_stride, out_stride,
    ACCUMULATE: tl.constexpr, BLOCK: tl.constexpr, EDGES: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """out[r, i] = Σ_k value[k] · x[r, col[k]] over row i. Rows vary fastest: one member's operand stays in the L2 cache."""
    r = tl.program_id(1).to(tl.int64)
    lane = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    for step in range(ROWS):
        i = tl.program_id(0) * ROWS + step
        if i < rows:
            total = gather(rowptr, col, value, x + r * cols * x_stride, x_stride, i, lane, width, BLOCK, EDGES)
            at = out + (r * rows + i) * out_stride + lane
            if ACCUMULATE:
                total += tl.load(at, mask=lane < width, other=0.0)
            tl.store(at, total, mask=lane < width)


def shape_of(block: int) -> dict[str, int]:
    """Threads for loads of 16 bytes each; narrow rows are taken several at a time, so that programs are worth starting."""
    narrow = block <= 128
    return {"EDGES": 8 if narrow else 4, "ROWS": 4 if narrow else 1, "num_warps": max(1, min(4, block // 128))}


def row_stride(x: Tensor) -> int:
    """How far apart rows are in a stack [R, N, H] or in a block of its columns."""
    assert x.stride(2) == 1
    assert x.shape[0] == 1 or x.stride(0) == x.shape[1] * x.stride(1)
    return x.stride(1)


def spmm_triton(out: Tensor, s: Csr, x: Tensor, accumulate: bool = False) -> None:
    """``out = s @ x`` or ``out += s @ x`` for every member; both may be blocks of columns of wider stacks."""
    members, cols, width = x.shape
    block = min(triton.next_power_of_2(width), 512)
    shape = shape_of(block)
    _spmm[(triton.cdiv(s.num_rows, shape["ROWS"]), members, triton.cdiv(width, block))](
        s.rowptr, s.col, s.value, x, out, s.num_rows, cols, width, row_stride(x), row_stride(out),
        ACCUMULATE=accumulate, BLOCK=block, **shape,
    )  # fmt: skip
