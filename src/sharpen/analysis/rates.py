"""The gain of sharpening against the number of labels, and the rule that follows from it for someone who knows only that."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sharpen.analysis.outcome import Outcome
from sharpen.analysis.provenance import Cost
from sharpen.analysis.runs import collapsed_runs
from sharpen.datasets.catalog import CATALOG
from sharpen.studies.protocol import ALL, Rate, rate_of
from sharpen.studies.spec import Study


@dataclass(frozen=True)
class RatePoint:
    """A comparison in a cell at one number of labels.

    Args:
        rate: How many labels.
        labels: The same for each class, on average.
        gain, interval: In points, with the 95 % t interval.
        n, finished: How many pairs it rests on, and how many there are with those that diverged.
        collapsed: In how many runs classes were emptied at the last epoch, beside the other side.

    >>> RatePoint(Rate("few", 5), 5.0, 1.5, None, n=1, finished=1).ends
    (1.5, 1.5)
    """

    rate: Rate
    labels: float
    gain: float
    interval: tuple[float, float] | None
    n: int
    finished: int
    collapsed: int = 0

    @property
    def ends(self) -> tuple[float, float]:
        """The interval, or the gain alone where it has none."""
        return self.interval or (self.gain, self.gain)


@dataclass(frozen=True)
class RateCurve:
    """A comparison in a cell over the number of labels, in increasing order; see :func:`rate_curves`."""

    dataset: str
    model: str
    variant: str
    points: tuple[RatePoint, ...]


def labels_per_class(rate: Rate, dataset: str) -> float:
    """How many labels a class has on average.

    >>> labels_per_class(Rate("few", 5), "cora"), round(labels_per_class(Rate("share", 5), "squirrel"), 1)
    (5.0, 22.2)
    """
    info = CATALOG[dataset]
    return float(rate.number) if rate.kind == "few" else rate.number / 100 * info.nodes / info.classes


def rate_curves(outcomes: Iterable[Outcome]) -> list[RateCurve]:
    """Every comparison with the baseline, cell by cell, over the outcomes of one study under its protocols.

    >>> from sharpen.analysis.outcome import outcome
    >>> from sharpen.studies import load_study
    >>> study = load_study("label-rates")
    >>> rate_curves(outcome(study, protocol, datasets=["cora"]) for protocol in study.protocols)
    []
    """
    found: dict[tuple[str, str, str], list[RatePoint]] = {}
    for told in outcomes:
        rate = rate_of(told.protocol)
        if rate is None:
            continue
        for cell in told.cells:
            for effect in cell.effects:
                if effect.contrast.against == told.study.baseline and (d := effect.difference) is not None:
                    labels = labels_per_class(rate, cell.dataset)
                    emptied = collapsed_runs(*(cell.sides[name] for name in effect.contrast))
                    point = RatePoint(rate, labels, d.difference, d.t_interval, effect.n, effect.finished, emptied)
                    found.setdefault((cell.dataset, cell.model, effect.contrast.variant), []).append(point)
    return [
        RateCurve(*key, tuple(sorted(points, key=lambda point: point.rate.number))) for key, points in found.items()
    ]


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """One outcome of all protocols of a study: every cell as often as there are."""
    return replace(
        outcomes[0],
        protocol=ALL,
        cells=tuple(cell for told in outcomes for cell in told.cells),
        planned=sum(told.planned for told in outcomes),
        finished=sum(told.finished for told in outcomes),
        costs=_costs(outcomes),
    )


def _costs(outcomes: Sequence[Outcome]) -> tuple[Cost, ...]:
    found: dict[tuple[str, str], list[Cost]] = {}
    for cost in (cost for told in outcomes for cost in told.costs):
        found.setdefault((cost.device, cost.precision), []).append(cost)
    return tuple(
        replace(own[0], runs=sum(c.runs for c in own), seconds=sum(c.seconds for c in own)) for own in found.values()
    )


# --- the rule ---


class Rule(NamedTuple):
    """One variant up to so many labels for each class, another one beyond.

    >>> Rule("balance-0.25", "ts-0.25", 10).variant(20)
    'ts-0.25'
    """

    few: str
    many: str
    threshold: float

    def variant(self, labels: float) -> str:
        """The variant for so many labels of each class."""
        return self.few if labels <= self.threshold else self.many


@dataclass(frozen=True)
class Verdict:
    """What a rule gives on some graphs.

    Args:
        rule: Which.
        gain: Mean over all cells and numbers of labels, in points.
        few_gain: The same at 3 to 10 labels for each class; NaN if there are none.
        losses: (dataset, model, rate) where the interval lies below zero, with the gain.
        cells: Over how many it goes.
    """

    rule: Rule
    gain: float
    few_gain: float
    losses: Mapping[tuple[str, str, str], float]
    cells: int


def halves(study: Study) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The graphs of a study by turns, so that both halves hold small and large ones, alike and unlike.

    >>> from sharpen.studies import load_study
    >>> halves(load_study("label-rates"))[0][:3]
    ('cora', 'pubmed', 'computer')
    """
    return study.datasets[::2], study.datasets[1::2]


def judge(rule: Rule, curves: Sequence[RateCurve], datasets: Collection[str]) -> Verdict:
    """What a rule gives on some of the graphs."""
    points = [
        (curve, point)
        for curve in curves
        for point in curve.points
        if curve.dataset in datasets and curve.variant == rule.variant(point.labels)
    ]
    few = [p.gain for _, p in points if p.rate.kind == "few" and 3 <= p.rate.number <= 10]
    gain, few_gain = (float(np.mean(own)) if own else math.nan for own in ([p.gain for _, p in points], few))
    losses = {
        (c.dataset, c.model, p.rate.words): p.gain for c, p in points if p.interval is not None and p.interval[1] < 0
    }
    return Verdict(rule, gain, few_gain, losses, len(points))


def derive_rule(curves: Sequence[RateCurve], datasets: Collection[str], variants: Collection[str]) -> Verdict | None:
    """The rule that does best on some of the graphs: the fewest losses, then the largest mean gain.

    Args:
        curves: At the last epoch: whoever has no validation labels trains to the end.
        datasets: The graphs to choose on.
        variants: What it may be made of; what knows the class proportions is none of them.
    """
    own = [curve for curve in curves if curve.dataset in datasets and curve.variant in variants]
    numbers = sorted({point.labels for curve in own for point in curve.points})
    if not numbers:
        return None
    rules = {Rule(few, many, at) for few, many in itertools.product(variants, repeat=2) for at in numbers}
    verdicts = [judge(rule, own, datasets) for rule in sorted(rules)]
    most = max(verdict.cells for verdict in verdicts)
    whole = [verdict for verdict in verdicts if verdict.cells == most]
    return min(whole, key=lambda verdict: (len(verdict.losses), -verdict.gain, verdict.rule))
