"""From a trial to its module: one contract for the models here and for those of one's own.

A model is described for one run: a ``torch.nn.Module`` that is called with the features and the graph and gives class scores of all
nodes, [N, C]. What it is called with depends on the names of its ``forward``'s parameters: ``forward(x, graph)`` gets the
:class:`sharpen.models.inputs.Inputs`, ``forward(x, graph, run)`` also what a :class:`sharpen.models.run.Run` may know,
``forward(x, edge_index)`` the edges as PyG has them, and ``forward(x)`` the features alone.

In training it may give a pair: the scores, and one number that is added to the loss. Its attribute ``rates`` may give parameters,
by the start of their names, a learning rate and a weight decay of their own: ``{"attention": (0.04, None)}``.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from sharpen.errors import InputError
from sharpen.models.custom import load_custom, place_of
from sharpen.models.inputs import Inputs
from sharpen.models.network import Network
from sharpen.models.registry import REGISTRY, check_model, model_info
from sharpen.models.run import Run

# What others call the settings that a trial has a field for, and what a module that insists on them gets unless the trial says.
_NAMES = {
    "num_features": ("num_features", "in_channels", "features", "in_features", "in_dim", "input_dim", "nfeat", "dim_in"),
    "num_classes": ("num_classes", "out_channels", "classes", "out_features", "out_dim", "output_dim", "nclass", "dim_out"),
    "hidden": ("hidden", "hidden_channels", "hidden_dim", "hidden_size", "nhid", "dim_hidden"),
    "layers": ("layers", "num_layers", "n_layers", "nlayers"),
    "dropout": ("dropout", "dropout_rate"),
}  # fmt: skip
_NEEDED = {"hidden": 64, "layers": 2, "dropout": 0.5}


@dataclass(frozen=True)
class Blueprint:
    """How to make the module of a model on one graph.

    Args:
        name: The model's name.
        num_features, num_classes: Of the graph.
        settings: The architecture: a trial's fields of it that are given, and its ``model_args``.
        sizes: The numbers of nodes and of undirected edges, for a model of ours that has parameters for each of them.

    >>> Blueprint("appnp", 3, 2, {"hidden": 8}).build(seed=0).mlp.maps[0].weight.shape
    torch.Size([8, 3])
    """

    name: str
    num_features: int
    num_classes: int
    settings: Mapping[str, Any]
    sizes: Mapping[str, int] = field(default_factory=lambda: {"num_nodes": 1, "num_edges": 1})

    @cached_property
    def thing(self) -> Any:
        """The class, the function or the module."""
        return REGISTRY[self.name].load() if check_model(self.name) in REGISTRY else load_custom(self.name).thing

    @property
    def digest(self) -> str | None:
        """Of the source, where it is somebody's own."""
        return None if self.name in REGISTRY else load_custom(self.name).digest

    @property
    def title(self) -> str:
        """What to call it in a sentence."""
        return model_info(self.name).title

    @cached_property
    def network(self) -> Network | None:
        """The fast path of a population, if the model has one."""
        fused = getattr(self.thing, "fused", None)
        if fused is None:
            return None
        shape = {name: value for name, value in self.settings.items() if name != "dropout"}
        return self._made(fused, self.num_features, self.num_classes, **shape)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every weight that a saved model holds, by name; nothing is allocated."""
        if self.network is None:
            with torch.device("meta"):
                return {name: tuple(value.shape) for name, value in self.build(seed=0).state_dict().items()}
        running = self.network.statistics(1, torch.device("meta"), torch.float32)
        shapes = {name: tuple(initial.shape) for name, initial in self.network.initials.items()}
        return shapes | {name: tuple(value.shape[1:]) for name, value in running.items()}

    def build(self, seed: int, **other: Any) -> nn.Module:
        """A new module, its first weights from the seed, with settings of its own; no other random state is touched."""
        settings = {**self.settings, **other}
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            if isinstance(self.thing, nn.Module):
                if settings:
                    raise InputError(
                        f"{self.title} is a module that is made already, so {next(iter(settings))} cannot be set; give its class"
                    )
                return _initialized(copy.deepcopy(self.thing))
            if self.name in REGISTRY:
                sizes = {name: size for name, size in self.sizes.items() if name in self._parameters}
                return self._made(self.thing, self.num_features, self.num_classes, **sizes, **settings)
            module = self._made(self.thing, *self._positional, **self._by_name(settings))
        if not isinstance(module, nn.Module):
            raise InputError(
                f"{self.title} made a {type(module).__name__}; give a torch.nn.Module, or a function of "
                "(features, classes) that makes one"
            )
        return module

    def _made(self, make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return make(*args, **kwargs)
        except InputError:
            raise
        except Exception as error:
            says = f"{type(error).__name__}: {error}".removeprefix("TypeError: ")
            why = f"{self.title} could not be made: {says}; what else it needs goes into model_args"
            raise InputError(why) from None

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        try:
            return inspect.signature(self.thing).parameters
        except (TypeError, ValueError):
            return {}

    @property
    def is_bound(self) -> bool:
        """Whether it has parameters for the nodes or edges of one graph: names that begin with ``nodes`` or ``edges``."""
        return self.name in REGISTRY and bool(self.sizes.keys() & self._parameters.keys())

    def takes(self, setting: str) -> bool:
        """Whether somebody's own class or function has a parameter for a setting."""
        return not isinstance(self.thing, nn.Module) and self._own_name(setting) is not None

    def _own_name(self, name: str) -> str | None:
        return next((own for own in _NAMES.get(name, (name,)) if own in self._parameters), None)

    @property
    def _positional(self) -> tuple[int, ...]:
        """The numbers of features and classes, where no name says which parameter they are."""
        named = self._own_name("num_features") and self._own_name("num_classes")
        return () if named else (self.num_features, self.num_classes)

    def _by_name(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of somebody's own class or function, in its own names."""
        out: dict[str, Any] = {}
        if not self._positional:
            out = {str(self._own_name(name)): getattr(self, name) for name in ("num_features", "num_classes")}
        anything = any(p.kind is p.VAR_KEYWORD for p in self._parameters.values())
        for name, value in settings.items():
            own = self._own_name(name) or name
            if own not in self._parameters and not anything:
                takes = ", ".join(self._parameters)
                raise InputError(f"{self.title} takes no {name}; it takes {takes or 'nothing'}: leave {name} out")
            out[own] = value
        for name, value in _NEEDED.items():
            own = self._own_name(name) or name
            parameter = self._parameters.get(own)
            if parameter is not None and parameter.default is parameter.empty and own not in out:
                out[own] = value
        return out


def _initialized(module: nn.Module) -> nn.Module:
    """The module with new weights, as far as it and its parts know how."""
    if callable(reset := getattr(module, "reset_parameters", None)):
        reset()
    else:
        for child in module.children():
            _initialized(child)
    return module


def arguments(module: nn.Module, inputs: Inputs, num_classes: int = 0) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What to call a module with; one that asks for its run needs the number of classes too, and knows all classes.

    >>> from sharpen import Graph
    >>> inputs = Inputs(Graph(x=[[1.0], [3.0]], edge_index=[[0], [1]]), torch.device("cpu"), torch.float32)
    >>> len(arguments(nn.Linear(1, 2), inputs)[0])
    1
    """
    takes = dict(inspect.signature(module.forward).parameters)
    names = [name for name, p in takes.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if "graph" in takes:
        if "run" not in takes:
            return (inputs.x,), {"graph": inputs}
        y, epoch = inputs.labels(), torch.zeros((), dtype=torch.int64, device=inputs.device)
        return (inputs.x,), {"graph": inputs, "run": Run.of(y, num_classes, y >= 0, epoch, inputs.x)}
    more: dict[str, Any] = {}
    if "edge_weight" in takes:
        if inputs.edge_weight is not None:
            more["edge_weight"] = inputs.edge_weight
        elif takes["edge_weight"].default is inspect.Parameter.empty:
            more["edge_weight"] = inputs.x.new_ones(inputs.edge_index.shape[1])
    # PyG's graph transformers insist on knowing which graph a node belongs to: here there is one.
    if "batch" in takes and takes["batch"].default is inspect.Parameter.empty:
        more["batch"] = torch.zeros(inputs.num_nodes, dtype=torch.long, device=inputs.device)
    anything = any(p.kind is p.VAR_POSITIONAL for p in takes.values())
    return ((inputs.x, inputs.edge_index) if len(names) > 1 or anything else (inputs.x,)), more


@contextmanager
def named_failures(blueprint: Blueprint) -> Iterator[None]:
    """Says in one sentence what went wrong in a model's own code, and where."""
    try:
        yield
    except (InputError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        place = place_of(error, Path(torch.__file__).parent, Path(__file__).parents[1])
        says = " ".join(str(error).split())
        raise InputError(f"{blueprint.title} fails on this graph{place}: {type(error).__name__}: {says}") from None
