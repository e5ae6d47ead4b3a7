r"""Attention of all nodes to all nodes: in linear time, and exact.

.. math:: y_i = \frac{v_i + \frac{1}{N} \sum_j \langle \hat q_i, \hat k_j \rangle v_j}{1 + \frac{1}{N} \sum_j \langle \hat q_i,
\hat k_j \rangle}

with queries and keys divided by their Frobenius norms (Wu et al., *SGFormer*, NeurIPS 2023): the sum over j is taken once for all
i, so nothing of size N × N is made. The second form, with a positive kernel in place of the norms, is that of Katharopoulos et al.
(*Transformers are RNNs*, ICML 2020).

Exact attention is what a GPU's and a CPU's fused kernels do for batches, without its weights in memory. Under
:func:`torch.func.vmap` torch knows no fused kernel and makes all weights, [N, N] of every head and member. Here members become
part of the batch; and the backward pass computes the result once more, so that nothing but the inputs is kept.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sharpen.kernels.sparse import Stacked


def linear_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """SGFormer's attention, for one run: [N, H], or [N, heads, H] with several heads, each by itself.

    >>> linear_attention(torch.ones(1, 1), torch.ones(1, 1), torch.tensor([[3.0]])).item()
    3.0
    """
    # The norms are divided by where the numbers are few: in the sums over all nodes.
    sizes = [t.norm(dim=(0, query.dim() - 1)).clamp_min(1e-12) for t in (query, key)]
    share = 1 / (sizes[0] * sizes[1] * len(query))
    summed = torch.einsum("n...k,n...v->...kv", key, value) * share[..., None, None]
    top = value + torch.einsum("n...k,...kv->n...v", query, summed)
    bottom = 1 + torch.einsum("n...k,...k->n...", query, key.sum(0) * share[..., None])
    return top / bottom.unsqueeze(-1)


def kernel_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention with weights ``<query_i, key_j>``, which are to be positive (a sigmoid's, an exponential's); shapes likewise.

    >>> kernel_attention(torch.ones(2, 1), torch.ones(2, 1), torch.tensor([[1.0], [3.0]])).flatten().tolist()
    [2.0, 2.0]
    """
    summed = torch.einsum("n...k,n...v->...kv", key, value)
    top = torch.einsum("n...k,...kv->n...v", query, summed)
    return top / (query * key.sum(0)).sum(-1, keepdim=True).clamp_min(1e-12)


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
