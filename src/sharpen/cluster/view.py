"""What the user sees while a cluster trains: which population is where, how far it is, how long still."""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

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
        self._console = Console(stderr=True)
        self.visible = show and self._console.is_terminal
        self._live: Live | None = None
        self._began: dict[tuple[int, int], float] = {}

    def update(self, under_way: Mapping[int, tuple[str, str, Report]]) -> None:
        """Shows these and no others: by number, the machine's name, what is trained, and how far it is."""
        if not self.visible:
            return
        now = time.monotonic()
        table = Table.grid(padding=(0, 1))
        for number, (node, what, report) in under_way.items():
            # Another worker that takes it up begins anew.
            elapsed = now - self._began.setdefault((number, report.attempt), now)
            left = elapsed * (1 - report.share) / report.share if report.share else None
            bar = ProgressBar(total=report.total, completed=report.done, width=40)
            table.add_row(node, what, bar, f"{100 * report.share:3.0f} %", _clock(elapsed), "left", _clock(left))
        if self._live is None:
            # Lines of text are written when it has stopped, and where they go is no business of it.
            self._live = Live(
                console=self._console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
            )
            self._live.start()
        self._live.update(table, refresh=True)

    def rest(self) -> None:
        """Clears the screen for lines of text, until the next update."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def _clock(seconds: float | None) -> str:
    """A time as a clock shows it.

    >>> _clock(3725.0), _clock(None)
    ('1:02:05', '-:--:--')
    """
    if seconds is None:
        return "-:--:--"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
