"""What an architecture has to say: its weights, what they multiply, and what happens to the products.

Every convolution here is a sum of linear terms, followed by something of its own. A term multiplies its weight with the nodes'
own vectors (``SELF``) or with those of their neighbourhoods (``NEIGHBORS``: the propagation matrix P of the architecture times
the vectors). Saying it this way lets the first layer, whose input never changes, and the later ones be written once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from sharpen.kernels.sparse import Csr
from sharpen.models.initial import Initial

SELF, NEIGHBORS = "self", "neighbors"


@dataclass(frozen=True)
class Convolution:
    """One architecture's layer.

    Args:
        propagation: The matrix P: ``symmetric`` D^-½ A D^-½, ``mean`` D^-1 A, or ``none`` where neighbours are not summed so.
        terms: For each weight, what it multiplies. All products are added up.
        parameters: From the widths before and after the layer, every parameter's shape and first values.
        combine: What turns the sum of the terms into the layer's output: from (sum, this layer's parameters, pattern). Without
            it the sum is the output. A residual connection is added after it.
    """

    propagation: Literal["symmetric", "mean", "none"]
    terms: Mapping[str, str]
    parameters: Callable[[int, int], dict[str, Initial]]
    combine: Callable[[Tensor, Mapping[str, Tensor], Csr], Tensor] | None = None
