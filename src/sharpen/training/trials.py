"""From trials to records: group, batch, train."""

from __future__ import annotations

import gc
import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sharpen.batching import Batching
from sharpen.datasets import Dataset, Splits
from sharpen.errors import InputError
from sharpen.graph import Graph
from sharpen.large.stored import StoredGraph
from sharpen.models import Inputs, Network
from sharpen.splits import Split
from sharpen.training.batched import BatchedPopulation
from sharpen.training.capture import Runner
from sharpen.training.checkpoint import checkpoint_path, members_kept, read_checkpoint, write_checkpoint
from sharpen.training.device import (
    arithmetic,
    arithmetic_type,
    describe_device,
    free_memory,
    keep_freed_memory,
    resolve_device,
)
from sharpen.training.members import Results
from sharpen.training.memory import CPU_ACTIVATION_BYTES, members_in_batches
from sharpen.training.meta import MetaPopulation
from sharpen.training.population import Population, Terms
from sharpen.training.progress import ProgressBar
from sharpen.training.ranks import current_ranks
from sharpen.training.threads import suitable_threads
from sharpen.trial import Record, Trial

_ARCHITECTURE = ("model", "layers", "hidden", "norm", "residual", "input_linear")
# Of a GPU's free memory, what a population may plan with; the allocator needs the rest.
_GPU_SHARE = 0.8


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
        keep_weights: Whether records hold the weights of the chosen epoch, by name, as :class:`sharpen.models.Network` takes them.
            Trials with a ``batching`` give class scores only if their weights are kept.
        metric: What ``val`` and ``test`` are: ``accuracy``, ``balanced-accuracy`` or ``roc-auc``; None: the dataset's.
        choose: The epoch that is kept: ``best``, the first with the best validation score; or ``last``, and then splits need
            neither validation nor test nodes (a score on none is NaN).
        class_weight: One weight for each class in the mean of the cross-entropy, as in :class:`sharpen.SharpeningLoss`.
        on_records: Is given the records of every population as soon as it is trained.
        checkpoints: A folder from which trials with a ``batching`` go on if they were stopped; by the same or another number of
            processes. Nobody removes what is kept there.

    Under ``torchrun``, inside :func:`sharpen.training.ranks.joined`, the processes share the batches of each step.

    >>> from sharpen import Graph, Trial
    >>> ring = Graph(x=torch.eye(6), edge_index=[[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]], y=[0, 0, 0, 1, 1, 1])
    >>> halves = Split("halves", train=[0, 3], val=[1, 4], test=[2, 5])
    >>> trials = [Trial(model="gcn", hidden=8, epochs=20, lam=lam) for lam in (0.0, 0.25)]
    >>> [record.test for record in train(ring, trials, splits=[halves], device="cpu")]
    [1.0, 1.0]
    """
    dataset = _as_dataset(data, splits, metric)
    terms = Terms(keep_weights, _checked_choice(choose), _checked_class_weight(class_weight, dataset.graph))
    where = resolve_device(device)
    resolved = [resolve(trial, dataset, held_out=choose == "best") for trial in trials]
    if current_ranks().world > 1 and any(trial.batching is None for trial in resolved):
        raise InputError(
            "several processes can share batches only, but a trial sees the whole graph at once; give it a batching, such as "
            "clusters-64-4, or start one process"
        )
    records: list[Record | None] = [None] * len(resolved)
    members: dict[tuple[object, ...], list[int]] = {}
    for index, trial in enumerate(resolved):
        members.setdefault(shared(trial), []).append(index)
    total = sum(trial.epochs or 0 for trial in resolved)
    inputs: dict[str, Inputs] = {}

    def finished(population: list[Record]) -> list[Record]:
        population = [
            replace(record, device=describe_device(where), precision=precision, members=len(population))
            for record in population
        ]
        on_records(population)
        return population

    width = max((trial.hidden or 0 for trial in resolved), default=0)
    threads = suitable_threads(dataset.graph.num_nodes, width, len(resolved))
    with threads, arithmetic(precision, where) as dtype, ProgressBar(total, show=progress) as bar:
        for indices in members.values():
            group = [resolved[i] for i in indices]
            network = network_of(dataset.graph, group[0])
            if group[0].batching is not None:
                done = _train_batched(network, dataset, group, where, precision, bar, terms, checkpoints, finished)
            else:
                if network.model not in inputs:
                    inputs[network.model] = Inputs(dataset.graph, network.convolution, where, dtype)
                done = _train_group(network, inputs[network.model], dataset, group, bar, terms, finished)
            for index, record in zip(indices, done, strict=True):
                records[index] = record
    return [record for record in records if record is not None]


def _as_dataset(
    data: Dataset | Graph, splits: Mapping[str, Split] | Sequence[Split] | None, metric: str | None
) -> Dataset:
    if isinstance(data, Graph):
        return Dataset(data.name, data, metric or "accuracy", None if splits is None else Splits(splits, data.y))
    if not isinstance(data, Dataset):
        raise InputError(
            f"data is a {type(data).__name__}; give a dataset, or a sharpen.Graph with splits: "
            f"sharpen.Graph.from_pyg of a PyG Data, and sharpen.splits.from_masks of its masks"
        )
    if splits is not None:
        raise InputError("splits is given, but the dataset has its own; give dataset.graph with your splits instead")
    return data if metric is None else replace(data, metric=metric)


def _checked_choice(choose: str) -> str:
    if choose not in ("best", "last"):
        raise InputError(f"choose is {choose!r}; give 'best', the best epoch by validation, or 'last'")
    return choose


def _checked_class_weight(weight: Sequence[float] | None, graph: Graph) -> tuple[float, ...] | None:
    if weight is None:
        return None
    numbers = tuple(float(value) for value in weight)
    if len(numbers) != graph.num_classes or not all(math.isfinite(value) and value > 0 for value in numbers):
        raise InputError(
            f"class_weight is {list(numbers)}; give one finite number above 0 for each of {graph.num_classes} classes"
        )
    return numbers


def resolve(trial: Trial, dataset: Dataset, held_out: bool = True) -> Trial:
    """The trial with nothing left open, once it is clear that the dataset can serve it.

    Args:
        trial, dataset: What is to run on what.
        held_out: Whether validation and test nodes are needed.
    """
    if trial.dataset not in (None, dataset.name):
        raise InputError(
            f"a trial is for dataset {trial.dataset!r}, but the data is {dataset.name!r}; give them together"
        )
    default = (*dataset.splits.paper, *dataset.splits.paired(1))[0]
    resolved = trial.resolve(default, dataset.name)
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
    return (*(getattr(trial, name) for name in _ARCHITECTURE), trial.epochs, trial.lam_max is not None, trial.batching)


def network_of(graph: Graph, trial: Trial) -> Network:
    """The architecture of a resolved trial on a graph."""
    architecture = {name: getattr(trial, name) for name in _ARCHITECTURE}
    return Network(num_features=graph.num_features, num_classes=graph.num_classes, **architecture)


def _train_group(
    network: Network,
    inputs: Inputs,
    dataset: Dataset,
    trials: list[Trial],
    bar: ProgressBar,
    terms: Terms,
    finished: Callable[[list[Record]], list[Record]],
) -> list[Record]:
    """Trains trials of one architecture, in as few populations as memory allows."""

    def some(batch: list[Trial]) -> list[Record]:
        return finished(_train_population(network, inputs, dataset, batch, bar, terms))

    def too_large(_: int) -> str:
        return (
            f"one {network.model} of {network.layers} layers and width {network.hidden} does not fit in memory on "
            f"{describe_device(inputs.device)}; take the graph in pieces with --batching clusters, use a smaller width, or "
            "--device cpu"
        )

    return _halving(trials, population_size(network, inputs, dataset, trials), some, too_large)


def _halving(
    trials: list[Trial],
    size: int,
    train_some: Callable[[list[Trial]], list[Record]],
    too_large: Callable[[int], str],
    least: int = 1,
) -> list[Record]:
    """Trains so many trials at a time, half as many whenever memory runs out; ``too_large`` says what is wrong with the least."""
    records: list[Record] = []
    while len(records) < len(trials):
        try:
            records += train_some(trials[len(records) : len(records) + size])
            continue
        except torch.OutOfMemoryError:
            if size <= least:
                raise InputError(too_large(size)) from None
        # Outside the handler, so that the failed population is no longer held by the error's traceback.
        size = (size + 1) // 2
        gc.collect()
        torch.cuda.empty_cache()
    return records


def population_size(network: Network, inputs: Inputs, dataset: Dataset, trials: list[Trial]) -> int:
    """How many of the trials to train at once."""
    wanted = len(trials)
    if inputs.device.type == "cpu":
        activation = inputs.num_nodes * network.hidden * inputs.dtype.itemsize
        return max(1, min(wanted, CPU_ACTIVATION_BYTES // activation))
    try:
        each = _member_bytes(network, inputs, dataset, trials[0])
    except torch.OutOfMemoryError:
        return 1
    finally:
        gc.collect()
        torch.cuda.empty_cache()
    fits = max(1, int(_GPU_SHARE * free_memory(inputs.device) / each))
    populations = -(-wanted // fits)
    return -(-wanted // populations)  # equal shares


def _member_bytes(network: Network, inputs: Inputs, dataset: Dataset, trial: Trial) -> float:
    """What one more member takes on the GPU: measured on one epoch of one and of three members.

    Before them, an epoch that is not counted: it brings the graph to the device.
    """
    split, peaks = dataset.splits[str(trial.split)], []
    for members in (1, 1, 3):
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        _population_kind(trial)(network, inputs, dataset.metric, [trial] * members, [split] * members).epoch()
        peaks.append(torch.cuda.max_memory_allocated() - before)
    return max(1.0, (peaks[2] - peaks[1]) / 2)


def _population_kind(trial: Trial) -> type[Population]:
    return Population if trial.lam_max is None else MetaPopulation


def _train_batched(
    network: Network,
    dataset: Dataset,
    trials: list[Trial],
    device: torch.device,
    precision: str,
    bar: ProgressBar,
    terms: Terms,
    checkpoints: str | os.PathLike[str] | None,
    finished: Callable[[list[Record]], list[Record]],
) -> list[Record]:
    """Trains trials of one architecture and one batching, as many at once as memory allows, and can go on where it stopped."""
    batching, dtype = Batching.parse(str(trials[0].batching)), arithmetic_type(precision)
    folder, ranks = None if checkpoints is None else Path(checkpoints), current_ranks()

    def members_at_once() -> int:
        kept = 0 if folder is None else members_kept(folder, trials)
        return kept or members_in_batches(network, dataset.graph, batching, len(trials), device, dtype)

    def some(batch: list[Trial]) -> list[Record]:
        return finished(_train_some_batched(network, dataset, batching, batch, device, precision, bar, terms, folder))

    def too_large(size: int) -> str:
        return (
            f"batches of {batching.name} with {size} runs at once do not fit in memory on {describe_device(device)}; cut the graph "
            "finer, with more parts or fewer parts a batch, or use a smaller width"
        )

    size = ranks.decided(members_at_once)
    keep_freed_memory(device)
    # Of several processes none can halve: the others are waiting for it.
    return _halving(trials, size, some, too_large, least=1 if ranks.world == 1 else size)


def _train_some_batched(
    network: Network,
    dataset: Dataset,
    batching: Batching,
    trials: list[Trial],
    device: torch.device,
    precision: str,
    bar: ProgressBar,
    terms: Terms,
    folder: Path | None,
) -> list[Record]:
    """Trains one population in batches, from its checkpoint on if it has one."""
    start, ranks = time.perf_counter(), current_ranks()
    splits = [dataset.splits[str(trial.split)] for trial in trials]
    population = BatchedPopulation(
        network,
        dataset.graph,
        batching,
        dataset.metric,
        trials,
        splits,
        device,
        arithmetic_type(precision),
        terms,
        ranks,
    )
    path = None if folder is None else checkpoint_path(folder, trials)
    about = {} if path is None else _about(dataset, splits, precision, terms)
    kept: dict[str, Tensor] = {}

    def there_is_one() -> bool:
        if path is not None and path.exists():
            kept.update(read_checkpoint(path, about))
        return bool(kept)

    if ranks.decided(there_is_one):
        population.restore(kept)
        bar.advance(int(population.epoch_number) * len(trials), population)
    before = float(population.seconds)
    while int(population.epoch_number) < population.epochs:
        population.epoch()
        bar.advance(len(trials), population)
        population.seconds.fill_(before + time.perf_counter() - start)
        if path is not None and ranks.writes:
            write_checkpoint(path, population.state(), about)
    results = population.results()
    return _records(trials, results, terms.keep_weights, before + time.perf_counter() - start)


def _about(dataset: Dataset, splits: Sequence[Split], precision: str, terms: Terms) -> dict[str, Any]:
    """What a checkpoint says of the training that it is of, beside its trials."""
    graph = dataset.graph
    # To read all features of a stored graph would take as long as an epoch; it knows what is in its files.
    content = graph.identity if isinstance(graph, StoredGraph) else graph.fingerprint
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "content": content[:16],
        "splits": [split.id for split in splits],
        "precision": precision,
        "metric": dataset.metric,
        "terms": [terms.choose, None if terms.class_weight is None else list(terms.class_weight)],
    }


def _train_population(
    network: Network, inputs: Inputs, dataset: Dataset, trials: list[Trial], bar: ProgressBar, terms: Terms
) -> list[Record]:
    start = time.perf_counter()
    splits = [dataset.splits[str(trial.split)] for trial in trials]
    population = _population_kind(trials[0])(network, inputs, dataset.metric, trials, splits, terms)
    stride = 1 if inputs.device.type == "cpu" else 20
    Runner(population).run(lambda epochs: bar.advance(epochs * len(trials), population), stride)
    return _records(trials, population.results(), True, time.perf_counter() - start)


def _records(trials: list[Trial], results: Results, with_logits: bool, seconds: float) -> list[Record]:
    return [
        Record(
            trial=trial,
            val=float(results.val[r]),
            test=float(results.test[r]),
            best_epoch=int(results.best_epoch[r]),
            status="ok" if results.alive[r] else "diverged",
            seconds=seconds / len(trials),
            device="",
            precision="",
            versions=versions(),
            traces={name: values[:, r].copy() for name, values in results.traces.items()},
            logits=results.logits[r] if with_logits else None,
            weights={name: weight[r].copy() for name, weight in results.weights.items()},
        )
        for r, trial in enumerate(trials)
    ]


@cache
def versions() -> dict[str, str]:
    """Of this package and of what it stands on, by name.

    >>> versions()["torch"] == torch.__version__
    True
    """
    try:
        own = version("graph-sharpen")
    except PackageNotFoundError:  # run from a source tree
        own = "source"
    return {"sharpen": own, "torch": torch.__version__, "python": platform.python_version()}
