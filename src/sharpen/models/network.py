"""The network around a convolution, written once for a population of R members.

Per layer: ``conv(x) + linear(x)`` if residual, else ``conv(x)``; then a norm or none; ReLU; dropout. After the last layer a linear
classifier. Features are not dropped out, so the products of the first weights with them (:meth:`Network.project`) depend on the
weights alone: an evaluation and the training step after it share them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from sharpen.kernels.activation import Dropout, Norm, activate
from sharpen.kernels.sparse import spmm
from sharpen.models.convolution import NEIGHBORS, SELF, Convolution
from sharpen.models.gat import GAT
from sharpen.models.gcn import GCN
from sharpen.models.initial import Initial, constant, fan_in
from sharpen.models.inputs import Inputs
from sharpen.models.mlp import MLP
from sharpen.models.sage import SAGE

CONVOLUTIONS: dict[str, Convolution] = {"mlp": MLP, "gcn": GCN, "sage": SAGE, "gat": GAT}


@dataclass(frozen=True)
class Network:
    """An architecture: everything about a model but its weights, which are passed in, stacked [R, ...] by name.

    Args:
        model: ``mlp``, ``gcn``, ``sage`` or ``gat``.
        num_features, num_classes: Of the graph.
        layers, hidden: Number of convolutions and their width.
        norm: ``none``, ``layer`` or ``batch``.
        residual: Whether each layer adds a linear map of its input.
        input_linear: Whether a linear map stands before the first convolution.

    >>> network = Network("gcn", num_features=3, num_classes=2, layers=2, hidden=8)
    >>> sorted(network.initials)
    ['head.bias', 'head.weight', 'layers.0.bias', 'layers.0.weight', 'layers.1.bias', 'layers.1.weight']
    """

    model: str
    num_features: int
    num_classes: int
    layers: int
    hidden: int
    norm: str = "none"
    residual: bool = False
    input_linear: bool = False

    @property
    def convolution(self) -> Convolution:
        return CONVOLUTIONS[self.model]

    @cached_property
    def initials(self) -> dict[str, Initial]:
        """Every parameter's shape and first values."""
        width, hidden = self.num_features, self.hidden
        initials: dict[str, Initial] = {}
        if self.input_linear:
            initials |= {"input.weight": fan_in(width, width, hidden), "input.bias": fan_in(width, hidden)}
            width = hidden
        for layer in range(self.layers):
            prefix = f"layers.{layer}"
            for name, initial in self.convolution.parameters(width, hidden).items():
                initials[f"{prefix}.{name}"] = initial
            if self.residual:
                initials[f"{prefix}.residual.weight"] = fan_in(width, width, hidden)
                initials[f"{prefix}.residual.bias"] = fan_in(width, hidden)
            if self.norm != "none":
                initials[f"{prefix}.norm.weight"] = constant(1.0, hidden)
                initials[f"{prefix}.norm.bias"] = constant(0.0, hidden)
            width = hidden
        initials["head.weight"] = fan_in(hidden, hidden, self.num_classes)
        initials["head.bias"] = fan_in(hidden, self.num_classes)
        return initials

    def statistics(self, members: int, device: torch.device, dtype: torch.dtype) -> dict[str, Tensor]:
        """Batch norm's running statistics at the start; empty without batch norm."""
        if self.norm != "batch":
            return {}
        return {
            f"layers.{layer}.norm.running_{name}": torch.full((members, self.hidden), start, device=device, dtype=dtype)
            for layer in range(self.layers)
            for name, start in (("mean", 0.0), ("var", 1.0))
        }

    def _groups(self, layer: int) -> list[list[tuple[str, list[str]]]]:
        """The layer's products: for each output, which weights (summed) multiply which kind of input.

        The residual map multiplies the same vectors as a convolution's own ``SELF`` term, so the two weights can be added before
        they are multiplied; except where the convolution transforms its sum first, and the residual is an output of its own.
        """
        kinds: dict[str, list[str]] = {}
        for name, kind in self.convolution.terms.items():
            kinds.setdefault(kind, []).append(f"layers.{layer}.{name}")
        outputs = [kinds]
        if self.residual:
            if self.convolution.combine is not None:
                outputs.append({})
            outputs[-1].setdefault(SELF, []).append(f"layers.{layer}.residual.weight")
        return [sorted(output.items()) for output in outputs]  # NEIGHBORS before SELF

    @property
    def _fixed_groups(self) -> list[list[tuple[str, list[str]]]]:
        return [[(SELF, ["input.weight"])]] if self.input_linear else self._groups(0)

    @property
    def fixed_names(self) -> list[str]:
        """The parameters that multiply the fixed features."""
        return [name for output in self._fixed_groups for _, names in output for name in names]

    def project(self, parameters: Mapping[str, Tensor], inputs: Inputs) -> list[Tensor]:
        """The products of the first weights with the fixed features, [R, N, H] each."""
        outputs = []
        for output in self._fixed_groups:
            products = [inputs.matrix(kind).times(_sum(parameters, names)) for kind, names in output]
            outputs.append(products[0] if len(products) == 1 else torch.add(*products))
        return outputs

    def project_gradients(self, gradients: list[Tensor], inputs: Inputs) -> dict[str, Tensor]:
        """From the gradients in :meth:`project`'s outputs, those in the weights."""
        result: dict[str, Tensor] = {}
        for gradient, output in zip(gradients, self._fixed_groups, strict=True):
            for kind, names in output:
                result |= dict.fromkeys(names, inputs.matrix(kind).transpose_times(gradient))
        return result

    def _multiply(self, parameters: Mapping[str, Tensor], layer: int, x: Tensor, inputs: Inputs) -> list[Tensor]:
        """The products of a later layer's weights with hidden vectors."""
        outputs = []
        for output in self._groups(layer):
            total: Tensor | None = None
            for kind, names in output:
                weight = _sum(parameters, names)
                if kind == NEIGHBORS:
                    total = spmm(inputs.propagation, torch.bmm(x, weight))
                else:
                    total = torch.bmm(x, weight) if total is None else torch.baddbmm(total, x, weight)
            assert total is not None
            outputs.append(total)
        return outputs

    def logits(
        self,
        parameters: Mapping[str, Tensor],
        statistics: Mapping[str, Tensor],
        projected: list[Tensor],
        inputs: Inputs,
        training: bool,
        dropout: Callable[[int], Dropout | None] = lambda layer: None,
    ) -> Tensor:
        """Class scores of every node, [R, N, C], from the projected features."""
        x = projected[0] + parameters["input.bias"][:, None] if self.input_linear else None
        for layer in range(self.layers):
            own = {name: parameters[f"layers.{layer}.{name}"] for name in self.convolution.parameters(1, 1)}
            products = projected if x is None else self._multiply(parameters, layer, x, inputs)
            out = products[0]
            if self.convolution.combine is not None:
                out = self.convolution.combine(out, own, inputs.pattern)
            if len(products) > 1:
                out = out + products[1]
            biases = [own["bias"]] if "bias" in own else []
            if self.residual:
                biases.append(parameters[f"layers.{layer}.residual.bias"])
            bias = None if not biases else biases[0] if len(biases) == 1 else torch.add(*biases)
            x = activate(out, bias, self._norm(parameters, statistics, layer), training, dropout(layer))
        assert x is not None
        return torch.baddbmm(parameters["head.bias"][:, None], x, parameters["head.weight"])

    def _norm(self, parameters: Mapping[str, Tensor], statistics: Mapping[str, Tensor], layer: int) -> Norm | None:
        if self.norm == "none":
            return None
        prefix = f"layers.{layer}.norm"
        running = (statistics.get(f"{prefix}.running_mean"), statistics.get(f"{prefix}.running_var"))
        return Norm(parameters[f"{prefix}.weight"], parameters[f"{prefix}.bias"], *running)


def _sum(parameters: Mapping[str, Tensor], names: list[str]) -> Tensor:
    weights = [parameters[name] for name in names]
    return weights[0] if len(weights) == 1 else torch.add(*weights)
