"""The multilayer perceptron: no graph at all, the honest yardstick for every other model."""

from torch import nn

from sharpen.models.initial import Initial, fan_in
from sharpen.models.network import Convolution
from sharpen.models.paper_network import PaperNetwork


def _parameters(width_in: int, width_out: int) -> dict[str, Initial]:
    return {"weight": fan_in(width_in, width_in, width_out), "bias": fan_in(width_in, width_out)}


class MLP(PaperNetwork):
    """``y_i = x_i W + b``"""

    convolution = Convolution("none", None, ("weight",), _parameters)

    @staticmethod
    def pyg_layer(width_in: int, width_out: int) -> nn.Module:
        return nn.Linear(width_in, width_out)
