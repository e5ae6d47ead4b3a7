"""A single layer of linear attention among all nodes, beside a graph convolutional network."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from sharpen.kernels.linear_attention import linear_attention
from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs


class SGFormer(nn.Module):
    r"""Attention without softmax, at a cost that grows with the number of nodes only (Wu et al., NeurIPS 2023).

    .. math:: \mathrm{att}(H) = \mathrm{diag}^{-1}\Big(1 + \tfrac{1}{N} \tilde{Q} \tilde{K}^\top 1 \Big)
        \Big( V + \tfrac{1}{N} \tilde{Q} (\tilde{K}^\top V) \Big), \qquad
        Z = \big( w \, \mathrm{GCN}(X) + (1 - w) \, \mathrm{att}(\mathrm{ReLU}(X W)) \big) W'

    with Q and K divided by their Frobenius norms.

    Args:
        layers, hidden, dropout: Of the GCN.
        graph_weight: w.
        attention_layers, attention_dropout, attention_decay: Of the attention; None: as those of the GCN.
        keep, alpha: Whether an attention layer is averaged with what it was given, and its weight there.
    """

    def __init__(
        self, num_features: int, num_classes: int, layers: int = 4, hidden: int = 64, dropout: float = 0.5,
        graph_weight: float = 0.8, attention_layers: int = 1, attention_dropout: float | None = None,
        attention_decay: float | None = None, keep: bool = False, alpha: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        maps = {role: [nn.Linear(hidden, hidden) for _ in range(attention_layers)] for role in ("query", "key")}
        first = nn.Linear(num_features, hidden)
        self.attention = nn.ModuleDict({"first": first, **{role: nn.ModuleList(each) for role, each in maps.items()}})
        convs = [nn.Linear(a, b) for a, b in pairwise([num_features, *[hidden] * layers])]
        for conv in convs:  # smaller weights, as maps begin with, fade away over four layers
            nn.init.xavier_uniform_(conv.weight)
            nn.init.zeros_(conv.bias)
        self.convs = nn.ModuleList(convs)
        self.head, self.dropout = nn.Linear(hidden, num_classes), Dropout(dropout)
        self.attention_dropout = self.dropout if attention_dropout is None else Dropout(attention_dropout)
        self.graph_weight, self.alpha = graph_weight, alpha if keep else 1.0
        self.rates = {"attention": (None, attention_decay)}

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        return self.head(self.graph_weight * self._convolved(x, graph) + (1 - self.graph_weight) * self._attended(x))

    def _attended(self, x: Tensor) -> Tensor:
        parts: Any = self.attention
        h = self.attention_dropout(parts["first"](x).relu())
        for query, key in zip(parts["query"], parts["key"], strict=True):
            h = self.alpha * linear_attention(query(h), key(h), h) + (1 - self.alpha) * h
            h = self.attention_dropout(h)
        return h

    def _convolved(self, x: Tensor, graph: Inputs) -> Tensor:
        *before, last = self.convs
        for conv in before:
            x = self.dropout(graph.propagate(conv(x)).relu())
        return graph.propagate(last(x))
