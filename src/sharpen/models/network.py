r"""The network around a convolution, written once for a population of R members.

Per layer: ``conv(x) + linear(x)`` if residual, else ``conv(x)``; then a norm or none; ReLU; dropout. After the last layer a linear
classifier. Features are not dropped out, so the products of the first weights with them (:meth:`Network.project`) depend on the
weights alone: an evaluation and the training step after it share them.

Every convolution here has one shape. A linear map of the nodes' vectors, whose columns fall into blocks; then

.. math:: y_i = \sum_j P_{ij} (x_j W) + x_i W' + b

where P is a fixed matrix of the graph, or attention, whose scores are two more columns of the same linear map. A residual
connection only adds to W'. Said this way, a layer is one matrix product and one gathering pass, for every architecture.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from sharpen.kernels.activation import Dropout, Norm
from sharpen.kernels.features import FixedMatrix
from sharpen.kernels.layer import Blocks, finish_layer, join_blocks
from sharpen.kernels.product import classify, products
from sharpen.kernels.sparse import Csr
from sharpen.models.initial import Initial, constant, fan_in
from sharpen.models.inputs import Inputs

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Convolution:
    """One architecture's layer.

    Args:
        gather: What P is: ``symmetric`` D^-½ A D^-½, ``mean`` D^-1 A, ``attention``, or ``none`` where neighbours do not count.
        neighbors: The name of W, if neighbours count.
        own: The names of the weights that make up W'.
        parameters: From the widths before and after the layer, every parameter's shape and first values.
    """

    gather: Literal["symmetric", "mean", "attention", "none"]
    neighbors: str | None
    own: tuple[str, ...]
    parameters: Callable[[int, int], dict[str, Initial]]

    @property
    def matrix(self) -> str:
        """The name of the matrix that neighbours are gathered with: P, or who is whose neighbour."""
        return "pattern" if self.gather == "attention" else self.gather


@dataclass(frozen=True)
class Network:
    """An architecture: everything about a model but its weights, which are passed in, stacked [R, ...] by name.

    Args:
        convolution: What its layers are.
        num_features, num_classes: Of the graph.
        layers, hidden: Number of convolutions and their width.
        norm: ``none``, ``layer`` or ``batch``.
        residual: Whether each layer adds a linear map of its input.
        input_linear: Whether a linear map stands before the first convolution.

    >>> from sharpen.models.gcn import GCN
    >>> network = Network(GCN.convolution, num_features=3, num_classes=2, layers=2, hidden=8)
    >>> sorted(network.initials)
    ['head.bias', 'head.weight', 'layers.0.bias', 'layers.0.weight', 'layers.1.bias', 'layers.1.weight']
    """

    convolution: Convolution
    num_features: int
    num_classes: int
    layers: int = 2
    hidden: int = 64
    norm: str = "none"
    residual: bool = False
    input_linear: bool = False

    @cached_property
    def initials(self) -> dict[str, Initial]:
        """Every parameter's shape and first values."""
        width, hidden = self.num_features, self.hidden
        initials: dict[str, Initial] = {}
        if self.input_linear:
            initials |= {"input.weight": fan_in(width, width, hidden), "input.bias": fan_in(width, hidden)}
            width = hidden
        for layer in range(self.layers):
            own = self.convolution.parameters(width, hidden)
            if self.residual:
                own |= {"residual.weight": fan_in(width, width, hidden), "residual.bias": fan_in(width, hidden)}
            if self.norm != "none":
                own |= {"norm.weight": constant(1.0, hidden), "norm.bias": constant(0.0, hidden)}
            initials |= {f"layers.{layer}.{name}": initial for name, initial in own.items()}
            width = hidden
        classes = self.num_classes
        return initials | {"head.weight": fan_in(hidden, hidden, classes), "head.bias": fan_in(hidden, classes)}

    @property
    def num_weights(self) -> int:
        """How many numbers the parameters of one run are."""
        return sum(math.prod(initial.shape) for initial in self.initials.values())

    def statistics(self, members: int, device: torch.device, dtype: torch.dtype) -> dict[str, Tensor]:
        """Batch norm's running statistics at the start; empty without batch norm."""
        if self.norm != "batch":
            return {}
        return {
            f"layers.{layer}.norm.running_{name}": torch.full((members, self.hidden), start, device=device, dtype=dtype)
            for layer in range(self.layers)
            for name, start in (("mean", 0.0), ("var", 1.0))
        }

    def blocks(self, layer: int) -> Blocks:
        """What the columns of a layer's product are."""
        convolution = self.convolution
        if layer == 0 and self.is_gathered_beforehand:
            return Blocks(self.hidden, neighbors=False, own=True)
        return Blocks(
            self.hidden,
            neighbors=convolution.neighbors is not None,
            own=bool(convolution.own) or self.residual,
            scores=convolution.gather == "attention",
        )

    @property
    def is_gathered_beforehand(self) -> bool:
        """Whether neighbours of the fixed features can be gathered once and for all."""
        return self.convolution.gather in ("symmetric", "mean") and not self.input_linear

    @property
    def hops(self) -> int:
        """How many times neighbours are gathered after the features: how far off a node's edges still matter to it."""
        return sum(self.blocks(layer).neighbors for layer in range(self.layers))

    def _sum(self, parameters: Weights, layer: int, names: Sequence[str]) -> Tensor | None:
        """The sum of those of a layer's parameters that it has; None if it has none of them."""
        found = [parameters[name] for name in (f"layers.{layer}.{name}" for name in names) if name in parameters]
        return functools.reduce(torch.add, found) if found else None

    def _weights(self, parameters: Weights, layer: int) -> list[Tensor]:
        """The columns of a layer's linear map, [R, width before, columns] for each block of them, or for all."""
        convolution, columns = self.convolution, []
        if convolution.neighbors is not None:
            columns.append(parameters[f"layers.{layer}.{convolution.neighbors}"])
        own = self._sum(parameters, layer, (*convolution.own, "residual.weight"))
        if own is not None:
            columns.append(own)
        if convolution.gather == "attention":
            to_scores = [parameters[f"layers.{layer}.{name}"] for name in ("source", "target")]
            columns += products(columns[0], [torch.cat(to_scores, dim=1).mT])
        return join_blocks(columns, self.blocks(layer))

    def _first_products(self, parameters: Weights, inputs: Inputs) -> list[list[tuple[FixedMatrix, Tensor]]]:
        """For each block of the first layer's columns: fixed matrices and the weights they multiply, to be summed."""
        if self.input_linear:
            return [[(inputs.features, parameters["input.weight"])]]
        if not self.is_gathered_beforehand:
            return [[(inputs.features, weight)] for weight in self._weights(parameters, 0)]
        products = [(inputs.propagated(self.convolution.gather), parameters[f"layers.0.{self.convolution.neighbors}"])]
        own = self._sum(parameters, 0, (*self.convolution.own, "residual.weight"))
        return [products if own is None else [*products, (inputs.features, own)]]

    @property
    def first_names(self) -> list[str]:
        """The parameters that multiply the fixed features."""
        if self.input_linear:
            return ["input.weight"]
        linear = ("weight", "root", "source", "target", "residual.weight")
        return [name for name in self.initials if name.removeprefix("layers.0.") in linear]

    def project(self, parameters: Weights, inputs: Inputs) -> list[Tensor]:
        """The first layer's product with the fixed features, [R, N, columns] for each block of columns, or for all."""
        return [
            functools.reduce(torch.add, (matrix.times(weight) for matrix, weight in summands))
            for summands in self._first_products(parameters, inputs)
        ]

    def project_into(self, out: Sequence[Tensor], parameters: Weights, inputs: Inputs) -> None:
        """The same, written over ``out``, without a record for autograd."""
        with torch.no_grad():
            for block, summands in zip(out, self._first_products(parameters, inputs), strict=True):
                for number, (matrix, weight) in enumerate(summands):
                    matrix.times_into(block, weight, accumulate=number > 0)

    def project_gradients(self, gradients: Sequence[Tensor], parameters: Weights, inputs: Inputs) -> dict[str, Tensor]:
        """From the gradients in :meth:`project`'s products, those in the :attr:`first_names`."""
        weights, outer = [], []
        for gradient, summands in zip(gradients, self._first_products(parameters, inputs), strict=True):
            for matrix, weight in summands:
                weights.append(weight)
                outer.append(matrix.transpose_times(gradient))
        names = self.first_names
        inner = torch.autograd.grad(weights, [parameters[name] for name in names], outer)
        return dict(zip(names, inner, strict=True))

    def logits(
        self,
        parameters: Weights,
        statistics: Weights,
        projected: Sequence[Tensor],
        inputs: Inputs,
        training: bool,
        dropout: Callable[[int], Dropout | None] = lambda layer: None,
    ) -> Tensor:
        """Class scores of every node, [R, N, C], from the projected features."""
        x = self.input(parameters, projected) if self.input_linear else None
        for number in range(self.layers):
            z = projected if x is None else self.multiply(parameters, number, x)
            graph = inputs.matrix(self.convolution.matrix) if self.blocks(number).neighbors else None
            x = self.finish(parameters, statistics, number, z, graph, training, dropout(number), x is not None)
        assert x is not None
        return self.head(parameters, x)

    # One layer at a time, for those who cannot hold all of them: the steps of `logits`.

    def input(self, parameters: Weights, projected: Sequence[Tensor]) -> Tensor:
        """The vectors that enter the first convolution, where a linear map stands before it."""
        return projected[0] + parameters["input.bias"][:, None]

    def multiply(self, parameters: Weights, layer: int, x: Tensor) -> list[Tensor]:
        """A layer's product with the vectors of nodes, [R, nodes, columns] for each block of columns, or for all."""
        return products(x, self._weights(parameters, layer))

    def finish(
        self,
        parameters: Weights,
        statistics: Weights,
        layer: int,
        z: Sequence[Tensor],
        graph: Csr | None,
        training: bool = False,
        dropout: Dropout | None = None,
        overwrite: bool = False,
        offered: Sequence[Tensor] = (),
    ) -> Tensor:
        """What a layer makes of its product: :func:`sharpen.kernels.layer.finish_layer`."""
        prefix, norm = f"layers.{layer}.norm", None
        if self.norm != "none":
            running = (statistics.get(f"{prefix}.running_{name}") for name in ("mean", "var"))
            norm = Norm(parameters[f"{prefix}.weight"], parameters[f"{prefix}.bias"], *running)
        bias = self._sum(parameters, layer, ("bias", "residual.bias"))
        return finish_layer(z, self.blocks(layer), graph, bias, norm, training, dropout, overwrite, offered)

    def head(self, parameters: Weights, x: Tensor) -> Tensor:
        """Class scores from the last layer's vectors."""
        return classify(x, parameters["head.weight"], parameters["head.bias"])
