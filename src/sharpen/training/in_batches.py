"""Trials of one architecture trained in batches of the graph, from their checkpoints on if they were stopped."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from sharpen.batching import Batching
from sharpen.graph import Split
from sharpen.large.stored import StoredGraph
from sharpen.models.network import Network
from sharpen.training.batched import BatchedPopulation
from sharpen.training.checkpoint import checkpoint_path, members_kept, read_checkpoint, write_checkpoint
from sharpen.training.device import arithmetic_type, describe_device, keep_freed_memory
from sharpen.training.full_batch import halving
from sharpen.training.members import Call
from sharpen.training.memory import members_in_batches
from sharpen.training.ranks import current_ranks
from sharpen.training.records import make_records
from sharpen.trial import Record, Trial


def train_in_batches(network: Network, call: Call, trials: list[Trial]) -> list[Record]:
    """Trains trials of one architecture and one batching, as many at once as memory allows, and can go on where it stopped."""
    batching, ranks = Batching.parse(str(trials[0].batching)), current_ranks()

    def members_at_once() -> int:
        kept = 0 if call.checkpoints is None else members_kept(call.checkpoints, trials)
        dtype = arithmetic_type(call.precision)
        return kept or members_in_batches(network, call.dataset.graph, batching, len(trials), call.device, dtype)

    def too_large(size: int) -> str:
        return (
            f"batches of {batching.name} with {size} runs at once do not fit in memory on {describe_device(call.device)}; cut the "
            "graph finer, with more parts or fewer parts a batch, or use a smaller width"
        )

    size = ranks.decided(members_at_once)
    keep_freed_memory(call.device)
    # Of several processes none can halve: the others are waiting for it.
    least = 1 if ranks.world == 1 else size
    return halving(call, trials, size, lambda some: _train_some(network, batching, call, some), too_large, least)


def _train_some(network: Network, batching: Batching, call: Call, trials: list[Trial]) -> list[Record]:
    """Trains one population in batches, from its checkpoint on if it has one."""
    start, ranks, dataset, splits = time.perf_counter(), current_ranks(), call.dataset, call.splits(trials)
    dtype = arithmetic_type(call.precision)
    population = BatchedPopulation(
        network, dataset.graph, batching, dataset.metric, trials, splits, call.device, dtype, call.terms, ranks
    )
    path = None if call.checkpoints is None else checkpoint_path(call.checkpoints, trials)
    about = {} if path is None else _about(call, splits)
    kept: dict[str, Tensor] = {}

    def there_is_one() -> bool:
        if path is not None and path.exists():
            kept.update(read_checkpoint(path, about)[0])
        return bool(kept)

    if ranks.decided(there_is_one):
        population.restore(kept)
        call.bar.advance(int(population.epoch_number) * len(trials), population)
    start -= float(population.seconds)
    while int(population.epoch_number) < population.epochs:
        population.epoch()
        call.bar.advance(len(trials), population)
        population.seconds.fill_(time.perf_counter() - start)
        if path is not None and ranks.writes:
            write_checkpoint(path, population.state(), about)
    return make_records(call, population, trials, start, call.terms.keep_weights)


def _about(call: Call, splits: Sequence[Split]) -> dict[str, Any]:
    """What a checkpoint says of the training that it is of, beside its trials."""
    graph, terms = call.dataset.graph, call.terms
    # To read all features of a stored graph would take as long as an epoch; it knows what is in its files.
    content = graph.identity if isinstance(graph, StoredGraph) else graph.fingerprint
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "content": content[:16],
        "splits": [split.id for split in splits],
        "precision": call.precision,
        "metric": call.dataset.metric,
        "terms": [terms.choose, None if terms.class_weight is None else list(terms.class_weight)],
    }
