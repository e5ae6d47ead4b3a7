"""The graph convolution of Kipf and Welling: a symmetric mean of the neighbours, then a linear map."""

from sharpen.models.convolution import Convolution
from sharpen.models.initial import Initial, constant, glorot


def _parameters(width_in: int, width_out: int) -> dict[str, Initial]:
    return {"weight": glorot(width_in, width_out), "bias": constant(0.0, width_out)}


GCN = Convolution("symmetric", "weight", (), _parameters)
"""``y_i = Σ_j a_ij x_j W / √(d_i d_j) + b`` over the neighbours j of i, itself among them; a_ij weighs an edge, d_i is their sum"""
