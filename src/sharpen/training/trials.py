"""From trials to records: group, batch, train."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from sharpen.datasets import Dataset, Splits
from sharpen.errors import InputError
from sharpen.graph import Graph, Split
from sharpen.models.blueprint import Blueprint
from sharpen.models.inputs import Inputs
from sharpen.models.registry import PAPER_MODELS, REGISTRY
from sharpen.prior import check_prior
from sharpen.training.decision import decide
from sharpen.training.device import arithmetic, resolve_device
from sharpen.training.full_batch import too_large, train_full
from sharpen.training.in_batches import train_in_batches
from sharpen.training.members import Call, Terms
from sharpen.training.progress import ProgressBar
from sharpen.training.ranks import current_ranks
from sharpen.training.threads import suitable_threads
from sharpen.trial import ARCHITECTURE, Record, Trial


def train(
    data: Dataset | Graph,
    trials: Iterable[Trial],
    *,
    splits: Mapping[str, Split] | Sequence[Split] | None = None,
    device: str = "auto",
    precision: str = "float32",
    progress: bool | Callable[[int], None] = True,
    keep_weights: bool = False,
    metric: str | None = None,
    choose: str = "best",
    class_weight: Sequence[float] | None = None,
    shannon: bool = False,
    on_records: Callable[[list[Record]], None] = lambda records: None,
    checkpoints: str | os.PathLike[str] | None = None,
) -> list[Record]:
    """Trains every trial and gives its record, in the same order.

    Trials of the same architecture are trained together as one batch: on a GPU as many at once as memory allows, on a CPU as many
    as stay in its cache. A trial's record does not depend on which others are trained beside it, up to the order of
    floating-point sums.

    Args:
        data: A dataset, or a graph of your own with ``splits``.
        trials: What to train. Settings left open are the paper's for the dataset.
        splits: For a graph of your own: its splits, by name or in a list. Those whose name describes a draw need not be given.
        device: ``auto`` (a GPU if there is one), ``cpu`` or ``cuda``.
        precision: ``float32``; ``tf32``, faster on recent GPUs; ``float64``, for checks.
        progress: Whether to draw a progress bar on a terminal; or a function that is told how many epochs of single members are
            newly done.
        keep_weights: Whether records hold the weights of the chosen epoch, by name, as :class:`sharpen.models.network.Network` or
            ``load_state_dict`` takes them.
            Trials with a ``batching`` give class scores only if their weights are kept.
        metric: What ``val`` and ``test`` are: ``accuracy``, ``balanced-accuracy`` or ``roc-auc``; None: the dataset's.
        choose: The epoch that is kept: ``best``, the first with the best validation score; or ``last``, and then splits need
            neither validation nor test nodes (a score on none is NaN).
        class_weight: One weight for each class in the mean of the cross-entropy, as in :class:`sharpen.SharpeningLoss`.
        shannon: Whether traces hold Shannon's entropy of the predictions too, whatever order the objective has; not of trials with
            a ``batching``.
        on_records: Is given the records of every population as soon as it is trained.
        checkpoints: A folder from which trials with a ``batching`` go on if they were stopped; by the same or another number of
            processes. Nobody removes what is kept there.

    Under ``torchrun``, inside :func:`sharpen.training.ranks.joined`, the processes share the batches of each step.

    >>> from sharpen import Graph, Trial
    >>> import torch
    >>> ring = Graph(x=torch.eye(6), edge_index=[[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]], y=[0, 0, 0, 1, 1, 1])
    >>> halves = Split("halves", train=[0, 3], val=[1, 4], test=[2, 5])
    >>> trials = [Trial(model="gcn", hidden=8, epochs=20, lam=lam) for lam in (0.0, 0.25)]
    >>> [record.test for record in train(ring, trials, splits=[halves], device="cpu")]
    [1.0, 1.0]
    """
    dataset = as_dataset(data, splits, metric)
    if choose not in ("best", "last"):
        raise InputError(f"is {choose!r}; give 'best', the best epoch by validation, or 'last'", field="choose")
    terms = Terms(keep_weights, choose, _checked_class_weight(class_weight, dataset.graph), shannon)
    where = resolve_device(device)
    resolved = [resolve(trial, dataset, held_out=choose == "best") for trial in trials]
    if current_ranks().world > 1 and any(trial.batching is None for trial in resolved):
        raise InputError(
            "several processes can share batches only, but a trial sees the whole graph at once; give it a batching, such as "
            "clusters-64-4, or start one process"
        )
    records: dict[int, Record] = {}
    total = sum(trial.epochs or 0 for trial in resolved)
    width = max((trial.hidden or 0 for trial in resolved), default=0)
    threads = suitable_threads(dataset.graph.num_nodes, width, len(resolved))
    with threads, arithmetic(precision, where) as dtype, ProgressBar(total, show=progress) as bar:
        kept = None if checkpoints is None else Path(checkpoints)
        call = Call(dataset, where, precision, terms, bar, on_records, kept)
        inputs = _inputs(dataset.graph, where, dtype, precision)
        for indices in populations(resolved):
            group = [resolved[i] for i in indices]
            blueprint = blueprint_of(dataset.graph.num_features, dataset.graph.num_classes, group[0])
            if group[0].batching is not None:
                if blueprint.network is None:
                    why = f"is given, but {blueprint.title} sees the whole graph at once; leave batching out, or choose one of "
                    raise InputError(why + ", ".join(PAPER_MODELS), field="batching")
                done = train_in_batches(blueprint.network, call, group)
            else:
                try:
                    way = decide(blueprint, inputs)
                except torch.OutOfMemoryError:
                    raise InputError(too_large(blueprint, where)) from None
                done = train_full(way, blueprint, call, group)
            records.update(zip(indices, done, strict=True))
    return [records[index] for index in range(len(resolved))]


_KEPT: ContextVar[dict[tuple[object, ...], Inputs] | None] = ContextVar("kept inputs", default=None)


@contextmanager
def inputs_kept() -> Iterator[None]:
    """Within the block, what is made of a graph and brought to a device serves the calls of :func:`train` that follow, until one is
    for another graph: a study trains hundreds of populations of one graph, some of which take milliseconds."""
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


def _inputs(graph: Graph, device: torch.device, dtype: torch.dtype, precision: str) -> Inputs:
    kept, key = _KEPT.get(), (graph, device, precision)
    if kept is None:
        return Inputs(graph, device, dtype)
    if key not in kept:
        kept.clear()
        kept[key] = Inputs(graph, device, dtype)
    return kept[key]


def as_dataset(data: Any, splits: Mapping[str, Split] | Sequence[Split] | None, metric: str | None = None) -> Dataset:
    """A graph of one's own, also PyG's, with its splits, as a dataset; a dataset as it is, but for the metric."""
    if not isinstance(data, Graph | Dataset) and hasattr(data, "edge_index") and hasattr(data, "x"):
        data = Graph.from_pyg(data)
    if isinstance(data, Graph):
        return Dataset(data.name, data, metric or "accuracy", None if splits is None else Splits(splits, data.y))
    if not isinstance(data, Dataset):
        raise InputError(
            f"is a {type(data).__name__}; give a dataset, or a sharpen.Graph with splits: "
            f"sharpen.Graph.from_pyg of a PyG Data, and sharpen.splits.from_masks of its masks",
            field="data",
        )
    if splits is not None:
        raise InputError(
            "is given, but the dataset has its own; give dataset.graph with your splits instead", field="splits"
        )
    return data if metric is None else replace(data, metric=metric)


def _checked_class_weight(weight: Sequence[float] | None, graph: Graph) -> tuple[float, ...] | None:
    if weight is None:
        return None
    numbers = tuple(float(value) for value in weight)
    if len(numbers) != graph.num_classes or not all(math.isfinite(value) and value > 0 for value in numbers):
        raise InputError(
            f"is {list(numbers)}; give one finite number above 0 for each of {graph.num_classes} classes",
            field="class_weight",
        )
    return numbers


def resolve(trial: Trial, dataset: Dataset, held_out: bool = True) -> Trial:
    """The trial with nothing left open, once it is clear that the dataset can serve it."""
    if trial.dataset not in (None, dataset.name):
        raise InputError(
            f"a trial is for dataset {trial.dataset!r}, but the data is {dataset.name!r}; give them together"
        )
    default = (*dataset.splits.paper, *dataset.splits.paired_names(1))[0]
    resolved = trial.resolve(default, dataset.name)
    check_prior(resolved.prior, dataset.graph.num_classes, dataset.name)
    split, y = dataset.splits[str(resolved.split)], dataset.graph.y
    for part in ("train", "val", "test"):
        nodes = getattr(split, part)
        if not len(nodes):
            if not held_out:
                continue
            raise InputError(
                f"split {split.name!r} has no {part} nodes; give it some, to choose and to score an epoch by, or keep the "
                "last epoch: choose='last'"
            )
        if (y[nodes] < 0).any():
            unknown = int(nodes[y[nodes] < 0][0])
            raise InputError(f"split {split.name!r} has node {unknown} in {part}, whose label is unknown; leave it out")
        if part == "train" and len(nodes) < 2 and resolved.lam_max is not None:
            raise InputError(
                f"split {split.name!r} has one train node, but to learn λ some are held out; give two or leave lam_max out"
            )
        if dataset.metric == "roc-auc" and part != "train" and len(y[nodes].unique()) < 2:
            raise InputError(f"split {split.name!r} has one class only in {part}; ROC-AUC needs nodes of both")
    return resolved


def shared(trial: Trial) -> tuple[object, ...]:
    """What the members of a population have in common: resolved trials that agree in it are trained together.

    >>> shared(Trial(lam=0.25, seed=1)) == shared(Trial(lam=0.5, seed=2)) != shared(Trial(lam_max=1.0))
    True
    """
    own = REGISTRY.get(trial.model)
    # Members of our own models may differ in dropout; a module of somebody's own has it in its code.
    fields = [name for name in ARCHITECTURE if own is None or name != "dropout"]
    architecture = (trial.model, trial.model_args, *(getattr(trial, name) for name in fields))
    return (*architecture, trial.epochs, trial.lam_max is not None, trial.batching, trial.prior is not None)


def populations(trials: Sequence[Trial]) -> list[list[int]]:
    """The places of resolved trials that are trained together.

    >>> populations([Trial(model="mlp"), Trial(model="gcn"), Trial(model="gcn", seed=1)])
    [[0], [1, 2]]
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, trial in enumerate(trials):
        groups.setdefault(shared(trial), []).append(place)
    return list(groups.values())


def blueprint_of(num_features: int, num_classes: int, trial: Trial) -> Blueprint:
    """How to make the model of a resolved trial on a graph with so many features and classes."""
    own = REGISTRY.get(trial.model)
    given = {name: getattr(trial, name) for name in ARCHITECTURE if getattr(trial, name) is not None}
    if own is not None:
        for name in given.keys() - set(own.settings):
            raise InputError(f"{own.title} takes no {name}; leave it out")
    return Blueprint(trial.model, num_features, num_classes, given | trial.arguments)
