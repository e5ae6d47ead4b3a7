"""The graph attention network with one head: a learned mean of the neighbours."""

from sharpen.models.convolution import Convolution
from sharpen.models.initial import Initial, glorot


def _parameters(width_in: int, width_out: int) -> dict[str, Initial]:
    return {"weight": glorot(width_in, width_out), "source": glorot(1, width_out), "target": glorot(1, width_out)}


GAT = Convolution("attention", "weight", (), _parameters)
"""``y_i = Σ_j softmax_j(LeakyReLU(a·h_j + b·h_i)) h_j`` with ``h = x W``; a is ``source``, b is ``target``.

Attention learns weights of its own: those of the edges are not read."""
