"""What follows every convolution: bias, normalisation, ReLU and dropout, for a stack of members [R, N, H]."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from sharpen.kernels.dropout import relu_dropout

EPSILON, MOMENTUM = 1e-5, 0.1


class Norm(NamedTuple):
    """A normalisation and its parameters, one row [H] per member. Running statistics make it a batch norm."""

    weight: Tensor
    bias: Tensor
    running_mean: Tensor | None = None
    running_var: Tensor | None = None

    def line(self, bias: Tensor | None) -> tuple[Tensor, Tensor]:
        """With fixed statistics a batch norm is a line for each column: its slope and its shift, after a bias."""
        assert self.running_mean is not None
        assert self.running_var is not None
        slope = self.weight * (self.running_var + EPSILON).rsqrt()
        center = self.running_mean if bias is None else self.running_mean - bias
        return slope, self.bias - center * slope


class Dropout(NamedTuple):
    """Drop probability [R] and the keys [R, 2] of one layer at one epoch."""

    p: Tensor
    keys: Tensor


def _normalize(x: Tensor, norm: Norm) -> Tensor:
    """Layer normalisation, or batch normalisation in training, member by member: torch's own are the fastest on a CPU."""

    def one(x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor | None = None, var: Tensor | None = None) -> Tensor:
        if mean is None:
            return F.layer_norm(x, x.shape[1:], weight, bias)
        return F.batch_norm(x, mean, var, weight, bias, True, MOMENTUM, EPSILON)

    operands = [x, *(t for t in norm if t is not None)]
    if len(x) == 1:  # the same without copying; a view, which autograd wants to copy before it is overwritten
        return one(*(t.squeeze(0) for t in operands)).unsqueeze(0)
    return torch.stack([one(*member) for member in zip(*(t.unbind(0) for t in operands), strict=True)])


def activate(
    x: Tensor, bias: Tensor | None, norm: Norm | None, training: bool, dropout: Dropout | None, overwrite: bool = False
) -> Tensor:
    """``dropout(relu(norm(x + bias)))``.

    Args:
        x: The output of a convolution, [R, N, H].
        bias: [R, H], or nothing.
        norm: Layer or batch normalisation, or nothing. Running statistics are updated in place when training.
        training: Whether batch statistics are those of ``x`` or the running ones.
        dropout: Probabilities and keys, or nothing for no dropout.
        overwrite: Whether the result may take the place of ``x``.

    >>> activate(torch.tensor([[[-1.0, 2.0]]]), torch.tensor([[3.0, -3.0]]), None, True, None).tolist()
    [[[2.0, 0.0]]]
    """
    if norm is not None and norm.running_mean is None:
        if bias is not None:
            x, bias = x.add_(bias[:, None]) if overwrite else x + bias[:, None], None
        x, overwrite = _normalize(x, norm), len(x) > 1
    elif norm is not None and training:
        # A batch norm subtracts the bias again: its gradient is 0, and only the running mean sees it (before the update, which
        # autograd wants to be the last).
        if bias is not None:
            assert norm.running_mean is not None
            norm.running_mean.add_(bias.detach(), alpha=MOMENTUM / (1 - MOMENTUM))
        x, bias, overwrite = _normalize(x, norm), None, len(x) > 1
    elif norm is not None:
        slope, bias = norm.line(bias)
        x, overwrite = x.mul_(slope[:, None]) if overwrite else x * slope[:, None], True
    p, keys = dropout or (None, None)
    return relu_dropout(x, bias, p, keys, overwrite)
