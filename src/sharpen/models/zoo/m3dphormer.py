"""Three kinds of attention, mixed by gates: to the neighbours, to one's cluster, and to the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sharpen.graph import Graph
from sharpen.graph.partition import metis
from sharpen.kernels.edges import edge_scores, edge_softmax, edge_sum
from sharpen.kernels.sparse import Csr
from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs
from sharpen.models.run import Run
from sharpen.models.zoo.heads import edge_attention, split


class M3Dphormer(nn.Module):
    r"""A mixture of masked attentions over nodes, clusters and classes, which are tokens of one sequence.

    .. math:: h \leftarrow \mathrm{relu}\big(\beta_1 \mathrm{GAT}(\bar h)
        + (1 - \beta_1)\big(\beta_2 \mathrm{MHA}_\text{cluster}(\bar h)
        + (1 - \beta_2) \mathrm{MHA}_\text{class}(\bar h)\big)\big) + h W_r, \quad \bar h = \mathrm{RMS}(h)

    with gates :math:`\beta = \sigma(\langle \bar h_i, g \rangle)` of every node, and class scores from the sum over layers. A node
    looks at itself and its cluster, a cluster at itself and its nodes; a node at all classes, a class at its own training nodes.
    A cluster begins as the mean of its nodes, a class as that of its training nodes; the loss has that of classes, too.

    Args:
        heads, attention_dropout: Of all attentions.
        clusters: How many; METIS makes them.
        class_loss: The weight of the loss of classes, each counting as one training node; 0 for none.
    """

    def __init__(
        self, num_features: int, num_classes: int, layers: int = 3, hidden: int = 64, dropout: float = 0.5,
        heads: int = 4, clusters: int = 128, attention_dropout: float = 0.1, class_loss: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.clusters, self.class_loss, self.dropout = clusters, class_loss, Dropout(dropout)
        self.embed, self.head = nn.Linear(num_features, hidden), nn.Linear(hidden, num_classes)
        self.layers = nn.ModuleList(_Layer(hidden, heads, attention_dropout) for _ in range(layers))

    def forward(self, x: Tensor, graph: Inputs, run: Run) -> Tensor | tuple[Tensor, Tensor]:
        nodes, clusters = graph.num_nodes, min(self.clusters, graph.num_nodes)
        means = graph.own_matrix(("cluster means", clusters), lambda graph: _means(graph, clusters))
        masks = graph.own_matrix(("cluster mask", clusters), lambda graph: _mask(graph, clusters), symmetric=True)
        h, size = self.embed(x), run.labels.sum(0).unsqueeze(1)
        classes = torch.where(size > 0, run.labels.t() @ h / size.clamp(min=1), h.mean(0))
        h = torch.cat([h, graph.propagate(h, means), classes])
        h = total = self.dropout(h + h.relu())
        for layer in self.layers:
            h = self.dropout(layer(h, graph, masks, run.labels).relu()) + layer.residual(h)  # type: ignore[operator]
            total = total + h
        scores = self.head(total)
        if not self.training or not self.class_loss:
            return scores[:nodes]
        right = scores[nodes + clusters :].log_softmax(1).diagonal().sum()
        return scores[:nodes], -self.class_loss * right / run.labels.sum().clamp(min=1)


class _Layer(nn.Module):
    """The three attentions of one layer, mixed."""

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.scale, self.shift = nn.Parameter(torch.ones(hidden)), nn.Parameter(torch.zeros(hidden))
        self.gates = nn.Parameter(torch.zeros(2, hidden))
        self.score, self.near, self.residual = (nn.Linear(hidden, hidden) for _ in range(3))
        self.ends = nn.Parameter(torch.empty(2, heads, hidden // heads))
        nn.init.xavier_uniform_(self.ends)
        self.to_cluster, self.to_class = (nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(3)) for _ in range(2))

    def forward(self, h: Tensor, graph: Inputs, masks: Csr, labels: Tensor) -> Tensor:
        h = h * (h.square().mean(1, keepdim=True) + 1e-6).rsqrt() * self.scale + self.shift
        nodes, groups = graph.num_nodes, masks.num_rows
        q, k, v = (split(each(h[:groups]), self.heads) for each in self.to_cluster)
        cluster = edge_attention(q, k, v, masks, self.dropout, self.training).flatten(1)
        of_nodes, of_classes = self._classes(h[:nodes], h[groups:], labels)
        first, second = (h[:nodes] @ self.gates.t()).sigmoid().unsqueeze(-1).unbind(1)
        routed = second * cluster[:nodes] + (1 - second) * of_nodes
        mixed = first * self._local(h[:nodes], graph) + (1 - first) * routed
        return torch.cat([mixed, cluster[nodes:], of_classes])

    def _local(self, h: Tensor, graph: Inputs) -> Tensor:
        edges, scored = graph.matrix("one-hop"), split(self.score(h), self.heads)
        target, source = (scored * self.ends.unsqueeze(1)).sum(-1)
        weight = edge_softmax(F.leaky_relu(edge_scores(source, target, edges), 0.2), edges)
        weight = F.dropout(weight, self.dropout, self.training)
        return edge_sum(split(self.near(h), self.heads), weight, edges).flatten(1)

    def _classes(self, nodes: Tensor, classes: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """What nodes see of the classes, and classes of their training nodes."""
        (q, k, v), (qc, kc, vc) = ([split(each(t), self.heads) for each in self.to_class] for t in (nodes, classes))
        scale = q.shape[-1] ** -0.5
        down = torch.einsum("nhd,chd->nhc", q, kc * scale).softmax(-1)
        up = torch.einsum("chd,nhd->chn", qc * scale, k)
        up = up.masked_fill(labels.t().unsqueeze(1) == 0, -1e9).softmax(-1)
        down, up = (F.dropout(each, self.dropout, self.training) for each in (down, up))
        return torch.einsum("nhc,chd->nhd", down, vc).flatten(1), torch.einsum("chn,nhd->chd", up, v).flatten(1)


def _means(graph: Graph, clusters: int) -> Any:
    """[clusters, N], rows that sum to 1."""
    number = metis(graph.adjacency, clusters)
    weight = 1 / np.bincount(number, minlength=clusters)[number]
    return sp.csr_array((weight, (number, np.arange(graph.num_nodes))), shape=(clusters, graph.num_nodes))


def _mask(graph: Graph, clusters: int) -> Any:
    """Who looks at whom among nodes and clusters, [N + clusters, N + clusters]."""
    means = _means(graph, clusters)
    parts: Any = [[None, means.T], [means, None]]
    return sp.block_array(parts) + sp.eye_array(sum(means.shape))
