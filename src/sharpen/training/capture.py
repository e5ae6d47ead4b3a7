"""Running epochs: one after another on a CPU; captured once and replayed on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import torch

from sharpen.training.device import keep_freed_memory
from sharpen.training.population import Population


class Runner:
    """Runs a population's epochs, as fast as its device allows.

    On a GPU the first epochs run as they are: they compile kernels and fill the allocator. Then one epoch is captured as a CUDA
    graph and replayed for the rest: no launch waits for Python, and nothing crosses to the host.
    """

    WARM_UP = 2

    def __init__(self, population: Population) -> None:
        keep_freed_memory(population.inputs.device)
        self._population = population
        self._done = 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def epoch(self) -> None:
        """One more epoch. On a GPU it may still be under way when this returns."""
        population = self._population
        if population.inputs.device.type != "cuda" or not population.way.captures:
            population.epoch()
        elif self._done < self.WARM_UP:
            # On the main stream: memory that a side stream had would be lost to the capture.
            population.epoch()
        else:
            if self._graph is None:
                self._graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._graph):
                    population.epoch()
            self._graph.replay()
        self._done += 1

    def run(self, after: Callable[[int], None], stride: int = 20) -> None:
        """All remaining epochs; ``after`` is told how many are newly done, now and then."""
        told = self._done
        while self._done < self._population.epochs:
            self.epoch()
            if self._done - told == stride or self._done == self._population.epochs:
                if self._population.inputs.device.type == "cuda":
                    torch.cuda.synchronize()
                after(self._done - told)
                told = self._done
