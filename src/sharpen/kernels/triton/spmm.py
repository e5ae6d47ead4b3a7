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
    rowptr, col, value, x, out, rows, cols, width, x_stride, out_stride, value_stride,
    ACCUMULATE: tl.constexpr, BLOCK: tl.constexpr, EDGES: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """out[r, i] = Σ_k value[k] · x[r, col[k]] over row i. Rows vary fastest: one member's operand stays in the L2 cache.

    Values are ``value_stride`` apart from one member to the next: 0 where all have the same."""
    r = tl.program_id(1).to(tl.int64)
    value += r * value_stride
    lane = tl.arange(0, BLOCK)
    for step in range(ROWS):
        i = tl.program_id(0) * ROWS + step
        if i < rows:
            total = gather(rowptr, col, value, x + r * cols * x_stride, x_stride, i, lane, width, BLOCK, EDGES)
            at = out + (r * rows + i) * out_stride + lane
            if ACCUMULATE:
                total += tl.load(at, mask=lane < width, other=0.0)
            tl.store(at, total, mask=lane < width)


def shape_of(block: int, degree: float) -> dict[str, int]:
    """How a program walks a row of so many columns and, in the mean, so many entries.

    Threads are for loads of 16 bytes each. Narrow rows are taken several at a time, so that programs are worth starting; as many
    entries are loaded at once as rows usually have, but no more than registers hold.
    """
    if block <= 128:
        return {"EDGES": max(8, 128 // block), "ROWS": 4, "num_warps": 1}
    edges = 2 if degree < 12 else 8 if degree > 24 and block <= 256 else 4
    return {"EDGES": edges, "ROWS": 1, "num_warps": block // (256 if degree < 12 else 128)}


def _column_blocks(width: int) -> list[tuple[int, int, int]]:
    """How to cut columns among launches, as (first, how many, block): lanes without a column would cost as much as those with one.

    >>> _column_blocks(264), _column_blocks(512), _column_blocks(100)
    ([(0, 256, 256), (256, 8, 8)], [(0, 512, 512)], [(0, 100, 128)])
    """
    cuts, first = [], 0
    while first < width:
        left = width - first
        block = min(triton.next_power_of_2(left), 512)
        if left < block and left - block // 2 <= block // 8:  # the rest is small: a launch of its own
            block //= 2
        cuts.append((first, min(left, block), block))
        first += cuts[-1][1]
    return cuts


def _is_stack(x: Tensor) -> bool:
    """Whether x is a stack [R, N, H] as kernels walk it, or a block of the columns of one."""
    return x.stride(2) == 1 and (x.shape[0] == 1 or x.stride(0) == x.shape[1] * x.stride(1))


def row_stride(x: Tensor) -> int:
    """How far apart rows are in a stack [R, N, H] or in a block of its columns."""
    assert _is_stack(x)
    return x.stride(1)


def spmm_triton(out: Tensor, s: Csr, x: Tensor, accumulate: bool = False, value: Tensor | None = None) -> None:
    """``out = s @ x`` or ``out += s @ x`` for every member; both may be blocks of columns of wider stacks.

    With ``value`` [R, E], contiguous, every member has values of its own in the place of the matrix's.
    """
    x = x if _is_stack(x) else x.contiguous()  # a gradient may be anything, one number expanded for example
    members, cols, width = x.shape
    for first, count, block in _column_blocks(width):
        shape = shape_of(block, s.degree)
        _spmm[(triton.cdiv(s.num_rows, shape["ROWS"]), members)](
            s.rowptr, s.col, s.value if value is None else value, x[..., first:], out[..., first:],
            s.num_rows, cols, count, row_stride(x), row_stride(out), 0 if value is None else s.nnz,
            ACCUMULATE=accumulate, BLOCK=block, **shape,
        )  # fmt: skip
