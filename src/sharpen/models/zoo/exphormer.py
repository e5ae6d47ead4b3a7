"""A graph transformer whose attention runs along the edges of the graph and of a random expander."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sharpen.kernels.dropout import words
from sharpen.kernels.edges import edge_products, edge_sum
from sharpen.models.inputs import Inputs
from sharpen.models.zoo.graphgps import GraphGPS
from sharpen.models.zoo.heads import split


class _Attention(nn.Module):
    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(hidden, hidden, bias=False) for _ in range(3))
        self.kinds = nn.Parameter(torch.randn(2, heads, hidden // heads) * 3**-0.5)

    def forward(self, h: Tensor, graph: Inputs, far: Tensor) -> Tensor:
        q, k, v = (split(each(h), self.heads) for each in (self.query, self.key, self.value))
        near, scale = graph.matrix("one-hop"), q.shape[-1] ** -0.5
        of_graph, of_expander = (q * kind * scale for kind in self.kinds)
        along = edge_products(of_graph, k, near).clamp(-5, 5).exp()
        across = torch.einsum("nhd,nmhd->nmh", of_expander, k[far]).clamp(-5, 5).exp()
        total = edge_sum(v, along, near) + torch.einsum("nmh,nmhd->nhd", across, v[far])
        mass = edge_sum(torch.ones_like(v[..., :1]), along, near) + across.sum(1).unsqueeze(-1)
        return (total / (mass + 1e-6)).flatten(1)


class Exphormer(GraphGPS):
    r"""GraphGPS with sparse attention: node i looks at its neighbours and, for each of d random permutations π, at π(i) and π⁻¹(i).

    .. math:: y_i = \frac{\sum_j w_{ij} v_j}{\sum_j w_{ij} + 10^{-6}}, \qquad
        w_{ij} = \exp\Big(\mathrm{clamp}_{\pm 5} \frac{\langle q_i \odot e_{ij}, k_j \rangle}{\sqrt{d}}\Big)

    with one learned vector e for edges of the graph and one for those of the expander. The seed of the run draws the permutations.

    Args:
        permutations: d; a node has twice as many edges of the expander.
    """

    keys: Tensor
    attention = _Attention

    def __init__(
        self, num_features: int, num_classes: int, layers: int = 4, hidden: int = 64, dropout: float = 0.4,
        heads: int = 2, local: str = "gcn", permutations: int = 3,
    ) -> None:  # fmt: skip
        super().__init__(num_features, num_classes, layers, hidden, dropout, heads, local)
        self.register_buffer("keys", torch.randint(2**31 - 1, (permutations, 2), dtype=torch.int32))

    def forward(self, x: Tensor, graph: Inputs, *_: Tensor) -> Tensor:
        return super().forward(x, graph, expander(self.keys, graph.num_nodes))


def expander(keys: Tensor, nodes: int) -> Tensor:
    """The neighbours of every node in the union of random permutations and their inverses, [N, 2d]; one for each pair of keys.

    >>> far = expander(torch.tensor([[1, 2]], dtype=torch.int32), 5)
    >>> far[far[:, 0], 1].tolist()
    [0, 1, 2, 3, 4]
    """
    orders = [words(pair, nodes)[:nodes].argsort() for pair in keys]
    return torch.stack([*orders, *(order.argsort() for order in orders)], 1)
