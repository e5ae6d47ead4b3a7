"""Cross-entropy, both Gini entropies and the gradient of their weighted sum, in one pass over the logits."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable


@triton.jit
def _loss(
    logits, y, labeled, unlabeled, lam, lam_labeled, gradient, sums, nodes, classes, blocks,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lane = tl.arange(0, BLOCK)
    in_row = row < nodes
    inside = in_row[:, None] & (lane < classes)[None, :]
    at = (r * nodes + row)[:, None] * classes + lane[None, :]
    z = tl.load(logits + at, mask=inside, other=float("-inf"))
    z = tl.where(in_row[:, None], z, 0.0)
    own = lane[None, :] == tl.load(y + row, mask=in_row, other=-1)[:, None]
    w_l = tl.load(labeled + r * nodes + row, mask=in_row, other=0.0)
    w_u = tl.load(unlabeled + r * nodes + row, mask=in_row, other=0.0)

    peak = tl.max(z, 1)
    e = tl.exp(z - peak[:, None])
    total = tl.sum(e, 1)
    p = e / total[:, None]
    square = tl.sum(p * p, 1)
    nll = peak + tl.log(total) - tl.sum(tl.where(own, z, 0.0), 1)
    cross_entropy = tl.where(w_l > 0, nll * w_l, 0.0)
    base = sums + (r * blocks + tl.program_id(0)) * 3
    tl.store(base, tl.sum(cross_entropy, 0))
    tl.store(base + 1, tl.sum((1 - square) * w_l, 0))
    tl.store(base + 2, tl.sum((1 - square) * w_u, 0))

    # d(1 − Σp²)/dz = −2 p (p − Σp²)
    w = tl.load(lam + r) * w_u + tl.load(lam_labeled + r) * w_l
    d = w_l[:, None] * (p - tl.where(own, 1.0, 0.0)) - (2 * w)[:, None] * p * (p - square[:, None])
    tl.store(gradient + at, d, mask=inside)


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, y: Tensor, labeled: Tensor, unlabeled: Tensor, lam: Tensor, lam_labeled: Tensor
    ) -> tuple[Tensor, Tensor]:
        logits = logits.contiguous()
        members, nodes, classes = logits.shape
        block = triton.next_power_of_2(classes)
        rows = max(16, 2048 // block)
        blocks = triton.cdiv(nodes, rows)
        gradient = torch.empty_like(logits)
        sums = logits.new_empty(members, blocks, 3)
        _loss[(blocks, members)](
            logits, y, labeled, unlabeled, lam, lam_labeled, gradient, sums, nodes, classes, blocks, ROWS=rows, BLOCK=block
        )  # fmt: skip
        ctx.save_for_backward(gradient)
        parts = sums.sum(1).t().contiguous()
        ctx.mark_non_differentiable(parts)
        return parts[0] + lam_labeled * parts[1] + lam * parts[2], parts

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * g[:, None, None], None, None, None, None, None


def population_loss_triton(
    logits: Tensor, y: Tensor, labeled: Tensor, unlabeled: Tensor, lam: Tensor, lam_labeled: Tensor
) -> tuple[Tensor, Tensor]:
    """The loss and its parts, as :func:`sharpen.kernels.loss.population_loss` says it, for q = 2 and no balance."""
    return _Loss.apply(logits, y, labeled, unlabeled, lam, lam_labeled)
