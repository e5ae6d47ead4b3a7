"""Adam's update of one parameter of all members, in one pass."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from sharpen.kernels.adam import BETA_1, BETA_2, EPSILON


@triton.jit
def _adam(
    p, g, m, v, size, root, decay, count,
    BETA_1: tl.constexpr, BETA_2: tl.constexpr, EPSILON: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(1).to(tl.int64)
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    at = r * count + index
    weight = tl.load(p + at, mask=inside, other=0.0)
    gradient = tl.load(g + at, mask=inside, other=0.0) + tl.load(decay + r) * weight
    first = tl.load(m + at, mask=inside, other=0.0)
    first += (gradient - first) * (1 - BETA_1)
    second = tl.load(v + at, mask=inside, other=0.0) * BETA_2 + gradient * gradient * (1 - BETA_2)
    tl.store(m + at, first, mask=inside)
    tl.store(v + at, second, mask=inside)
    denominator = tl.sqrt(second) / tl.load(root) + EPSILON
    tl.store(p + at, weight - first / denominator * tl.load(size + r), mask=inside)


def update_triton(p: Tensor, g: Tensor, m: Tensor, v: Tensor, size: Tensor, root: Tensor, decay: Tensor) -> None:
    """One tensor's update, in place; ``size`` [R] is the step size, ``root`` the root of the second bias correction."""
    members, count = p.shape[0], p[0].numel()
    block = 1024
    _adam[(triton.cdiv(count, block), members)](
        p, g.contiguous(), m, v, size, root, decay, count, BETA_1=BETA_1, BETA_2=BETA_2, EPSILON=EPSILON, BLOCK=block
    )
