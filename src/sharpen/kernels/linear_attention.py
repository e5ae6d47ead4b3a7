r"""Attention of all nodes to all nodes in linear time.

.. math:: y_i = \frac{v_i + \frac{1}{N} \sum_j \langle \hat q_i, \hat k_j \rangle v_j}{1 + \frac{1}{N} \sum_j \langle \hat q_i,
\hat k_j \rangle}

with queries and keys divided by their Frobenius norms (Wu et al., *SGFormer*, NeurIPS 2023): the sum over j is taken once for all
i, so nothing of size N × N is made. The second form, with a positive kernel in place of the norms, is that of Katharopoulos et al.
(*Transformers are RNNs*, ICML 2020).
"""

from __future__ import annotations

import torch
from torch import Tensor


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
