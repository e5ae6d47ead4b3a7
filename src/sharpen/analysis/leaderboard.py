"""The field on one set of splits: methods ranked on the same draws, with intervals of their ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from sharpen.analysis.outcome import CellOutcome, Effect, Outcome
from sharpen.analysis.runs import Side
from sharpen.evaluation import PairedDifference
from sharpen.models.registry import REGISTRY
from sharpen.paper import published

_RESAMPLES, _SEED = 2000, 18


@dataclass(frozen=True)
class Standing:
    """One method on one graph, trained plainly; scores in percent.

    Args:
        model: Its name.
        mean, sd, n: Its test score; None where it has none, and ``reason`` says why.
        rank, low, high: Among all methods with a score, and the 95 % interval of the rank over resampled draws.
        published: Its mean in the paper's table of other methods, if it is there.
        place: Its rank in that table among the methods here that are in it.
        seconds: What one run took.
        gain: What sharpening changes.
        reason: Why there is no score.
    """

    model: str
    mean: float | None = None
    sd: float | None = None
    n: int = 0
    rank: int | None = None
    low: int | None = None
    high: int | None = None
    published: float | None = None
    place: int | None = None
    seconds: float | None = None
    gain: Effect | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Leaderboard:
    """All methods on one graph, the best first, those without a score last."""

    dataset: str
    standings: tuple[Standing, ...]

    @property
    def ranked(self) -> tuple[Standing, ...]:
        """Those with a rank."""
        return tuple(one for one in self.standings if one.rank is not None)

    @property
    def waiting(self) -> int:
        """How many methods have no score."""
        return len(self.standings) - len(self.ranked)

    @property
    def moves(self) -> tuple[tuple[str, int, int], ...]:
        """Methods with a published score, the best here first: each with its place here and its published one, among themselves."""
        both = [one for one in self.ranked if one.place is not None]
        return tuple(
            (one.model, 1 + sum((k.rank or 0) < (one.rank or 0) for k in both), one.place or 0) for one in both
        )

    @property
    def agreement(self) -> float | None:
        """Kendall's τ between the order here and the published one, over methods that are in both; None for fewer than four."""
        if len(self.moves) < 4:
            return None
        _, here, there = zip(*self.moves, strict=True)
        return float(stats.kendalltau(here, there).statistic)

    @property
    def leaning(self) -> float | None:
        """Spearman's ρ between the plain score and what sharpening changes; None for fewer than four methods."""
        plain = {one.model: one.mean or 0.0 for one in self.ranked}
        changes = {model: difference.difference for model, (_, difference) in self.gains.items()}
        if len(changes) < 4:
            return None
        return float(stats.spearmanr([plain[model] for model in changes], list(changes.values())).statistic)

    @property
    def gains(self) -> Mapping[str, tuple[Effect, PairedDifference]]:
        """What sharpening changes, by method, of those with a rank and pairs."""
        known = ((one.model, one.gain, one.gain.difference) for one in self.ranked if one.gain is not None)
        return {model: (gain, difference) for model, gain, difference in known if difference is not None}

    @property
    def sharpened(self) -> Mapping[str, float]:
        """The mean test score with sharpening, by method."""
        plain = {one.model: one.mean or 0.0 for one in self.ranked}
        return {model: plain[model] + difference.difference for model, (_, difference) in self.gains.items()}


def leaderboards(field: Outcome) -> list[Leaderboard]:
    """A board for every graph of the study ``field`` (or one like it: its baseline is ranked, its first comparison is the gain).

    >>> from sharpen.analysis.outcome import outcome
    >>> from sharpen.studies import load_study
    >>> cora = leaderboards(outcome(load_study("field"), "paired"))[0]
    >>> cora.dataset, cora.ranked, cora.standings[0].reason
    ('cora', (), 'not run yet')
    """
    return [_board(dataset, field) for dataset in field.study.datasets]


def _board(dataset: str, field: Outcome) -> Leaderboard:
    cells = {cell.model: cell for cell in field.cells if cell.dataset == dataset}
    sides = {model: cell.sides.get(field.study.baseline or "") for model, cell in cells.items()}
    whole = {model: side for model, side in sides.items() if side is not None and side.complete and not side.diverged}
    ranks = rank_intervals(
        {m: {(run.split, run.seed): run.test for run in side.runs if run.test is not None} for m, side in whole.items()}
    )
    cited = {
        model: row.mean
        for (graph, title, _), row in published("comparison").items()
        if graph == dataset and row.mean is not None
        for model in cells
        if REGISTRY[model].title == title
    }
    among = [cited[model] for model in whole if model in cited]
    found = []
    for model, cell in cells.items():
        side, quoted = whole.get(model), cited.get(model)
        if side is None:
            found.append(Standing(model, published=quoted, reason=_why(cell, sides[model])))
            continue
        rank, low, high = ranks[model]
        place = None if quoted is None else 1 + sum(other > quoted for other in among)
        seconds = float(np.median([run.seconds for run in side.runs]))
        gain = next((effect for effect in cell.effects if effect.difference is not None), None)
        found.append(Standing(model, side.mean, side.sd, side.n, rank, low, high, quoted, place, seconds, gain))
    return Leaderboard(dataset, tuple(sorted(found, key=lambda one: (one.rank is None, one.rank or 0))))


def _why(cell: CellOutcome, side: Side | None) -> str:
    if side is not None and side.diverged:
        return f"{side.diverged} of {len(side.runs)} runs diverged"
    return (side.reason if side is not None else None) or cell.reason or "not run yet"


def rank_intervals(scores: Mapping[str, Mapping[tuple[str, int], float]]) -> dict[str, tuple[int, int, int]]:
    """The rank of every method by its mean, and a 95 % interval of it: draws are resampled, the same ones for all methods.

    Args:
        scores: By method, a score for each draw; draws that not all methods have are left out.

    >>> a, b = {("s", k): 80.0 + k for k in range(10)}, {("s", k): 79.0 + k for k in range(10)}
    >>> rank_intervals({"a": a, "b": b})  # b is always one point behind
    {'a': (1, 1, 1), 'b': (2, 2, 2)}
    """
    if not scores:
        return {}
    draws = sorted(set.intersection(*(set(own) for own in scores.values())))
    if not draws:
        return {}
    values = np.array([[own[draw] for draw in draws] for own in scores.values()])
    picked = np.random.default_rng(_SEED).integers(0, len(draws), size=(_RESAMPLES, len(draws)))
    means = np.column_stack([values.mean(1), values[:, picked].mean(2)])  # [method, as drawn and resamples]
    ranks = 1 + (means[None] > means[:, None] + 1e-9).sum(1)
    low = np.quantile(ranks[:, 1:], 0.025, axis=1, method="lower")
    high = np.quantile(ranks[:, 1:], 0.975, axis=1, method="higher")
    return {name: (int(ranks[k, 0]), int(low[k]), int(high[k])) for k, name in enumerate(scores)}


@dataclass(frozen=True)
class MeanRanks:
    """Methods over several graphs.

    Args:
        ranks: By method, its mean rank over graphs that all of them were run on, the best first.
        graphs: How many graphs these are.
        critical: How far two mean ranks must be apart to differ at 5 % (Nemenyi's test); NaN for fewer than two graphs or methods.
    """

    ranks: Mapping[str, float]
    graphs: int
    critical: float


def mean_ranks(boards: Sequence[Leaderboard]) -> MeanRanks:
    """Mean ranks over the graphs where anything was run, of the methods that have a score on all of these.

    >>> rows = [Leaderboard(d, (Standing("gcn", 80.0, rank=1), Standing("mlp", 60.0, rank=2))) for d in ("cora", "cs")]
    >>> found = mean_ranks(rows)
    >>> found.ranks, found.graphs, round(found.critical, 2)
    ({'gcn': 1.0, 'mlp': 2.0}, 2, 1.39)
    """
    run = [{one.model: one.rank or 0 for one in board.ranked} for board in boards if len(board.ranked) > 1]
    everywhere = [model for model in run[0] if all(model in board for board in run)] if run else []
    if not everywhere:
        return MeanRanks({}, len(run), math.nan)
    table = np.array([stats.rankdata([board[model] for model in everywhere]) for board in run])
    ranks = {model: rank for rank, model in sorted(zip(table.mean(0).tolist(), everywhere, strict=True))}
    count, critical = len(everywhere), math.nan
    if count > 1 and len(run) > 1:
        q = stats.studentized_range.ppf(0.95, count, np.inf) / math.sqrt(2)
        critical = float(q * math.sqrt(count * (count + 1) / (6 * len(run))))
    return MeanRanks(ranks, len(run), critical)
