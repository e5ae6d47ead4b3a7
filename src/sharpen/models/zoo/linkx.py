"""Adjacency and features, each embedded by itself: no message is passed at all."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs
from sharpen.models.zoo.parts import adjacency


class LINKX(nn.Module):
    r"""A node is the row of its neighbours and the row of its features (Lim et al., NeurIPS 2021).

    .. math:: h_A = A W_A + b_A, \quad h_X = X W_X + b_X, \qquad
        Z = \mathrm{MLP}\big( \mathrm{ReLU}((h_A \Vert h_X) W + b + h_A + h_X) \big)

    The MLP has ReLU, batch norm and dropout between its maps. W_A has a row for each node: the model knows one graph.

    Args:
        layers: Of the MLP.
    """

    def __init__(
        self, num_features: int, num_classes: int, num_nodes: int, layers: int = 2, hidden: int = 64, dropout: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        widths = [hidden] * layers + [num_classes]
        self.nodes = nn.Parameter(nn.Linear(num_nodes, hidden).weight.detach().t().clone())
        self.nodes_bias = nn.Parameter(torch.zeros(hidden))
        self.own, self.both = nn.Linear(num_features, hidden), nn.Linear(2 * hidden, hidden)
        self.maps = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(layers - 1))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        links, own = graph.propagate(self.nodes, adjacency(graph)) + self.nodes_bias, self.own(x)
        h = (self.both(torch.cat([links, own], dim=1)) + links + own).relu()
        for linear, norm in zip(self.maps, self.norms, strict=False):
            h = self.dropout(norm(linear(h).relu()))
        return self.maps[-1](h)
