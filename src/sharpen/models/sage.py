"""GraphSAGE with mean aggregation: one linear map for the neighbours' mean, another for the node itself."""

from torch import nn

from sharpen.models.initial import Initial, fan_in
from sharpen.models.network import Convolution
from sharpen.models.paper_network import PaperNetwork


def _parameters(width_in: int, width_out: int) -> dict[str, Initial]:
    return {
        "weight": fan_in(width_in, width_in, width_out),
        "root": fan_in(width_in, width_in, width_out),
        "bias": fan_in(width_in, width_out),
    }


class SAGE(PaperNetwork):
    """``y_i = mean_j(x_j) W + x_i W' + b``; where edges have weights, the mean is weighted by them"""

    convolution = Convolution("mean", "weight", ("root",), _parameters)

    @staticmethod
    def pyg_layer(width_in: int, width_out: int) -> nn.Module:
        from torch_geometric.nn import SAGEConv

        return SAGEConv(width_in, width_out)
