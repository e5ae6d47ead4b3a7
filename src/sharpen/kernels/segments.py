"""Rows that are picked by an index, and rows that are summed by one: the two halves of message passing in modules written for PyG.

Picking and summing are each other's adjoints. Vectorised over members by torch alone they become gathers and scattered additions
with an index for every single number, slow on a CPU and, on a GPU, different in their last bits from run to run. Here they are
one pass over
rows: the index is sorted once, and sums run along it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sharpen.kernels.sparse import Csr, Stacked, spmm


class Index:
    """Row numbers [E], and what sums over them need; nothing waits for the device.

    >>> index = Index(torch.tensor([1, 0, 1]))
    >>> segment_sum(torch.tensor([[1.0], [2.0], [3.0]]), index, 2).flatten().tolist()
    [2.0, 4.0]
    """

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows
        self._sums: dict[tuple[int, torch.dtype], Csr] = {}

    def sums(self, size: int, dtype: torch.dtype) -> Csr:
        """The matrix of ones that sums E rows into ``size`` rows."""
        if (size, dtype) not in self._sums:
            ordered, order = self.rows.sort(stable=True)
            rowptr = torch.searchsorted(ordered, torch.arange(size + 1, device=ordered.device))
            ones = torch.ones(len(order), dtype=dtype, device=order.device)
            self._sums[size, dtype] = Csr(rowptr.int(), order.int(), ones, len(order))
        return self._sums[size, dtype]


class _Pick(Stacked):
    @staticmethod
    def forward(x: Tensor, index: Index) -> Tensor:
        # Rows of one matrix are picked faster than those of a stack.
        return x[0].index_select(0, index.rows).unsqueeze(0) if len(x) == 1 else x.index_select(1, index.rows)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Index], output: Tensor) -> None:
        x, ctx.index = inputs
        ctx.size = x.shape[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _Sum.apply(grad, ctx.index, ctx.size), None


class _Sum(Stacked):
    @staticmethod
    def forward(x: Tensor, index: Index, size: int) -> Tensor:
        return spmm(index.sums(size, x.dtype), x.contiguous())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Pick.apply(grad, ctx.rest[0]), None, None


def pick(x: Tensor, index: Index) -> Tensor:
    """``x[index]`` for one run, [E, ...]; under :func:`torch.func.vmap` one pass for all members.

    >>> pick(torch.tensor([5.0, 7.0]), Index(torch.tensor([1, 0, 1]))).tolist()
    [7.0, 5.0, 7.0]
    """
    out: Tensor = _Pick.apply(_rows(x), index)
    return out.view(-1, *x.shape[1:])


def segment_sum(x: Tensor, index: Index, size: int) -> Tensor:
    """The rows of x, [E, ...], summed into ``size`` rows, each into the one that the index names."""
    out: Tensor = _Sum.apply(_rows(x), index, size)
    return out.view(size, *x.shape[1:])


def _rows(x: Tensor) -> Tensor:
    """[1, rows, numbers of a row]."""
    return x.reshape(1, x.shape[0], -1)
