"""Which implementation serves a tensor: the fused GPU kernels, or plain PyTorch."""

from __future__ import annotations

import importlib.util
from functools import cache

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
