"""How the score moves around a setting: variants that change the baseline by known steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sharpen.analysis.outcome import Outcome, same_but
from sharpen.analysis.runs import difference_of_sides
from sharpen.studies.plan import Cell
from sharpen.trial import Trial


class Step(NamedTuple):
    """One variant: how far it moves from the baseline, and what it gains, in points.

    Args:
        x, y: the step; for offsets δ and 0, for retuning the factor of the learning rate and what is added to dropout.
        gain, interval: the paired difference of the test score, and its 95 % t interval.
        chosen: whether validation chose it.

    >>> Step(2.0, -0.1, 0.4, None, chosen=True).gain
    0.4
    """

    x: float
    y: float
    gain: float
    interval: tuple[float, float] | None
    chosen: bool


def offset_steps(outcome: Outcome) -> dict[Cell, list[Step]]:
    """Variants that move both weights by the same δ, from (λ, −λ) to (λ + δ, −λ + δ), by cell.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> offset_steps(outcome(load_study("offset"), "paper"))
    {}
    """

    def step(own: Trial, base: Trial) -> tuple[float, float] | None:
        delta = round(own.lam - base.lam, 9)
        labeled = (own.lam_labeled or 0) - (base.lam_labeled or 0)
        same = same_but(own, base, "lam", "lam_labeled") and abs(labeled - delta) < 1e-9
        return (delta, 0.0) if same else None

    return _steps(outcome, step)


def retune_steps(outcome: Outcome) -> dict[Cell, list[Step]]:
    """Variants that change learning rate and dropout and nothing else, by cell.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> retune_steps(outcome(load_study("retune"), "paper"))
    {}
    """

    def step(own: Trial, base: Trial) -> tuple[float, float] | None:
        if not base.lr or not same_but(own, base, "lr", "dropout"):
            return None
        return round((own.lr or 0) / base.lr, 6), round((own.dropout or 0) - (base.dropout or 0), 6)

    return _steps(outcome, step)


def _steps(outcome: Outcome, step: Callable[[Trial, Trial], tuple[float, float] | None]) -> dict[Cell, list[Step]]:
    found: dict[Cell, dict[tuple[float, float], Step]] = {}
    for cell in outcome.cells:
        baseline = cell.sides.get(outcome.study.baseline or "")
        if baseline is None or baseline.trial is None or not baseline.complete:
            continue
        steps = found.setdefault(Cell(cell.dataset, cell.model), {})
        chosen = {cell.sides[name].trial for name in outcome.study.choose}
        for side in (cell.sides[name] for name in outcome.study.variants):
            at = None if side.trial is None else step(side.trial, baseline.trial)
            if at is not None and side.complete and (d := difference_of_sides(side, baseline)) is not None:
                steps[at] = Step(*at, d.difference, d.t_interval, side.trial in chosen)
    return {cell: list(steps.values()) for cell, steps in found.items() if len(steps) > 1}
