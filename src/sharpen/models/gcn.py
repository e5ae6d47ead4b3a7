"""The graph convolution of Kipf and Welling: a symmetric mean of the neighbours, then a linear map."""

from torch import nn

from sharpen.models.initial import Initial, constant, glorot
from sharpen.models.network import Convolution
from sharpen.models.paper_network import PaperNetwork


def _parameters(width_in: int, width_out: int) -> dict[str, Initial]:
    return {"weight": glorot(width_in, width_out), "bias": constant(0.0, width_out)}


class GCN(PaperNetwork):
    """``y_i = Σ_j a_ij x_j W / √(d_i d_j) + b`` over the neighbours j of i, itself among them.

    a_ij is the weight of an edge, d_i the sum of those of i."""

    convolution = Convolution("symmetric", "weight", (), _parameters)

    @staticmethod
    def pyg_layer(width_in: int, width_out: int) -> nn.Module:
        from torch_geometric.nn import GCNConv

        return GCNConv(width_in, width_out, cached=True)
