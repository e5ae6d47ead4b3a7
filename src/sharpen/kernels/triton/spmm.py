"""One sparse matrix times a stack of dense ones, on the GPU."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from sharpen.kernels.sparse import Csr


@triton.jit
def _spmm(rowptr, col, value, x, out, rows, cols, width, BLOCK: tl.constexpr, UNROLL: tl.constexpr):
    """out[r, i] = Σ_k value[k] · x[r, col[k]] over row i. Rows vary fastest: one member's operand stays in the L2 cache."""
    i = tl.program_id(0)
    r = tl.program_id(1).to(tl.int64)
    lane = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < width
    start = tl.load(rowptr + i)
    end = tl.load(rowptr + i + 1)
    x += r * cols * width
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(start, end, UNROLL):
        for step in tl.static_range(UNROLL):  # independent loads in flight
            k = first + step
            here = k < end
            c = tl.load(col + k, mask=here, other=0).to(tl.int64)
            v = tl.load(value + k, mask=here, other=0.0)
            total += v * tl.load(x + c * width + lane, mask=lane < tl.where(here, width, 0), other=0.0)
    tl.store(out + (r * rows + i) * width + lane, total, mask=inside)


def spmm_triton(s: Csr, x: Tensor) -> Tensor:
    """``s @ x[r]`` for every r; x is contiguous float32."""
    members, cols, width = x.shape
    out = torch.empty(members, s.num_rows, width, dtype=x.dtype, device=x.device)
    block = min(triton.next_power_of_2(width), 512)
    grid = (s.num_rows, members, triton.cdiv(width, block))
    warps = max(1, min(4, block // 128))
    _spmm[grid](s.rowptr, s.col, s.value, x, out, s.num_rows, cols, width, BLOCK=block, UNROLL=4, num_warps=warps)
    return out
