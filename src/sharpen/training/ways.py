"""How the class scores of a population's members are computed, and their gradients: four ways behind one interface.

- **fused**: the model has kernels for all members at once (:class:`sharpen.models.network.Network`).
- **vmap, captured**: the model's own code, vectorised over members by :func:`torch.func.vmap`; on a GPU the epoch is captured as
a CUDA
  graph and replayed.
- **vmap**: the same, not captured: something in the model waits for the host at every call.
- **loop**: the members one after another, where the model's code cannot be vectorised.

All give the same records, traces and choice of epoch. Which one it is, is decided before training, by
:func:`sharpen.training.decision. decide`, from one forward and backward pass of two members.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sharpen.kernels.activation import Dropout
from sharpen.kernels.dropout import layer_keys
from sharpen.models.initial import draw
from sharpen.models.inputs import Inputs
from sharpen.models.network import Network
from sharpen.training.memory import CPU_ACTIVATION_BYTES
from sharpen.trial import Trial

Weights = dict[str, Tensor]
Leaves = Sequence[Tensor]
# A learning rate and a weight decay that parameters have of their own.
Rates = list[tuple[float | None, float | None]]


@dataclass(frozen=True)
class Moment:
    """When a forward pass takes place, as far as its random numbers are concerned.

    Args:
        keys: Of every member, [R, 2].
        epoch: Its number, on the device.
        rates: Every member's drop probability, [R], if any has one.
        first: The number of the first place where numbers are drawn.
        train: Of every member, the nodes whose classes its model may know, [R, N]; None: all whose class is known.
    """

    keys: Tensor
    epoch: Tensor
    rates: Tensor | None
    first: int = 0
    train: Tensor | None = None

    def dropout(self, layer: int) -> Dropout | None:
        """What a layer drops."""
        return (
            None if self.rates is None else Dropout(self.rates, layer_keys(self.keys, self.epoch, self.first + layer))
        )


def undisturbed(device: torch.device) -> Any:
    """A context that leaves torch's generators, of the host and of the device, as they were."""
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])


class Way(ABC):
    """How members' class scores are computed; ``why`` ends a sentence for the user where the way is not the fastest."""

    def __init__(self, inputs: Inputs, num_classes: int, name: str, why: str = "") -> None:
        self.inputs, self.num_classes, self.name, self.why = inputs, num_classes, name, why
        self._capturable = True

    @property
    def full_name(self) -> str:
        """The name, and why it is no faster one."""
        return f"{self.name}: {self.why}" if self.why else self.name

    @property
    def captures(self) -> bool:
        """Whether an epoch can be captured as a CUDA graph."""
        return self._capturable and self.name in ("fused", "vmap, captured")

    def cannot_be_captured(self, why: str) -> None:
        """From now on epochs run as they are: a capture failed."""
        self._capturable, self.why = False, why
        self.name = self.name.removesuffix(", captured")

    @property
    @abstractmethod
    def activation_bytes(self) -> int:
        """The largest intermediate result of one member."""

    @property
    @abstractmethod
    def cpu_members(self) -> int:
        """How many members a CPU trains best at once."""

    @abstractmethod
    def start(self, trials: Sequence[Trial]) -> tuple[Weights, Weights]:
        """The first parameters of resolved trials, and what else a model keeps (running statistics), by name, [R, ...]."""

    def leaves(self, parameters: Weights) -> list[Tensor]:
        """What is computed from the first parameters ahead of a pass, and shared by an evaluation and the step after it."""
        return []

    def refresh(self, leaves: Leaves, parameters: Weights) -> None:
        """Brings the leaves up to date with the parameters."""
        return None

    @abstractmethod
    def scored(
        self, parameters: Weights, statistics: Weights, leaves: Leaves, training: bool, moment: Moment
    ) -> tuple[Tensor, Tensor | None]:
        """Class scores of all nodes, [R, N, C]; and what the model adds to every member's loss, [R], if it has something to add.

        Statistics are updated in place in training.
        """

    def logits(self, *args: Any) -> Tensor:
        """The class scores alone."""
        return self.scored(*args)[0]

    @property
    def rates(self) -> Rates | None:
        """The learning rate and the weight decay of parameters that have their own, in their order; None if none has."""
        return None

    def gradients(self, loss: Tensor, parameters: Weights, leaves: Leaves, keep_graph: bool = False) -> list[Tensor]:
        """Every member's gradient of its own loss, in the order of the parameters."""
        # Members share nothing, so the gradient of the sum is each member's own.
        every = list(parameters.values())
        return list(torch.autograd.grad(loss.sum(), every, retain_graph=keep_graph, materialize_grads=True))

    @property
    def persistent(self) -> frozenset[str] | None:
        """The names of the statistics that belong to a saved model; None for all."""
        return None


class Fused(Way):
    """Kernels for all members at once."""

    def __init__(self, network: Network, inputs: Inputs) -> None:
        super().__init__(inputs, network.num_classes, "fused")
        self.network = network

    @property
    def activation_bytes(self) -> int:
        return self.inputs.num_nodes * self.network.hidden * self.inputs.dtype.itemsize

    @property
    def cpu_members(self) -> int:
        return CPU_ACTIVATION_BYTES // self.activation_bytes

    def start(self, trials: Sequence[Trial]) -> tuple[Weights, Weights]:
        device, dtype = self.inputs.device, self.inputs.dtype
        parameters = draw(self.network.initials, [trial.seed for trial in trials], device, dtype)
        return parameters, self.network.statistics(len(trials), device, dtype)

    def leaves(self, parameters: Weights) -> list[Tensor]:
        with torch.no_grad():
            return [block.requires_grad_() for block in self.network.project(parameters, self.inputs)]

    def refresh(self, leaves: Leaves, parameters: Weights) -> None:
        self.network.project_into(leaves, parameters, self.inputs)

    def scored(
        self, parameters: Weights, statistics: Weights, leaves: Leaves, training: bool, moment: Moment
    ) -> tuple[Tensor, None]:
        dropout = moment.dropout if training else lambda layer: None
        return self.network.logits(parameters, statistics, leaves, self.inputs, training, dropout), None

    def gradients(self, loss: Tensor, parameters: Weights, leaves: Leaves, keep_graph: bool = False) -> list[Tensor]:
        # The first weights get their gradients through the projection, the others straight from the loss.
        first = set(self.network.first_names)
        later = {name: p for name, p in parameters.items() if name not in first}
        gradients = torch.autograd.grad(
            loss.sum(), [*leaves, *later.values()], retain_graph=keep_graph, materialize_grads=True
        )
        by_name = self.network.project_gradients(gradients[: len(leaves)], parameters, self.inputs)
        by_name |= dict(zip(later, gradients[len(leaves) :], strict=True))
        return [by_name[name] for name in parameters]
