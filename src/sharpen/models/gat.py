"""The graph attention network with one head: a learned mean of the neighbours."""

from torch import nn

from sharpen.models.initial import Initial, glorot
from sharpen.models.network import Convolution
from sharpen.models.paper_network import PaperNetwork


def _parameters(width_in: int, width_out: int) -> dict[str, Initial]:
    return {"weight": glorot(width_in, width_out), "source": glorot(1, width_out), "target": glorot(1, width_out)}


class GAT(PaperNetwork):
    """``y_i = Σ_j softmax_j(LeakyReLU(a·h_j + b·h_i)) h_j`` with ``h = x W``; a is ``source``, b is ``target``.

    Attention learns weights of its own: those of the edges are not read."""

    convolution = Convolution("attention", "weight", (), _parameters)

    @staticmethod
    def pyg_layer(width_in: int, width_out: int) -> nn.Module:
        from torch_geometric.nn import GATConv

        return GATConv(width_in, width_out, bias=False, add_self_loops=False)
