"""Continuous edge directions: an angle on every edge says how much of it points either way."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sharpen.graph import Graph
from sharpen.kernels.edges import edge_sum
from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs
from sharpen.models.zoo.parts import adjacency, without_loops


class CoED(nn.Module):
    r"""Messages along and against the edges, by angles θ between them (Pahng and Hormoz, ICLR 2025).

    .. math:: H' = \alpha P H W_\to + (1 - \alpha) P^\top H W_\leftarrow + H W, \qquad
        P = D_\mathrm{in}^{-1/2} M D_\mathrm{out}^{-1/2}, \quad M_{ij} = \cos^2 \theta_{ij}, \; M_{ji} = \sin^2 \theta_{ij}

    An edge that is given in one direction starts with θ = 0, in both with π/4. Every edge has an angle: the model knows one graph.

    Args:
        alpha: The weight of messages along the edges.
        angle_lr: The learning rate of the angles; 0 keeps them as they start, as the authors do in classification.
        self_loops, own, normalize: Loops in P; the term H W; whether rows are divided by their norms.
        jump: ``none``, or how layers are put together: ``cat`` or ``max``.
    """

    def __init__(
        self, num_features: int, num_classes: int, num_edges: int, layers: int = 2, hidden: int = 64, dropout: float = 0.5,
        alpha: float = 0.5, angle_lr: float = 0.01, self_loops: bool = False, own: bool = True, normalize: bool = False,
        jump: str = "none",
    ) -> None:  # fmt: skip
        super().__init__()
        pairs = list(pairwise([num_features, *[hidden] * layers]))
        self.edges = nn.Parameter(torch.zeros(num_edges))  # what is learned of each angle beyond its start
        self.along, self.against = (nn.ModuleList(nn.Linear(a, b) for a, b in pairs) for _ in range(2))
        self.own = nn.ModuleList(nn.Linear(a, b) for a, b in pairs) if own else None
        self.head = nn.Linear(hidden * layers if jump == "cat" else hidden, num_classes)
        self.dropout, self.alpha, self.self_loops = Dropout(dropout), alpha, self_loops
        self.normalize, self.jump, self.rates = normalize, jump, {"edges": (angle_lr, 0.0)}

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        forth, back, pattern = *self._weights(graph), adjacency(graph)
        into, out_of = (w.new_zeros(len(x)) + edge_sum(w.new_ones(len(x), 1), w, pattern)[:, 0] for w in (forth, back))
        loop = 1.0 if self.self_loops else 0.0
        into, out_of = ((degree + loop).clamp(min=1e-12).rsqrt().unsqueeze(1) for degree in (into, out_of))

        def gathered(h: Tensor, weight: Tensor, by_row: Tensor, by_col: Tensor) -> Tensor:
            scaled = by_col * h
            return by_row * (edge_sum(scaled, weight, pattern) + loop * scaled)

        layers: list[Tensor] = []
        for number, (along, against) in enumerate(zip(self.along, self.against, strict=True), start=1):
            h = self.alpha * along(gathered(x, forth, into, out_of))
            h = h + (1 - self.alpha) * against(gathered(x, back, out_of, into))
            x = h if self.own is None else h + self.own[number - 1](x)
            if number < len(self.along) or self.jump != "none":
                x = self.dropout(x.relu())
                x = F.normalize(x, dim=1) if self.normalize else x
            layers.append(x)
        if self.jump == "cat":
            x = torch.cat(layers, dim=1)
        elif self.jump == "max":
            x = torch.stack(layers).amax(0)
        return self.head(x)

    def _weights(self, graph: Inputs) -> tuple[Tensor, Tensor]:
        """What flows over each entry of the adjacency, from its column to its row, along the edge and against it."""
        number = graph.constant("coed edges", _edges)
        learned = number.sign() * self.edges.index_select(0, number.abs() - 1)
        angle = (graph.constant("coed angles", _angles) + learned).clamp(0, math.pi / 2)
        return angle.cos().square(), angle.sin().square()


def _edges(graph: Graph) -> np.ndarray:
    """The number of each entry's undirected edge, from 1 on; negative where it goes to the lower number, as angles are learned of
    edges that go to the higher one."""
    upper = sp.triu(without_loops(graph), format="csr")
    upper.data = np.arange(1, upper.nnz + 1)
    return sp.csr_array(upper.T - upper).data.astype(np.int64)


def _angles(graph: Graph) -> np.ndarray:
    """Where each entry's angle starts: 0 along an edge, π/2 against it, π/4 for both."""
    source, target = graph.edge_index.numpy()
    given = sp.csr_array((np.ones(len(source)), (target, source)), shape=(graph.num_nodes, graph.num_nodes))
    given.data[:] = 1
    return math.pi / 4 * (3 - sp.csr_array(2 * without_loops(graph) + given - given.T).data)
