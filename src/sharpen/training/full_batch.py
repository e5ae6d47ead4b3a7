"""Trials of one model trained on the whole graph at once, in as few populations as memory allows."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial

import torch

from sharpen.datasets import Dataset
from sharpen.errors import InputError, as_given
from sharpen.models.blueprint import Blueprint, named_failures
from sharpen.training.capture import Runner
from sharpen.training.device import describe_device, free_memory
from sharpen.training.members import Call
from sharpen.training.meta import MetaPopulation
from sharpen.training.population import Population
from sharpen.training.records import make_records
from sharpen.training.ways import Way
from sharpen.trial import Record, Trial

# Of a GPU's free memory, what a population may plan with; the allocator needs the rest.
_GPU_SHARE = 0.8
# Members in a loop share the objective and the optimiser, which a GPU feels; beyond so many there is nothing to gain.
_LOOP_MEMBERS = {"cpu": 1, "cuda": 8}
# So few members are tried at once: to measure what one takes would be three epochs of as many.
_FEW_MEMBERS = 3


def train_full(way: Way, blueprint: Blueprint, call: Call, trials: list[Trial]) -> list[Record]:
    """Trains trials of one architecture."""
    with named_failures(blueprint):
        size = population_size(way, call.dataset, trials)
    train_some = partial(_train_population, way, blueprint, call)
    return halving(call, trials, size, train_some, lambda _: too_large(blueprint, call.device))


def too_large(blueprint: Blueprint, device: torch.device) -> str:
    """What to say of a model of which not even one run fits."""
    in_pieces = f"take the graph in pieces with {as_given('batching', 'clusters')}, " if blueprint.network else ""
    return (
        f"one run of {blueprint.title} does not fit in memory on {describe_device(device)}; {in_pieces}"
        f"use a smaller width, or {as_given('device', 'cpu')}"
    )


def _train_population(way: Way, blueprint: Blueprint, call: Call, trials: list[Trial]) -> list[Record]:
    start = time.perf_counter()
    stride = 1 if way.inputs.device.type == "cpu" else 20
    with named_failures(blueprint):
        population = _population_kind(trials[0])(way, call.dataset.metric, trials, call.splits(trials), call.terms)
        Runner(population).run(lambda epochs: call.bar.advance(epochs * len(trials), population), stride)
    return make_records(call, population, trials, start, way=way.full_name, digest=blueprint.digest)


def halving(
    call: Call,
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
            done = train_some(trials[len(records) : len(records) + size])
            call.on_records(done)
            records += done
            continue
        except torch.OutOfMemoryError:
            if size <= least:
                raise InputError(too_large(size)) from None
        # Outside the handler, so that the failed population is no longer held by the error's traceback.
        size = (size + 1) // 2
        gc.collect()
        torch.cuda.empty_cache()
    return records


def population_size(way: Way, dataset: Dataset, trials: list[Trial]) -> int:
    """How many of the trials to train at once."""
    wanted, device = len(trials), way.inputs.device
    if way.name == "loop":
        wanted = min(wanted, _LOOP_MEMBERS[device.type])
    if device.type == "cpu":
        return max(1, min(wanted, way.cpu_members))
    if len(trials) <= _FEW_MEMBERS:
        return max(1, wanted)
    try:
        each = _member_bytes(way, dataset, trials[0])
    except torch.OutOfMemoryError:
        return 1
    finally:
        gc.collect()
        torch.cuda.empty_cache()
    fits = max(1, int(_GPU_SHARE * free_memory(device) / each))
    populations = -(-len(trials) // min(fits, wanted))
    return -(-len(trials) // populations)  # equal shares


def _member_bytes(way: Way, dataset: Dataset, trial: Trial) -> float:
    """What one more member takes on the GPU: measured on one epoch of one and of three members.

    Before them, an epoch that is not counted: it brings the graph to the device.
    """
    split, peaks = dataset.splits[str(trial.split)], []
    for members in (1, 1, 3):
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        _population_kind(trial)(way, dataset.metric, [trial] * members, [split] * members).epoch()
        peaks.append(torch.cuda.max_memory_allocated() - before)
    return max(1.0, (peaks[2] - peaks[1]) / 2)


def _population_kind(trial: Trial) -> type[Population]:
    return Population if trial.lam_max is None else MetaPopulation
