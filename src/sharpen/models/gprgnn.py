"""Generalised PageRank: an MLP's predictions, propagated, with a learned weight for every hop."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sharpen.models.blocks import Perceptron
from sharpen.models.inputs import Inputs


class GPRGNN(nn.Module):
    r"""A polynomial filter whose coefficients are learned, so that it may also tell neighbours apart.

    .. math:: Z = \sum_{k=0}^{K} \gamma_k \hat{A}^k \mathrm{MLP}(X), \qquad
        \gamma_k = \alpha (1 - \alpha)^k \text{ and } \gamma_K = (1 - \alpha)^K \text{ at the start}
    """

    def __init__(
        self, num_features: int, num_classes: int, layers: int = 2, hidden: int = 64, dropout: float = 0.5,
        hops: int = 10, alpha: float = 0.1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.mlp = Perceptron([num_features, *[hidden] * (layers - 1), num_classes], dropout)
        start = alpha * (1 - alpha) ** torch.arange(hops + 1.0)
        start[-1] = (1 - alpha) ** hops
        self.gamma = nn.Parameter(start)

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        """Class scores of all nodes."""
        z = self.mlp(x)
        out = self.gamma[0] * z
        for gamma in self.gamma[1:]:
            z = graph.propagate(z)
            out = out + gamma * z
        return out
