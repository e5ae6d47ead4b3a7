"""Attention of all nodes to all, exact, without its weights in memory: what a GPU's and a CPU's fused kernels do for batches.

Under :func:`torch.func.vmap` torch knows no fused kernel and makes all weights, [N, N] of every head and member. Here members
become part of the batch; and the backward pass computes the result once more, so that nothing but the inputs is kept.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sharpen.kernels.sparse import Stacked


class _FullAttention(Stacked):
    stacks = 3

    @staticmethod
    def forward(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        with torch.enable_grad():
            inputs = [t.detach().requires_grad_() for t in ctx.saved_tensors]
            return torch.autograd.grad(F.scaled_dot_product_attention(*inputs), inputs, grad)


def full_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """softmax(<query_i, key_j> / √H) times value, for one run, each head by itself: [N, heads, H].

    >>> full_attention(torch.ones(2, 1, 1), torch.ones(2, 1, 1), torch.tensor([[[1.0]], [[3.0]]])).flatten().tolist()
    [2.0, 2.0]
    """
    out: Tensor = _FullAttention.apply(*(t.transpose(0, 1).unsqueeze(0) for t in (query, key, value)))
    return out.squeeze(0).transpose(0, 1)
