"""What the user sees while a cluster trains: which population is where, how far it is, how long still."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sharpen.cluster.task import Report


class WorkersView:
    """A bar for every population under way, drawn on standard error if that is a terminal.

    >>> report = Report(number=0, node="3fa2", pid=17, attempt=1, done=50, total=200)
    >>> with WorkersView(show=False) as view:
    ...     view.update({0: ("node-1", "cora gcn, 40 runs", report)})
    ...     view.visible
    False
    """

    def __init__(self, show: bool = True) -> None:
        console = Console(stderr=True)
        self.visible = show and console.is_terminal
        self._bars = Progress(
            TextColumn("{task.fields[node]}"),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not self.visible,
            transient=True,
            # Lines that go to a file must not end up on the terminal.
            redirect_stdout=sys.stdout.isatty(),
        )
        self._tasks: dict[int, tuple[TaskID, int]] = {}

    def __enter__(self) -> WorkersView:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def update(self, under_way: Mapping[int, tuple[str, str, Report]]) -> None:
        """Shows these and no others: by number, the machine's name, what is trained, and how far it is."""
        for number, (task, attempt) in list(self._tasks.items()):
            if number not in under_way or under_way[number][2].attempt != attempt:  # another worker began anew
                self._bars.remove_task(task)
                del self._tasks[number]
        for number, (node, what, report) in under_way.items():
            if number not in self._tasks:
                self._tasks[number] = (self._bars.add_task(what, total=1.0, node=node), report.attempt)
            self._bars.update(self._tasks[number][0], completed=report.share)
