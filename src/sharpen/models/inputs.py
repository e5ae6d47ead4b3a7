"""What a graph gives to a model, on one device: fixed features, plain and propagated, and the adjacency."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from sharpen.graph import Graph
from sharpen.kernels.features import FixedMatrix, fixed, propagated
from sharpen.kernels.sparse import Csr
from sharpen.models.convolution import Convolution


class Inputs:
    """The constant operands of one architecture on one graph. Each is made when it is first asked for, once."""

    def __init__(self, graph: Graph, convolution: Convolution, device: torch.device, dtype: torch.dtype) -> None:
        self._graph, self._convolution = graph, convolution
        self.device, self.dtype = device, dtype
        self.num_nodes = graph.num_nodes

    @cached_property
    def _propagation(self) -> Any:
        """P as scipy holds it, in double precision."""
        adjacency = self._graph.adjacency
        rowptr, col = adjacency.rowptr.numpy(), adjacency.col.numpy()
        row = np.repeat(np.arange(self.num_nodes), np.diff(rowptr))
        weight = np.ones(len(col)) if adjacency.weight is None else adjacency.weight.numpy()
        degree = np.bincount(row, weight, minlength=self.num_nodes)
        value = weight / (np.sqrt(degree[row] * degree[col]) if self._is_symmetric else degree[row])
        return sp.csr_array((value, col, rowptr), shape=(self.num_nodes, self.num_nodes))

    @cached_property
    def _features(self) -> Any:
        x = self._graph.x
        if x.layout == torch.strided:
            return x.numpy()
        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        return sp.csr_array(parts, shape=(x.shape[0], x.shape[1]))

    @property
    def _is_symmetric(self) -> bool:
        return self._convolution.gather == "symmetric"

    @cached_property
    def graph(self) -> Csr:
        """P, for the layers after the first; for attention, the adjacency's pattern."""
        if self._convolution.gather == "attention":
            a = self._graph.adjacency
            ones = torch.ones(len(a.col), dtype=self.dtype)
            return Csr(a.rowptr, a.col, ones, a.num_nodes, symmetric=True).to(self.device)
        return Csr.from_scipy(self._propagation, self.dtype, self._is_symmetric).to(self.device)

    @cached_property
    def features(self) -> FixedMatrix:
        """X."""
        return fixed(self._features, self.device, self.dtype)

    @cached_property
    def propagated(self) -> FixedMatrix:
        """P X."""
        return propagated(self._propagation, self._features, self.device, self.dtype, self._is_symmetric)

    def labels(self) -> Tensor:
        """Class numbers on the device, −1 where unknown."""
        return self._graph.y.to(self.device)
