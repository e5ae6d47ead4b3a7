"""Diffusion on a vector bundle: every node turns its vectors into a common frame, diffuses them, and turns them back."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs
from sharpen.models.zoo.parts import random_walk, reflected

_TIMES = (1, 2, 5, 20)


class BuNN(nn.Module):
    r"""A bundle neural network: layers :math:`x \leftarrow x + \mathcal{B}(\mathrm{LN}(x))` with

    .. math:: \mathcal{B}(x) = O^\top\, \mathrm{FFN}\Big[x \,\Big\|\, \sum_t a_t \hat{A}^t (O x)\Big], \qquad t = 1, 2, 5, 20,

    :math:`\hat{A}` without self-loops, a learned weights that sum to 1, and O an orthogonal matrix of each node, block by block: a
    product of reflections whose vectors come from the features, by message passing that all layers share and a layer's own maps
    (after the authors' older code, jacobbamberger/heterophilous-graphs).

    Args:
        layers, hidden, dropout: As everywhere; ``hidden`` is to be a multiple of bundles × dimension.
        bundles: How many blocks O has.
        dimension: Of a block.
        rounds: Of the message passing that O comes from.
    """

    def __init__(
        self, num_features: int, num_classes: int, layers: int = 5, hidden: int = 512, dropout: float = 0.2,
        bundles: int = 8, dimension: int = 2, rounds: int = 5,
    ) -> None:  # fmt: skip
        super().__init__()
        self.bundles, self.dimension, width = bundles, dimension, bundles * dimension**2
        self.embed, self.head = nn.Linear(num_features, hidden), nn.Linear(hidden, num_classes)
        self.dropout, self.norm = Dropout(dropout), nn.LayerNorm(hidden)
        self.enter, self.leave = nn.Linear(hidden, width), nn.Linear(width, width)
        self.rounds = nn.ModuleList(_feed_forward(2 * width, width, 0.2) for _ in range(rounds))
        self.frames = nn.ModuleList(_feed_forward(width, width, dropout) for _ in range(layers))
        self.mixes = nn.ModuleList(_feed_forward(2 * hidden, hidden, dropout) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(layers))
        self.times = nn.ParameterList(nn.Parameter(torch.rand(len(_TIMES))) for _ in range(layers))

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        x = F.gelu(self.dropout(self.embed(x)))
        for frame, mix, norm, times in zip(self.frames, self.mixes, self.norms, self.times, strict=True):
            vectors = frame(self._structure(x, graph)).unflatten(1, (self.bundles, self.dimension, -1))
            turn = reflected(vectors.tril(-1) + torch.eye(self.dimension, dtype=x.dtype, device=x.device))
            y = norm(x)
            h = mix(torch.cat([y, self._diffused(_turned(turn, y), graph, times.softmax(0))], 1))
            x = x + _turned(turn.mT, h)
        return self.head(self.norm(x))

    def _structure(self, x: Tensor, graph: Inputs) -> Tensor:
        """What O is made of, from message passing: means of the neighbours beside the node."""
        s = F.gelu(F.dropout(self.enter(x), 0.2, self.training))
        for mix in self.rounds:
            s = s + mix(torch.cat([s, graph.propagate(s, random_walk(graph))], 1))
        return self.leave(s)

    @staticmethod
    def _diffused(h: Tensor, graph: Inputs, share: Tensor) -> Tensor:
        out = torch.zeros_like(h)
        for time in range(1, _TIMES[-1] + 1):
            h = graph.propagate(h, "one-hop")
            if time in _TIMES:
                out = out + share[_TIMES.index(time)] * h
        return out


def _feed_forward(width: int, out: int, dropout: float) -> nn.Sequential:
    """Two linear maps as wide as the result."""
    return nn.Sequential(nn.Linear(width, out), Dropout(dropout), nn.GELU(), nn.Linear(out, out), Dropout(dropout))


def _turned(turn: Tensor, x: Tensor) -> Tensor:
    """Each node's blocks times its vectors: [N, bundles, d, d] and [N, H]."""
    nodes, bundles, size, _ = turn.shape
    return (turn @ x.view(nodes, bundles, size, -1)).flatten(1)
