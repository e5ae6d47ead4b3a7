"""Random numbers that are a function of (member, epoch, place, position) and of nothing else.

Dropout must not depend on which other members train beside one, nor on the device. So there is no generator with a state: the
16 random bits of an element are a hash of its position under a key, and the key is a hash of the member's seed, the epoch
and the place in the model: the layer, or how many draws came before in its forward pass. Two neighbouring elements share one
32-bit word. All arithmetic is on int32, wrapping, so that PyTorch on any device and the fused kernels give the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from sharpen.kernels import backend
from sharpen.kernels.sparse import Stacked

# Multipliers of the golden ratio and of "lowbias32", a 32-bit mixer found by search for even avalanche; as signed int32.
GOLDEN, MIX_1, MIX_2 = -1640531527, 569420461, 1935289751
# How many words of each member are hashed at a time.
_PIECE = 2**16


def member_keys(seeds: Sequence[int]) -> Tensor:
    """The two 32-bit keys of each member, from its seed; int32 [R, 2].

    >>> member_keys([0, 1, 0])[0].equal(member_keys([7, 0])[1])
    True
    """
    digests = [hashlib.sha256(f"dropout/{seed}".encode()).digest() for seed in seeds]
    words = [[int.from_bytes(d[i : i + 4], "little", signed=True) for i in (0, 4)] for d in digests]
    return torch.tensor(words, dtype=torch.int32)


def _mix(x: Tensor) -> Tensor:
    """A bijective scramble of int32, in place."""
    x ^= (x >> 16) & 0xFFFF
    x *= MIX_1
    x ^= (x >> 15) & 0x1FFFF
    x *= MIX_2
    x ^= (x >> 16) & 0xFFFF
    return x


def layer_keys(keys: Tensor, epoch: Tensor, layer: int) -> Tensor:
    """The keys of one layer at one epoch, int32 [R, 2]; ``epoch`` is a tensor so that it may live on the device."""
    moment = _mix(epoch.to(torch.int32) * 1024 + (layer + 1))
    first = _mix(keys[:, 0] ^ moment)
    return torch.stack([first, _mix(keys[:, 1] + first)], dim=1)


@lru_cache(maxsize=8)
def _positions(words: int, device: torch.device) -> Tensor:
    return torch.arange(words, dtype=torch.int32, device=device) * GOLDEN


def random_words(keys: Tensor, size: int) -> Tensor:
    """``size`` int32 numbers for each member, from its pair of keys; [R, size]. A member's numbers are all different.

    >>> words = random_words(member_keys([3]), 1000)
    >>> words.dtype, len(words.unique())
    (torch.int32, 1000)
    """
    positions = _positions(size, keys.device)
    out = torch.empty(len(keys), size, dtype=torch.int32, device=keys.device)
    # Piece by piece: the many passes then find their numbers in the cache.
    for begin in range(0, size, _PIECE):
        x = out[:, begin : begin + _PIECE]
        torch.add(positions[begin : begin + _PIECE], keys[:, :1], out=x)
        shifted = torch.empty_like(x)

        def fold(shift: int, mask: int, x: Tensor = x, shifted: Tensor = shifted) -> None:
            torch.bitwise_right_shift(x, shift, out=shifted)
            x.bitwise_xor_(shifted.bitwise_and_(mask))

        fold(16, 0xFFFF)
        x.mul_(MIX_1).bitwise_xor_(keys[:, 1:])
        fold(15, 0x1FFFF)
        x.mul_(MIX_2)
        fold(16, 0xFFFF)
    return out


def random_bits(keys: Tensor, size: int) -> Tensor:
    """``size`` uniform int16 numbers for each member, from its pair of keys; [R, size].

    >>> bits = random_bits(member_keys([3]), 10)
    >>> bits.shape, bits.dtype
    (torch.Size([1, 10]), torch.int16)
    """
    return random_words(keys, (size + 1) // 2).view(torch.int16)[:, :size]


def thresholds(p: Tensor) -> Tensor:
    """The int16 number from which on an element is kept, for each drop probability; p has 16 bits of resolution.

    >>> thresholds(torch.tensor([0.0, 0.5])).tolist()
    [-32768, 0]
    """
    return ((p.double() * 65536).round() - 32768).clamp(max=32767).to(torch.int16)


def _kept(x: Tensor, p: Tensor, keys: Tensor) -> Tensor:
    """A number above 0 where an element of x is kept: several times faster on a CPU than a boolean mask."""
    lowest = thresholds(p).to(x.dtype).view(-1, *[1] * (x.dim() - 1)) - 0.5
    return random_bits(keys, x[0].numel()).to(x.dtype).view_as(x).sub_(lowest)


class _ReluDropout(torch.autograd.Function):
    """Where the result is positive, the element was active and kept: the result itself is the mask of the backward pass."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, bias: Tensor | None, p: Tensor | None, keys: Tensor | None, overwrite: bool
    ) -> Tensor:
        if overwrite:
            ctx.mark_dirty(x)
        out = x if overwrite else torch.empty_like(x)
        ctx.scale, ctx.biased = None, bias is not None
        if bias is not None:
            x = torch.add(x, bias[:, None], out=out)
        x = torch.clamp(x, min=0, out=out)
        if p is not None and keys is not None:
            ctx.scale = (1 / (1 - p)).to(x.dtype).view(-1, 1, 1)
            torch.ops.aten.threshold_backward.grad_input(x, _kept(x, p, keys), 0, grad_input=out)
            out.mul_(ctx.scale)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None, None, None]:
        (out,) = ctx.saved_tensors
        grad = torch.ops.aten.threshold_backward(grad, out, 0)
        if ctx.scale is not None:
            grad.mul_(ctx.scale)
        return grad, grad.sum(1) if ctx.biased else None, None, None, None


def relu_dropout(
    x: Tensor, bias: Tensor | None = None, p: Tensor | None = None, keys: Tensor | None = None, overwrite: bool = False
) -> Tensor:
    """``dropout(relu(x + bias))`` for a stack of members [R, N, H], each with its own probability ``p`` [R] and keys [R, 2].

    Without ``p`` and ``keys`` it is the evaluation mode: no dropout. With ``overwrite`` the result may take the place of ``x``.

    >>> relu_dropout(torch.tensor([[[-1.0, 2.0]]])).tolist()
    [[[0.0, 2.0]]]
    """
    return _ReluDropout.apply(x, bias, p, keys, overwrite)


class _Words(Stacked):
    """:func:`random_words` with a vmap rule; there is nothing to differentiate."""

    @staticmethod
    def forward(keys: Tensor, size: int) -> Tensor:
        return random_words(keys, size)


def words(keys: Tensor, size: int) -> Tensor:
    """``size`` int32 numbers for one run, from its pair of keys [2]; under :func:`torch.func.vmap` for all members in one pass.

    >>> words(member_keys([3])[0], 10).equal(random_words(member_keys([3]), 10)[0])
    True
    """
    out: Tensor = _Words.apply(keys.unsqueeze(0), size)
    return out.squeeze(0)


class _Dropout(Stacked):
    """x with some of its elements set to 0 and the others scaled; linear, so that it is its own derivative."""

    stacks = 3

    @staticmethod
    def forward(x: Tensor, p: Tensor, keys: Tensor) -> Tensor:
        scale = torch.where(p < 1, 1 / (1 - p), 0).to(x.dtype)
        if backend.fused(x):
            from sharpen.kernels.triton.activation import dropout_triton

            return dropout_triton(x, thresholds(p), scale, keys)
        return torch.ops.aten.threshold_backward(x, _kept(x, p, keys), 0).mul_(scale.view(-1, *[1] * (x.dim() - 1)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Dropout.apply(grad, *ctx.saved_tensors), None, None


def dropout(x: Tensor, p: float | Tensor, keys: Tensor) -> Tensor:
    """Dropout of one run: what is dropped depends on the pair of keys [2] and on an element's position alone.

    Under :func:`torch.func.vmap` one pass for all members, each with its own keys and, if ``p`` is a tensor, its own rate.

    >>> out = dropout(torch.ones(1000), 0.25, member_keys([3])[0])
    >>> sorted(set(out.tolist())), 0.7 < float((out > 0).float().mean()) < 0.8
    ([0.0, 1.3333333730697632], True)
    """
    rate = p if isinstance(p, Tensor) else torch.full((), p, dtype=x.dtype, device=x.device)
    out: Tensor = _Dropout.apply(x.unsqueeze(0), rate.unsqueeze(0), keys.unsqueeze(0))
    return out.squeeze(0)
