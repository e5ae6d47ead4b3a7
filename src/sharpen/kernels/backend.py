"""Which implementation serves a tensor: the fused GPU kernels, or plain PyTorch."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

import torch
from torch import Tensor

_plain: ContextVar[bool] = ContextVar("sharpen_plain_kernels", default=False)


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def fused(x: Tensor) -> bool:
    """Whether fused kernels serve ``x``: a float32 tensor on a GPU, with Triton installed, outside :func:`plain_kernels`.

    >>> fused(torch.ones(3))
    False
    """
    return x.is_cuda and x.dtype == torch.float32 and not _plain.get() and _has_triton()


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Within it, everything runs as plain PyTorch: the oracle of the fused kernels, and twice differentiable.

    >>> with plain_kernels():
    ...     fused(torch.ones(3))
    False
    """
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)
