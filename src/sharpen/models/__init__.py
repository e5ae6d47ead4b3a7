"""The architectures: MLP, GCN, GraphSAGE and GAT, each written once for a population of members."""

from sharpen.models.inputs import Inputs
from sharpen.models.network import CONVOLUTIONS, Network

__all__ = ["CONVOLUTIONS", "Inputs", "Network"]
