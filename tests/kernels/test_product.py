"""Products cut into slices: the same values and derivatives as one product."""

import pytest
import torch
from torch.testing import assert_close

from sharpen.kernels.product import classify, products, slices_of, transpose_product


@pytest.mark.parametrize("slices", [1, 2, 3, 5, 11])
@pytest.mark.parametrize("shared", [False, True])
def test_slices_add_up(slices: int, shared: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(11, 3, dtype=torch.float64) if shared else torch.randn(2, 11, 3, dtype=torch.float64)
    g = torch.randn(2, 11, 4, dtype=torch.float64)
    expected = torch.einsum("nk,rnc->rkc" if shared else "rnk,rnc->rkc", x, g)
    assert_close(transpose_product(x, g, slices), expected)


def test_derivatives_of_both_orders() -> None:
    torch.manual_seed(0)
    shapes = ((2, 5, 3), (2, 3, 4), (2, 3, 17), (2, 3, 2))  # few columns are multiplied in another way than many
    operands = tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)

    def joined(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        return torch.cat(products(x, weights), dim=2)

    x, *weights = operands
    assert_close(joined(*operands), x @ torch.cat(weights, dim=2))
    assert torch.autograd.gradcheck(joined, operands)
    assert torch.autograd.gradgradcheck(joined, operands)
    sliced = (x, torch.randn(2, 5, 2, dtype=torch.float64, requires_grad=True))
    assert torch.autograd.gradcheck(lambda a, b: transpose_product(a, b, 2), sliced)
    bias = torch.randn(2, 17, dtype=torch.float64)
    assert_close(classify(x, weights[1], bias), torch.baddbmm(bias[:, None], x, weights[1]))


def test_every_slice_has_nodes() -> None:
    for members in (1, 8, 16, 17):
        for nodes in (1, 4095, 4096, 10**6):
            slices = slices_of(members, nodes, (64, 640))
            assert 1 <= slices <= max(1, nodes // 4096)
