"""What the user sees while populations train: how far, how long still, who is alive, how good so far."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from html import escape
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sharpen.training.members import Members


class _NotebookBar:
    """The same bar in a notebook, where a line of text is shown and then replaced."""

    def __init__(self) -> None:
        from IPython.display import display

        self._handle = display({"text/plain": "training", "text/html": ""}, raw=True, display_id=True)
        self._start = time.monotonic()

    def show(self, share: float, state: str) -> None:
        seconds = time.monotonic() - self._start
        left = seconds * (1 - share) / share if share else 0.0
        text = f"training {100 * share:.0f} %, {seconds:.0f} s, left about {left:.0f} s{', ' * bool(state)}{state}"
        bar = f'<progress max="1" value="{share:.3f}"></progress> {escape(text)}'
        self._handle.update({"text/plain": text, "text/html": bar}, raw=True)


class ProgressBar:
    """A bar over all member-epochs of a call, drawn on standard error if that is a terminal, or in a notebook; or a function that
    is told how many are newly done.

    >>> with ProgressBar(10, show=print) as bar:
    ...     bar.advance(10)
    10
    """

    def __init__(self, member_epochs: int, show: bool | Callable[[int], None] = True) -> None:
        self._tell = show if callable(show) else None
        console = Console(stderr=True)
        self._notebook = _NotebookBar() if show is True and console.is_jupyter else None
        start, bar, share = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %")
        times = TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()
        silent = not (show is True and console.is_terminal and self._notebook is None)
        columns = (start, bar, share, *times, TextColumn("{task.fields[state]}"))
        self._bar = Progress(*columns, console=console, disable=silent, transient=True)
        self._task = self._bar.add_task("training", total=member_epochs, state="")
        self._total, self._done, self._next_look, self._best = max(1, member_epochs), 0, 0.0, ""

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    @property
    def visible(self) -> bool:
        """Whether anybody sees it."""
        return not self._bar.disable or self._notebook is not None

    def advance(self, member_epochs: int, population: Members | None = None) -> None:
        """So many more epochs of single members are done."""
        if self._tell is not None:
            self._tell(member_epochs)
        self._done += member_epochs
        self._bar.advance(self._task, member_epochs)
        # Looking at the population waits for the device, so it is done rarely, and only when somebody sees it.
        if not self.visible or (time.monotonic() <= self._next_look and self._done < self._total):
            return
        self._next_look = time.monotonic() + 1
        state = self._best if population is None else _state(population)
        if self._notebook is not None:
            self._notebook.show(self._done / self._total, state)
        elif state:
            self._bar.update(self._task, state=state)


class BudgetBar(ProgressBar):
    """One bar over the seconds that a search has, whatever it trains, with the best that it has found.

    Args:
        seconds: How long the search may take.
        show: Whether to draw.

    >>> with BudgetBar(60.0, show=False) as bar:
    ...     bar.found("81.0 %, plain GCN")
    ...     bar.visible
    False
    """

    def __init__(self, seconds: float, show: bool = True) -> None:
        super().__init__(max(1, round(1000 * seconds)), show)
        self._start = time.monotonic()

    def tick(self, member_epochs: int = 0) -> None:
        """Time has gone by; however many epochs were trained in it."""
        gone = min(self._total, round(1000 * (time.monotonic() - self._start)))
        self.advance(gone - self._done)

    def found(self, best: str) -> None:
        """What is best so far, in words."""
        room = max(20, self._bar.console.width - 70)  # beside the bar, which is narrower where there is little
        self._best, self._next_look = f"best so far {best}"[:room], 0.0
        self.tick()


def _state(population: Members) -> str:
    alive = int(population.alive.sum())
    state = f"{alive} runs"
    if alive < population.members:
        state += f", {population.members - alive} diverged"
    if alive and population.best_val[population.alive].max() > -math.inf:  # where there are validation nodes
        state += f", best validation {100 * float(population.best_val[population.alive].max()):.1f}"
    return state
