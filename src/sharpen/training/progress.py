"""What the user sees while populations train: how far, how long still, who is alive, how good so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sharpen.training.members import Members


class ProgressBar:
    """A bar over all member-epochs of a call, drawn on standard error if that is a terminal.

    Args:
        member_epochs: How many epochs of single members there will be.
        show: Whether to draw; or, in place of a bar, a function that is told how many are newly done.

    >>> with ProgressBar(10, show=print) as bar:
    ...     bar.advance(10)
    10
    """

    def __init__(self, member_epochs: int, show: bool | Callable[[int], None] = True) -> None:
        self._tell = show if callable(show) else None
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[state]}"),
            console=console,
            disable=not (show is True and console.is_terminal),
            transient=True,
        )
        self._task = self._bar.add_task("training", total=member_epochs, state="")
        self._next_look = 0.0

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def advance(self, member_epochs: int, population: Members | None = None) -> None:
        """So many more epochs of single members are done."""
        if self._tell is not None:
            self._tell(member_epochs)
        self._bar.advance(self._task, member_epochs)
        # Looking at the population waits for the device, so it is done rarely, and only when somebody sees it.
        if population is not None and not self._bar.disable and time.monotonic() > self._next_look:
            self._next_look = time.monotonic() + 1
            alive = int(population.alive.sum())
            state = f"{alive} runs"
            if alive < population.members:
                state += f", {population.members - alive} diverged"
            if alive:
                state += f", best validation {100 * float(population.best_val[population.alive].max()):.1f}"
            self._bar.update(self._task, state=state)
