"""The multilayer perceptron: no graph at all, the honest yardstick for every other model."""

from sharpen.models.convolution import Convolution
from sharpen.models.initial import Initial, fan_in


def _parameters(width_in: int, width_out: int) -> dict[str, Initial]:
    return {"weight": fan_in(width_in, width_in, width_out), "bias": fan_in(width_in, width_out)}


MLP = Convolution("none", None, ("weight",), _parameters)
"""``y_i = x_i W + b``"""
