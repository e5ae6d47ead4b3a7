"""Products of one sparse matrix with a stack of dense ones: the aggregation of every graph network here.

A population of R members shares the graph, so the sparse factor is one and the dense factor is a stack ``[R, K, H]``:

.. math:: Y_r = S X_r, \\qquad \\frac{\\partial}{\\partial X_r} = S^\\top G_r

The same product serves neighbour aggregation (S is the normalised adjacency) and sparse features (S is the feature matrix, X
the first layer's weights).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from sharpen.kernels import backend

# A dense copy of a sparse matrix may take so many bytes; and it is worth making from so many entries on.
_MOST_DENSE, _LEAST_DENSE = 2**31, 2**16


@dataclass(frozen=True, eq=False)
class Csr:
    """A sparse matrix in compressed rows, which knows its transpose.

    Args:
        rowptr: Where each row starts in ``col`` and ``value``; int32, one longer than the number of rows.
        col: The column of each entry; int32.
        value: The value of each entry.
        num_cols: The number of columns.
        symmetric: Whether the matrix equals its transpose, which then costs nothing.

    >>> S = Csr.from_scipy(sp.csr_array([[0.0, 2.0], [3.0, 0.0]]))
    >>> spmm(S, torch.tensor([[[1.0], [10.0]]])).flatten().tolist()
    [20.0, 3.0]
    """

    rowptr: Tensor
    col: Tensor
    value: Tensor
    num_cols: int
    symmetric: bool = False
    _parent: Csr | None = field(default=None, repr=False)

    @classmethod
    def from_scipy(cls, matrix: Any, dtype: torch.dtype = torch.float32, symmetric: bool = False) -> Csr:
        """The same matrix as scipy holds it, on the CPU."""
        csr = sp.csr_array(matrix)
        csr.sort_indices()
        rowptr, col = (torch.from_numpy(part.astype(np.int32)) for part in (csr.indptr, csr.indices))
        return cls(rowptr, col, torch.from_numpy(np.asarray(csr.data)).to(dtype), csr.shape[1], symmetric)

    @property
    def num_rows(self) -> int:
        return len(self.rowptr) - 1

    @property
    def nnz(self) -> int:
        return len(self.col)

    @property
    def degree(self) -> float:
        """The mean number of entries of a row."""
        return self.nnz / max(1, self.num_rows)

    def to(self, device: torch.device | str) -> Csr:
        """This matrix on another device."""
        rowptr, col, value = (part.to(device) for part in (self.rowptr, self.col, self.value))
        return Csr(rowptr, col, value, self.num_cols, self.symmetric)

    @cached_property
    def row(self) -> Tensor:
        """The row of each entry, int64."""
        counts = self.rowptr.diff().long()
        rows = torch.arange(self.num_rows, device=self.col.device)
        return torch.repeat_interleave(rows, counts, output_size=self.nnz)  # a GPU need not be asked how many

    @cached_property
    def order(self) -> Tensor:
        """Where each entry of the transpose stands among this matrix's entries."""
        return torch.argsort(self.col.long() * self.num_rows + self.row)

    @cached_property
    def place(self) -> Tensor:
        """Where each of this matrix's entries stands in the transpose: the inverse of :attr:`order`; int32."""
        return self.order.argsort().int()

    @cached_property
    def t(self) -> Csr:
        """The transpose."""
        if self.symmetric or self._parent is not None:
            return self._parent or self
        ends = torch.arange(self.num_cols + 1, dtype=self.col.dtype, device=self.col.device)
        rowptr = torch.searchsorted(self.col[self.order], ends, out_int32=True)
        return Csr(rowptr, self.row[self.order].int(), self.value[self.order], self.num_rows, _parent=self)

    @cached_property
    def indices(self) -> tuple[Tensor, Tensor]:
        """``rowptr`` and ``col`` in int64, as torch's indexing takes them."""
        return self.rowptr.long(), self.col.long()

    @cached_property
    def matrix(self) -> Tensor:
        """The same as a torch sparse CSR tensor."""
        return self.weighted(self.value)

    @cached_property
    def filled(self) -> Tensor | None:
        """The same as a dense tensor, if it is so full that dense products are faster; by the precision that is set now."""
        size, cost = self.num_rows * self.num_cols, backend.cost_on(self.value.device)
        pays = self.nnz * cost.entry > size >= _LEAST_DENSE and size * self.value.element_size() <= _MOST_DENSE
        return self.matrix.to_dense() if pays else None

    def weighted(self, value: Tensor) -> Tensor:
        """The same pattern with other values, as a torch sparse CSR tensor."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
            return torch.sparse_csr_tensor(*self.indices, value, (self.num_rows, self.num_cols), check_invariants=False)


def spmm_into(out: Tensor, s: Csr, x: Tensor, accumulate: bool = False) -> None:
    """``out = s @ x``, or ``out += s @ x``, for every member; not differentiable.

    >>> out = torch.ones(1, 2, 1)
    >>> spmm_into(out, Csr.from_scipy(sp.eye_array(2).tocsr()), torch.ones(1, 2, 1), accumulate=True)
    >>> out.flatten().tolist()
    [2.0, 2.0]
    """
    if s.filled is not None:  # one product with the columns of all members side by side
        members, rows, width = x.shape
        product = s.filled @ x.transpose(0, 1).reshape(rows, members * width)
        product = product.view(s.num_rows, members, width).transpose(0, 1)
        out.add_(product) if accumulate else out.copy_(product)
    elif backend.fused(x):
        from sharpen.kernels.triton.spmm import spmm_triton

        spmm_triton(out, s, x, accumulate)
    else:  # not mm: in place, addmm neither clears the output first nor copies the product into it
        for each, to in zip(x, out, strict=True):
            to.addmm_(s.matrix, each, beta=int(accumulate))


class Stacked(torch.autograd.Function):
    """An operation on stacks of members: the first ``stacks`` of its arguments are such, the others the same for all.

    Stacks that :func:`torch.func.vmap` stacks once more are larger stacks.
    """

    stacks = 1

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keeps what is no tensor, which is all that the derivative of a linear operation needs."""
        ctx.rest = [each for each in inputs if not isinstance(each, Tensor)]

    @classmethod
    def vmap(cls, info: Any, in_dims: Any, *inputs: Any) -> Any:
        assert all(dim is None for dim in in_dims[cls.stacks :])
        size = info.batch_size
        stacked = [
            t.expand(size, *t.shape) if dim is None else t.movedim(dim, 0)
            for t, dim in zip(inputs[: cls.stacks], in_dims, strict=False)
        ]
        folded = [t.flatten(0, 1) for t in stacked]
        return cls.apply(*folded, *inputs[cls.stacks :]).unflatten(0, (size, -1)), 0


class _Spmm(Stacked):
    @staticmethod
    def forward(x: Tensor, s: Csr, onto: Tensor | None, overwrite: bool) -> Tensor:
        out = x.new_empty(x.shape[0], s.num_rows, x.shape[2]) if onto is None else onto if overwrite else onto.clone()
        spmm_into(out, s, x, accumulate=onto is not None)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Csr, Tensor | None, bool], output: Tensor) -> None:
        _, ctx.s, onto, overwrite = inputs
        ctx.added = onto is not None
        if onto is not None and overwrite:
            ctx.mark_dirty(onto)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor | None, None]:
        return spmm(ctx.s.t, grad), None, grad if ctx.added else None, None


def propagate(x: Tensor, s: Csr) -> Tensor:
    """``s @ x`` for one run, [K, H]; under :func:`torch.func.vmap` one product for all members. Differentiable, any number of
    times.

    >>> S = Csr.from_scipy(sp.csr_array([[0.0, 2.0], [3.0, 0.0]]))
    >>> torch.func.vmap(lambda x: propagate(x, S))(torch.tensor([[[1.0], [10.0]], [[2.0], [20.0]]]))[1].flatten().tolist()
    [40.0, 6.0]
    """
    return spmm(s, x.unsqueeze(0)).squeeze(0)


def spmm(s: Csr, x: Tensor, onto: Tensor | None = None, overwrite: bool = False) -> Tensor:
    """``s @ x[r]`` for every member r of ``x`` [R, K, H]; differentiable in ``x`` and ``onto``, any number of times.

    The product is added to ``onto``, if that is given, and may take its place with ``overwrite``.

    >>> S = Csr.from_scipy(sp.eye_array(3).tocsr())
    >>> spmm(S, torch.ones(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """
    return _Spmm.apply(x, s, onto, overwrite)
