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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.overrides import TorchFunctionMode

from sharpen.kernels.activation import Dropout
from sharpen.kernels.dropout import layer_keys, member_keys
from sharpen.kernels.features import Products
from sharpen.models.blueprint import Blueprint, arguments, check_scores, named_failures
from sharpen.models.folding import Folding
from sharpen.models.initial import draw
from sharpen.models.inputs import Inputs
from sharpen.models.messages import Messages
from sharpen.models.network import Network
from sharpen.models.one_run import OneRun
from sharpen.training.memory import CPU_ACTIVATION_BYTES, memory_left
from sharpen.trial import Trial

_Weights = dict[str, Tensor]
# Vectorised over members, an operation costs a CPU more to start than its cache can save: several members share that, as long as
# what they make is not so large that memory has to be fetched for it page by page. Measured on two cores (docs/performance.md).
_CPU_MEMBERS, _CPU_BYTES = 8, 2**25
# Of the memory that is free, what results may take that are computed once: one part in so many.
_FOLDED_SHARE = 8


@dataclass(frozen=True)
class Moment:
    """When a forward pass takes place, as far as its random numbers are concerned.

    Args:
        keys: Of every member, [R, 2].
        epoch: Its number, on the device.
        rates: Every member's drop probability, [R], if any has one.
        first: The number of the first place where numbers are drawn.
    """

    keys: Tensor
    epoch: Tensor
    rates: Tensor | None
    first: int = 0

    def dropout(self, layer: int) -> Dropout | None:
        """What a layer drops."""
        return (
            None if self.rates is None else Dropout(self.rates, layer_keys(self.keys, self.epoch, self.first + layer))
        )


def undisturbed(device: torch.device) -> Any:
    """A context that leaves torch's generators, of the host and of the device, as they were."""
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])


class Way(ABC):
    """How members' class scores are computed.

    Args:
        inputs: The graph on the device.
        num_classes: Of the graph.
        name: ``fused``, ``vmap, captured``, ``vmap`` or ``loop``.
        why: A sentence's end for the user where the way is not the fastest; empty otherwise.
    """

    def __init__(self, inputs: Inputs, num_classes: int, name: str, why: str = "") -> None:
        self.inputs, self.num_classes, self.name, self.why = inputs, num_classes, name, why

    @property
    def full_name(self) -> str:
        """The name, and why it is no faster one."""
        return f"{self.name}: {self.why}" if self.why else self.name

    @property
    def captures(self) -> bool:
        """Whether an epoch can be captured as a CUDA graph."""
        return self.name in ("fused", "vmap, captured")

    @property
    @abstractmethod
    def activation_bytes(self) -> int:
        """The largest intermediate result of one member."""

    @property
    @abstractmethod
    def cpu_members(self) -> int:
        """How many members a CPU trains best at once."""

    @abstractmethod
    def start(self, trials: Sequence[Trial]) -> tuple[_Weights, _Weights]:
        """The first parameters of resolved trials, and what else a model keeps (running statistics), by name, [R, ...]."""

    def leaves(self, parameters: _Weights) -> list[Tensor]:
        """What is computed from the first parameters ahead of a pass, and shared by an evaluation and the step after it."""
        return []

    def refresh(self, leaves: Sequence[Tensor], parameters: Mapping[str, Tensor]) -> None:
        """Brings the leaves up to date with the parameters."""
        return None

    @abstractmethod
    def logits(
        self,
        parameters: Mapping[str, Tensor],
        statistics: Mapping[str, Tensor],
        leaves: Sequence[Tensor],
        training: bool,
        moment: Moment,
    ) -> Tensor:
        """Class scores of all nodes, [R, N, C]. Statistics are updated in place in training."""

    def gradients(
        self, loss: Tensor, parameters: Mapping[str, Tensor], leaves: Sequence[Tensor], keep_graph: bool = False
    ) -> list[Tensor]:
        """Every member's gradient of its own loss, in the order of the parameters."""
        # Members share nothing, so the gradient of the sum is each member's own.
        return list(
            torch.autograd.grad(
                loss.sum(), list(parameters.values()), retain_graph=keep_graph, materialize_grads=True
            )
        )  # fmt: skip

    @property
    def persistent(self) -> frozenset[str] | None:
        """The names of the statistics that belong to a saved model; None for all."""
        return None


class Fused(Way):
    """Kernels for all members at once.

    Args:
        network: The architecture.
        inputs: The graph on the device.
    """

    def __init__(self, network: Network, inputs: Inputs) -> None:
        super().__init__(inputs, network.num_classes, "fused")
        self.network = network

    @property
    def activation_bytes(self) -> int:
        return self.inputs.num_nodes * self.network.hidden * self.inputs.dtype.itemsize

    @property
    def cpu_members(self) -> int:
        return CPU_ACTIVATION_BYTES // self.activation_bytes

    def start(self, trials: Sequence[Trial]) -> tuple[_Weights, _Weights]:
        device, dtype = self.inputs.device, self.inputs.dtype
        parameters = draw(self.network.initials, [trial.seed for trial in trials], device, dtype)
        return parameters, self.network.statistics(len(trials), device, dtype)

    def leaves(self, parameters: _Weights) -> list[Tensor]:
        with torch.no_grad():
            return [block.requires_grad_() for block in self.network.project(parameters, self.inputs)]

    def refresh(self, leaves: Sequence[Tensor], parameters: Mapping[str, Tensor]) -> None:
        self.network.project_into(leaves, parameters, self.inputs)

    def logits(
        self,
        parameters: Mapping[str, Tensor],
        statistics: Mapping[str, Tensor],
        leaves: Sequence[Tensor],
        training: bool,
        moment: Moment,
    ) -> Tensor:
        dropout = moment.dropout if training else lambda layer: None
        return self.network.logits(parameters, statistics, leaves, self.inputs, training, dropout)

    def gradients(
        self, loss: Tensor, parameters: Mapping[str, Tensor], leaves: Sequence[Tensor], keep_graph: bool = False
    ) -> list[Tensor]:
        # The first weights get their gradients through the projection, the others straight from the loss.
        first = set(self.network.first_names)
        later = {name: p for name, p in parameters.items() if name not in first}
        gradients = torch.autograd.grad(
            loss.sum(), [*leaves, *later.values()], retain_graph=keep_graph, materialize_grads=True
        )
        by_name = self.network.project_gradients(gradients[: len(leaves)], parameters, self.inputs)
        by_name |= dict(zip(later, gradients[len(leaves) :], strict=True))
        return [by_name[name] for name in parameters]


class Modular(Way):
    """A module that was written for one run.

    Args:
        blueprint: How to make it.
        inputs: The graph on the device.
        name: ``vmap, captured``, ``vmap`` or ``loop``.
        why: As for :class:`Way`.

    ``draws`` says whether something in it draws from torch's generator in spite of :class:`sharpen.models.one_run.OneRun`.
    """

    def __init__(self, blueprint: Blueprint, inputs: Inputs, name: str, why: str = "") -> None:
        super().__init__(inputs, blueprint.num_classes, name, why)
        self.blueprint, self.draws = blueprint, True
        self.base = self._build(0)
        # What grows when it is first called, as PyG's layers of open width, grows now.
        with named_failures(blueprint):
            scores = self.run(self.base, training=False)
        check_scores(scores, blueprint.title, inputs.num_nodes, blueprint.num_classes)
        self._args, self._kwargs = arguments(self.base, inputs)
        self._foldings = {training: self._folding() for training in (True, False)}
        # On a GPU products cost little beside what it takes to keep them where a captured epoch finds them.
        self._products = Products() if inputs.device.type == "cpu" else None
        self._kept = frozenset(self.base.state_dict())

    def _build(self, seed: int, **settings: Any) -> nn.Module:
        module = self.blueprint.build(seed, **settings)
        return module.to(self.inputs.device, self.inputs.dtype)

    def _folding(self) -> Folding:
        given = [value for value in (*self._args, *self._kwargs.values()) if isinstance(value, Tensor)]
        return Folding(given, memory_left(self.inputs.device) // _FOLDED_SHARE)

    @property
    def folds(self) -> bool:
        """Whether what no weight enters is computed once."""
        return bool(self._foldings) and not any(folding.broken for folding in self._foldings.values())

    def unfold(self) -> None:
        """From now on everything is computed in every pass."""
        self._foldings = {}

    def run(self, module: nn.Module, training: bool) -> Any:
        """What the module gives for the graph, called as it is."""
        args, kwargs = arguments(module, self.inputs)
        with undisturbed(self.inputs.device), torch.no_grad():
            return module.train(training)(*args, **kwargs)

    @cached_property
    def activation_bytes(self) -> int:
        device = self.inputs.device
        moment = Moment(member_keys([0]).to(device), torch.zeros((), dtype=torch.int64, device=device), None)
        parameters, statistics = ({name: v[0] for name, v in values.items()} for values in self.start([Trial(seed=0)]))
        with torch.no_grad(), undisturbed(device):
            for _ in range(2):  # what is computed once is not there in the second
                with _Sizes() as seen:
                    self._one(parameters, statistics, moment.keys[0], moment, training=True)
        return max(1, seen.largest) * self.inputs.dtype.itemsize

    @property
    def cpu_members(self) -> int:
        return min(_CPU_MEMBERS, _CPU_BYTES // self.activation_bytes)

    @property
    def persistent(self) -> frozenset[str] | None:
        return self._kept

    def start(self, trials: Sequence[Trial]) -> tuple[_Weights, _Weights]:
        made: dict[tuple[object, ...], nn.Module] = {}

        def module(trial: Trial) -> nn.Module:
            rate = {"dropout": trial.dropout} if self.blueprint.takes_rates and trial.dropout is not None else {}
            key = (trial.seed, trial.dropout)
            if key not in made:
                # On the host first: weights then do not depend on the device.
                one = self.blueprint.build(trial.seed, **rate)
                if any(isinstance(p, nn.parameter.UninitializedParameter) for p in one.parameters()):
                    one = self._grown(one, trial.seed)
                made[key] = one
            return made[key]

        modules = [module(trial) for trial in trials]

        def stacked(named: str) -> _Weights:
            rows = [dict(getattr(one, named)()) for one in modules]
            return {name: self._stack([row[name] for row in rows]) for name in rows[0]}

        return stacked("named_parameters"), stacked("named_buffers")

    def _grown(self, module: nn.Module, seed: int) -> nn.Module:
        """A module with layers of open width, once it has seen the graph; its first weights come from the seed."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            args, kwargs = arguments(module, self.inputs)
            with torch.no_grad():
                module.eval()(*args, **kwargs)
        return module

    def _stack(self, values: Sequence[Tensor]) -> Tensor:
        stack = torch.stack([value.detach() for value in values]).to(self.inputs.device)
        return stack.to(self.inputs.dtype) if stack.is_floating_point() else stack

    def logits(
        self,
        parameters: Mapping[str, Tensor],
        statistics: Mapping[str, Tensor],
        leaves: Sequence[Tensor],
        training: bool,
        moment: Moment,
    ) -> Tensor:
        if self._products is not None:
            self._products.begin(parameters.values(), keeps=not training)

        def one(own: _Weights, state: _Weights, keys: Tensor) -> tuple[Tensor, _Weights]:
            return self._one(own, state, keys, moment, training)

        if self.name == "loop":
            outs = []
            for r in range(len(moment.keys)):
                state = {name: value[r] for name, value in statistics.items()}
                with self._seeded(moment, r):
                    out, after = one({name: p[r] for name, p in parameters.items()}, state, moment.keys[r])
                outs.append(out)
                if training:
                    _keep(statistics, {name: value[None] for name, value in after.items()}, slice(r, r + 1))
            return torch.stack(outs)
        out, after = vmap(one, randomness="error")(dict(parameters), dict(statistics), moment.keys)
        if training:
            _keep(statistics, after, slice(None))
        return out

    def _one(
        self, own: _Weights, state: _Weights, keys: Tensor, moment: Moment, training: bool
    ) -> tuple[Tensor, _Weights]:
        """One member's class scores, and its statistics afterwards."""
        self.base.train(training)
        both, folding = own | state, self._foldings.get(training)
        with OneRun(keys, moment.epoch, self.inputs, moment.first, folding, self._products):
            out = functional_call(self.base, both, self._args, self._kwargs)
        out = out.picked() if type(out) is Messages else out
        # A buffer that was not written in place but replaced is found in the same dictionary.
        return out, {name: both[name] for name in state}

    @contextmanager
    def _seeded(self, moment: Moment, r: int) -> Iterator[None]:
        """What still draws from torch's generator draws from one that is seeded for this member and epoch."""
        if not self.draws:
            yield
            return
        with undisturbed(self.inputs.device):
            torch.manual_seed(int(moment.keys[r, 0]) * 1_000_003 + int(moment.epoch))
            yield


class _Sizes(TorchFunctionMode):
    """Looks at the results of all that is computed while it is on, for the one with the most numbers."""

    largest = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if isinstance(out, Tensor) and out.is_floating_point():
            self.largest = max(self.largest, out.numel())
        return out


def _keep(statistics: Mapping[str, Tensor], after: Mapping[str, Tensor], members: slice) -> None:
    """Writes what a pass left of the statistics over those before, where that was not done in place."""
    with torch.no_grad():
        for name, value in after.items():
            place = statistics[name][members]
            if value.data_ptr() != place.data_ptr():
                place.copy_(value)
