"""The objective of a population in the training loop: its value, its parts, and its gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from sharpen.kernels import backend
from sharpen.objective import Objective

TRACED = ("cross_entropy", "entropy_labeled", "entropy_unlabeled")
"""The parts of the objective that leave a trace."""


def population_loss(
    logits: Tensor, y: Tensor, labeled: Tensor, unlabeled: Tensor, objective: Objective
) -> tuple[Tensor, Tensor]:
    """Every member's loss [R], and the parts that are traced, [3, R]: :data:`TRACED`.

    Args:
        logits: [R, N, C].
        y: Classes [N], −1 where unknown.
        labeled, unlabeled: Weights of the nodes in each mean, [R, N].
        objective: The terms and their weights. The fused kernel knows the paper's; it declines all others.

    >>> y, half = torch.tensor([0, -1]), torch.tensor([[1.0, 0.0]])
    >>> ones = torch.ones(1)
    >>> loss, parts = population_loss(torch.zeros(1, 2, 2), y, half, 1 - half, Objective(lam=ones, lam_labeled=-ones))
    >>> loss, parts.flatten()
    (tensor([0.6931]), tensor([0.6931, 0.5000, 0.5000]))
    """
    lam, lam_labeled = objective.lam, objective.lam_labeled
    if backend.fused(logits) and objective.is_gini and isinstance(lam, Tensor) and isinstance(lam_labeled, Tensor):
        from sharpen.kernels.triton.loss import population_loss_triton

        return population_loss_triton(logits, y, labeled, unlabeled, lam, lam_labeled)
    loss, parts = objective(logits, y, labeled, unlabeled)
    return loss, torch.stack([getattr(parts, name) for name in TRACED]).detach()
