"""Attention of all nodes to all: values and gradients against the formula, for one run and for members."""

from __future__ import annotations

import torch

from sharpen.kernels.linear_attention import full_attention


def by_formula(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    weight = torch.einsum("nhd,mhd->hnm", q, k).div(q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("hnm,mhd->nhd", weight, v)


def test_values_and_gradients_are_those_of_the_formula():
    torch.manual_seed(0)
    inputs = [torch.randn(7, 2, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    weight = torch.randn(7, 2, 3, dtype=torch.float64)
    found, wanted = (torch.autograd.grad((f(*inputs) * weight).sum(), inputs) for f in (full_attention, by_formula))
    torch.testing.assert_close(full_attention(*inputs), by_formula(*inputs))
    torch.testing.assert_close(found, wanted)


def test_members_are_each_by_itself_and_a_shared_input_counts_for_all():
    torch.manual_seed(1)
    q, v = (torch.randn(4, 6, 2, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    k = torch.randn(6, 2, 3, dtype=torch.float64, requires_grad=True)
    together = torch.func.vmap(full_attention, in_dims=(0, None, 0))(q, k, v)
    alone = torch.stack([by_formula(q[r], k, v[r]) for r in range(4)])
    torch.testing.assert_close(together, alone)
    found, wanted = (torch.autograd.grad(out.square().sum(), (q, k, v)) for out in (together, alone))
    torch.testing.assert_close(found, wanted)
