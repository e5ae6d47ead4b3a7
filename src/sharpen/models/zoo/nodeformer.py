"""Attention of all nodes to all in linear time, on a graph that is drawn anew at every step."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sharpen.graph import Graph
from sharpen.graph.matrices import propagation_matrix
from sharpen.kernels.edges import edge_products
from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs
from sharpen.models.zoo.heads import split
from sharpen.models.zoo.parts import reflected


class NodeFormer(nn.Module):
    r"""Kernelised Gumbel softmax: with random features φ and noise g of K draws in training,

    .. math:: z_i = \frac{1}{K} \sum_s \frac{\sum_j \langle \phi(q_i), \phi(k_j) \rangle e^{g_{js} / \tau} v_j}
        {\sum_j \langle \phi(q_i), \phi(k_j) \rangle e^{g_{js} / \tau}} + \sum_{o=1}^{2} \sigma(b_o) \hat{A}_o v_i

    :math:`\hat{A}_2` being that of the pattern of A². The loss has, times ``edge_loss``, the negative mean over the edges of
    the logarithm of attention, divided by the degree. Random features are orthogonal rows of normal numbers; they and the noise
    are keyed by the run's seed and the epoch, where the repository seeds them from the sum of all queries.

    Args:
        layers, hidden, dropout: As everywhere; a head is ``hidden`` wide.
        heads: Of attention.
        random_features: The width of φ.
        draws: K.
        tau: The temperature τ.
        edge_loss: The weight of the loss of edges; 0 for none.
    """

    def __init__(
        self, num_features: int, num_classes: int, layers: int = 2, hidden: int = 32, dropout: float = 0.0,
        heads: int = 4, random_features: int = 30, draws: int = 10, tau: float = 0.25, edge_loss: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.heads, self.random_features, self.draws = heads, random_features, draws
        self.tau, self.edge_loss, self.dropout = tau, edge_loss, Dropout(dropout)
        self.embed, self.head = nn.Linear(num_features, hidden), nn.Linear(hidden, num_classes)
        self.query, self.key, self.value = (
            nn.ModuleList(nn.Linear(hidden, heads * hidden) for _ in range(layers)) for _ in range(3)
        )
        self.out = nn.ModuleList(nn.Linear(heads * hidden, hidden) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(layers + 1))
        self.bias = nn.Parameter(torch.full((layers, 2, heads, 1), 0.1))

    def forward(self, x: Tensor, graph: Inputs) -> Tensor | tuple[Tensor, Tensor]:
        z = self.dropout(F.elu(self.norms[0](self.embed(x))))
        losses = []
        for layer, norm in enumerate(self.norms[1:]):
            seen, loss = self._layer(z, graph, layer)
            z = self.dropout(norm(self.out[layer](seen.flatten(1)) + z))
            losses.append(loss)
        if not self.training or not self.edge_loss:
            return self.head(z)
        return self.head(z), self.edge_loss * torch.stack(losses).mean()

    def _layer(self, z: Tensor, graph: Inputs, layer: int) -> tuple[Tensor, Tensor]:
        q, k, v = (split(each[layer](z), self.heads) for each in (self.query, self.key, self.value))
        rows = random_rows(self.random_features, q.shape[-1], q)
        q, k = (_features(each * self.tau**-0.5, rows, peak) for each, peak in ((q, (2,)), (k, (0, 2))))
        if self.training:
            noise = torch.rand(len(k), self.heads, self.draws, dtype=k.dtype, device=k.device)
            weight = (-torch.log(-torch.log(noise)) / self.tau).exp()
        else:
            weight = torch.ones_like(k[..., :1])
        gathered = torch.einsum("nhm,nhs,nhd->hsmd", k, weight, v)
        mass = torch.einsum("nhm,hsm->nhs", q, torch.einsum("nhm,nhs->hsm", k, weight))
        seen = (torch.einsum("nhm,hsmd->nhsd", q, gathered) / mass.unsqueeze(-1)).mean(2)
        orders = graph.matrix("symmetric"), graph.own_matrix("reach of two", _reach, symmetric=True)
        for matrix, bias in zip(orders, self.bias[layer], strict=True):
            seen = seen + bias.sigmoid() * graph.propagate(v, matrix)
        edges = graph.matrix("mean")  # whose values are one over the degree
        share = edge_products(q / (q * k.sum(0)).sum(-1, keepdim=True), k, edges)
        return seen, -(share.log() * edges.value.unsqueeze(1)).mean()


def random_rows(count: int, width: int, like: Tensor) -> Tensor:
    """Rows of random orthogonal matrices, as many as needed, at the lengths of normal vectors; [count, width].

    In all directions alike: the reflections that a QR decomposition of normal numbers would use, and its signs corrected.

    >>> rows = random_rows(3, 4, torch.ones(1))
    >>> (rows @ rows.t()).triu(1).abs().max().item() < 1e-5
    True
    """
    kind: Any = {"dtype": like.dtype, "device": like.device}
    columns = torch.randn(-(-count // width), width, width, **kind).tril()
    corner = columns.norm(dim=-2).clamp_min(1e-12).copysign(columns.diagonal(dim1=-2, dim2=-1))
    rows = (reflected(columns + corner.diag_embed()) * -corner.sign().unsqueeze(-2)).mT.flatten(0, 1)[:count]
    return torch.randn(count, width, **kind).norm(dim=1, keepdim=True) * rows


def _features(x: Tensor, rows: Tensor, peak: tuple[int, ...]) -> Tensor:
    """Positive features whose products estimate exp(<x, y> / √d), up to a scale of each row or of all.

    Of vectors of nodes, [N, heads, d], and random rows, [M, d]; the largest exponent over the dimensions ``peak`` is taken off.
    """
    x = x * x.shape[-1] ** -0.25
    score = x @ rows.t()
    exponent = score - x.square().sum(-1, keepdim=True) / 2 - score.amax(peak, keepdim=True)
    return (exponent.exp() + 1e-6) * len(rows) ** -0.5


def _reach(graph: Graph) -> Any:
    """The pattern of A², self-loops included, normalised symmetrically."""
    near = propagation_matrix(graph, "pattern")
    reach = sp.csr_array(near @ near)
    reach.data[:] = 1
    root = sp.diags_array(reach.sum(1) ** -0.5)
    return root @ reach @ root
