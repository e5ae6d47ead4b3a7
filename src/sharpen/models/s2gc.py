"""Simple spectral graph convolution: features averaged over hops once and for all, then a linear map."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from sharpen.models.inputs import Inputs


class S2GC(nn.Module):
    r"""Logistic regression on propagated features.

    .. math:: Z = \Big( \alpha X + \frac{1 - \alpha}{K} \sum_{k=1}^{K} \hat{A}^k X \Big) W + b

    Args:
        num_features, num_classes: Of the graph.
        hops: K.
        alpha: How much of a node's own features is kept.
    """

    def __init__(self, num_features: int, num_classes: int, hops: int = 16, alpha: float = 0.05) -> None:
        super().__init__()
        self.hops, self.alpha = hops, alpha
        self.head = nn.Linear(num_features, num_classes)

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        """Class scores of all nodes."""
        return self.head(graph.once(("s2gc", self.hops, self.alpha), self._averaged))

    def _averaged(self, x: Any, matrix: Any) -> Any:
        """The bracket, which no weight enters."""
        average, power = self.alpha * x, x
        for _ in range(self.hops):
            power = matrix("symmetric") @ power
            average = average + (1 - self.alpha) / self.hops * power
        return average
