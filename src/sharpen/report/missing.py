"""What a study's records lack, by reason: whole cells, and variants of cells of which part was run."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Sequence

from sharpen.analysis.curves import Curve, on_lambda_curve
from sharpen.analysis.dynamics import Dynamics
from sharpen.analysis.outcome import NOT_RUN, CellOutcome, Outcome
from sharpen.analysis.runs import Side
from sharpen.report.names import cell_title, dataset_title, plural

# So many variants, or ranges of λ, are named; of more, it is said how many there are.
_MOST_NAMED = 4


def missing_lines(outcome: Outcome) -> list[str]:
    """Which cells have nothing to show, or not all of it, by reason; of those that were run in part, which part is not there.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> missing_lines(outcome(load_study("arxiv"), "paper", unavailable={"ogbn-arxiv": "data not at hand"}))
    ['data not at hand: ogbn-arxiv (3 cells).']
    """
    cells: dict[str, list[CellOutcome]] = {}
    for cell in outcome.cells:
        for reason in dict.fromkeys(_reasons(cell, outcome)):
            cells.setdefault(reason, []).append(cell)
    return [f"{reason}: {_places(own, outcome)}." for reason, own in cells.items()]


def untraced_line(outcome: Outcome, drawn: Sequence[Dynamics]) -> list[str]:
    """Which cells have their scores and no traces, of a study that is about traces; empty if none.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> untraced_line(outcome(load_study("entropy-dynamics"), "paper"), [])
    []
    """
    there = {(cell.dataset, cell.model) for cell in drawn}
    own = [c for c in outcome.cells if (c.dataset, c.model) not in there and all(e.complete for e in c.effects)]
    return [f"run without traces for another study: {_places(own, outcome)}."] if own else []


def missing_lams(outcome: Outcome, curves: Sequence[Curve]) -> str | None:
    """Which λ of the study the curves do not show, as one sentence; None if they show all.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> missing_lams(outcome(load_study("main"), "paper"), []) is None
    True
    """
    drawn = {(curve.dataset, curve.model): curve for curve in curves}
    cells: Counter[str] = Counter()
    for cell in outcome.cells:
        curve, lams = drawn.get((cell.dataset, cell.model)), set(_lams(cell, outcome).values())
        if absent := {lam for lam in lams if curve is not None and curve.at(lam) is None}:
            cells[_ranges(absent, sorted(lams))] += 1
    if not cells:
        return None
    whole = len(cells) == 1 and cells.total() == len(drawn)
    where = {what: "" if whole else f" in {n} {plural('cell', n)}" for what, n in cells.items()}
    return "; ".join(f"{what} {NOT_RUN}{which}" for what, which in where.items())


def kind(reason: str) -> str:
    """A reason without its numbers: they differ from cell to cell, and the cells tell them.

    >>> kind("5 of 10 not run yet"), kind("not run yet")
    ('part of the runs not run yet', 'not run yet')
    """
    return f"part of the runs {NOT_RUN}" if reason.endswith(NOT_RUN) and reason != NOT_RUN else reason


def _places(cells: Sequence[CellOutcome], outcome: Outcome) -> str:
    """Cells by name; a dataset of which all are meant is named once.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> empty = outcome(load_study("arxiv"), "paper")
    >>> _places(empty.cells, empty), _places(empty.cells[:1], empty)
    ('ogbn-arxiv (3 cells)', 'ogbn-arxiv GCN (1 cell)')
    """
    parts = []
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        own, every = ([cell.model for cell in of if cell.dataset == dataset] for of in (cells, outcome.cells))
        parts += (
            [dataset_title(dataset)] if own == every else [" and ".join(cell_title(dataset, model) for model in own)]
        )
    return f"{', '.join(parts)} ({len(cells)} {plural('cell', len(cells))})"


def _reasons(cell: CellOutcome, outcome: Outcome) -> list[str]:
    if cell.reason is not None:  # not one run
        return [cell.reason]
    sides = [cell.sides[name] for name in outcome.study.variants]
    absent: dict[str, list[Side]] = {}
    for side in sides:
        if not side.runs:
            absent.setdefault(side.reason or NOT_RUN, []).append(side)
    reasons = [f"{_variants(own, cell, outcome)} {why}" for why, own in absent.items()]
    if partly := [side for side in sides if side.runs and not side.complete]:
        whose = "" if len(partly) == len(sides) else f"of {_variants(partly, cell, outcome)} "
        reasons.append(f"part of the runs {whose}{NOT_RUN}")
    # What is run and still gives nothing: all diverged, or no pair is left.
    for effect in cell.effects:
        both = [cell.sides[name] for name in effect.contrast]
        if effect.difference is None and effect.reason and all(side.complete for side in both):
            reasons.append(effect.reason)
    return reasons


def _variants(sides: Sequence[Side], cell: CellOutcome, outcome: Outcome) -> str:
    """Variants by the range of their λ, where that is all that makes them different, else by name."""
    lams = _lams(cell, outcome)
    names = [side.name for side in sides]
    if len(names) > 1 and all(name in lams for name in names):
        return _ranges({lams[name] for name in names}, sorted(set(lams.values())))
    if len(names) > _MOST_NAMED:
        return f"{len(names)} of {len(outcome.study.variants)} variants"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _lams(cell: CellOutcome, outcome: Outcome) -> dict[str, float]:
    """The λ of the variants that differ from the baseline in nothing else."""
    if outcome.study.baseline is None:
        return {}
    sides = [cell.sides[name] for name in outcome.study.variants if on_lambda_curve(cell, name, outcome.study)]
    return {side.name: side.trial.lam for side in sides if side.trial is not None}


def _ranges(absent: Collection[float], grid: Sequence[float]) -> str:
    """Values of a grid, those that follow each other on it as a range."""
    runs = [list(group) for out, group in itertools.groupby(grid, key=lambda lam: lam in absent) if out]
    if len(runs) > _MOST_NAMED:
        return f"{len(absent)} of {len(grid)} λ"
    said = [f"from {run[0]:g} to {run[-1]:g}" if len(run) > 1 else f"= {run[0]:g}" for run in runs]
    return f"λ {', '.join(said)}".replace("-", "−")
