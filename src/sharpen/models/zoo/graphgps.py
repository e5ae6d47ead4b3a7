"""A layer that is message passing and attention of all nodes to all, side by side."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from sharpen.errors import InputError
from sharpen.kernels.linear_attention import full_attention
from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs
from sharpen.models.zoo.heads import GraphAttention, split


class _Attention(nn.Module):
    """Of all nodes to all."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(hidden, hidden) for _ in range(4))

    def forward(self, h: Tensor, graph: Inputs) -> Tensor:
        q, k, v = (split(each(h), self.heads) for each in (self.query, self.key, self.value))
        return self.out(full_attention(q, k, v).flatten(1))


class GraphGPS(nn.Module):
    r"""The general, powerful, scalable graph transformer, without positional encodings.

    .. math::
        h \leftarrow \mathrm{BN}(h + \mathrm{MPNN}(h))
        + \mathrm{BN}\Big(h + \mathrm{softmax}\Big(\frac{Q K^\top}{\sqrt{d}}\Big) V\Big), \\
        h \leftarrow \mathrm{BN}(h + W_2\, \mathrm{relu}(W_1 h))

    between two linear maps: the form in which it was tuned for these graphs (tunedGNN, ``GTs_baselines``).

    Args:
        heads: Of attention.
        local: What passes messages: ``gcn``, ``sage`` or ``gat``.
    """

    attention: Callable[[int, int], nn.Module] = _Attention

    def __init__(
        self, num_features: int, num_classes: int, layers: int = 1, hidden: int = 64, dropout: float = 0.5,
        heads: int = 2, local: str = "gcn",
    ) -> None:  # fmt: skip
        super().__init__()
        self.embed, self.head = nn.Linear(num_features, hidden), nn.Linear(hidden, num_classes)
        self.layers = nn.ModuleList(_Layer(hidden, heads, dropout, local, self.attention) for _ in range(layers))

    def forward(self, x: Tensor, graph: Inputs, *more: Tensor) -> Tensor:
        h = self.embed(x)
        for layer in self.layers:
            h = layer(h, graph, *more)
        return self.head(h)


class _Layer(nn.Module):
    """Message passing and attention, each with its own residual connection and norm, added; then a feed-forward block."""

    def __init__(
        self, hidden: int, heads: int, dropout: float, local: str, attention: Callable[[int, int], nn.Module]
    ) -> None:
        super().__init__()
        self.local, self.attention = _Local(hidden, heads, local), attention(hidden, heads)
        self.wide, self.narrow = nn.Linear(hidden, 2 * hidden), nn.Linear(2 * hidden, hidden)
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(3))
        self.dropout = Dropout(dropout)

    def forward(self, h: Tensor, graph: Inputs, *more: Tensor) -> Tensor:
        """The next vectors of nodes."""
        near = self.norms[0](h + self.dropout(self.local(h, graph)))
        far = self.norms[1](h + self.dropout(self.attention(h, graph, *more)))
        h = near + far
        return self.norms[2](h + self.dropout(self.narrow(self.dropout(self.wide(h).relu()))))


class _Local(nn.Module):
    """One round of message passing."""

    def __init__(self, hidden: int, heads: int, kind: str) -> None:
        super().__init__()
        if kind not in ("gcn", "sage", "gat"):
            raise InputError(f"local is {kind!r}; choose gcn, sage or gat")
        self.kind, self.bias = kind, nn.Parameter(torch.zeros(hidden))
        if kind == "gat":
            self.map: nn.Module = GraphAttention(hidden, hidden // heads, heads)
        else:
            self.map = nn.Linear(hidden, hidden, bias=False)
        self.own = nn.Linear(hidden, hidden, bias=False) if kind == "sage" else None

    def forward(self, h: Tensor, graph: Inputs) -> Tensor:
        if self.kind == "gat":
            return self.map(h, graph.matrix("pattern")) + self.bias
        out = graph.propagate(self.map(h), "mean" if self.own is not None else "symmetric") + self.bias
        return out if self.own is None else out + self.own(h)
