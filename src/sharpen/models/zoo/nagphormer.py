"""A transformer over a node's hops: every node is a short sequence, itself and what it gathers from each distance."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from scipy.sparse.linalg import eigsh
from torch import Tensor, nn

from sharpen.graph import Graph
from sharpen.graph.matrices import propagation_matrix
from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs
from sharpen.models.zoo.heads import split


class NAGphormer(nn.Module):
    r"""Tokens :math:`t_k = \hat{A}^k [X \| U] W + b`, U being eigenvectors of the graph; a transformer over k; then

    .. math:: z = t_0 + \sum_{k \ge 1} \mathrm{softmax}_k\big(w^\top [t_0 \| t_k]\big)\, t_k

    and two linear maps. Tokens are mapped before they are propagated, which is the same and takes less memory.

    Args:
        layers, hidden, dropout: Of the transformer.
        hops: K.
        heads, attention_dropout: Of its attention.
        positions: How many eigenvectors of the normalised Laplacian, from the second smallest eigenvalue on.
    """

    def __init__(
        self, num_features: int, num_classes: int, layers: int = 1, hidden: int = 512, dropout: float = 0.1,
        hops: int = 7, heads: int = 8, positions: int = 3, attention_dropout: float = 0.1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.hops, self.positions = hops, positions
        self.embed, self.place = nn.Linear(num_features, hidden), nn.Linear(positions, hidden, bias=False)
        self.layers = nn.ModuleList(_Layer(hidden, heads, dropout, attention_dropout) for _ in range(layers))
        self.norm, self.weigh = nn.LayerNorm(hidden), nn.Linear(2 * hidden, 1)
        self.shrink, self.head = nn.Linear(hidden, hidden // 2), nn.Linear(hidden // 2, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.02 / math.sqrt(layers))
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        where = graph.constant(("eigenvectors", self.positions), lambda graph: eigenvectors(graph, self.positions))
        token = F.linear(x, self.embed.weight) + self.place(where)
        tokens = [token]
        for _ in range(self.hops):
            tokens.append(graph.propagate(tokens[-1]))
        t = torch.stack(tokens, 1) + self.embed.bias
        for layer in self.layers:
            t = layer(t)
        t = self.norm(t)
        own, others = t[:, :1], t[:, 1:]
        weight = self.weigh(torch.cat([own.expand_as(others), others], -1)).softmax(1)
        return self.head(self.shrink(t[:, 0] + (weight * others).sum(1)).relu())


class _Layer(nn.Module):
    """A transformer's layer, norms first; sequences are [N, K, H]."""

    def __init__(self, hidden: int, heads: int, dropout: float, attention_dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout, self.attention_dropout = heads, Dropout(dropout), attention_dropout
        self.first, self.second = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.query, self.key, self.value, self.out = (nn.Linear(hidden, hidden) for _ in range(4))
        self.wide, self.narrow = nn.Linear(hidden, 2 * hidden), nn.Linear(2 * hidden, hidden)

    def forward(self, t: Tensor) -> Tensor:
        y = self.first(t)
        q, k, v = (split(each(y), self.heads).transpose(1, 2) for each in (self.query, self.key, self.value))
        weight = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1)
        seen = F.dropout(weight, self.attention_dropout, self.training) @ v
        t = t + self.dropout(self.out(seen.transpose(1, 2).flatten(2)))
        return t + self.dropout(self.narrow(F.gelu(self.wide(self.second(t)))))


def eigenvectors(graph: Graph, count: int) -> np.ndarray:
    """Eigenvectors of the normalised Laplacian, without self-loops, by ascending eigenvalue from the second on; [N, count].

    The sign of each is such that its largest element is positive.

    >>> path = Graph(x=np.eye(4), edge_index=[[0, 1, 2], [1, 2, 3]])
    >>> eigenvectors(path, 1).round(3).flatten().tolist()
    [0.577, 0.408, -0.408, -0.577]
    """
    adjacency, nodes = propagation_matrix(graph, "one-hop"), graph.num_nodes
    if nodes <= 500 or count + 1 >= nodes:
        vectors = np.linalg.eigh(-adjacency.toarray())[1]
    else:
        # The largest of A + I are the smallest of the Laplacian; all are at least 0, so Lanczos meets the wanted end first.
        start = np.random.default_rng(0).random(nodes)
        values, found = eigsh(adjacency + sp.eye_array(nodes), k=count + 1, which="LA", v0=start, tol=1e-4)
        vectors = found[:, np.argsort(-values)]
    chosen, there = np.zeros((nodes, count)), min(count, nodes - 1)
    chosen[:, :there] = vectors[:, 1 : there + 1]
    largest = np.abs(chosen).argmax(0)
    return chosen * np.where(chosen[largest, np.arange(count)] < 0, -1, 1)
