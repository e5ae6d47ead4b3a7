"""Attention in several heads, as the transformers of the field have it: vectors of nodes are [N, heads, H]."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sharpen.kernels.edges import edge_products, edge_scores, edge_softmax, edge_sum
from sharpen.kernels.sparse import Csr


def split(x: Tensor, heads: int) -> Tensor:
    """[N, heads · H] as [N, heads, H].

    >>> split(torch.ones(5, 6), 2).shape
    torch.Size([5, 2, 3])
    """
    return x.unflatten(-1, (heads, -1))


def edge_attention(query: Tensor, key: Tensor, value: Tensor, pattern: Csr, dropout: float, training: bool) -> Tensor:
    """softmax over a node's edges of <query_i, key_j> / √H, with dropout, times value.

    >>> import scipy.sparse as sp
    >>> both, one = Csr.from_scipy(sp.csr_array([[1.0, 1.0]])), torch.ones(2, 1, 1)
    >>> edge_attention(one[:1], one, torch.tensor([[[1.0]], [[3.0]]]), both, 0.0, False).item()
    2.0
    """
    weight = edge_softmax(edge_products(query * query.shape[-1] ** -0.5, key, pattern), pattern)
    return edge_sum(value, F.dropout(weight, dropout, training), pattern)


class GraphAttention(nn.Module):
    r"""The attention of a GAT, its heads side by side: :math:`\mathrm{softmax}_j(\mathrm{LeakyReLU}(s_j + t_i))\, W h_j`, each
    ``hidden`` wide.

    >>> import scipy.sparse as sp
    >>> GraphAttention(3, 4, 2)(torch.ones(2, 3), Csr.from_scipy(sp.csr_array([[1.0, 1.0], [1.0, 0.0]]))).shape
    torch.Size([2, 8])
    """

    def __init__(self, width: int, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.map = nn.Linear(width, heads * hidden, bias=False)
        self.source, self.target = (nn.Parameter(torch.empty(1, heads, hidden)) for _ in range(2))
        for weight in (self.map.weight, self.source, self.target):
            nn.init.xavier_uniform_(weight)

    def forward(self, x: Tensor, pattern: Csr) -> Tensor:
        h = split(self.map(x), self.heads)
        score = edge_scores((h * self.source).sum(-1), (h * self.target).sum(-1), pattern)
        return edge_sum(h, edge_softmax(F.leaky_relu(score, 0.2), pattern), pattern).flatten(1)
