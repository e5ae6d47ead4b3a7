"""The paper's network around a convolution, described for one run.

Per layer: ``conv(x) + linear(x)`` if residual, else ``conv(x)``; then a norm or none; ReLU; dropout. After the last layer a linear
classifier. Populations of it have a fast path: :class:`sharpen.models.network.Network`, the same formula for all members at once,
with fused kernels; it takes its place wherever a class has a ``fused``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sharpen.kernels.edges import NEGATIVE_SLOPE, edge_scores, edge_softmax
from sharpen.models.blocks import Dropout
from sharpen.models.initial import draw
from sharpen.models.inputs import Inputs
from sharpen.models.network import Convolution, Network


class PaperNetwork(nn.Module):
    """The network of one architecture; a subclass says which convolution.

    >>> from sharpen.models.gcn import GCN
    >>> sorted(name for name, _ in GCN(3, 2, layers=1, hidden=8).named_parameters())
    ['head.bias', 'head.weight', 'layers.0.bias', 'layers.0.weight']
    """

    convolution: ClassVar[Convolution]

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        layers: int = 2,
        hidden: int = 64,
        dropout: float = 0.5,
        norm: str = "none",
        residual: bool = False,
        input_linear: bool = False,
    ) -> None:
        super().__init__()
        self.shape = self.fused(num_features, num_classes, layers, hidden, norm, residual, input_linear)
        # First weights are a function of the seed, as those of a population are.
        start = draw(self.shape.initials, [torch.initial_seed()], torch.device("cpu"), torch.get_default_dtype())
        for name, value in start.items():
            _place(self, name).register_parameter(name.rsplit(".", 1)[-1], nn.Parameter(value[0]))
        for name, value in self.shape.statistics(1, torch.device("cpu"), torch.get_default_dtype()).items():
            _place(self, name).register_buffer(name.rsplit(".", 1)[-1], value[0])
        self.dropout = Dropout(dropout)

    @classmethod
    def fused(cls, *args: Any, **kwargs: Any) -> Network:
        """The fast path of a population; arguments are those of :class:`Network` after the convolution."""
        return Network(cls.convolution, *args, **kwargs)

    @staticmethod
    def pyg_layer(width_in: int, width_out: int) -> nn.Module:
        """PyG's layer of the same formula, for edges that have one self-loop per node: the peer in benchmarks."""
        raise NotImplementedError

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        """Class scores of all nodes."""
        p = dict(self.named_parameters())
        if self.shape.input_linear:
            x = x @ p["input.weight"] + p["input.bias"]
        for layer in range(self.shape.layers):
            x = self.dropout(
                F.relu(self._normed(self._convolved(x, graph, p, f"layers.{layer}"), p, f"layers.{layer}"))
            )
        return x @ p["head.weight"] + p["head.bias"]

    def _convolved(self, x: Tensor, graph: Inputs, p: Mapping[str, Tensor], at: str) -> Tensor:
        conv = self.convolution
        own = [*conv.own, *(["residual.weight"] if self.shape.residual else [])]
        out = sum((x @ p[f"{at}.{name}"] for name in own), torch.zeros((), dtype=x.dtype, device=x.device))
        if conv.neighbors is not None:
            h = x @ p[f"{at}.{conv.neighbors}"]
            if conv.gather == "attention":
                pattern = graph.matrix("pattern")
                source, target = ((h @ p[f"{at}.{end}"].t()).squeeze(1) for end in ("source", "target"))
                score = F.leaky_relu(edge_scores(source, target, pattern), NEGATIVE_SLOPE)
                out = out + graph.propagate(h, pattern, edge_softmax(score, pattern))
            else:
                out = out + graph.propagate(h, conv.gather)
        for name in (f"{at}.bias", f"{at}.residual.bias"):
            out = out + p[name] if name in p else out
        return out

    def _normed(self, x: Tensor, p: Mapping[str, Tensor], at: str) -> Tensor:
        if self.shape.norm == "none":
            return x
        weight, bias = p[f"{at}.norm.weight"], p[f"{at}.norm.bias"]
        if self.shape.norm == "layer":
            return F.layer_norm(x, x.shape[1:], weight, bias)
        mean, var = (self.get_buffer(f"{at}.norm.running_{name}") for name in ("mean", "var"))
        return F.batch_norm(x, mean, var, weight, bias, self.training)


def _place(module: nn.Module, name: str) -> nn.Module:
    """The part of a module that a dotted name lies in; made if it is not there."""
    for part in name.split(".")[:-1]:
        if not hasattr(module, part):
            module.add_module(part, nn.Module())
        module = getattr(module, part)
    return module
