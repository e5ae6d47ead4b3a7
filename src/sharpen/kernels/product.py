"""Dense products of a population, with gradients that keep a GPU busy even where members are few.

A weight's gradient is a sum over all nodes with few columns: ``x[r].T @ g[r]``. One member gives a GPU only a block or two of it to
work on, so that eight members on a large graph would leave most of the device idle. There the nodes are cut into slices, which are
multiplied side by side and added.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# Work for a large GPU: so many tiles of so many columns; a slice is worth its launch from so many nodes on.
_TILES, _TILE, _SLICE = 256, 128, 4096


def slices_of(members: int, nodes: int, columns: tuple[int, int]) -> int:
    """Into how many slices to cut the nodes of ``x[r].T @ g[r]`` on a GPU; columns are those of x and of g.

    Slices are worked on side by side, but member after member: that pays where there are more slices than members.

    >>> slices_of(8, 100_000, (64, 64)), slices_of(205, 100_000, (64, 64)), slices_of(8, 10_000, (64, 64))
    (24, 1, 1)
    """
    tiles = members * -(-columns[0] // _TILE) * -(-columns[1] // _TILE)
    slices = min(_TILES // tiles, nodes // _SLICE)
    return slices if slices > 2 * members else 1


def transpose_product(x: Tensor, g: Tensor, slices: int | None = None) -> Tensor:
    """``x[r].T @ g[r]`` for every member; x is [R, N, K], or [N, K] for all members, and g is [R, N, C]. Differentiable.

    >>> transpose_product(torch.ones(5, 1), torch.ones(1, 5, 2), slices=2).tolist()
    [[[5.0, 5.0]]]
    """
    nodes = g.shape[1]
    if slices is None:
        slices = slices_of(len(g), nodes, (x.shape[-1], g.shape[2])) if g.is_cuda else 1
    if slices == 1:
        return torch.matmul(x.mT, g)
    length = nodes // slices
    whole = slices * length

    def cut(part: Tensor) -> Tensor:
        return part[:whole].reshape(slices, length, part.shape[1])

    sums = []
    for r, each in enumerate(g):
        own = x if x.dim() == 2 else x[r]
        total = torch.bmm(cut(own).mT, cut(each)).sum(0)
        sums.append(total if whole == nodes else torch.addmm(total, own[whole:].t(), each[whole:]))
    return torch.stack(sums)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        return torch.bmm(x, w)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, w = ctx.saved_tensors
        wants_x, wants_w = ctx.needs_input_grad
        return torch.bmm(g, w.mT) if wants_x else None, transpose_product(x, g) if wants_w else None


def product(x: Tensor, w: Tensor) -> Tensor:
    """``x[r] @ w[r]`` for every member; differentiable any number of times.

    >>> product(torch.ones(2, 3, 4), torch.ones(2, 4, 5)).shape
    torch.Size([2, 3, 5])
    """
    out: Tensor = _Product.apply(x, w)
    return out
