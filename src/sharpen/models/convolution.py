"""What an architecture has to say: its weights, what they multiply, and how neighbours are gathered.

Every convolution here has one shape. A linear map of the nodes' vectors, whose columns fall into blocks; then

.. math:: y_i = \\sum_j P_{ij} (x_j W) + x_i W' + b

where P is a fixed matrix of the graph, or attention, whose scores are two more columns of the same linear map. A residual
connection only adds to W'. Said this way, a layer is one matrix product and one gathering pass, for every architecture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sharpen.models.initial import Initial


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
