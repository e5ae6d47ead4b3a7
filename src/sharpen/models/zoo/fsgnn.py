"""Feature selection: the features of every hop, with and without self-loops, each mapped by itself and weighed by a softmax."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs
from sharpen.models.zoo.parts import features


class FSGNN(nn.Module):
    r"""Which hops matter is learned (Maurya et al., *Simplifying approach*, JOCS 2022).

    .. math:: Z = \mathrm{ReLU}\Big( \big\Vert_k \; \mathrm{softmax}(a)_k \frac{F_k W_k}{\lVert F_k W_k \rVert_2} \Big) W,
        \qquad F = X, A X, \hat{A} X, \dots, A^K X, \hat{A}^K X

    with A and Â normalised symmetrically, without and with self-loops; the norm is that of each row. A hop is propagated once it
    is mapped, which is the same: there are fewer columns of it than of X.

    Args:
        hidden: The width of each hop.
        dropout: Before the last map.
        hops: K.
        attention_lr, attention_decay, head_decay: The learning rate of a, and weight decays of a and W; None: those of all weights.
    """

    def __init__(
        self, num_features: int, num_classes: int, hidden: int = 64, dropout: float = 0.5, hops: int = 3,
        attention_lr: float | None = None, attention_decay: float | None = None, head_decay: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        parts = 2 * hops + 1
        self.maps = nn.ModuleList(nn.Linear(num_features, hidden) for _ in range(parts))
        self.attention = nn.Parameter(torch.ones(parts))
        self.head, self.dropout = nn.Linear(parts * hidden, num_classes), Dropout(dropout)
        self.hops = hops
        self.rates = {"attention": (attention_lr, attention_decay), "head": (None, head_decay)}

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        x = features(graph)
        own, *maps = self.maps
        hops = [own(x), *_propagated(x, graph, maps[: self.hops], "one-hop")]
        hops += _propagated(x, graph, maps[self.hops :], "symmetric")
        weighed = [a * F.normalize(h, dim=1) for a, h in zip(self.attention.softmax(0), hops, strict=True)]
        return self.head(self.dropout(torch.cat(weighed, dim=1).relu()))


def _propagated(x: Tensor, graph: Inputs, maps: Any, by: str) -> list[Tensor]:
    """P^k X W_k + b_k for k = 1, 2, …: in every round all that is to go further."""
    left, hops = torch.cat([F.linear(x, each.weight) for each in maps], 1), []
    for each in maps:
        left = graph.propagate(left, by)
        hops.append(left[:, : len(each.bias)] + each.bias)
        left = left[:, len(each.bias) :]
    return hops
