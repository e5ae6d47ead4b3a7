"""What a batch, or a run of nodes, gives to a model: the same operands that a whole graph gives."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sharpen.graph.matrices import degree_factors
from sharpen.kernels.features import FixedMatrix, fixed
from sharpen.kernels.sparse import Csr
from sharpen.large.batches import Batch
from sharpen.large.disk import as_tensor
from sharpen.large.parted import PartedGraph
from sharpen.models.inputs import Inputs


class RowInputs(Inputs):
    """The fixed features, plain and propagated, of some nodes of a parted graph."""

    def __init__(
        self, parted: PartedGraph, nodes: np.ndarray | slice, device: torch.device, dtype: torch.dtype
    ) -> None:
        self._parted, self._nodes = parted, nodes
        self.device, self.dtype, self._once = device, dtype, {}
        self.num_nodes = nodes.stop - nodes.start if isinstance(nodes, slice) else len(nodes)

    def _fixed(self, gather: str | None) -> FixedMatrix:
        parted, nodes = self._parted, self._nodes
        held = parted.held(gather, self.device, self.dtype)
        if held is None:
            rows: Any = parted.x if gather is None else parted.propagated(gather, self.dtype)
            some = as_tensor(rows[nodes]).to(self.device, self.dtype) if isinstance(rows, np.ndarray) else rows[nodes]
            return fixed(some, self.device, self.dtype)
        some = held[nodes] if isinstance(nodes, slice) else held[torch.from_numpy(nodes).to(self.device)]
        return fixed(some, self.device, self.dtype)

    @cached_property
    def features(self) -> FixedMatrix:
        """X of these nodes."""
        return self._fixed(None)

    def propagated(self, name: str) -> FixedMatrix:
        """P X of these nodes, neighbours outside included."""
        return self._fixed(name)


class BatchInputs(RowInputs):
    """The same of a batch, with the edges in it."""

    def __init__(self, parted: PartedGraph, batch: Batch, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__(parted, batch.nodes, device, dtype)
        self._batch = batch

    def matrix(self, name: str) -> Csr:
        """P as far as the batch sees it, see :mod:`sharpen.large.batches`; for attention, who sees whom."""
        return self._made(name, lambda: self._seen(name))

    def _seen(self, name: str) -> Csr:
        batch = self._batch
        rowptr = torch.from_numpy(batch.rowptr).to(self.device)
        col = torch.from_numpy(batch.col).to(self.device)
        if name == "pattern":
            ones = torch.ones(len(col), dtype=self.dtype, device=self.device)
            return Csr(rowptr, col, ones, self.num_nodes, symmetric=batch.symmetric)
        degree = torch.from_numpy(np.asarray(self._parted.degree[batch.nodes])).to(self.device, torch.float64)
        one, count = torch.ones_like(degree), rowptr.diff()
        row = torch.repeat_interleave(torch.arange(self.num_nodes, device=self.device), count)
        itself = row == col
        if batch.weight is None:
            weight, loop, others = one[:1], one, (count - 1).to(degree)
        else:
            weight = torch.from_numpy(batch.weight).to(self.device)
            loop = weight[itself]  # one in each row, in order
            others = torch.zeros_like(degree).index_add_(0, row, torch.where(itself, 0.0, weight))
        sees = count > 1
        stands_for = torch.where(sees, (degree - loop) / torch.where(sees, others, one), 0.0)
        by_row, by_col = degree_factors(name, degree)
        by_row = by_row * stands_for
        own = torch.where(sees, loop / degree, one)

        def values(of_row: Tensor, of_col: Tensor) -> Tensor:
            return torch.where(itself, own[row], weight * of_row[row] * of_col[col]).to(self.dtype)

        # A symmetric pattern gives the transpose without sorting: the same places, the other factors.
        turned = Csr(rowptr, col, values(by_col, by_row), self.num_nodes) if batch.symmetric else None
        return Csr(rowptr, col, values(by_row, by_col), self.num_nodes, _parent=turned)
