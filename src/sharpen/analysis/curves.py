"""Scores over λ: one curve per cell, and what curves say together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sharpen.analysis.outcome import CellOutcome, Outcome, same_but
from sharpen.analysis.runs import difference_of_sides, glass_of_pairs, pairs_of_runs
from sharpen.studies.spec import Study


@dataclass(frozen=True)
class Point:
    """A cell at one λ: scores in percent, the paired difference to λ = 0 in points.

    >>> Point(0.25, 82.0, 1.0, 5, 1.5, (0.5, 2.5), 1.2).lam
    0.25
    """

    lam: float
    mean: float
    sd: float | None
    n: int
    difference: float
    interval: tuple[float, float] | None
    glass: float | None


@dataclass(frozen=True)
class Curve:
    """A cell over λ, in increasing order, λ = 0 among its points; see :func:`lambda_curves`."""

    dataset: str
    model: str
    metric: str
    points: tuple[Point, ...]
    planned: int
    chosen: float | None = None

    @property
    def zero(self) -> Point:
        """The point without sharpening."""
        return next(point for point in self.points if point.lam == 0)

    def at(self, lam: float) -> Point | None:
        """The point of one λ, if there is one."""
        return next((point for point in self.points if abs(point.lam - lam) < 1e-9), None)


# Fewer datasets are told one by one, not by their median.
_FEWEST_DATASETS = 3


@dataclass(frozen=True)
class Band:
    """Glass's Δ of one model over λ: median and quartiles over datasets.

    Args:
        model: which.
        lams: where every one of the datasets has a value.
        median, lower, upper: of Glass's Δ.
        datasets: over which.
        whole: where some datasets have more λ than others, the same over those that have all of them, at all of them: only
            there a λ that not all have can be compared with one that all have.
    """

    model: str
    lams: tuple[float, ...]
    median: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    datasets: tuple[str, ...]
    whole: Band | None = None

    def index(self, lam: float) -> int | None:
        """Where a λ stands among those of the band, if it does."""
        return next((i for i, value in enumerate(self.lams) if abs(value - lam) < 1e-9), None)


def lambda_curves(outcome: Outcome) -> list[Curve]:
    """The curve of every cell whose baseline and at least three other λ have scores.

    Only variants count that differ from the baseline in λ alone.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> lambda_curves(outcome(load_study("main"), "paper"))
    []
    """
    curves = (_curve(cell, outcome) for cell in outcome.cells)
    return [curve for curve in curves if curve is not None and len(curve.points) > 3]


def on_lambda_curve(cell: CellOutcome, name: str, study: Study) -> bool:
    """Whether a variant of a cell is plain training, or differs from it in a symmetric λ and in nothing else.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> study = load_study("main")
    >>> cell = outcome(study, "paper", datasets=["cora"], models=["gcn"]).cells[0]
    >>> on_lambda_curve(cell, "ts-0.25", study)
    True
    """
    trial, baseline = cell.sides[name].trial, cell.sides[study.baseline or ""].trial
    if trial is None or baseline is None or baseline.lam != 0:
        return False
    return trial.lam_labeled == -trial.lam and same_but(trial, baseline, "lam", "lam_labeled")


def glass_bands(curves: Sequence[Curve]) -> list[Band]:
    """Median and quartiles over datasets, one band per model, in the order of the curves.

    A λ counts only where every dataset of the model has it, so that a line does not jump because a dataset drops out. Where
    that leaves λ out that at least three datasets have, those with all of these are a band of their own, ``whole``.

    >>> def curve(dataset, *lams):
    ...     return Curve(dataset, "gcn", "accuracy", tuple(Point(lam, 80, 1.0, 5, lam, None, lam) for lam in lams), 5)
    >>> (band,) = glass_bands([curve("cora", 0.0, 0.5, 1.0), curve("photo", 0.0, 0.5)])
    >>> band.median, band.datasets, band.whole
    ((0.0, 0.5), ('cora', 'photo'), None)
    >>> few = [curve(dataset, -0.5, 0.0, 0.5) for dataset in ("cora", "citeseer", "pubmed")]
    >>> glass_bands([*few, curve("photo", 0.0, 0.5)])[0].whole.lams
    (-0.5, 0.0, 0.5)
    """
    bands = []
    for model in dict.fromkeys(curve.model for curve in curves):
        values = {
            curve.dataset: {round(point.lam, 9): point.glass for point in curve.points if point.glass is not None}
            for curve in curves
            if curve.model == model and curve.zero.sd
        }
        have = Counter(lam for value in values.values() for lam in value)
        shared = [lam for lam, count in have.items() if count == len(values)]
        if not shared:
            continue
        common = [lam for lam, count in have.items() if count >= _FEWEST_DATASETS]
        whole = {dataset: value for dataset, value in values.items() if value.keys() >= set(common)}
        more = len(common) > len(shared) and len(whole) >= _FEWEST_DATASETS
        bands.append(replace(_band(model, shared, values), whole=_band(model, common, whole) if more else None))
    return bands


def _band(model: str, lams: Iterable[float], values: Mapping[str, Mapping[float, float]]) -> Band:
    lams = tuple(sorted(lams))
    table = np.array([[value[lam] for lam in lams] for value in values.values()])
    lower, median, upper = (tuple(row.tolist()) for row in np.quantile(table, (0.25, 0.5, 0.75), axis=0))
    return Band(model, lams, median, lower, upper, tuple(values))


def _curve(cell: CellOutcome, outcome: Outcome) -> Curve | None:
    baseline = cell.sides.get(outcome.study.baseline or "")
    if baseline is None or baseline.trial is None or baseline.trial.lam != 0 or not baseline.complete or not baseline.n:
        return None
    points = []
    for name in outcome.study.variants:
        side = cell.sides[name]
        # A λ of which runs are missing would be a mean over other runs than its neighbours.
        if side.trial is None or not side.complete or not on_lambda_curve(cell, name, outcome.study):
            continue
        d, mean = difference_of_sides(side, baseline), side.mean
        if d is not None and mean is not None:
            glass = glass_of_pairs(pairs_of_runs(side, baseline)[0])
            points.append(Point(side.trial.lam, mean, side.sd, side.n, d.difference, d.t_interval, glass))
    points.sort(key=lambda point: point.lam)
    chosen = next((cell.sides[name].trial for name in outcome.study.choose), None)
    lam = None if chosen is None else chosen.lam
    return Curve(cell.dataset, cell.model, cell.metric, tuple(points), cell.planned, chosen=lam)
