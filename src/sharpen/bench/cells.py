"""Timing cells: the time per epoch of one run, in a plain loop and in a population."""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from sharpen.bench.floor import measure_ceiling, wait_for, work
from sharpen.bench.peer import PlainLoop
from sharpen.datasets import Dataset
from sharpen.models.inputs import Inputs
from sharpen.models.registry import CONVOLUTIONS
from sharpen.training.capture import Runner
from sharpen.training.decision import decide
from sharpen.training.device import arithmetic
from sharpen.training.full_batch import population_size
from sharpen.training.population import Population
from sharpen.training.trials import blueprint_of, resolve
from sharpen.training.ways import Way
from sharpen.trial import Trial

# What a CPU is measured by: the small graphs, and one with many features.
_SMALL = itertools.product(("cora", "citeseer", "chameleon", "minesweeper"), CONVOLUTIONS)
CPU_CELLS = (*_SMALL, ("cs", CONVOLUTIONS[0]))


@dataclass(frozen=True)
class Timing:
    """One cell: seconds per epoch of one run, in the plain loop and in the population, and what limits them."""

    dataset: str
    model: str
    precision: str
    members: int
    plain: float
    population: float
    plain_memory: int
    population_memory: int
    floor: float | None
    way: str
    ready: float = 0.0  # seconds from the decision on a way to the first warm epoch: compiling and capture

    @property
    def ratio(self) -> float:
        """How many times faster a run is in the population."""
        return self.plain / self.population

    @property
    def floor_share(self) -> float | None:
        """The share of the time that the device's own limits explain; None where a model's work is not known."""
        return None if self.floor is None else self.floor / self.population


class Measured(NamedTuple):
    """The median seconds of a call, the peak memory in bytes (of a GPU), and when it was warm, by :func:`time.perf_counter`."""

    seconds: float
    memory: int
    warm: float


def geometric_mean(timings: Iterable[Timing]) -> float:
    """The mean that treats twice as fast and half as fast as opposites."""
    return statistics.geometric_mean(t.ratio for t in timings)


def time_cells(
    cells: Iterable[tuple[Dataset, Any]],
    device: torch.device,
    precision: str,
    members: int | None = None,
    seconds: float = 1.0,
    model_args: Mapping[str, Any] | None = None,
    ceiling: bool = True,
) -> Iterator[Timing]:
    """Times every (dataset, model), one after another, with the paper's settings.

    Args:
        cells: The datasets and models; a trial instead of a model says its own settings.
        device, precision: Where and how to compute; the plain loop's matrix products use the same precision.
        members: The population's size; by default up to 205, as many as fit.
        seconds: How long to time each side.
        model_args: Further arguments of the models.
        ceiling: Whether to measure what the device could do at best.
    """
    with arithmetic(precision, device) as dtype:
        limit = measure_ceiling(device) if ceiling else None

        def timing(dataset: Dataset, model: Any) -> Timing:
            graph = dataset.graph
            given = model if isinstance(model, Trial) else Trial(model=model, model_args=model_args)
            trial = resolve(replace(given, lam=0.25), dataset)
            blueprint = blueprint_of(graph.num_features, graph.num_classes, trial)
            loop = PlainLoop(graph, dataset.splits[str(trial.split)], trial, dataset.metric, device, blueprint)
            plain = _time(loop.epoch, device, seconds)
            del loop
            _release(device)

            begin = time.perf_counter()
            way = decide(blueprint, Inputs(graph, device, dtype))
            # As a study has them: a grid of λ for each of a few seeds.
            grid = [(0.05 * (r % 41), r // 41) for r in range(members or 205)]
            trials = [replace(trial, lam=lam, lam_labeled=-lam, seed=seed) for lam, seed in grid]
            size = members or population_size(way, dataset, trials)
            each = time_population(way, dataset, trials[:size], seconds)
            network, floor = blueprint.network, None
            if limit is not None and network is not None:
                entries = int(graph.x.values().numel()) if graph.is_sparse else graph.x.numel()
                floor = limit.seconds(work(network, graph.num_nodes, entries, graph.adjacency.nnz))
            about = (dataset.name, blueprint.title, precision, size)
            times = plain.seconds, each.seconds / size
            return Timing(*about, *times, plain.memory, each.memory, floor, way.full_name, each.warm - begin)

        for dataset, model in cells:
            yield timing(dataset, model)


def time_population(way: Way, dataset: Dataset, trials: list[Trial], seconds: float) -> Measured:
    """An epoch of a whole population."""
    splits = [dataset.splits[str(trial.split)] for trial in trials]
    population = Population(way, dataset.metric, trials, splits)
    runner = Runner(population)
    result = _time(runner.epoch, way.inputs.device, seconds, at_most=population.epochs)
    del runner, population
    _release(way.inputs.device)
    return result


def _release(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _time(run: Callable[[], None], device: torch.device, seconds: float, at_most: int = 10**9) -> Measured:
    """One call, timed over about so many seconds."""
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    warm_up = 3 if on_gpu else 1
    for _ in range(warm_up):
        run()
    wait_for(device)
    # On a GPU in small groups: waiting for the device after every epoch would make the epoch look longer than it is.
    times: list[float] = []
    group, warm = (5 if on_gpu else 1), time.perf_counter()
    while len(times) < 3 or time.perf_counter() - warm < seconds:
        if times and warm_up + group * (len(times) + 1) > at_most:
            break
        start = time.perf_counter()
        for _ in range(group):
            run()
        wait_for(device)
        times.append((time.perf_counter() - start) / group)
    peak = torch.cuda.max_memory_allocated() if on_gpu else 0
    return Measured(sorted(times)[len(times) // 2], peak, warm)
