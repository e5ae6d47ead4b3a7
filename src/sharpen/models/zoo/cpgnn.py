"""Graph neural networks with a compatibility matrix: beliefs are propagated, and which class meets which is learned."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sharpen.models.blocks import Perceptron
from sharpen.models.inputs import Inputs
from sharpen.models.run import Run
from sharpen.models.zoo.parts import features, random_walk

_BALANCING = 30


class CPGNN(nn.Module):
    r"""Linearised belief propagation from the beliefs of an MLP (Zhu et al., *Graph neural networks with heterophily*, AAAI 2021).

    .. math:: E = \mathrm{softmax}(\mathrm{MLP}(X)) - \tfrac{1}{C}, \qquad B_0 = E, \quad B_{k+1} = E + \hat{A} B_k \hat{H}, \qquad
        Z = B_K + \tfrac{1}{C}

    The MLP is trained alone first. Then Ĥ starts from what training nodes meet: the mean of their neighbours' beliefs by class,
    doubly stochastic and symmetric, less 1/C. From there on, the loss has the MLP's own cross-entropy and the row sums of Ĥ in it.
    Â has no self-loops.

    Args:
        layers, hidden, dropout: Of the MLP.
        rounds: K.
        pretrain: For how many epochs the MLP is trained alone.
        cotrain: The weight of its own cross-entropy afterwards.
        zero_sum: The weight of the absolute row sums of Ĥ.
    """

    start: Tensor
    spreads: Tensor

    def __init__(
        self, num_features: int, num_classes: int, layers: int = 2, hidden: int = 64, dropout: float = 0.5, rounds: int = 2,
        pretrain: int = 400, cotrain: float = 1.0, zero_sum: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.mlp = Perceptron([num_features, *[hidden] * (layers - 1), num_classes], dropout)
        self.learned = nn.Parameter(torch.zeros(num_classes, num_classes))  # of Ĥ, beyond its start
        self.register_buffer("start", torch.zeros(num_classes, num_classes))
        self.register_buffer("spreads", torch.zeros(()))
        self.rounds, self.pretrain, self.cotrain, self.zero_sum = rounds, pretrain, cotrain, zero_sum
        self.rates = {"learned": (None, 0.0)}

    def forward(self, x: Tensor, graph: Inputs, run: Run) -> Tensor | tuple[Tensor, Tensor]:
        prior = self.mlp(features(graph))
        beliefs, even = prior.softmax(1), 1 / prior.shape[1]
        if self.training:
            met = self._met(beliefs.detach(), graph, run)
            self.start.copy_(torch.where(run.epoch <= self.pretrain, met - even, self.start))
            self.spreads.copy_((run.epoch >= self.pretrain).to(self.spreads.dtype))
        compatible = self.start + self.learned
        spread = own = beliefs - even
        for _ in range(self.rounds):
            spread = own + graph.propagate(spread @ compatible, "one-hop")
        spreads = self.spreads.clone()  # another run's may be written before this one's gradients are computed
        scores = torch.where(spreads > 0, spread + even, prior)
        if not self.training:
            return scores
        alone = -(run.labels * prior.log_softmax(1)).sum() / run.train.sum().clamp(min=1)
        return scores, spreads * (self.cotrain * alone + self.zero_sum * compatible.sum(1).abs().sum())

    def _met(self, beliefs: Tensor, graph: Inputs, run: Run) -> Tensor:
        """What the neighbours of each class's training nodes are, doubly stochastic and symmetric."""
        known = torch.where(run.train[:, None] > 0, run.labels, beliefs)
        met = run.labels.t() @ graph.propagate(known, random_walk(graph))
        met = met.clamp(min=1e-9)  # a class without training nodes meets all classes alike
        for _ in range(_BALANCING):
            met = met / met.sum(0, keepdim=True)
            met = met / met.sum(1, keepdim=True)
        return (met + met.t()) / 2
