"""Fixed matrices: dense and sparse columns, zeros that fill up, a factor from the left; against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.testing import assert_close

from sharpen.kernels.features import FixedMatrix, fixed, propagated
from sharpen.kernels.sparse import Csr

GENERATOR = np.random.default_rng(3)
MATRIX = GENERATOR.normal(size=(9, 7)) * (GENERATOR.random((9, 7)) < 0.4)
LEFT = GENERATOR.normal(size=(9, 9)) * (GENERATOR.random((9, 9)) < 0.3)


def build(columns: list[int] | None, align: int, left: bool) -> FixedMatrix:
    before = Csr.from_scipy(sp.csr_array(LEFT), torch.float64) if left else None
    if columns is None:
        return FixedMatrix(torch.from_numpy(MATRIX), before=before, align=align)
    rest = MATRIX.copy()
    rest[:, columns] = 0
    sparse = Csr.from_scipy(sp.csr_array(rest), torch.float64)
    dense = torch.from_numpy(MATRIX[:, columns]) if columns else None
    return FixedMatrix(dense, torch.tensor(columns), sparse, before, align)


@pytest.mark.parametrize("columns", [None, [0, 2, 5], [4], []])
@pytest.mark.parametrize("align", [1, 4, 8])
@pytest.mark.parametrize("left", [False, True])
def test_products_and_gradients(columns: list[int] | None, align: int, left: bool) -> None:
    matrix = build(columns, align, left)
    oracle = LEFT @ MATRIX if left else MATRIX
    w = torch.from_numpy(GENERATOR.normal(size=(3, 7, 2))).requires_grad_()
    g = torch.from_numpy(GENERATOR.normal(size=(3, 9, 2)))
    expected, gradient = torch.from_numpy(oracle @ w.detach().numpy()), torch.from_numpy(oracle.T @ g.numpy())

    out = matrix.times(w)
    assert_close(out.detach(), expected)
    assert_close(torch.autograd.grad(out, w, g)[0], gradient)
    assert_close(matrix.transpose_times(g), gradient)
    assert matrix.transpose_times(g).is_contiguous()
    into = torch.ones_like(expected)
    matrix.times_into(into, w.detach(), accumulate=True)
    assert_close(into, expected + 1)
    matrix.times_into(into, w.detach())
    assert_close(into, expected)


@pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))],
)
@pytest.mark.parametrize("kind", ["dense", "sparse", "propagated"])
def test_from_scipy_and_numpy(device: str, kind: str) -> None:
    where, w = torch.device(device), torch.from_numpy(GENERATOR.normal(size=(2, 7, 3))).to(device)
    if kind == "propagated":
        matrix = propagated(sp.csr_array(LEFT), sp.csr_array(MATRIX), where, torch.float64)
        oracle = LEFT @ MATRIX
    else:
        matrix = fixed(MATRIX if kind == "dense" else sp.csr_array(MATRIX), where, torch.float64)
        oracle = MATRIX
    assert_close(matrix.times(w).cpu(), torch.from_numpy(oracle @ w.cpu().numpy()))
