"""A transformer whose nodes attend to their neighbours and to a codebook of all nodes that follows training."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs
from sharpen.models.zoo.heads import edge_attention, split

_KEPT = 0.99  # of a moving average, at every step


class GOAT(nn.Module):
    r"""A global transformer: layers :math:`h \leftarrow \mathrm{FFN}[\mathrm{local}(h) \| \mathrm{global}(h)]`, where

    .. math:: \mathrm{global}(h)_i = \sum_c \mathrm{softmax}_c\Big(\frac{\langle q_i, k_c \rangle}{\sqrt{d}} + \log n_c\Big) v_c

    over centroids c, to which n_c nodes are nearest: moving averages of the projected vectors of nodes, no weights. Local is
    attention over the neighbours. Before the first step all centroids count the same.

    Args:
        layers, hidden, dropout: As everywhere; a head is ``hidden`` wide.
        heads: Of both attentions.
        centroids: How many.
    """

    def __init__(
        self, num_features: int, num_classes: int, layers: int = 1, hidden: int = 64, dropout: float = 0.5,
        heads: int = 1, centroids: int = 1024,
    ) -> None:  # fmt: skip
        super().__init__()
        first, last = nn.Linear(num_features, hidden), nn.Linear(hidden, hidden)
        self.embed = nn.Sequential(first, nn.BatchNorm1d(hidden), nn.ReLU(), Dropout(dropout), last)
        self.layers = nn.ModuleList(_Layer(hidden, heads, dropout, centroids) for _ in range(layers))
        self.head = nn.Linear(hidden, num_classes)

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        h = self.embed(x)
        for layer in self.layers:
            h = layer(h, graph)
        return self.head(h)


class _Layer(nn.Module):
    def __init__(self, hidden: int, heads: int, dropout: float, centroids: int) -> None:
        super().__init__()
        self.heads, self.dropout, wide = heads, Dropout(dropout), heads * hidden
        self.query, self.key, self.value = (nn.Linear(hidden, wide) for _ in range(3))
        self.project = nn.Linear(hidden, hidden)
        self.far_query, self.far_key, self.far_value = (nn.Linear(hidden, wide) for _ in range(3))
        self.codebook = Codebook(centroids, hidden)
        self.mix, self.out = nn.Linear(2 * wide, wide), nn.Linear(wide, hidden)
        self.norms = nn.ModuleList([nn.BatchNorm1d(wide), nn.BatchNorm1d(hidden)])

    def forward(self, h: Tensor, graph: Inputs) -> Tensor:
        q, k, v = (split(each(h), self.heads) for each in (self.query, self.key, self.value))
        near = edge_attention(q, k, v, graph.matrix("pattern"), self.dropout.p, self.training).flatten(1)  # type: ignore[arg-type]
        h = self.mix(torch.cat([near, self._global(self.project(h))], 1))
        h = self.dropout(self.norms[0](h).relu())
        return self.dropout(self.norms[1](self.out(h)).relu())

    def _global(self, x: Tensor) -> Tensor:
        seen = self.codebook.centroids
        k, v = split(self.far_key(seen), self.heads), split(self.far_value(seen), self.heads)
        q = split(self.far_query(x), self.heads)
        score = torch.einsum("nhd,chd->nhc", q, k) * q.shape[-1] ** -0.5 + self.codebook.count.log()
        out = torch.einsum("nhc,chd->nhd", self.dropout(score.softmax(-1)), v).flatten(1)
        if self.training:
            self.codebook.follow(x.detach())
        return out


class Codebook(nn.Module):
    """Vector quantisation by moving averages: standardised vectors go to the nearest code, and codes to the mean of theirs.

    >>> book = Codebook(1, 2)
    >>> for _ in range(2000):
    ...     book.follow(torch.tensor([[0.0, 5.0], [2.0, 5.0]]))
    >>> book.centroids.round(decimals=2).tolist(), book.count.tolist()
    ([[1.0, 5.0]], [2.0])
    """

    code: Tensor
    total: Tensor
    mass: Tensor
    count: Tensor

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width, affine=False)
        for name in ("code", "total"):
            self.register_buffer(name, torch.randn(size, width))
        self.register_buffer("mass", torch.zeros(size))
        self.register_buffer("count", torch.ones(size))

    @property
    def centroids(self) -> Tensor:
        """The codes in the place and at the scale of the vectors, [size, width]."""
        norm: Any = self.norm
        return self.code * (norm.running_var + 1e-5).sqrt() + norm.running_mean

    def follow(self, x: Tensor) -> None:
        """One step of the averages towards vectors [N, width]."""
        x = self.norm(x)
        distance = x.square().sum(1, keepdim=True) + self.code.square().sum(1) - 2 * x @ self.code.t()
        places = torch.arange(len(self.code), device=x.device)
        nearest = (distance.argmin(1).unsqueeze(1) == places).to(x.dtype)
        self.count = nearest.sum(0)
        mass = _KEPT * self.mass + (1 - _KEPT) * self.count
        all_mass = mass.sum()
        self.mass = (mass + 1e-5) / (all_mass + len(places) * 1e-5) * all_mass
        self.total = _KEPT * self.total + (1 - _KEPT) * nearest.t() @ x
        self.code = self.total / self.mass.unsqueeze(1)
