"""The runs of one side of a comparison, and the pairs that two sides make: runs on the same split with the same seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sharpen.evaluation import Consistency, PairedDifference, by_split, glass_delta, paired_difference
from sharpen.evaluation.collapse import has_collapsed
from sharpen.paper import Published
from sharpen.trial import Trial


@dataclass(frozen=True)
class Run:
    """One finished run, in percent; scores are None if it diverged. Its seconds are those of all times it was made.

    ``class_use`` is that of the last epoch, as a fraction; NaN in records of before it was kept.

    >>> Run("id", "given-0", 0, val=82.0, test=81.0).ok
    True
    """

    id: str
    split: str
    seed: int
    val: float | None
    test: float | None
    precision: str | None = None
    seconds: float = field(default=0.0, compare=False)
    class_use: float = field(default=math.nan, compare=False)

    @property
    def ok(self) -> bool:
        """Whether it gave a score."""
        return self.test is not None


@dataclass(frozen=True)
class Side:
    """The runs of one variant in one cell, or of the variant that validation chose.

    Args:
        name: of the variant, or of the choice.
        variant: whose runs these are: the same name, or that of the chosen; None if nothing could be chosen.
        trial: its first planned run, which says λ and all else.
        planned: how many runs the protocol asks for.
        runs: those that are finished.
        published: the paper's score, if it gives one.
        consistency: ours against it, under the paper's protocol.
        reason: why there are no runs, or fewer than planned.

    >>> Side("ts-0.25", "ts-0.25", Trial(lam=0.25), planned=5, runs=(Run("a", "given-0", 0, 82.0, 81.0),)).mean
    81.0
    """

    name: str
    variant: str | None
    trial: Trial | None
    planned: int
    runs: tuple[Run, ...] = field(default=(), repr=False)
    published: Published | None = None
    consistency: Consistency | None = None
    reason: str | None = None

    @cached_property
    def tests(self) -> tuple[float, ...]:
        """Test scores of the runs that did not diverge."""
        return tuple(run.test for run in self.runs if run.test is not None)

    @property
    def n(self) -> int:
        """How many runs gave a score."""
        return len(self.tests)

    @property
    def diverged(self) -> int:
        """How many runs diverged."""
        return len(self.runs) - self.n

    @property
    def complete(self) -> bool:
        """Whether all planned runs are finished."""
        return len(self.runs) == self.planned

    @property
    def mean(self) -> float | None:
        """Mean test score."""
        return float(np.mean(self.tests)) if self.n else None

    @property
    def sd(self) -> float | None:
        """Standard deviation of the test score over runs (n − 1)."""
        return float(np.std(self.tests, ddof=1)) if self.n > 1 else None

    @property
    def val(self) -> float | None:
        """Mean validation score."""
        vals = [run.val for run in self.runs if run.val is not None]
        return float(np.mean(vals)) if vals else None


def pairs_of_runs(side: Side, against: Side) -> tuple[list[tuple[Run, Run]], int]:
    """Runs of both sides on the same (split, seed) of which none diverged, and how many such pairs are finished.

    >>> one = Side("a", "a", None, 2, (Run("1", "s", 0, 80.0, 81.0), Run("2", "s", 1, 80.0, None)))
    >>> [(a.test, b.test) for a, b in pairs_of_runs(one, one)[0]], pairs_of_runs(one, one)[1]
    ([(81.0, 81.0)], 2)
    """
    others = {(run.split, run.seed): run for run in against.runs}
    both = [(run, others[run.split, run.seed]) for run in side.runs if (run.split, run.seed) in others]
    return [(a, b) for a, b in both if a.ok and b.ok], len(both)


def scores_of_pairs(pairs: Sequence[tuple[Run, Run]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The test scores of both sides, of which each stands for itself: one per split where splits have several runs.

    >>> runs = [Run("1", "s", 0, 80.0, 81.0), Run("2", "s", 1, 80.0, 83.0), Run("3", "t", 2, 80.0, 85.0)]
    >>> scores_of_pairs([(run, run) for run in runs])[0].tolist()
    [82.0, 85.0]
    """
    return by_split([run.split for run, _ in pairs], *_tests(pairs))


def difference_of_sides(side: Side, against: Side) -> PairedDifference | None:
    """The paired difference of two sides, without a bootstrap; None where there is no pair.

    >>> one = Side("a", "a", None, 2, (Run("1", "s", 0, 80.0, 81.0), Run("2", "s", 1, 80.0, None)))
    >>> difference_of_sides(one, one).difference
    0.0
    """
    pairs, _ = pairs_of_runs(side, against)
    return paired_difference(*scores_of_pairs(pairs), resamples=0) if pairs else None


def glass_of_pairs(pairs: Sequence[tuple[Run, Run]]) -> float | None:
    """Glass's Δ, by the standard deviation over all runs of the second side, as the paper has it; None if that is 0.

    >>> runs = [Run("1", "s", 0, 80.0, 81.0), Run("2", "s", 1, 80.0, 83.0)]
    >>> glass_of_pairs([(run, run) for run in runs])
    0.0
    """
    glass = glass_delta(*_tests(pairs))
    return None if math.isnan(glass) else glass


def collapsed_runs(side: Side, against: Side) -> int:
    """How many runs of the first side emptied classes by their last epoch, where those of the second on the same split did not.

    >>> def side(use):
    ...     return Side("a", "a", None, 1, (Run("1", "s", 0, 80.0, 81.0, class_use=use),))
    >>> collapsed_runs(side(0.1), side(0.9)), collapsed_runs(side(0.3), side(0.4))
    (1, 0)
    """
    plain = {(run.split, run.seed): run.class_use for run in against.runs}
    return sum(has_collapsed(run.class_use, plain.get((run.split, run.seed), math.nan)) for run in side.runs)


def _tests(pairs: Sequence[tuple[Run, Run]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.array([a.test for a, _ in pairs], np.float64), np.array([b.test for _, b in pairs], np.float64)
