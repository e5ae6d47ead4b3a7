"""Adam for a population: every member has its own learning rate and weight decay."""

from __future__ import annotations

import torch
from torch import Tensor

from sharpen.kernels import backend

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Adam with the weight decay inside the gradient, as :class:`torch.optim.Adam` has it.

    Args:
        parameters: Tensors whose first dimension is the member; they are updated in place.
        lr: Learning rates, [R].
        weight_decay: L2 weights, [R].

    >>> w = torch.tensor([[1.0], [1.0]])
    >>> Adam([w], lr=torch.tensor([0.1, 0.5]), weight_decay=torch.zeros(2)).step([torch.ones(2, 1)])
    >>> [round(value, 4) for value in w.flatten().tolist()]
    [0.9, 0.5]
    """

    def __init__(self, parameters: list[Tensor], lr: Tensor, weight_decay: Tensor) -> None:
        self.parameters = parameters
        self.lr, self.weight_decay = lr, weight_decay
        self.first = [torch.zeros_like(p) for p in parameters]
        self.second = [torch.zeros_like(p) for p in parameters]
        self.steps = torch.zeros((), dtype=torch.float64, device=lr.device)  # on the device: a captured step must count

    @torch.no_grad()
    def step(self, gradients: list[Tensor]) -> None:
        """One update of all members."""
        self.steps += 1
        dtype = self.parameters[0].dtype
        size = (self.lr / (1 - BETA_1**self.steps)).to(dtype)
        root = (1 - BETA_2**self.steps).sqrt().to(dtype)
        update = _update_plain
        if backend.fused(self.parameters[0]):
            from sharpen.kernels.triton.adam import update_triton as update
        for p, g, m, v in zip(self.parameters, gradients, self.first, self.second, strict=True):
            update(p, g, m, v, size, root, self.weight_decay.to(dtype))


def _update_plain(p: Tensor, g: Tensor, m: Tensor, v: Tensor, size: Tensor, root: Tensor, decay: Tensor) -> None:
    """One tensor's update; ``size`` [R] and ``root`` are the step size and the root of the second bias correction."""
    per_member = (-1, *(1,) * (p.dim() - 1))
    g = torch.addcmul(g, p, decay.view(per_member))
    m.lerp_(g, 1 - BETA_1)
    v.mul_(BETA_2).addcmul_(g, g, value=1 - BETA_2)
    denominator = v.sqrt().div_(root).add_(EPSILON)
    p.sub_(torch.div(m, denominator, out=denominator).mul_(size.view(per_member)))
