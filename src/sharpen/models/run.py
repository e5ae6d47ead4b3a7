"""What a model may know of the run it is called in."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Run:
    """The ``run`` of a ``forward(x, graph, run)``; for a population it stands for those of all members.

    Args:
        labels: The classes of the run's own training nodes, [N, C]: 1 at the class, and rows of zeros for all other nodes. Where a
            saved model predicts, those that the graph has.
        epoch: The number of the epoch, on the device; 0 where a saved model predicts, so what training has come to is kept in a
            buffer.

    >>> import torch
    >>> run = Run.of(torch.tensor([1, 0]), 2, torch.tensor([True, False]), torch.tensor(3))
    >>> run.labels.tolist(), run.train.tolist()
    ([[0.0, 1.0], [0.0, 0.0]], [1.0, 0.0])
    """

    labels: Tensor
    epoch: Tensor

    @classmethod
    def of(cls, y: Tensor, num_classes: int, train: Tensor, epoch: Tensor, like: Tensor | None = None) -> Run:
        """From the classes of all nodes, and a mask of those whose class may be known."""
        known = F.one_hot(y.clamp(min=0), num_classes).to((like if like is not None else train.float()).dtype)
        return cls(known * (train & (y >= 0)).unsqueeze(-1), epoch)

    @property
    def train(self) -> Tensor:
        """1 for every training node, [N]."""
        return self.labels.sum(1)
