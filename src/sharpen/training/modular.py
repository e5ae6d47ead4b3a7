"""A population of a module that was written for one run: vectorised over members, or the members one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.overrides import TorchFunctionMode

from sharpen.errors import InputError
from sharpen.kernels.dropout import member_keys
from sharpen.kernels.features import Products
from sharpen.models.blueprint import Blueprint, arguments, named_failures
from sharpen.models.folding import Folding
from sharpen.models.inputs import Inputs
from sharpen.models.messages import Messages
from sharpen.models.one_run import OneRun
from sharpen.models.registry import REGISTRY
from sharpen.models.run import Run
from sharpen.training.memory import memory_left
from sharpen.training.ways import Leaves, Moment, Rates, Way, Weights, undisturbed
from sharpen.trial import Trial

# Vectorised over members, an operation costs a CPU more to start than its cache can save: several members share that, as long as
# what they make is not so large that memory has to be fetched for it page by page. Measured on two cores (docs/performance.md).
_CPU_MEMBERS, _CPU_BYTES = 8, 2**25
# Of the memory that is free, what results may take that are computed once: one part in so many.
_FOLDED_SHARE = 8


class Modular(Way):
    """A module that was written for one run.

    ``draws`` says whether something in it draws from torch's generator in spite of :class:`sharpen.models.one_run.OneRun`.
    """

    def __init__(self, blueprint: Blueprint, inputs: Inputs, name: str, why: str = "") -> None:
        super().__init__(inputs, blueprint.num_classes, name, why)
        blueprint = replace(blueprint, sizes={"num_nodes": inputs.num_nodes, "num_edges": inputs.num_edges})
        self.blueprint, self.draws = blueprint, True
        self._y = inputs.labels()
        self._known = self._y >= 0
        self.base = blueprint.build(seed=0).to(inputs.device, inputs.dtype)
        # What grows when it is first called, as PyG's layers of open width, grows now.
        with named_failures(blueprint):
            scores = _as_pair(self.run(self.base))[0]
        nodes, classes = inputs.num_nodes, blueprint.num_classes
        if not isinstance(scores, Tensor) or scores.shape != (nodes, classes):
            got = list(scores.shape) if isinstance(scores, Tensor) else f"a {type(scores).__name__}"
            raise InputError(
                f"{blueprint.title} gives {got} where [{nodes}, {classes}] is needed; make its last layer {classes} wide, a score "
                "for each class"
            )
        self._args, self._kwargs = arguments(self.base, inputs, blueprint.num_classes)
        self._foldings = {training: self._folding() for training in (True, False)}
        # On a GPU products cost little beside what it takes to keep them where a captured epoch finds them.
        self._products = Products() if inputs.device.type == "cpu" else None
        self._kept = frozenset(self.base.state_dict())

    def _folding(self) -> Folding:
        given = [value for value in (*self._args, *self._kwargs.values()) if isinstance(value, Tensor)]
        return Folding(given, memory_left(self.inputs.device) // _FOLDED_SHARE)

    @property
    def folds(self) -> bool:
        """Whether what no weight enters is computed once."""
        return not any(folding.broken for folding in self._foldings.values())

    def unfold(self) -> None:
        """From now on everything is computed in every pass."""
        self._foldings = {training: Folding() for training in (True, False)}

    def run(self, module: nn.Module) -> Any:
        """What the module gives for the graph in evaluation, called as it is."""
        args, kwargs = arguments(module, self.inputs, self.num_classes)
        with undisturbed(self.inputs.device), torch.no_grad():
            return module.eval()(*args, **kwargs)

    @cached_property
    def activation_bytes(self) -> int:
        device = self.inputs.device
        moment = Moment(member_keys([0]).to(device), torch.zeros((), dtype=torch.int64, device=device), None)
        parameters, statistics = ({name: v[0] for name, v in values.items()} for values in self.start([Trial(seed=0)]))
        with torch.no_grad(), undisturbed(device):
            for _ in range(2):  # what is computed once is not there in the second
                with _Sizes() as seen:
                    self._one(parameters, statistics, moment.keys[0], self._known, moment, training=True)
        return max(1, seen.largest) * self.inputs.dtype.itemsize

    @property
    def cpu_members(self) -> int:
        return min(_CPU_MEMBERS, _CPU_BYTES // self.activation_bytes)

    @property
    def persistent(self) -> frozenset[str] | None:
        return self._kept

    def start(self, trials: Sequence[Trial]) -> tuple[Weights, Weights]:
        @cache
        def made(seed: int, dropout: float | None) -> nn.Module:
            # On the host first: weights then do not depend on the device.
            one = self.blueprint.build(seed, **({} if dropout is None else {"dropout": dropout}))
            if any(isinstance(p, nn.parameter.UninitializedParameter) for p in one.parameters()):
                # Layers of open width, once they have seen the graph.
                with torch.random.fork_rng(devices=[]):
                    torch.default_generator.manual_seed(seed)
                    self.run(one)
            return one

        ours = self.blueprint.name in REGISTRY  # which hold their dropout as a number for each member
        modules = [made(trial.seed, trial.dropout if ours else None) for trial in trials]

        def stacked(named: str) -> Weights:
            rows, device = [dict(getattr(one, named)()) for one in modules], self.inputs.device
            stacks = {name: torch.stack([row[name].detach() for row in rows]).to(device) for name in rows[0]}
            return {name: s.to(self.inputs.dtype) if s.is_floating_point() else s for name, s in stacks.items()}

        return stacked("named_parameters"), stacked("named_buffers")

    @property
    def rates(self) -> Rates | None:
        own: dict[str, tuple[float | None, float | None]] = getattr(self.base, "rates", {})
        names = [name for name, _ in self.base.named_parameters()] if own else []
        return [next((own[start] for start in own if name.startswith(start)), (None, None)) for name in names] or None

    def scored(
        self, parameters: Weights, statistics: Weights, leaves: Leaves, training: bool, moment: Moment
    ) -> tuple[Tensor, Tensor | None]:
        if self._products is not None:
            self._products.begin(parameters.values(), keeps=not training)
        members = len(moment.keys)
        train = self._known.expand(members, -1) if moment.train is None else moment.train

        def one(own: Weights, state: Weights, keys: Tensor, mask: Tensor) -> tuple[tuple[Tensor, ...], Weights]:
            return self._one(own, state, keys, mask, moment, training)

        if self.name == "loop":
            rows = []
            for r in range(members):
                own, state = ({name: value[r] for name, value in of.items()} for of in (parameters, statistics))
                with self._seeded(moment, r):
                    out, after = one(own, state, moment.keys[r], train[r])
                rows.append(out)
                if training:
                    _keep(statistics, {name: value[None] for name, value in after.items()}, slice(r, r + 1))
            found = tuple(torch.stack(each) for each in zip(*rows, strict=True))
        else:
            found, after = vmap(one, randomness="error")(dict(parameters), dict(statistics), moment.keys, train)
            if training:
                _keep(statistics, after, slice(None))
        return found[0], found[1] if len(found) > 1 else None

    def _one(
        self, own: Weights, state: Weights, keys: Tensor, train: Tensor, moment: Moment, training: bool
    ) -> tuple[tuple[Tensor, ...], Weights]:
        """One member's class scores, what it adds to its loss, if anything, and its statistics afterwards."""
        self.base.train(training)
        both, folding, kwargs = own | state, self._foldings[training], self._kwargs
        if "run" in kwargs:
            kwargs = kwargs | {"run": Run.of(self._y, self.num_classes, train, moment.epoch, self.inputs.x)}
        with OneRun(keys, moment.epoch, self.inputs, moment.first, folding, self._products):
            out = functional_call(self.base, both, self._args, kwargs)
        outs = tuple(each.picked() if type(each) is Messages else each for each in _as_pair(out))
        # A buffer that was not written in place but replaced is found in the same dictionary.
        return outs, {name: both[name] for name in state}

    @contextmanager
    def _seeded(self, moment: Moment, r: int) -> Iterator[None]:
        """What still draws from torch's generator draws from one that is seeded for this member and epoch."""
        if not self.draws:
            yield
            return
        with undisturbed(self.inputs.device):
            torch.manual_seed(int(moment.keys[r, 0]) * 1_000_003 + int(moment.epoch))
            yield


def _as_pair(out: Any) -> tuple[Any, ...]:
    """What a model gave: class scores, and maybe a term of its loss."""
    return out if isinstance(out, tuple) else (out,)


class _Sizes(TorchFunctionMode):
    """Looks at the results of all that is computed while it is on, for the one with the most numbers."""

    largest = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if isinstance(out, Tensor) and out.is_floating_point():
            self.largest = max(self.largest, out.numel())
        return out


def _keep(statistics: Weights, after: Weights, members: slice) -> None:
    """Writes what a pass left of the statistics over those before, where that was not done in place."""
    with torch.no_grad():
        for name, value in after.items():
            place = statistics[name][members]
            if value.data_ptr() != place.data_ptr():
                place.copy_(value)
