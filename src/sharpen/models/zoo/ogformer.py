"""Attention that is the square of a correlation, corrected by the graph, with losses that make it homophilous."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sharpen.errors import InputError
from sharpen.kernels.linear_attention import kernel_attention
from sharpen.models.inputs import Inputs
from sharpen.models.run import Run
from sharpen.models.zoo.parts import adjacency


class OGFormer(nn.Module):
    r"""Two layers, :math:`h_l = \mathrm{relu}(\hat{R}_l h_{l-1} W_l + b_l) + s_l`, the last one without relu, where

    .. math:: s_l = \sigma(h_{l-1} Q_l), \quad R_0 = A, \quad
        R_l = \mathrm{rownorm}\big((\tilde s_l \tilde s_l^\top)^{\circ 2}\big) + \alpha_l R_{l-1},

    :math:`\tilde s` being s with every row standardised. The square of a product is a product of squares, so R is applied in
    linear time and never made: the repository makes it, [N, N]. Two losses are added: the mean divergence of s between a node and
    those it looks at, and the distance from 1 of the share of R that goes to nodes of the same class, known or predicted.

    Class scores are the first of the last layer's numbers.

    Args:
        hidden: The width.
        alphas: How much of the graph, and then of the first R, is added.
        normalisation: Of R: ``row`` or ``symmetric``.
        divergence, homophily: The weights of the two losses; 0 for none.
    """

    def __init__(
        self, num_features: int, num_classes: int, hidden: int = 64, alphas: tuple[float, float] = (0.8, 0.9),
        normalisation: str = "row", divergence: float = 1e-4, homophily: float = 1e-4,
    ) -> None:  # fmt: skip
        super().__init__()
        if normalisation not in ("row", "symmetric"):
            raise InputError(f"normalisation is {normalisation!r}; choose row or symmetric")
        self.alphas, self.symmetric, self.classes = alphas, normalisation == "symmetric", num_classes
        self.divergence, self.homophily = divergence, homophily
        widths = list(pairwise([num_features, hidden, max(hidden, num_classes)]))
        self.query, self.map = (nn.ModuleList(_map(*width, noise=noise) for width in widths) for noise in (0.01, 0.0))

    def forward(self, x: Tensor, graph: Inputs, run: Run) -> Tensor | tuple[Tensor, Tensor]:
        near = adjacency(graph)
        relation = _Relation(lambda v: graph.propagate(v, near), graph.propagate(torch.ones_like(x[:, :1]), near))
        layers: Any = zip(self.query, self.map, self.alphas, strict=True)
        h, seen = x, list[tuple[Tensor, _Relation]]()
        for query, each, alpha in layers:
            s = query(h).sigmoid()
            relation = relation.corrects(s, alpha)
            out = relation.gathered(F.linear(h, each.weight), self.symmetric) + each.bias
            h = out + s if seen else out.relu() + s
            seen.append((s, relation))
        scores = h[:, : self.classes]
        if not self.training or not (self.divergence or self.homophily):
            return scores
        said = scores.argmax(1).unsqueeze(1) == torch.arange(self.classes, device=x.device)
        y = torch.where(run.train.unsqueeze(1) > 0, run.labels, said.to(x.dtype))
        losses = torch.stack([torch.stack(_losses(s, y, relation)) for s, relation in seen]).sum(0)
        return scores, self.divergence * losses[0] + self.homophily * losses[1]


def _map(width: int, out: int, noise: float) -> nn.Linear:
    linear = nn.Linear(width, out)
    nn.init.xavier_normal_(linear.weight)
    nn.init.normal_(linear.bias, std=noise)
    return linear


class _Relation:
    """R as what it does to vectors of nodes, and the sums of its rows."""

    def __init__(self, apply: Callable[[Tensor], Tensor], size: Tensor) -> None:
        self.apply, self.size = apply, size

    def corrects(self, s: Tensor, alpha: float) -> _Relation:
        """Attention, plus so much of this."""
        z = (s - s.mean(1, keepdim=True)) / (s.std(1, keepdim=True) + 1e-8)
        # Each pair of two numbers once, of those half way round twice.
        width = z.shape[1]
        roots = [1.0 if 2 * shift in (0, width) else math.sqrt(2) for shift in range(width // 2 + 1)]
        squares = torch.cat([root * z * z.roll(shift, 1) for shift, root in enumerate(roots)], 1)
        return _Relation(lambda v: kernel_attention(squares, squares, v) + alpha * self.apply(v), 1 + alpha * self.size)

    def gathered(self, v: Tensor, symmetric: bool = False) -> Tensor:
        """R v, rows divided by their sums; or the roots of these on both sides."""
        return self.apply(v * self.size**-0.5) * self.size**-0.5 if symmetric else self.apply(v) / self.size


def _losses(s: Tensor, y: Tensor, relation: _Relation) -> tuple[Tensor, Tensor]:
    """Σ_ij R_ij KL(p_i, p_j), p being s with rows of length 1 in the norm of 4; and ‖1 − Σ_j R_ij [y_i = y_j]‖."""
    p = F.normalize(s, p=4, dim=1)
    logs = (p + 1e-10).log()
    of_logs, of_y = relation.gathered(torch.cat([logs, y], 1)).split([s.shape[1], y.shape[1]], 1)
    return (p * (logs - of_logs)).sum(), (1 - (of_y * y).sum(1).clamp_min(1e-8)).norm()
