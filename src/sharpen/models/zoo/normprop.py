"""Normalise, then propagate: the direction of a node says its class, the length how much its neighbours agree."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs
from sharpen.models.run import Run
from sharpen.models.zoo.parts import features


class NormProp(nn.Module):
    r"""Unit vectors are propagated; where neighbours point the same way, they stay long (Zhang et al., AAAI 2025).

    .. math:: H = \hat{A}^K \frac{\mathrm{MLP}(X)}{\lVert \mathrm{MLP}(X) \rVert}, \qquad
        \mathcal{L} = \operatorname*{mean}_\mathrm{train} (1 - \cos(h_i, p_{y_i}))
        + \mu \operatorname*{mean}_\mathrm{confident} \Big( 1 - \frac{\lVert h_i \rVert}{(\hat{A}^K 1)_i} \Big)

    Class scores are cosines to fixed prototypes p, the corners of a regular simplex. The cosine loss takes the place of the
    cross-entropy; confident are nodes outside the training set whose cosine is above a threshold, once a warm-up is over.

    Args:
        hidden, dropout: Of the MLP.
        width: Of the vectors; at least the number of classes less one.
        hops: K.
        mu, threshold, warm_up: The weight of the term on lengths (0: without it), the least cosine, and the epochs without it.
        cosine_loss: Whether the cosine loss takes the place of the cross-entropy.
        scale: What cosines are multiplied by to be scores; it changes no class, only how sharp probabilities are.
    """

    prototypes: Tensor

    def __init__(
        self, num_features: int, num_classes: int, hidden: int = 32, dropout: float = 0.3, width: int = 8, hops: int = 2,
        mu: float = 1.0, threshold: float = 0.8, warm_up: int = 10, cosine_loss: bool = True, scale: float = 10.0,
    ) -> None:  # fmt: skip
        super().__init__()
        width = max(width, num_classes)
        self.first, self.second = nn.Linear(num_features, hidden), nn.Linear(hidden, width)
        self.norm, self.dropout = nn.LayerNorm(hidden, eps=1e-6), Dropout(dropout)
        corners = math.sqrt(num_classes / (num_classes - 1)) * (torch.eye(num_classes) - 1 / num_classes)
        self.register_buffer("prototypes", F.pad(corners, (0, width - num_classes)), persistent=False)
        self.hops, self.mu, self.threshold, self.warm_up = hops, mu, threshold, warm_up
        self.cosine_loss, self.scale = cosine_loss, scale

    def forward(self, x: Tensor, graph: Inputs, run: Run) -> Tensor | tuple[Tensor, Tensor]:
        h = self.norm(self.first(self.dropout(features(graph)))).relu()
        h = F.normalize(self.second(self.dropout(h)), dim=1)
        longest = torch.ones_like(h[:, :1])
        for _ in range(self.hops):
            h, longest = graph.propagate(h), graph.propagate(longest)
        cosine = F.normalize(h, dim=1) @ self.prototypes.t()
        scores = self.scale * cosine
        if not self.training:
            return scores
        more = scores.new_zeros(())
        if self.cosine_loss:
            count = run.train.sum().clamp(min=1)
            ours = (run.labels * scores.log_softmax(1)).sum() / count
            more = more + (run.train * (1 - (run.labels * cosine).sum(1))).sum() / count + ours
        if self.mu:
            confident = (cosine.amax(1) > self.threshold) * (1 - run.train) * (run.epoch >= self.warm_up)
            lost = 1 - h.norm(dim=1) / longest[:, 0]
            more = more + self.mu * (confident * lost).sum() / confident.sum().clamp(min=1)
        return scores, more
