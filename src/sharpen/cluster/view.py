"""What the user sees while a cluster trains: which population is where, how far it is, how long still."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sharpen.cluster.task import Report


class WorkersView:
    """A bar for every population under way, drawn on standard error if that is a terminal, and only while somebody waits.

    >>> view = WorkersView(show=False)
    >>> view.update({0: ("node-1", "cora gcn, 40 runs", Report(0, node="3fa2", pid=17, attempt=1, done=50, total=200))})
    >>> view.rest()
    >>> view.visible
    False
    """

    def __init__(self, show: bool = True) -> None:
        console = Console(stderr=True)
        self.visible = show and console.is_terminal
        who, share = TextColumn("{task.fields[node]} {task.description}"), TextColumn("{task.percentage:>3.0f} %")
        columns = (who, BarColumn(), share, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        # Lines of text are written when it has stopped, and where they go is no business of it.
        free: dict[str, Any] = {"redirect_stdout": False, "redirect_stderr": False}
        self._bars = Progress(*columns, console=console, transient=True, auto_refresh=False, **free)
        self._tasks: dict[tuple[int, int], TaskID] = {}

    def update(self, under_way: Mapping[int, tuple[str, str, Report]]) -> None:
        """Shows these and no others: by number, the machine's name, what is trained, and how far it is."""
        if not self.visible:
            return
        # Another worker that takes a population up begins anew.
        now = {(number, each[2].attempt): each for number, each in under_way.items()}
        for over in self._tasks.keys() - now.keys():
            self._bars.remove_task(self._tasks.pop(over))
        for key, (node, what, report) in now.items():
            if key not in self._tasks:
                self._tasks[key] = self._bars.add_task(what, total=report.total, node=node)
            self._bars.update(self._tasks[key], completed=report.done)
        self._bars.start()
        self._bars.refresh()

    def rest(self) -> None:
        """Clears the screen for lines of text, until the next update."""
        self._bars.stop()
