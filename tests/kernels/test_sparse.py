"""Sparse products against scipy, their gradients against finite differences, the fused kernel against both."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from sharpen.kernels.sparse import Csr, spmm


def random_matrix(rows: int, cols: int, seed: int = 0) -> sp.csr_array:
    """Some empty rows, one full row."""
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(rows, cols)) * (rng.random((rows, cols)) < 0.3)
    dense[rows // 2] = 0
    dense[0] = rng.normal(size=cols)
    return sp.csr_array(dense)


def test_product_is_scipys():
    matrix, x = random_matrix(7, 5), np.random.default_rng(1).normal(size=(3, 5, 4))
    out = spmm(Csr.from_scipy(matrix, torch.float64), torch.from_numpy(x))
    np.testing.assert_allclose(out.numpy(), np.stack([matrix @ x[r] for r in range(3)]), rtol=1e-12)


def test_transpose_is_scipys_and_its_own_inverse():
    matrix = random_matrix(7, 5)
    csr = Csr.from_scipy(matrix, torch.float64)
    np.testing.assert_array_equal(csr.t.matrix.to_dense().numpy(), matrix.toarray().T)
    assert csr.t.t is csr
    assert csr.order[csr.place.long()].tolist() == list(range(csr.nnz))


def test_first_and_second_derivatives():
    csr = Csr.from_scipy(random_matrix(4, 3), torch.float64)
    x = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: spmm(csr, x), x)
    assert torch.autograd.gradgradcheck(lambda x: spmm(csr, x), x)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("width", [1, 3, 64, 600])
def test_fused_kernel(kernel_device, width, accumulate):
    from sharpen.kernels.triton.spmm import spmm_triton

    matrix, x = random_matrix(9, 6), torch.randn(2, 6, width + 2)
    wide = torch.ones(2, 9, width + 5, device=kernel_device)
    spmm_triton(
        wide[..., 1 : width + 1], Csr.from_scipy(matrix).to(kernel_device), x.to(kernel_device)[..., 2:], accumulate
    )
    expected = spmm(Csr.from_scipy(matrix, torch.float64), x[..., 2:].double()) + accumulate
    torch.testing.assert_close(wide[..., 1 : width + 1].cpu().double(), expected, rtol=1e-5, atol=1e-5)
    assert (wide[..., 0] == 1).all()
    assert (wide[..., width + 1 :] == 1).all()


@pytest.mark.parametrize("kind", ["expanded", "by columns", "every other member"])
def test_fused_kernel_takes_any_layout(kernel_device, kind):
    from sharpen.kernels.triton.spmm import spmm_triton

    matrix = random_matrix(9, 6)
    x = {
        "expanded": torch.ones(1, 1, 1).expand(2, 6, 5),
        "by columns": torch.randn(2, 5, 6).mT,
        "every other member": torch.randn(4, 6, 5)[::2],
    }[kind]
    out = torch.empty(2, 9, 5, device=kernel_device)
    spmm_triton(out, Csr.from_scipy(matrix).to(kernel_device), x.to(kernel_device))
    np.testing.assert_allclose(out.cpu().numpy(), np.stack([matrix @ each.numpy() for each in x]), rtol=1e-4, atol=1e-5)
