"""What several models are built of."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dropout(nn.Module):
    """As :class:`torch.nn.Dropout`; its rate is a buffer, so that members of one population may have different ones.

    >>> Dropout(0.5).eval()(torch.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """

    p: Tensor

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.register_buffer("p", torch.tensor(float(p)), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """x with a share p of its elements set to 0 and the others scaled, in training."""
        return F.dropout(x, self.p, self.training)  # type: ignore[arg-type]  # torch reads a number out of it


class Perceptron(nn.Module):
    """Linear maps with ReLU between them, dropout before each: what decoupled models begin with.

    >>> Perceptron([3, 8, 2], 0.5).eval()(torch.ones(5, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(self, widths: list[int], dropout: float) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """The last map's values."""
        for number, linear in enumerate(self.maps):
            x = linear(self.dropout(x.relu() if number else x))
        return x
