"""Trials of one architecture trained in batches of the graph, from their checkpoints on if they were stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sharpen.batching import Batching
from sharpen.datasets import Dataset
from sharpen.graph import Split
from sharpen.large.stored import StoredGraph
from sharpen.models.network import Network
from sharpen.training.batched import BatchedPopulation
from sharpen.training.checkpoint import checkpoint_path, members_kept, read_checkpoint, write_checkpoint
from sharpen.training.device import arithmetic_type, describe_device, keep_freed_memory
from sharpen.training.full_batch import halving
from sharpen.training.members import Terms
from sharpen.training.memory import members_in_batches
from sharpen.training.progress import ProgressBar
from sharpen.training.ranks import current_ranks
from sharpen.training.records import make_records
from sharpen.trial import Record, Trial


def train_in_batches(
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
        return finished(_train_some(network, dataset, batching, batch, device, precision, bar, terms, folder))

    def too_large(size: int) -> str:
        return (
            f"batches of {batching.name} with {size} runs at once do not fit in memory on {describe_device(device)}; cut the graph "
            "finer, with more parts or fewer parts a batch, or use a smaller width"
        )

    size = ranks.decided(members_at_once)
    keep_freed_memory(device)
    # Of several processes none can halve: the others are waiting for it.
    return halving(trials, size, some, too_large, least=1 if ranks.world == 1 else size)


def _train_some(
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
            kept.update(read_checkpoint(path, about)[0])
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
    return make_records(trials, results, terms.keep_weights, before + time.perf_counter() - start)


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
