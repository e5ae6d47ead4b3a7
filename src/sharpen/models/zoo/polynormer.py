"""Polynomials of the features whose coefficients are attention: first of the neighbours, then of all nodes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sharpen.kernels.linear_attention import kernel_attention
from sharpen.models.blocks import Dropout
from sharpen.models.inputs import Inputs
from sharpen.models.zoo.heads import GraphAttention, split


class Polynormer(nn.Module):
    r"""Local layers, summed; then, from an epoch on, attention of all nodes to all.

    .. math::
        x \leftarrow (1 - \beta) \mathrm{LN}\big(\mathrm{relu}(W_h x) \odot x'\big) + \beta x', \quad
        x' = \mathrm{relu}(\mathrm{GAT}(x) + W x) \\
        z \leftarrow \mathrm{relu}\Big(W_o \Big[\mathrm{LN}\Big(\frac{\sigma(K) \sigma(K)^\top V}{\sigma(K) \sigma(K)^\top 1}\Big)
        \odot (W_g z + \beta)\Big]\Big), \quad z_0 = \mathrm{LN}\Big(\sum_l x_l\Big)

    Args:
        layers, hidden, dropout: Of the local part; a head is ``hidden`` wide.
        heads: Of both attentions.
        global_layers: Of the second part.
        local_epochs: How long the local part is trained alone.
        input_dropout, global_dropout: Of the features, and of the second part; None for ``dropout``.
        beta: Where β starts; None for the sigmoid of a weight.
    """

    steps: Tensor

    def __init__(
        self, num_features: int, num_classes: int, layers: int = 7, hidden: int = 64, dropout: float = 0.5,
        heads: int = 8, global_layers: int = 2, local_epochs: int = 200, input_dropout: float = 0.15,
        global_dropout: float | None = None, beta: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.heads, self.local_epochs, self.input_dropout, width = heads, local_epochs, input_dropout, heads * hidden
        self.dropout, self.learned = Dropout(dropout), beta is None
        self.late_dropout = Dropout(dropout if global_dropout is None else global_dropout)
        self.embed = nn.Linear(num_features, width)
        self.gate, self.own = (nn.ModuleList(nn.Linear(width, width) for _ in range(layers)) for _ in range(2))
        self.attend = nn.ModuleList(GraphAttention(width, hidden, heads) for _ in range(layers))
        self.norm = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.beta = nn.Parameter(torch.full((layers, width), beta or 0.0))
        self.local_head = nn.Linear(width, num_classes)
        self.late_gate, self.late_key, self.late_value = (
            nn.ModuleList(nn.Linear(width, width) for _ in range(global_layers)) for _ in range(3)
        )
        self.late_norm = nn.ModuleList(nn.LayerNorm(width) for _ in range(global_layers))
        self.late_enter, self.late_out = nn.LayerNorm(width), nn.Linear(width, width)
        self.late_head = nn.Linear(width, num_classes)
        self.late_beta = nn.Parameter(torch.full((global_layers, width), beta or 0.0))
        if beta is None:
            nn.init.xavier_normal_(self.beta)
            nn.init.xavier_normal_(self.late_beta)
        # Nothing reaches them in the first phase: they stay as they are only if nothing pulls them to 0.
        self.rates = {"late": (None, 0.0)}
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        if self.training:
            self.steps = self.steps + 1
        x = self.dropout(self.embed(F.dropout(x, self.input_dropout, self.training)))
        total, betas = torch.zeros_like(x), self._betas(self.beta)
        for k, beta in enumerate(betas):
            gated = self.gate[k](x).relu()
            x = self.dropout((self.attend[k](x, graph.matrix("pattern")) + self.own[k](x)).relu())
            x = (1 - beta) * self.norm[k](gated * x) + beta * x
            total = total + x
        return torch.where(self.steps > self.local_epochs, self._global(total), self.local_head(total))

    def _global(self, local: Tensor) -> Tensor:
        z = self.late_enter(local)
        for k, beta in enumerate(self._betas(self.late_beta)):
            key, value = split(self.late_key[k](z).sigmoid(), self.heads), split(self.late_value[k](z), self.heads)
            seen = self.late_norm[k](kernel_attention(key, key, value).flatten(1))
            z = self.late_dropout(self.late_out(seen * (self.late_gate[k](z) + beta)).relu())
        return self.late_head(z)

    def _betas(self, beta: Tensor) -> Tensor:
        return beta.sigmoid() if self.learned else beta
