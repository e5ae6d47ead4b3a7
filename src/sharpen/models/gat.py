"""The graph attention network with one head: a learned mean of the neighbours."""

from collections.abc import Mapping

from torch import Tensor

from sharpen.kernels.attention import attend
from sharpen.kernels.sparse import Csr
from sharpen.models.convolution import SELF, Convolution
from sharpen.models.initial import Initial, glorot


def _parameters(width_in: int, width_out: int) -> dict[str, Initial]:
    return {"weight": glorot(width_in, width_out), "source": glorot(1, width_out), "target": glorot(1, width_out)}


def _combine(h: Tensor, layer: Mapping[str, Tensor], pattern: Csr) -> Tensor:
    source = (h @ layer["source"].transpose(1, 2)).squeeze(2)
    target = (h @ layer["target"].transpose(1, 2)).squeeze(2)
    return attend(h, source, target, pattern)


GAT = Convolution("none", {"weight": SELF}, _parameters, _combine)
"""``y_i = Σ_j softmax_j(LeakyReLU(a·h_j + b·h_i)) h_j`` with ``h = x W``"""
