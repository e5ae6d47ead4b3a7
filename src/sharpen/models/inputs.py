"""What a graph gives to a model, on one device: features, plain and propagated, its matrices, and its edges."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from sharpen.graph import Graph
from sharpen.graph.matrices import is_symmetric, propagation_matrix
from sharpen.kernels.edges import edge_sum
from sharpen.kernels.features import FixedMatrix, fixed, propagated
from sharpen.kernels.sparse import Csr, propagate


class Inputs:
    """The constant operands of one graph on one device: the ``graph`` that a model is called with.

    Each is made when it is first asked for, once, whichever model asks.

    >>> inputs = Inputs(Graph(x=[[1.0], [3.0]], edge_index=[[0], [1]]), torch.device("cpu"), torch.float32)
    >>> inputs.propagate(inputs.x, "mean").flatten().tolist()
    [2.0, 2.0]
    """

    def __init__(self, graph: Graph, device: torch.device, dtype: torch.dtype) -> None:
        self._graph = graph
        self.device, self.dtype = device, dtype
        self.num_nodes, self.num_features = graph.num_nodes, graph.num_features
        self._once: dict[Hashable, Any] = {}
        self._dense: dict[int, tuple[Tensor, FixedMatrix]] = {}

    def _made(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._once:
            self._once[key] = make()
        return self._once[key]

    def in_type(self, dtype: torch.dtype) -> Inputs:
        """The same graph in another arithmetic.

        >>> inputs = Inputs(Graph(x=[[1.0], [3.0]], edge_index=[[0], [1]]), torch.device("cpu"), torch.float32)
        >>> inputs.in_type(torch.float64).x.dtype
        torch.float64
        """
        return Inputs(self._graph, self.device, dtype)

    # Matrices.

    def _propagation(self, name: str) -> Any:
        return self._made(("SciPy", name), lambda: propagation_matrix(self._graph, name))

    def matrix(self, name: str) -> Csr:
        """A named matrix of the graph: see :mod:`sharpen.graph.matrices`."""
        return self.own_matrix(name, lambda graph: self._propagation(name), is_symmetric(name))

    def own_matrix(self, key: Hashable, make: Callable[[Graph], Any], symmetric: bool = False) -> Csr:
        """A matrix of the model's own, made once: ``make`` gives it in a form that SciPy knows."""
        here = ("matrix", key)
        return self._made(here, lambda: Csr.from_scipy(make(self._graph), self.dtype, symmetric).to(self.device))

    def propagate(self, x: Tensor, by: str | Csr = "symmetric", weight: Tensor | None = None) -> Tensor:
        """What nodes gather from their neighbours: ``P @ x``, [N, H].

        Args:
            x: A vector of each node; with several heads, [N, heads, H].
            by: P, by name or as a matrix of your own.
            weight: A number for each entry of P in the place of its value, [E]; with several heads, [E, heads].
        """
        matrix = self.matrix(by) if isinstance(by, str) else by
        if weight is not None:
            return edge_sum(x, weight, matrix)
        return propagate(x.flatten(1), matrix).view_as(x) if x.dim() > 2 else propagate(x, matrix)

    # Features, and what follows from the graph alone.

    @cached_property
    def raw_features(self) -> Any:
        """X as SciPy or NumPy holds it."""
        x = self._graph.x
        if x.layout == torch.strided:
            return x.numpy()
        parts: Any = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        return sp.csr_array(parts, shape=(x.shape[0], x.shape[1]))

    @cached_property
    def features(self) -> FixedMatrix:
        """X."""
        return fixed(self.raw_features, self.device, self.dtype)

    def propagated(self, name: str) -> FixedMatrix:
        """P X."""
        x, symmetric = self.raw_features, is_symmetric(name)
        return self._made(
            ("P X", name), lambda: propagated(self._propagation(name), x, self.device, self.dtype, symmetric)
        )

    @cached_property
    def x(self) -> Tensor:
        """X as a dense tensor. A product with it is computed as one with :attr:`features`, whichever model asks for it."""
        return self._known(self.raw_features, lambda: self.features)

    def once(self, key: Hashable, make: Callable[[Any, Callable[[str], Any]], Any]) -> Tensor:
        """A fixed input of the model's own, computed once, on the host and in double precision: ``make`` is given X and a function
        that gives named matrices, both as SciPy or NumPy have them.

        >>> inputs = Inputs(Graph(x=[[1.0], [3.0]], edge_index=[[0], [1]]), torch.device("cpu"), torch.float32)
        >>> inputs.once("difference", lambda x, matrix: x - matrix("mean") @ x).flatten().tolist()
        [-1.0, 1.0]
        """

        def made() -> Tensor:
            matrix = make(self.raw_features, self._propagation)
            return self._known(matrix, lambda: fixed(matrix, self.device, self.dtype))

        return self._made(("input", key), made)

    def constant(self, key: Hashable, make: Callable[[Graph], np.ndarray]) -> Tensor:
        """An array of the model's own, made once: node numbers, cluster numbers, eigenvectors.

        >>> inputs = Inputs(Graph(x=[[1.0], [3.0]], edge_index=[[0], [1]]), torch.device("cpu"), torch.float32)
        >>> inputs.constant("degrees", lambda graph: graph.adjacency.degree().numpy()).tolist()
        [2, 2]
        """

        def made() -> Tensor:
            array = torch.from_numpy(np.ascontiguousarray(make(self._graph)))
            return array.to(self.device, self.dtype if array.is_floating_point() else None)

        return self._made(("constant", key), made)

    def stack(self, hops: int, by: str = "symmetric") -> list[Tensor]:
        """[X, P X, …, P^hops X], computed once."""

        def power(k: int) -> Any:
            before = self.raw_features if k == 1 else power(k - 1)
            return self._made(("power", by, k), lambda: self._propagation(by) @ before)

        return [self.x, *(self.once(("stack", by, k), lambda x, matrix, k=k: power(k)) for k in range(1, hops + 1))]  # type: ignore[misc]

    def _known(self, matrix: Any, as_fixed: Callable[[], FixedMatrix]) -> Tensor:
        """A dense tensor of the matrix, known by identity to stand for a fixed one."""
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        tensor = torch.from_numpy(np.ascontiguousarray(dense)).to(self.device, self.dtype)
        self._dense[id(tensor)] = (tensor, as_fixed())
        return tensor

    def fixed_of(self, tensor: object) -> FixedMatrix | None:
        """The fixed matrix that a tensor stands for: one that :attr:`x`, :meth:`once` or :meth:`stack` gave."""
        known = self._dense.get(id(tensor))
        return known[1] if known is not None and known[0] is tensor else None

    # Edges and labels.

    @cached_property
    def _edges(self) -> tuple[Tensor, Tensor | None]:
        adjacency = self._graph.adjacency
        row = torch.repeat_interleave(torch.arange(self.num_nodes), adjacency.degree().long())
        others = row != adjacency.col
        index = torch.stack([adjacency.col[others].long(), row[others]]).to(self.device)
        weight = None if adjacency.weight is None else adjacency.weight[others].to(self.device, self.dtype)
        return index, weight

    @property
    def num_edges(self) -> int:
        """The number of undirected edges, self-loops not counted."""
        return self.edge_index.shape[1] // 2

    @property
    def edge_index(self) -> Tensor:
        """The edges as PyG has them, [2, E]: both directions of each, no self-loops."""
        return self._edges[0]

    @property
    def edge_weight(self) -> Tensor | None:
        """Their weights, if they have any."""
        return self._edges[1]

    def labels(self) -> Tensor:
        """Class numbers on the device, −1 where unknown."""
        return self._graph.y.to(self.device)
