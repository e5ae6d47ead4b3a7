"""Any ``torch.nn.Module`` as a backbone: the plain training loop with the sharpening loss."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sharpen.errors import InputError
from sharpen.fitting.folds import balanced_weights
from sharpen.fitting.members import Job, Listener, Member
from sharpen.training.threads import suitable_threads
from sharpen.graph import Graph
from sharpen.objective import SharpeningLoss
from sharpen.training.device import resolve_device

Factory = Callable[[int, int], nn.Module]


class ModuleBackbone:
    """Trains a module that is called as ``model(x, edge_index)`` and gives logits or log-probabilities [N, C].

    Where edges have weights and the module takes an ``edge_weight``, it gets them.

    Args:
        model: A module, copied and newly initialised for each member; or a function of (number of features, number of
            classes) that makes one.
        settings: ``lr weight_decay epochs q``, as in :class:`sharpen.Trial`; ``hidden``, as a hint at its size.
        device: ``auto``, ``cpu`` or ``cuda``.
        balanced: Whether classes weigh the same in the cross-entropy, however many labels they have.

    >>> backbone = ModuleBackbone(lambda features, classes: nn.Linear(features, classes), {})
    >>> backbone.build(3, 2, seed=0).weight.shape
    torch.Size([2, 3])
    """

    def __init__(
        self, model: nn.Module | Factory, settings: Mapping[str, Any], device: str = "auto", balanced: bool = False
    ) -> None:
        self.model, self.settings, self.device, self.balanced = model, dict(settings), device, balanced
        self.cuts: dict[str, str | None] = {}
        self.notes: list[str] = []

    def build(self, num_features: int, num_classes: int, seed: int) -> nn.Module:
        """A new module with weights of its own; no other random state is touched."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            if isinstance(self.model, nn.Module):
                return _initialized(copy.deepcopy(self.model))
            module = self.model(num_features, num_classes)
        if not isinstance(module, nn.Module):
            raise InputError(
                f"model made a {type(module).__name__}; "
                "give a torch.nn.Module, or a function of (features, classes) that makes one"
            )
        return module

    def train(self, graph: Graph, jobs: Sequence[Job]) -> list[Member]:
        """Two members for each job, in the same order: alone, and with spread labels beside it."""
        where = resolve_device(self.device)
        x, edges, y = _dense(graph).to(where), _Edges(graph, where), graph.y.to(where)
        listener, members = Listener(graph), []
        with suitable_threads(graph.num_nodes, self.settings["hidden"]):
            for job in jobs:
                members += listener.judged(job, *self._train_one(graph, job, x, edges, y))
        return members

    def _train_one(
        self, graph: Graph, job: Job, x: Tensor, edges: _Edges, y: Tensor
    ) -> tuple[np.ndarray, dict[str, np.ndarray], bool]:
        """Class scores of all nodes and the weights after the last epoch, and whether it stayed finite."""
        module = self.build(graph.num_features, graph.num_classes, job.seed).to(x.device)
        objective = SharpeningLoss(
            lam=job.candidate.lam,
            balance=job.candidate.balance,
            q=self.settings["q"],
            class_weight=balanced_weights(graph.y.numpy(), graph.num_classes) if self.balanced else None,
        )
        optimizer = torch.optim.Adam(
            module.parameters(), lr=self.settings["lr"], weight_decay=self.settings["weight_decay"]
        )
        train = job.split.train.to(x.device)
        with torch.random.fork_rng(devices=[x.device] if x.device.type == "cuda" else []):
            torch.manual_seed(job.seed)  # of dropout
            for _ in range(self.settings["epochs"]):
                optimizer.zero_grad()
                loss = objective(_call(module.train(), x, edges, graph.num_classes), y, labeled=train)
                loss.backward()
                optimizer.step()
                if not torch.isfinite(loss):
                    break
            with torch.no_grad():
                logits = _call(module.eval(), x, edges, graph.num_classes)
        ok = bool(torch.isfinite(loss) and torch.isfinite(logits).all())
        logits = logits if ok else torch.zeros_like(logits)
        weights = {name: value.detach().cpu().numpy() for name, value in module.state_dict().items()}
        return logits.cpu().numpy(), weights, ok

    def logits(
        self, graph: Graph, model: str, num_classes: int, weights: Sequence[dict[str, np.ndarray]]
    ) -> Iterator[np.ndarray]:
        """Class scores [N, C] of every set of weights, in the same order."""
        where = resolve_device(self.device)
        x, edges = _dense(graph).to(where), _Edges(graph, where)
        module = self.build(graph.num_features, num_classes, seed=0).to(where).eval()
        for own in weights:
            try:
                module.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in own.items()})
            except RuntimeError as error:
                reason = str(error).splitlines()[-1].strip()
                raise InputError(
                    f"model does not fit the saved weights ({reason}); give the one it was fitted with"
                ) from None
            with torch.no_grad():
                yield _call(module, x, edges, num_classes).cpu().numpy()


def _initialized(module: nn.Module) -> nn.Module:
    """The module with new weights, as far as it and its parts know how."""
    if callable(reset := getattr(module, "reset_parameters", None)):
        reset()
    else:
        for child in module.children():
            _initialized(child)
    return module


def _dense(graph: Graph) -> Tensor:
    return graph.x.to_dense() if graph.is_sparse else graph.x


class _Edges:
    """The edges as a module takes them, on its device."""

    def __init__(self, graph: Graph, device: torch.device) -> None:
        self.index = graph.edge_index.to(device)
        self.weight = None if graph.edge_weight is None else graph.edge_weight.to(device, torch.float32)


def _call(module: nn.Module, x: Tensor, edges: _Edges, num_classes: int) -> Tensor:
    takes = inspect.signature(module.forward).parameters
    more: dict[str, Tensor] = {}
    if "edge_weight" in takes:
        if edges.weight is not None:
            more["edge_weight"] = edges.weight
        elif takes["edge_weight"].default is inspect.Parameter.empty:
            more["edge_weight"] = x.new_ones(edges.index.shape[1])
    # PyG's graph transformers insist on knowing which graph a node belongs to: here there is one.
    if "batch" in takes and takes["batch"].default is inspect.Parameter.empty:
        more["batch"] = x.new_zeros(len(x), dtype=torch.long)
    out = module(x, edges.index, **more)
    if not isinstance(out, Tensor) or out.shape != (len(x), num_classes):
        got = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise InputError(
            f"model gives {got} where [{len(x)}, {num_classes}] is needed; make its last layer {num_classes} wide"
        )
    return out
