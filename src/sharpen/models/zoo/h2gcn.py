"""Beyond homophily: neighbours one and two steps away are kept apart from the node and from each other."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs
from sharpen.models.zoo.parts import features


class H2GCN(nn.Module):
    r"""Only the first and the last map are learned; between them, rounds of concatenation (Zhu et al., NeurIPS 2020).

    .. math:: r_0 = \mathrm{ReLU}(X W_0), \qquad r_k = \hat{A}_1 r_{k-1} \Vert \hat{A}_2 r_{k-1}, \qquad
        Z = (r_0 \Vert r_1 \Vert \dots \Vert r_K) W

    with A₁ and A₂ the neighbours exactly one and exactly two steps away, a node itself not among them, normalised symmetrically.

    Args:
        hidden: The width of r₀.
        dropout: Before the last map.
        rounds: K.
        activate: Whether there is a ReLU.
    """

    def __init__(
        self, num_features: int, num_classes: int, hidden: int = 64, dropout: float = 0.5, rounds: int = 2,
        activate: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.first = nn.Linear(num_features, hidden)
        self.head = nn.Linear(hidden * (2 ** (rounds + 1) - 1), num_classes)
        self.dropout, self.rounds, self.activate = Dropout(dropout), rounds, activate

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        r = self.first(features(graph))
        rounds = [r.relu() if self.activate else r]
        for _ in range(self.rounds):
            rounds.append(torch.cat([graph.propagate(rounds[-1], by) for by in ("one-hop", "two-hop")], dim=1))
        return self.head(self.dropout(torch.cat(rounds, dim=1)))
