"""The part of the first layer that never changes: a fixed matrix times every member's weights.

Features are not dropped out, so the first product is linear in the weights with a constant matrix M: the features themselves, or
the features gathered over the graph. Real feature matrices are uneven: a few columns (frequent words) are well filled, most are
nearly empty. So M is kept in two parts by columns, dense where a column is full enough, sparse elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from sharpen.kernels.backend import Cost, cost_on
from sharpen.kernels.product import shared_product, transpose_product
from sharpen.kernels.sparse import Csr, Stacked, spmm, spmm_into


class Products:
    """Products of fixed matrices with weights, kept from an evaluation for the training step that comes next.

    Between the two no weight changes, so the step need not multiply again. A product is known by its matrix and by where its
    weights lie, and is given once; it is not if the weights, or the product itself, were written to in between.

    >>> m, w = FixedMatrix(torch.tensor([[1.0, 2.0]])), torch.ones(1, 2, 1)
    >>> kept = Products()
    >>> for keeps in (True, False):
    ...     kept.begin([w], keeps)
    ...     print(m.times(w, kept).item(), len(kept._kept))
    3.0 1
    3.0 0
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], tuple[int, Tensor, int]] = {}
        self._weights: list[Tensor] = []
        self._storages: set[int] = set()
        self._keeps = False

    def begin(self, weights: Iterable[Tensor], keeps: bool) -> None:
        """A new pass: it keeps products with these parameters (in an evaluation), or is given them (in training)."""
        self._keeps = keeps
        if keeps:
            self._kept.clear()
            self._weights = list(weights)  # as long as they are held, no others can come to lie in their place
            self._storages = {weight.untyped_storage().data_ptr() for weight in self._weights}

    def of(self, matrix: FixedMatrix, w: Tensor) -> Tensor:
        """``M @ w[r]`` for every member; not differentiable."""
        if w.untyped_storage().data_ptr() not in self._storages:
            return matrix.times(w)
        key = (id(matrix), w.data_ptr(), w.shape, w.stride())
        if self._keeps:
            out = matrix.times(w)
            self._kept[key] = w._version, out, out._version
            return out
        version, out, written = self._kept.pop(key, (-1, w, -1))
        return out.detach() if version == w._version and written == out._version else matrix.times(w)


class _Product(Stacked):
    """``M @ w[r]``, or ``M.T @ g[r]``, with a constant M; each is the other's derivative."""

    @staticmethod
    def forward(w: Tensor, matrix: FixedMatrix, transpose: bool, known: Products | None) -> Tensor:
        if transpose:
            return matrix._transpose_product(w)
        return matrix._product(w) if known is None else known.of(matrix, w)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        matrix, transpose, _ = ctx.rest
        return _Product.apply(grad, matrix, not transpose, None), None, None, None


class FixedMatrix:
    """A constant matrix that multiplies stacks of weights.

    Args:
        dense: Its well-filled columns, [N, D], if any.
        columns: Which columns these are; nothing if they are all.
        sparse: The other columns, as a matrix of full shape; nothing if there are none.
        before: A sparse matrix P from the left: the whole then stands for P @ M.
        align: Fill the dense part up with columns of zeros to a multiple of so many. On a GPU, rows that begin at multiples of 16
            bytes multiply twice as fast.

    >>> m = FixedMatrix(torch.tensor([[1.0, 2.0]]))
    >>> m.times(torch.ones(3, 2, 1)).flatten().tolist()
    [3.0, 3.0, 3.0]
    >>> m.transpose_times(torch.ones(1, 1, 1)).flatten().tolist()
    [1.0, 2.0]
    """

    def __init__(
        self,
        dense: Tensor | None,
        columns: Tensor | None = None,
        sparse: Csr | None = None,
        before: Csr | None = None,
        align: int = 1,
    ) -> None:
        self.columns, self.sparse, self.before = columns, sparse, before
        self.dense, self._weights = dense, columns
        self._full = 0 if dense is None else dense.shape[1]
        extra = -self._full % align
        if dense is not None and extra:
            known = torch.arange(self._full, device=dense.device) if columns is None else columns
            self.dense, self._weights = F.pad(dense, (0, extra)), torch.cat([known, known[:1].expand(extra)])

    def _selected(self, w: Tensor) -> Tensor:
        """The weights of the dense columns; those of a column of zeros may be anything."""
        return w if self._weights is None else w[:, self._weights]

    def times(self, w: Tensor, known: Products | None = None) -> Tensor:
        """``M @ w[r]`` for every member; w is [R, F, H]. Differentiable. What is ``known`` is not computed again."""
        return _Product.apply(w, self, False, known)

    def transpose_times(self, g: Tensor) -> Tensor:
        """``M.T @ g[r]`` for every member: the gradient in w, from the gradient in the product. Differentiable likewise."""
        return _Product.apply(g, self, True, None)

    def _product(self, w: Tensor) -> Tensor:
        out = self._stored_product(w)
        return out if self.before is None else spmm(self.before, out)

    def _stored_product(self, w: Tensor) -> Tensor:
        """The same without P."""
        if self.dense is None:
            assert self.sparse is not None
            return spmm(self.sparse, w)
        out = shared_product(self.dense, self._selected(w))
        return out if self.sparse is None else out + spmm(self.sparse, w)

    def _transpose_product(self, g: Tensor) -> Tensor:
        g = g if self.before is None else spmm(self.before.t, g)
        of_dense = None if self.dense is None else transpose_product(self.dense, g)
        if of_dense is not None and of_dense.shape[1] != self._full:
            of_dense = of_dense[:, : self._full].contiguous()
        if self.sparse is None:
            assert of_dense is not None
            return of_dense
        out = spmm(self.sparse.t, g)
        if of_dense is not None and self.columns is not None:
            out[:, self.columns] = of_dense
        return out

    def times_into(self, out: Tensor, w: Tensor, accumulate: bool = False) -> None:
        """``out = M @ w``, or ``out += M @ w``; not differentiable."""
        if self.before is not None:
            spmm_into(out, self.before, self._stored_product(w), accumulate)
            return
        if self.dense is not None:
            if not out.is_cuda:
                product = shared_product(self.dense, self._selected(w))
                out.add_(product) if accumulate else out.copy_(product)
            else:
                stacked = self.dense.expand(len(w), *self.dense.shape)
                if accumulate:
                    torch.baddbmm(out, stacked, self._selected(w), out=out)
                else:
                    torch.bmm(stacked, self._selected(w), out=out)
            accumulate = True
        if self.sparse is not None:
            spmm_into(out, self.sparse, w, accumulate)


def _partition(matrix: Any, cost: Cost) -> tuple[np.ndarray, float]:
    """Which columns to store densely, and how many dense columns the product then costs."""
    rows, columns = matrix.shape
    if isinstance(matrix, np.ndarray):
        return np.ones(columns, dtype=bool), columns
    entries = np.diff(sp.csc_array(matrix).indptr) * cost.entry / max(1, rows)
    full = entries > 1
    mixed = float(full.sum() + entries[~full].sum() + cost.sweep)
    return (full, mixed) if mixed < columns else (np.ones_like(full), columns)


def fixed(matrix: Any, device: torch.device, dtype: torch.dtype, before: Csr | None = None) -> FixedMatrix:
    """A scipy matrix or a dense array on the device, every column stored in the way in which it multiplies faster.

    A tensor is taken to be there already.
    """

    def on_device(array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device, dtype)

    align = 8 if device.type == "cuda" else 1
    if isinstance(matrix, Tensor | np.ndarray):
        dense = on_device(matrix) if isinstance(matrix, np.ndarray) else matrix
        return FixedMatrix(dense, before=before, align=align)
    csc = sp.csc_array(matrix)
    full, _ = _partition(csc, cost_on(device))
    if full.all():
        return FixedMatrix(on_device(csc.toarray()), before=before, align=align)
    keep = sp.diags_array((~full).astype(csc.dtype))
    rest = sp.csr_array(csc @ keep)
    rest.eliminate_zeros()
    sparse = Csr.from_scipy(rest, dtype).to(device)
    if not full.any():
        return FixedMatrix(None, sparse=sparse, before=before)
    columns = np.flatnonzero(full)
    dense = on_device(csc[:, columns].toarray())
    return FixedMatrix(dense, torch.from_numpy(columns).to(device), sparse, before, align)


def propagated(
    propagation: Any, features: Any, device: torch.device, dtype: torch.dtype, symmetric: bool = False
) -> FixedMatrix:
    """``propagation @ features``: multiplied out, or left as two factors, whichever is cheaper to multiply with.

    >>> swap, x = sp.csr_array([[0.0, 1.0], [1.0, 0.0]]), sp.csr_array([[1.0, 0.0], [0.0, 5.0]])
    >>> propagated(swap, x, torch.device("cpu"), torch.float32).times(torch.eye(2)[None]).tolist()
    [[[0.0, 5.0], [1.0, 0.0]]]
    """
    product, cost = propagation @ features, cost_on(device)
    extra = cost.entry * propagation.nnz / propagation.shape[0] + cost.sweep
    if _partition(features, cost)[1] + extra < _partition(product, cost)[1]:
        return fixed(features, device, dtype, before=Csr.from_scipy(propagation, dtype, symmetric).to(device))
    return fixed(product, device, dtype)
