"""A report before anyone has written it: blocks of sentences, tables and charts, built once and rendered in several ways.

:mod:`sharpen.report.text` writes Markdown, CSV and LaTeX, :mod:`sharpen.report.page` a page, :mod:`sharpen.report.figures` draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sharpen.analysis.curves import Curve
from sharpen.analysis.outcome import Outcome
from sharpen.report.charts import Chart
from sharpen.report.shares import run_seconds
from sharpen.report.study_text import cost_sentence, provenance_sentence
from sharpen.report.tables import Table
from sharpen.studies.spec import Contrast, Study

FOUND, MISSING = "What it found", "What is missing"
# How the names of tables begin that hold scores alone.
SCORES = "scores of "


@dataclass(frozen=True)
class Sentences:
    """Sentences under a heading.

    >>> Sentences("What it found", ("Nothing.",)).lines
    ('Nothing.',)
    """

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Tables:
    """Tables that belong together: below each other in a text, on a page one of them at a time.

    Args:
        title: the heading.
        views: by name.
        text: a sentence above them, on a page.
        shown: which of them a page shows first.
        apart: whether a page shows one at a time.
        contrasts: of tables of one comparison, by name, which; a page lets their cells be opened.

    >>> Tables("The table", {}).apart
    True
    """

    title: str
    views: Mapping[str, Table]
    text: str = ""
    shown: int = 0
    apart: bool = True
    contrasts: Mapping[str, Contrast] = field(default_factory=dict)


@dataclass(frozen=True)
class Layout:
    """How charts become one figure on paper.

    Args:
        name: of the figure, and of its file.
        panel: width and height of a chart, in inches.
        columns: so many charts beside each other; None: a row for each view.
        views: those to draw; None: all.
        legend: whether the names of series, or the entries of a legend, stand above.
        share: of which axes the ticks are written once: ``x``, ``xy`` or none.

    >>> Layout("glass", (2.9, 2.3)).columns is None
    True
    """

    name: str
    panel: tuple[float, float]
    columns: int | None = None
    views: tuple[str, ...] | None = None
    legend: bool = False
    share: str = ""


@dataclass(frozen=True)
class Charts:
    """Charts that belong together: a section of a page, a figure on paper, or both.

    Args:
        title: the heading.
        views: by name; on paper each may be a row. None leaves a place empty.
        text: how to read them.
        layout: on paper; None: not drawn there.
        on_page: whether a page shows them.
        apart: whether a page shows one view at a time.

    >>> Charts("What λ does", {"": ()}).layout is None
    True
    """

    title: str
    views: Mapping[str, Sequence[Chart | None]]
    text: str = ""
    layout: Layout | None = None
    on_page: bool = True
    apart: bool = True


Block = Sentences | Tables | Charts


@dataclass(frozen=True)
class Report:
    """The report of one study under one protocol.

    Args:
        study: which; it may read the records of another.
        outcome: what the records say.
        blocks: in their order on a page.
        data: the table whose numbers the CSV holds.
        curves: the scores of its cells over λ.
    """

    study: Study
    outcome: Outcome
    blocks: tuple[Block, ...]
    data: Table
    curves: tuple[Curve, ...] = field(default=(), repr=False)

    @property
    def protocol(self) -> str:
        """Under which the records were made."""
        return self.outcome.protocol

    @property
    def name(self) -> str:
        """Of its files, such as ``main-paper``."""
        return f"{self.study.name}-{self.protocol}"

    @property
    def progress(self) -> str:
        """How much of it is there."""
        return (
            f"reads {reads}"
            if (reads := self.study.reads)
            else f"{self.outcome.finished:,} of {self.outcome.planned:,}"
        )

    @property
    def cost(self) -> str:
        """What it took, in a sentence."""
        if (reads := self.study.reads) is not None:
            return f"it has no runs of its own; it reads those of {reads}."
        return cost_sentence(self.outcome.costs)

    @property
    def provenance(self) -> str:
        """Where it comes from, in a sentence."""
        return provenance_sentence(self.outcome.provenance)

    @property
    def runs(self) -> dict[str, float]:
        """The trials whose records it shows, with their seconds, if it is not another study's report that shows them."""
        return run_seconds(self.outcome) if self.study.reads is None else {}

    @property
    def findings(self) -> tuple[str, ...]:
        """What it found, in sentences."""
        return self._lines(FOUND)

    @property
    def missing(self) -> tuple[str, ...]:
        """What is not there, and why."""
        return self._lines(MISSING)

    @property
    def tables(self) -> list[Table]:
        """All of its tables, in order."""
        return [table for block in self.blocks if isinstance(block, Tables) for table in block.views.values()]

    @property
    def figures(self) -> dict[str, Charts]:
        """What is drawn on paper, by name."""
        found = [block for block in self.blocks if isinstance(block, Charts)]
        return {block.layout.name: block for block in found if block.layout is not None}

    def _lines(self, title: str) -> tuple[str, ...]:
        own = [block for block in self.blocks if isinstance(block, Sentences) and block.title == title]
        return tuple(line for block in own for line in block.lines)
