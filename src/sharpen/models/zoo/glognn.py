"""Global homophily: every node gathers from all nodes, by coefficients that are solved for in closed form."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs
from sharpen.models.zoo.parts import features, inverse


class GloGNN(nn.Module):
    r"""Coefficients Z that reproduce the nodes from each other and stay near the graph's own (Li et al., ICML 2022).

    .. math:: H_{l+1} = (1 - \gamma) Z H_l + \gamma H_0, \qquad Z = \arg\min_Z
        \lVert H_l - (1 - \gamma) Z H_l - \gamma H_0 \rVert^2 + \alpha \lVert Z \rVert^2
        + \beta \Big\lVert Z - \sum_k \lambda_k \bar{A}^k \Big\rVert^2

    where H₀ = MLP(δ X + (1 − δ) Ā), each with a first map of its own, and Ā is the mean over a node and its neighbours. Z is never
    written out: by Woodbury's identity all is products with an inverse of the size of the classes. The map of Ā has a row for each
    node: the model knows one graph.

    Args:
        hidden, dropout: Of the MLP.
        rounds: How often nodes gather.
        orders: The highest power of Ā.
        alpha, beta, gamma, delta: As in the formula.
    """

    def __init__(
        self, num_features: int, num_classes: int, num_nodes: int, hidden: int = 64, dropout: float = 0.5, rounds: int = 2,
        orders: int = 3, alpha: float = 0.0, beta: float = 1.0, gamma: float = 0.2, delta: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first, self.second = nn.Linear(num_features, hidden), nn.Linear(hidden, num_classes)
        self.nodes = nn.Parameter(nn.Linear(num_nodes, hidden).weight.detach().t().clone())
        self.powers = nn.Parameter(torch.full((orders,), 1 / orders))
        self.dropout, self.rounds = Dropout(dropout), rounds
        self.alpha, self.beta, self.gamma, self.delta = alpha, beta, gamma, delta

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        own, links = self.first(features(graph)), graph.propagate(self.nodes, "mean")
        h = first = self.second(self.dropout((self.delta * own + (1 - self.delta) * links).relu()))
        for _ in range(self.rounds):
            h = self._gathered(h, first, graph)
        return h

    def _gathered(self, h: Tensor, first: Tensor, graph: Inputs) -> Tensor:
        r"""(1 − γ) Z H + γ H₀, by :math:`Z = (c\,H H^\top + \beta \sum_k \lambda_k \bar{A}^k - \gamma c\,H_0 H^\top)
        (c^2 H H^\top + (\alpha + \beta) I)^{-1}` with c = 1 − γ."""
        c, wide = 1 - self.gamma, h.double()
        # c (c² H Hᵀ + (α + β) I)⁻¹ H, with an inverse of the size of the classes alone, which is nearly singular where β is small.
        ridge = (self.alpha + self.beta) * torch.eye(h.shape[1], dtype=wide.dtype, device=h.device)
        solved = (c * wide @ inverse(c**2 * wide.t() @ wide + ridge)).to(h.dtype)
        mixing = h.t() @ solved
        power, near = solved, torch.zeros_like(solved)
        for weight in self.powers:
            power = graph.propagate(power, "mean")
            near = near + weight * power
        return c * (h @ mixing) + self.beta * near - self.gamma * c * (first @ mixing) + self.gamma * first
