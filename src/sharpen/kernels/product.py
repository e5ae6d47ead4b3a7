"""Dense products of a population: few columns on a CPU, few members on a GPU.

A weight's gradient is a sum over all nodes with few columns: ``x[r].T @ g[r]``. One member gives a GPU only a block or two of it to
work on, so that eight members on a large graph would leave most of the device idle. There the nodes are cut into slices, which are
multiplied side by side and added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

# Work for a large GPU: so many tiles of so many columns; a slice is worth its launch from so many nodes on.
_TILES, _TILE, _SLICE = 256, 128, 4096
# Where a CPU changes the way it multiplies, measured: columns of a product, columns of a gradient, numbers in a matrix.
_THIN, _NARROW, _SMALL = 4, 16, 2**14


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
        return torch.matmul(x.mT, g) if x.dim() == 3 else shared_product(x.mT, g)
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


def shared_product(m: Tensor, w: Tensor) -> Tensor:
    """``m @ w[r]`` for every member, with one m [N, K] for all; w is [R, K, C]. Differentiable.

    A CPU multiplies faster by the columns of all members side by side; a GPU need not have them rearranged.

    >>> shared_product(torch.ones(1, 3), torch.ones(2, 3, 4)).shape
    torch.Size([2, 1, 4])
    """
    if m.is_cuda or len(w) == 1:
        return torch.matmul(m, w)
    side_by_side = m @ w.transpose(0, 1).flatten(1)
    return side_by_side.view(len(m), len(w), w.shape[2]).transpose(0, 1).contiguous()


def _forward(x: Tensor, w: Tensor) -> Tensor:
    (members, nodes, _), columns = x.shape, w.shape[2]
    if x.is_cuda or columns > _THIN:
        return torch.bmm(x, w)
    out = x.new_empty_strided((members, nodes, columns), (nodes * columns, 1, nodes))
    torch.bmm(w.mT.contiguous(), x.mT, out=out.mT)
    return out


class _Products(torch.autograd.Function):
    """x @ w for several w; the gradient in x is summed by the matrix product itself.

    On a CPU products with few columns are computed as their transposes, which is up to four times faster.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.save_for_backward(x, *weights)
        return tuple(_forward(x, w) for w in weights)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        x, *weights = ctx.saved_tensors
        # A small matrix is worth turning around first: on a CPU the product is a fifth faster.
        turned = [w.mT if x.is_cuda or w[0].numel() > _SMALL else w.mT.contiguous() for w in weights]
        in_x = torch.bmm(grads[0], turned[0])
        for grad, w in zip(grads[1:], turned[1:], strict=True):
            in_x.baddbmm_(grad, w)
        thin = (not x.is_cuda and grad.shape[2] <= _NARROW for grad in grads)
        in_w = (torch.bmm(g.mT, x).mT if few else transpose_product(x, g) for g, few in zip(grads, thin, strict=True))
        return in_x, *in_w


def products(x: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
    """``x[r] @ w[r]`` for every member, for each of the weights; differentiable, any number of times.

    >>> [z.shape for z in products(torch.ones(1, 3, 4), [torch.ones(1, 4, 8), torch.ones(1, 4, 2)])]
    [torch.Size([1, 3, 8]), torch.Size([1, 3, 2])]
    """
    return list(_Products.apply(x, *weights))


def classify(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``x[r] @ weight[r] + bias[r]`` for every member: the classifier after the last layer.

    >>> classify(torch.ones(1, 3, 4), torch.ones(1, 4, 2), torch.ones(1, 2))[0, 0].tolist()
    [5.0, 5.0]
    """
    return (products(x, [weight])[0] + bias[:, None]).contiguous()
