"""Running epochs: one after another on a CPU; captured once and replayed on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import torch

from sharpen.training.device import keep_freed_memory
from sharpen.training.population import Population


class Runner:
    """Runs a population's epochs, as fast as its device allows.

    On a GPU the first epochs run as they are: they compile kernels and fill the allocator. Then one epoch is captured as a CUDA
    graph and replayed for the rest: no launch waits for Python, and nothing crosses to the host. If that fails, which costs
    nothing that was trained, epochs go on as they began, and the population's way says why.
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
        # On the main stream at first: memory that a side stream had would be lost to the capture.
        if self._graph is None and self._done >= self.WARM_UP and population.way.captures and self._on_gpu:
            self._capture()
        if self._graph is None:
            population.epoch()
        else:
            self._graph.replay()
        self._done += 1

    @property
    def _on_gpu(self) -> bool:
        return self._population.inputs.device.type == "cuda"

    def _capture(self) -> None:
        graph, pool, stream = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle(), torch.cuda.current_stream()
        try:
            with torch.cuda.graph(graph, pool=pool):
                self._population.epoch()
        except Exception as error:
            _abandon(graph, pool, stream)
            if lacks := _out_of_memory(error):
                raise lacks from None
            said = str(error).strip().splitlines() or [type(error).__name__]
            self._population.way.cannot_be_captured(f"its epoch could not be captured ({said[0][:160]})")
        else:
            self._graph = graph

    def run(self, after: Callable[[int], None], stride: int = 20) -> None:
        """All remaining epochs; ``after`` is told how many are newly done, now and then."""
        told = self._done
        while self._done < self._population.epochs:
            self.epoch()
            if self._done - told == stride or self._done == self._population.epochs:
                if self._on_gpu:
                    torch.cuda.synchronize()
                after(self._done - told)
                told = self._done


def _abandon(graph: torch.cuda.CUDAGraph, pool: tuple[int, int], stream: torch.cuda.Stream) -> None:
    """Undoes what a capture that failed leaves behind: its stream is current, and up to torch 2.12 its memory is lost."""
    torch.cuda.set_stream(stream)
    torch.cuda.graph.default_capture_stream = None  # the next capture has a fresh one
    index = stream.device_index
    for undo in (
        graph.reset,
        lambda: torch._C._cuda_endAllocateToPool(index, pool),
        lambda: torch._C._cuda_releasePool(index, pool),
        torch.cuda.synchronize,
    ):
        with suppress(RuntimeError, AttributeError):  # done already, or a torch without
            undo()


def _out_of_memory(error: BaseException | None) -> torch.OutOfMemoryError | None:
    """What went wrong first, if that was memory: an end of a capture that fails hides it."""
    while error is not None and not isinstance(error, torch.OutOfMemoryError):
        error = error.__context__
    return error
