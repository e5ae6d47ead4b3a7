"""Random propagation with consistency: whole nodes are dropped, what is left is averaged over hops, and two draws are to agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs


class GRAND(nn.Module):
    r"""A graph random neural network.

    .. math:: \bar X = \frac{1}{K + 1} \sum_{k=0}^{K} \hat A^k (\epsilon \odot X), \qquad Z = \mathrm{MLP}(\bar X)

    with :math:`\epsilon_i` 0 for a share of the nodes and the others scaled (DropNode), drawn anew twice in every step. Training
    asks the two predictions p, p' of a node to agree with their sharpened mean :math:`\bar p_c^{1/T} / \sum_d \bar p_d^{1/T}`, by
    the mean squared distance over all nodes; what the rest of the objective sees is the mean of the two (Feng et al., *Graph
    Random Neural Networks for Semi-Supervised Learning on Graphs*, 2020).

    Dropping nodes and averaging hops commute with the first linear map, so that its few columns are propagated and not X. Rows of
    counts (X ≥ 0) are scaled to length 1, so that nodes with many words do not count more; any other X as a whole, to that length
    in the mean.

    Args:
        num_features, num_classes: Of the graph.
        hidden, dropout: Of the MLP, which has one hidden layer.
        hops: K.
        dropnode: The share of nodes to drop.
        dropcolumn: The share of columns to drop, of all nodes alike; anew in every draw.
        consistency: How much agreement counts.
        temperature: T.
    """

    def __init__(
        self, num_features: int, num_classes: int, hidden: int = 32, dropout: float = 0.5,
        hops: int = 8, dropnode: float = 0.5, dropcolumn: float = 0.0, consistency: float = 1.0, temperature: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.head = nn.Linear(num_features, hidden), nn.Linear(hidden, num_classes)
        self.dropout, self.dropnode, self.dropcolumn = Dropout(dropout), Dropout(dropnode), Dropout(dropcolumn)
        self.hops, self.consistency, self.temperature = hops, consistency, temperature

    def forward(self, x: Tensor, graph: Inputs) -> Any:
        """Class scores of all nodes; in training the logarithm of the mean of two draws, and how far these are apart."""
        x = graph.once("rows of length 1", _scaled)
        if not self.training:
            return self._scores(self._averaged(linear(x, self.first.weight), graph))
        drawn = [self._drawn(x) for _ in range(2)]
        log_p = [self._scores(part).log_softmax(-1) for part in self._averaged(torch.cat(drawn, 1), graph).chunk(2, 1)]
        mean = (log_p[0].exp() + log_p[1].exp()) / 2
        target = (mean.detach().clamp_min(1e-12).log() / self.temperature).softmax(-1)
        distance = sum((each.exp() - target).square().sum(-1).mean() for each in log_p) / 2
        return mean.clamp_min(1e-12).log(), self.consistency * distance

    def _drawn(self, x: Tensor) -> Tensor:
        """The first map of a draw of nodes and columns."""
        weight = self.first.weight
        h = linear(x, self.dropcolumn(torch.ones_like(weight[:1])) * weight)
        return self.dropnode(torch.ones_like(h[:, :1])) * h

    def _averaged(self, h: Tensor, graph: Inputs) -> Tensor:
        total = h
        for _ in range(self.hops):
            h = graph.propagate(h)
            total = total + h
        return total / (self.hops + 1)

    def _scores(self, h: Tensor) -> Tensor:
        return self.head(self.dropout((h + self.first.bias).relu()))


def _scaled(x: Any, matrix: Any) -> Any:
    length = np.sqrt(np.asarray((x * x).sum(axis=1), dtype=np.float64)).reshape(-1, 1)
    if x.min() < 0:
        length[:] = np.sqrt(np.mean(length**2))
    scale = 1 / np.where(length > 0, length, 1)
    return x * scale if isinstance(x, np.ndarray) else sp.csr_array(sp.diags_array(scale.ravel()) @ x)
