"""The part of the first layer that never changes: a fixed matrix times every member's weights.

Features are not dropped out, so the first product is linear in the weights with a constant matrix: X itself, or PX where P
propagates over the graph. PX can be multiplied out once, or left as two factors and applied one after the other. Which is
cheaper depends on how full they are; :func:`propagated` decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from sharpen.kernels.sparse import Csr, spmm

# How many dense multiply-adds one sparse one costs, measured.
SPARSE_COST = {"cpu": 12.0, "cuda": 12.0}


class _FixedProduct(torch.autograd.Function):
    """m @ w[r] with a constant dense m; the gradient in m is never asked for."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, m: Tensor, transpose: bool) -> Tensor:
        ctx.m, ctx.transpose = m, transpose
        return torch.matmul(m.t() if transpose else m, w)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _FixedProduct.apply(grad, ctx.m, not ctx.transpose), None, None


class FixedMatrix:
    """A constant matrix as a product of factors, each dense or sparse, that multiplies stacks of weights.

    >>> m = FixedMatrix([torch.tensor([[1.0, 2.0]])])
    >>> m.times(torch.ones(3, 2, 1)).flatten().tolist()
    [3.0, 3.0, 3.0]
    >>> m.transpose_times(torch.ones(1, 1, 1)).flatten().tolist()
    [1.0, 2.0]
    """

    def __init__(self, factors: list[Tensor | Csr]) -> None:
        self.factors = factors

    def times(self, w: Tensor) -> Tensor:
        """``M @ w[r]`` for every member; w is [R, F, H]. Differentiable."""
        for factor in reversed(self.factors):
            w = spmm(factor, w) if isinstance(factor, Csr) else _FixedProduct.apply(w, factor, False)
        return w

    def transpose_times(self, g: Tensor) -> Tensor:
        """``M.T @ g[r]`` for every member: the gradient in w, from the gradient in the product."""
        for factor in self.factors:
            g = spmm(factor.t, g) if isinstance(factor, Csr) else _FixedProduct.apply(g, factor, True)
        return g


def fixed(matrix: Any, device: torch.device, dtype: torch.dtype) -> Tensor | Csr:
    """A scipy matrix or a dense array on the device, dense or sparse, whichever multiplies faster."""
    if isinstance(matrix, np.ndarray):
        return torch.as_tensor(matrix).to(device, dtype)
    rows, cols = matrix.shape
    if matrix.nnz * SPARSE_COST[device.type] < rows * cols:
        return Csr.from_scipy(matrix, dtype).to(device)
    return torch.from_numpy(matrix.toarray()).to(device, dtype)


def propagated(
    propagation: Any, features: Any, device: torch.device, dtype: torch.dtype, symmetric: bool = False
) -> FixedMatrix:
    """``propagation @ features`` as the cheaper of one matrix and two factors.

    >>> swap, x = sp.csr_array([[0.0, 1.0], [1.0, 0.0]]), sp.csr_array([[1.0, 0.0], [0.0, 5.0]])
    >>> propagated(swap, x, torch.device("cpu"), torch.float32).times(torch.eye(2)[None]).tolist()
    [[[0.0, 5.0], [1.0, 0.0]]]
    """
    product = propagation @ features
    if not isinstance(product, np.ndarray):
        cost = SPARSE_COST[device.type]
        multiplied = min(cost * product.nnz, float(product.shape[0] * product.shape[1]))
        if cost * (features.nnz + propagation.nnz) < multiplied:
            csr = Csr.from_scipy(propagation, dtype, symmetric).to(device)
            return FixedMatrix([csr, fixed(features, device, dtype)])
    return FixedMatrix([fixed(product, device, dtype)])
