"""The objective of a population in the training loop: its value, its parts, and its gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from sharpen.kernels import backend
from sharpen.objective import combine, sharpening_parts


def population_loss_plain(
    logits: Tensor,
    y: Tensor,
    labeled: Tensor,
    unlabeled: Tensor,
    q: float | Tensor,
    lam: Tensor,
    lam_labeled: Tensor,
    balance: float | Tensor,
    class_weight: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`population_loss` from :mod:`sharpen.objective`: the reference for the fused kernel, and the CPU's way."""
    parts = sharpening_parts(logits, y, labeled, unlabeled, q, class_weight)
    loss = combine(parts, lam, lam_labeled, balance)
    return loss, torch.stack([parts.cross_entropy, parts.entropy_labeled, parts.entropy_unlabeled]).detach()


def population_loss(
    logits: Tensor,
    y: Tensor,
    labeled: Tensor,
    unlabeled: Tensor,
    q: float | Tensor,
    lam: Tensor,
    lam_labeled: Tensor,
    balance: float | Tensor,
    class_weight: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Every member's loss [R], and its parts [3, R]: cross-entropy, entropy of labeled and of unlabeled predictions.

    Args:
        logits: [R, N, C].
        y: Classes [N], −1 where unknown.
        labeled, unlabeled: Weights of the nodes in each mean, [R, N].
        q: The entropy's order; one number, or one for each member.
        lam, lam_labeled, balance: The weights of the terms, [R]; a balance that is the number 0 is left out.
        class_weight: Weights of the classes in the mean of the cross-entropy, [C]; nothing for equal ones.

    >>> y, half = torch.tensor([0, -1]), torch.tensor([[1.0, 0.0]])
    >>> loss, parts = population_loss(torch.zeros(1, 2, 2), y, half, 1 - half, 2.0, torch.ones(1), -torch.ones(1), 0.0)
    >>> loss, parts.flatten()
    (tensor([0.6931]), tensor([0.6931, 0.5000, 0.5000]))
    """
    is_gini = not isinstance(q, Tensor) and q == 2.0
    has_balance = isinstance(balance, Tensor) or balance != 0
    if backend.fused(logits) and is_gini and not has_balance and class_weight is None:
        from sharpen.kernels.triton.loss import population_loss_triton

        return population_loss_triton(logits, y, labeled, unlabeled, lam, lam_labeled)
    return population_loss_plain(logits, y, labeled, unlabeled, q, lam, lam_labeled, balance, class_weight)
