"""Which implementation serves a tensor: the fused GPU kernels, or plain PyTorch; sparse or dense."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def fused(x: Tensor) -> bool:
    """Whether fused kernels serve ``x``: a float32 tensor on a GPU, with Triton installed.

    >>> fused(torch.ones(3))
    False
    """
    return x.is_cuda and x.dtype == torch.float32 and _has_triton()


class Cost(NamedTuple):
    """What the sparse part costs: one entry, in dense multiply-adds; and its pass over the result, in dense columns."""

    entry: float
    sweep: float


# By device and float32 matrix precision; entries measured, sweeps from the rates of products and of memory.
_COSTS = {("cpu", "highest"): Cost(12, 0), ("cuda", "highest"): Cost(12, 45), ("cuda", "high"): Cost(48, 350)}


def cost_on(device: torch.device) -> Cost:
    """What the sparse part costs on this device and in the precision that is set.

    >>> cost_on(torch.device("cpu"))
    Cost(entry=12, sweep=0)
    """
    precision = torch.get_float32_matmul_precision() if device.type == "cuda" else "highest"
    return _COSTS[device.type, precision]
