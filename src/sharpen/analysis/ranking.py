"""Our scores among published ones: per dataset, ranked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from sharpen.analysis.outcome import NOT_RUN, Outcome
from sharpen.errors import InputError
from sharpen.models.registry import PAPER_MODELS, REGISTRY
from sharpen.paper import Published, published
from sharpen.studies.spec import Study

# The paper's own rows in its tables of competitors: they are what ours are compared with, not competitors.
_OWN = {REGISTRY[name].title: name for name in PAPER_MODELS}
SHARPENED = "+TS"


@dataclass(frozen=True)
class Entry:
    """One method on one dataset, in percent.

    Args:
        method: its name; ours are MLP, GCN, SAGE, GAT without and with ``+TS``.
        mean, sd: its score; None where there is none yet, and ``reason`` says why.
        ours: whether it is ours, and not someone else's as published.
        rank: among all that have a score, 1 for the best; equal scores share the better rank.
        paper: for ours, what the paper reports.
        paper_sd: and its spread.

    >>> Entry("GCN+TS", 85.6, 0.4, ours=True, rank=2).rank
    2
    """

    method: str
    mean: float | None
    sd: float | None
    ours: bool
    n: int | None = None
    rank: int | None = None
    paper: float | None = None
    paper_sd: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Ranking:
    """All methods on one dataset, the best first, those without a score last."""

    dataset: str
    entries: tuple[Entry, ...]

    @property
    def best_of_ours(self) -> Entry | None:
        """Our entry with the best score, if there is one."""
        return next((entry for entry in self.entries if entry.ours and entry.mean is not None), None)

    def place(self, entry: Entry) -> tuple[int, int]:
        """The place of an entry of ours among other people's methods alone, and how many there are with it.

        Its rank counts our other entries too: a plain model would fall behind itself with sharpening.

        >>> ours = [Entry("GCN+TS", 85.0, 0.5, ours=True, rank=2), Entry("GCN", 84.0, 0.5, ours=True, rank=3)]
        >>> ranking = Ranking("cora", (Entry("Other", 86.0, 0.5, ours=False, rank=1), *ours))
        >>> [ranking.place(entry) for entry in ours]
        [(2, 2), (2, 2)]
        """
        if entry.mean is None:
            raise InputError(f"{entry.method} on {self.dataset} has no score and no place; ask for those that have one")
        others = [other.mean for other in self.entries if not other.ours and other.mean is not None]
        return _place(entry.mean, others), 1 + len(others)

    @property
    def left_end(self) -> float:
        """Where an axis of the scores begins: methods far behind all others would squeeze the rest together, and stay left of it.

        >>> scores = (86.0, 85.0, 84.0, 83.0, 60.0)
        >>> Ranking("cora", tuple(Entry("M", mean, 0.5, ours=False) for mean in scores)).left_end
        82.5
        """
        scores = [(entry.mean, entry.sd or 0.0) for entry in self.entries if entry.mean is not None]
        lower, upper = np.quantile([mean for mean, _ in scores], (0.25, 0.75))
        return float(min(mean - sd for mean, sd in scores if mean >= lower - 2.5 * (upper - lower)))


def rankings(study: Study, main: Outcome) -> list[Ranking]:
    """Our baselines and λ by validation among the published scores, for every dataset of the study.

    Published scores stand as the paper cites them: measured by others, partly on other splits, without any pairing. A rank here is
    an order of means, and no test.

    Args:
        study: the study ``comparison``, or one like it; of ours, its models are shown.
        main: the outcome of the study that it reads.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> cora = rankings(load_study("comparison"), outcome(load_study("main"), "paper"))[0]
    >>> cora.entries[0].method, cora.entries[-1].reason
    ('OGFormer', 'not run yet')
    """
    table = published(study.published or "comparison")
    own = [name for name, model in _OWN.items() if model in study.models]
    found = []
    for dataset in study.datasets:
        rows = {method: row for (name, method, _), row in table.items() if name == dataset}
        others = [
            Entry(method, row.mean, row.sd, ours=False)
            for method, row in rows.items()
            if method.removesuffix(SHARPENED) not in _OWN
        ]
        ours = [_ours(name + suffix, dataset, main, rows) for suffix in ("", SHARPENED) for name in own]
        found.append(Ranking(dataset, _ranked(others + ours)))
    return found


def _ours(method: str, dataset: str, main: Outcome, rows: Mapping[str, Published]) -> Entry:
    model, row = _OWN[method.removesuffix(SHARPENED)], rows.get(method)
    paper, spread = (None, None) if row is None else (row.mean, row.sd)
    cell = next((cell for cell in main.cells if (cell.dataset, cell.model) == (dataset, model)), None)
    name = next(iter(main.study.choose), "") if method.endswith(SHARPENED) else main.study.baseline
    side = cell.sides.get(name or "") if cell is not None else None
    entry = Entry(method, None, None, ours=True, paper=paper, paper_sd=spread)
    if side is None or side.mean is None or not side.complete:
        return replace(entry, reason=NOT_RUN if side is None else side.reason)
    return replace(entry, mean=side.mean, sd=side.sd, n=side.n)


def _place(score: float, among: Iterable[float]) -> int:
    """1 for the best; scores that read the same with two decimals share a place."""
    return 1 + sum(round(other, 2) > round(score, 2) for other in among)


def _ranked(entries: list[Entry]) -> tuple[Entry, ...]:
    """The best first."""
    scores = [entry.mean for entry in entries if entry.mean is not None]
    placed = [entry if entry.mean is None else replace(entry, rank=_place(entry.mean, scores)) for entry in entries]
    return tuple(sorted(placed, key=lambda entry: (entry.rank is None, entry.rank or 0)))
