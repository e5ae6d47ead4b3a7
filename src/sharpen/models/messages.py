"""Messages that are never written down: rows that a module picks by an index, weighs and sums again.

PyG's layers pass messages in three steps: pick the vector of every edge's source, multiply it with the edge's weight, sum what
arrives at every target. Taken literally, that makes vectors of all edges, twice; taken together, it is one product with a sparse
matrix. So a picked row is a promise here, :class:`Messages`, which knows where it comes from: weights are noted, a sum becomes the
product, and whatever else is asked of it makes the rows after all.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sharpen.kernels.edges import edge_sum
from sharpen.kernels.segments import Index, pick
from sharpen.kernels.sparse import Csr, propagate
from sharpen.models.folding import Folding


class Messages(Tensor):
    """Rows of node vectors, one for each edge, not picked yet; for whoever asks a tensor [E, ...] of the same type.

    >>> messages = Messages(torch.tensor([[5.0], [7.0]]), Index(torch.tensor([1, 0, 1])))
    >>> messages.shape, messages.picked().flatten().tolist()
    (torch.Size([3, 1]), [7.0, 5.0, 7.0])
    """

    source: Tensor
    picks: Index
    weight: Tensor | None
    _picked: Tensor | None

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, source: Tensor, index: Index, weight: Tensor | None = None) -> Messages:
        shape = (len(index.rows), *source.shape[1:])
        made: Messages = Tensor._make_wrapper_subclass(cls, shape, dtype=source.dtype, device=source.device)
        made.source, made.picks, made.weight, made._picked = source, index, weight, None
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        # Where the mode that makes them could not answer first, for example in a Function of the user's own.
        raise NotImplementedError("rows of edges went where they cannot be picked")

    def picked(self) -> Tensor:
        """The rows themselves."""
        if self._picked is None:
            rows = pick(self.source, self.picks)
            self._picked = rows if self.weight is None else self.weight * rows
        return self._picked

    def weighed(self, weight: Any) -> Any:
        """The same with a weight for every edge, [E, 1], or for every edge and head, [E, heads, 1]; not implemented for others."""
        if self.weight is not None or type(weight) is not Tensor or weight.dtype != self.dtype:
            return NotImplemented
        heads = weight.dim() == self.dim() == 3 and weight.shape[1] == self.shape[1]
        fits = weight.dim() == self.dim() and weight.shape[0] == self.shape[0] and weight.shape[-1] == 1
        one = heads or weight.numel() == len(weight)
        return Messages(self.source, self.picks, weight) if fits and one else NotImplemented

    def summed(self, target: Index, size: int, folding: Folding) -> Tensor:
        """Σ over the edges into each of ``size`` nodes, [size, ...]."""
        pattern, order = folding.keep(
            ("pattern", id(target), id(self.picks), size, self.dtype), lambda: self._pattern(target, size)
        )
        x, weight = self.source, self.weight
        if weight is None:
            total = propagate(x.flatten(1), pattern)
        elif weight.numel() == len(weight) and folding.is_constant(weight):
            matrix = folding.keep(
                ("weighted", id(weight), id(pattern)),
                lambda: Csr(pattern.rowptr, pattern.col, weight.flatten()[order.rows], pattern.num_cols),
            )
            total = propagate(x.flatten(1), matrix)
        elif weight.numel() == len(weight):
            total = edge_sum(x.flatten(1), pick(weight.flatten(), order), pattern)
        else:
            total = edge_sum(x, pick(weight.squeeze(2), order), pattern)
        return total.reshape(size, *x.shape[1:])

    def _pattern(self, target: Index, size: int) -> tuple[Csr, Index]:
        """The matrix of ones with an entry for every edge, in the order of targets and then of sources; and that order."""
        columns = self.source.shape[0]
        order = (target.rows * columns + self.picks.rows).argsort(stable=True)
        ends = torch.arange(size + 1, device=order.device)
        rowptr = torch.searchsorted(target.rows[order], ends).int()
        ones = torch.ones(len(order), dtype=self.dtype, device=order.device)
        return Csr(rowptr, self.picks.rows[order].int(), ones, columns), Index(order)
