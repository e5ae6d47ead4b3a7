"""Predict, then propagate: an MLP whose predictions spread by personalised PageRank."""

from __future__ import annotations

from torch import Tensor, nn

from sharpen.models.blocks import Perceptron
from sharpen.models.inputs import Inputs


class APPNP(nn.Module):
    r"""An approximate personalised propagation of neural predictions.

    .. math:: Z_0 = H = \mathrm{MLP}(X), \qquad Z_{k+1} = (1 - \alpha) \hat{A} Z_k + \alpha H

    Args:
        num_features, num_classes: Of the graph.
        layers, hidden, dropout: Of the MLP.
        hops: How often predictions are propagated.
        alpha: The probability of a return to the node itself.
    """

    def __init__(
        self, num_features: int, num_classes: int, layers: int = 2, hidden: int = 64, dropout: float = 0.5,
        hops: int = 10, alpha: float = 0.1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.mlp = Perceptron([num_features, *[hidden] * (layers - 1), num_classes], dropout)
        self.hops, self.alpha = hops, alpha

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        """Class scores of all nodes."""
        z = h = self.mlp(x)
        for _ in range(self.hops):
            z = (1 - self.alpha) * graph.propagate(z) + self.alpha * h
        return z
