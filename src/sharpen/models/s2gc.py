"""Simple spectral graph convolution: a linear map of features averaged over hops."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from sharpen.models.inputs import Inputs
from sharpen.models.zoo.parts import features


class S2GC(nn.Module):
    r"""Logistic regression on propagated features.

    .. math:: Z = \Big( \alpha X + \frac{1 - \alpha}{K} \sum_{k=1}^{K} \hat{A}^k X \Big) W + b

    with every row of X divided by its sum.
    """

    def __init__(self, num_features: int, num_classes: int, hops: int = 16, alpha: float = 0.05) -> None:
        super().__init__()
        self.hops, self.alpha = hops, alpha
        self.head = nn.Linear(num_features, num_classes)

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        """Class scores of all nodes."""
        h = F.linear(features(graph), self.head.weight)  # of which there are fewer columns to propagate than of X
        average = self.alpha * h
        for _ in range(self.hops):
            h = graph.propagate(h)
            average = average + (1 - self.alpha) / self.hops * h
        return average + self.head.bias
