"""Deep graph convolutions that keep the first layer in sight and stay near the identity."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs
from sharpen.models.zoo.parts import features


class GCNII(nn.Module):
    r"""Initial residual and identity mapping (Chen et al., *Simple and deep graph convolutional networks*, ICML 2020).

    .. math:: H_l = \mathrm{ReLU}\big( S_l ((1 - \beta_l) I + \beta_l W_l) \big), \qquad
        S_l = (1 - \alpha) \hat{A} H_{l-1} + \alpha H_0, \qquad \beta_l = \log(\lambda / l + 1)

    Args:
        layers, hidden, dropout: Of the convolutions; dropout before every map.
        alpha: How much of the first layer is kept.
        strength: λ, how far from the identity a layer may go.
        conv_decay: The weight decay of the convolutions; None: that of all weights.
    """

    def __init__(
        self, num_features: int, num_classes: int, layers: int = 16, hidden: int = 64, dropout: float = 0.6,
        alpha: float = 0.1, strength: float = 0.5, conv_decay: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        bound = 1 / math.sqrt(hidden)
        self.first, self.head = nn.Linear(num_features, hidden), nn.Linear(hidden, num_classes)
        self.convs = nn.Parameter(torch.empty(layers, hidden, hidden).uniform_(-bound, bound))
        self.dropout, self.alpha, self.strength = Dropout(dropout), alpha, strength
        self.rates = {"convs": (None, conv_decay)}

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        h = first = self.first(self.dropout(features(graph))).relu()
        for number, weight in enumerate(self.convs, start=1):
            beta = math.log(self.strength / number + 1)
            support = (1 - self.alpha) * graph.propagate(self.dropout(h)) + self.alpha * first
            h = (beta * (support @ weight) + (1 - beta) * support).relu()
        return self.head(self.dropout(h))
