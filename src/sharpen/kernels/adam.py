"""Adam for a population: every member has its own learning rate and weight decay."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

from sharpen.kernels import backend

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
_SETTINGS = {"beta1": BETA_1, "beta2": BETA_2, "eps": EPSILON, "fused": True, "amsgrad": False, "maximize": False}


class Adam:
    """Adam with the weight decay inside the gradient, as :class:`torch.optim.Adam` has it.

    Args:
        parameters: Tensors whose first dimension is the member; they are updated in place.
        lr: Learning rates, [R].
        weight_decay: L2 weights, [R].
        own: For each parameter a learning rate and a weight decay of its own, the same in all members; None where it has none.

    >>> w = torch.tensor([[1.0], [1.0]])
    >>> Adam([w], lr=torch.tensor([0.1, 0.5]), weight_decay=torch.zeros(2)).step([torch.ones(2, 1)])
    >>> [round(value, 4) for value in w.flatten().tolist()]
    [0.9, 0.5]
    """

    def __init__(
        self,
        parameters: list[Tensor],
        lr: Tensor,
        weight_decay: Tensor,
        own: Sequence[tuple[float | None, float | None]] | None = None,
    ) -> None:
        self.parameters, self._own = parameters, own or [(None, None)] * len(parameters)
        self.lr, self.weight_decay = lr, weight_decay
        self.first = [torch.zeros_like(p) for p in parameters]
        self.second = [torch.zeros_like(p) for p in parameters]
        self.steps = torch.zeros((), dtype=torch.float64, device=lr.device)  # on the device: a captured step must count
        self._runs = [] if backend.fused(parameters[0]) else list(self._agreeing())

    @torch.no_grad()
    def step(self, gradients: list[Tensor]) -> None:
        """One update of all members."""
        for run in self._runs:
            run.step(gradients)
        if self._runs:
            return
        from sharpen.kernels.triton.adam import update_triton

        self.steps += 1
        dtype = self.parameters[0].dtype
        share = 1 - BETA_1**self.steps
        root = (1 - BETA_2**self.steps).sqrt().to(dtype)
        for p, g, m, v, own in zip(self.parameters, gradients, self.first, self.second, self._own, strict=True):
            lr, decay = (
                given if one is None else torch.full_like(given, one)
                for given, one in zip((self.lr, self.weight_decay), own, strict=True)
            )
            update_triton(p, g, m, v, (lr / share).to(dtype), root, decay.to(dtype))

    def count(self, steps: Tensor) -> None:
        """Says how many steps have been taken, where that is not how often :meth:`step` was called."""
        self.steps.copy_(steps)
        for run in self._runs:
            run.count(steps)

    def _agreeing(self) -> Iterator[_Run]:
        """Members that follow one another and agree in their settings; of these, parameters that agree in theirs."""
        settings, end = zip(self.lr.tolist(), self.weight_decay.tolist(), strict=True), 0
        groups = {own: [k for k, each in enumerate(self._own) if each == own] for own in self._own}
        for (lr, weight_decay), same in itertools.groupby(settings):
            start, end = end, end + len(list(same))
            for (own_lr, own_decay), which in groups.items():
                decay = weight_decay if own_decay is None else own_decay
                yield _Run(self, slice(start, end), which, lr if own_lr is None else own_lr, decay)


class _Run:
    """torch's own Adam, one pass over some tensors, for members with one learning rate and weight decay."""

    def __init__(self, population: Adam, members: slice, which: list[int], lr: float, weight_decay: float) -> None:
        self._members, self._which, self._lr, self._weight_decay = members, which, lr, weight_decay
        state = (population.parameters, population.first, population.second)
        self._parameters, self._first, self._second = ([tensors[k][members] for k in which] for tensors in state)
        self._steps = [torch.zeros((), device=t.device) for t in self._parameters]

    def count(self, steps: Tensor) -> None:
        for each in self._steps:
            each.copy_(steps)

    def step(self, gradients: list[Tensor]) -> None:
        own, moments = [gradients[k][self._members].contiguous() for k in self._which], (self._first, self._second)
        rates: dict[str, Any] = {"lr": self._lr, "weight_decay": self._weight_decay, **_SETTINGS}
        adam(self._parameters, own, *moments, [], self._steps, **rates)
