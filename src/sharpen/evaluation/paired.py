r"""Statistics of differences that are paired on the same splits and seeds.

A split moves the score of every variant up or down together. The difference of two variants on the same split and seed
is free of that: its spread, and not the spread of the scores, says how sure a gain is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from sharpen.errors import InputError
from sharpen.evaluation.samples import Floats, Interval, checked_scores, spread, t_interval_of, t_p_value

# With fewer pairs the resamples are too few different means for an interval: with three there are ten, with eight 6,435.
FEWEST_BOOTSTRAPPED = 8


@dataclass(frozen=True)
class PairedDifference:
    """What paired scores say about ``a`` against ``b``; see :func:`paired_difference`.

    A quantity that the pairs cannot give is ``None``, and ``note`` says why.

    >>> paired_difference([0.82, 0.85], [0.81, 0.83]).wins
    2
    """

    n: int
    mean_a: float
    mean_b: float
    sd_a: float | None
    sd_b: float | None
    difference: float
    standard_error: float | None
    t_interval: Interval | None
    bootstrap_interval: Interval | None
    t_p: float | None
    wilcoxon_p: float | None
    wins: int
    ties: int
    losses: int
    note: str | None = None
    kind: Literal["paired"] = "paired"

    @property
    def win_rate(self) -> float:
        """Share of pairs that ``a`` wins, a tie counting half.

        >>> paired_difference([3, 2, 1], [1, 2, 2]).win_rate
        0.5
        """
        return (self.wins + self.ties / 2) / self.n

    @property
    def family_p(self) -> float:
        """p as one of several tests that are corrected together: that of the t-test, and 1 where all differences are zero.

        Left out, a comparison of a variant with itself would make the correction of the others milder, and whether it is
        one is found out from the same data. NaN where nothing can be tested.

        >>> paired_difference([3, 2], [3, 2]).family_p, paired_difference([3, 2], [2, 1]).family_p
        (1.0, nan)
        """
        if self.t_p is not None:
            return self.t_p
        return 1.0 if self.n > 1 and self.ties == self.n else math.nan


class Pairs(NamedTuple):
    """Two columns of scores, aligned; see :func:`pair`.

    >>> Pairs(pd.DataFrame({"seed": [0]}), np.array([0.8]), np.array([0.7]), dropped=1).dropped
    1
    """

    keys: pd.DataFrame
    a: Floats
    b: Floats
    dropped: int


def paired_difference(
    a: ArrayLike, b: ArrayLike, *, level: float = 0.95, resamples: int = 9999, seed: int = 0
) -> PairedDifference:
    r"""The mean of :math:`d_i = a_i - b_i` and how sure it is.

    .. math:: \bar d \pm t_{n-1} \, s_d / \sqrt n

    The bootstrap interval is BCa (bias-corrected and accelerated) over the pairs, with its own seed, so that it is the
    same every time; it does not assume normal differences, at the price of being a little narrow with few pairs. Below
    eight pairs it would be little more than their range, far too narrow, and is not given.
    ``t_p`` is the two-sided paired t-test, ``wilcoxon_p`` the two-sided signed-rank test (zero differences left out;
    exact, also with ties, up to 200 pairs). Differences that agree to twelve digits are equal: scores are counts over
    counts, and 0.853 - 0.850 must rank level with 0.843 - 0.840.

    One pair, or differences without spread, have no interval and no t-test: a note says so instead of a warning.

    Args:
        a, b: scores of the same length; ``a[i]`` and ``b[i]`` are from the same split and seed.
        level: coverage of both intervals.
        resamples: number of bootstrap resamples; 0 for no bootstrap interval, as below eight pairs.
        seed: of the bootstrap.

    >>> d = paired_difference(a=[85.1, 84.0, 86.2, 85.5], b=[84.6, 83.8, 85.3, 85.6])
    >>> f"{d.difference:+.3f} in [{d.t_interval[0]:+.3f}, {d.t_interval[1]:+.3f}], p = {d.t_p:.3f}, {d.wins} wins"
    '+0.375 in [-0.305, +1.055], p = 0.177, 3 wins'
    """
    a, b = checked_scores(a, "a"), checked_scores(b, "b")
    if a.size != b.size:
        problem = f"a has {a.size} scores and b has {b.size}; pairs need one of each, see sharpen.evaluation.pair"
        raise InputError(problem)
    d = _rounded_differences(a, b)
    n, mean = d.size, _without_rounding(float(d.mean()), a, b)
    varies = n > 1 and bool(np.ptp(d) > 0)
    error = float(d.std(ddof=1) / np.sqrt(n)) if varies else None
    note = None if varies else "all differences are equal: no spread to judge by"
    if n == 1:
        note = "one pair has no spread: take at least two splits or seeds"
    bootstrap_interval = None
    if varies and resamples and n >= FEWEST_BOOTSTRAPPED:
        ordered = (np.sort(d),)  # so that the order of the pairs does not change which resamples are drawn
        drawn: dict[str, Any] = {"n_resamples": resamples, "batch": 1000, "rng": np.random.default_rng(seed)}
        low, high = stats.bootstrap(ordered, np.mean, confidence_level=level, method="BCa", **drawn).confidence_interval
        bootstrap_interval = float(low), float(high)
    return PairedDifference(
        n=n,
        mean_a=float(a.mean()),
        mean_b=float(b.mean()),
        sd_a=spread(a),
        sd_b=spread(b),
        difference=mean,
        standard_error=error,
        t_interval=None if error is None else t_interval_of(mean, error, n - 1, level),
        bootstrap_interval=bootstrap_interval,
        t_p=None if error is None else t_p_value(mean, error, n - 1),
        wilcoxon_p=_signed_rank_p(d[d != 0]) if n > 1 and d.any() else None,
        wins=int((d > 0).sum()),
        ties=int((d == 0).sum()),
        losses=int((d < 0).sum()),
        note=note,
    )


def widened(difference: PairedDifference, factor: float) -> PairedDifference:
    """The same for pairs that are not independent: standard error and t-interval wider by a factor, p by the t-test with it.

    What takes the pairs for independent and knows no factor, the bootstrap and the signed-rank test, is left out.

    >>> d = widened(paired_difference([85.1, 84.0, 86.2, 85.5], [84.6, 83.8, 85.3, 85.6]), 2)
    >>> f"{d.difference:+.3f} in [{d.t_interval[0]:+.3f}, {d.t_interval[1]:+.3f}], p = {d.t_p:.3f}"
    '+0.375 in [-0.985, +1.735], p = 0.445'
    """
    if difference.standard_error is None or difference.t_interval is None:
        return replace(difference, wilcoxon_p=None)
    error, (low, high) = factor * difference.standard_error, difference.t_interval
    middle, half = difference.difference, factor * (high - low) / 2
    ends, p = (middle - half, middle + half), t_p_value(middle, error, difference.n - 1)
    found = replace(difference, standard_error=error, t_interval=ends, t_p=p)
    return replace(found, bootstrap_interval=None, wilcoxon_p=None)


def by_split(splits: Sequence[object], a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    """Scores that each stand for themselves: where several splits have several runs, the mean over the runs of each split.

    Runs on one split share its luck, so that two seeds on each of ten splits are ten observations and not twenty. With one
    split only there is nothing but its runs, and what is said of them is said of that split.

    Args:
        splits: the split of every pair.
        a, b: the scores of every pair.

    >>> a, b = by_split(["s0", "s1", "s0", "s1"], [80.0, 90.0, 82.0, 92.0], [80.0, 90.0, 80.0, 90.0])
    >>> a.tolist(), b.tolist()
    ([81.0, 91.0], [80.0, 90.0])
    """
    a, b = checked_scores(a, "a"), checked_scores(b, "b")
    places = {split: place for place, split in enumerate(dict.fromkeys(splits))}
    if not 1 < len(places) < len(splits):
        return a, b
    at = np.array([places[split] for split in splits])
    runs = np.bincount(at)
    return np.bincount(at, a) / runs, np.bincount(at, b) / runs


def glass_delta(treatment: ArrayLike, control: ArrayLike) -> float:
    r"""Glass's Δ: the gain in units of the control's standard deviation.

    .. math:: \Delta = (\bar x_\text{treatment} - \bar x_\text{control}) / s_\text{control}

    NaN when the control has no spread.

    >>> glass_delta(treatment=[4.0, 6.0], control=[1.0, 2.0, 3.0])
    3.0
    """
    treatment, control = checked_scores(treatment, "treatment"), checked_scores(control, "control")
    sd = spread(control)
    gain = _without_rounding(float(treatment.mean() - control.mean()), treatment, control)
    return gain / sd if sd else float("nan")


def holm(p_values: ArrayLike) -> Floats:
    r"""Holm's correction: p-values that hold together, whatever their dependence.

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1) \, p_{(j)})

    Reject where the corrected value is below 0.05, and the chance of any false rejection stays below 0.05. NaN (or
    ``None``) marks a test that could not be made: it stays NaN and does not count as a test.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or (p < 0).any() or (p > 1).any():
        raise InputError("p_values must be a list of numbers from 0 to 1; NaN marks a test that was not made")
    order = np.argsort(p)[: np.count_nonzero(~np.isnan(p))]
    corrected = np.full_like(p, np.nan)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(order.size, 0, -1)), 1)
    return corrected


def pair(
    frame_a: pd.DataFrame, frame_b: pd.DataFrame, on: Sequence[str] = ("split", "seed"), value: str = "test"
) -> Pairs:
    """The values of two frames of records, aligned on the columns that make a pair.

    Every key must stand exactly once on both sides. A pair in which a side has no value (a diverged run) is left out
    and counted, so that a comparison can say so.

    Args:
        frame_a, frame_b: frames as :func:`sharpen.to_frame` makes them, each of one variant.
        on: the columns that say which rows belong together.
        value: the column of scores.

    Returns:
        ``keys`` (a frame of the ``on`` columns), ``a``, ``b``, and ``dropped``, the number of pairs left out.

    >>> a = pd.DataFrame({"split": ["s0", "s1"], "seed": [0, 0], "test": [0.8, 0.9]})
    >>> b = pd.DataFrame({"split": ["s1", "s0"], "seed": [0, 0], "test": [0.7, 0.75]})
    >>> pair(a, b).b.tolist()
    [0.75, 0.7]
    """
    keys = list(on)
    for side, frame in (("frame_a", frame_a), ("frame_b", frame_b)):
        if missing := [column for column in (*keys, value) if column not in frame.columns]:
            raise InputError(f"{side} has no column {missing[0]!r}; it needs {', '.join((*keys, value))}")
        if frame.duplicated(keys).any():
            example = _describe(frame.loc[frame.duplicated(keys), keys])
            raise InputError(f"{side} has {example} more than once; keep one row for each {', '.join(keys)}")
    both = frame_a[[*keys, value]].merge(
        frame_b[[*keys, value]], on=keys, how="outer", suffixes=("_a", "_b"), indicator=True, sort=True
    )
    for side, lack in (("frame_b", "left_only"), ("frame_a", "right_only")):
        if (alone := both["_merge"] == lack).any():
            example = _describe(both.loc[alone, keys])
            raise InputError(f"{side} lacks {example}; a paired comparison needs every {', '.join(keys)} on both sides")
    a, b = both[f"{value}_a"].to_numpy(np.float64), both[f"{value}_b"].to_numpy(np.float64)
    kept = ~(np.isnan(a) | np.isnan(b))
    return Pairs(both.loc[kept, keys].reset_index(drop=True), a[kept], b[kept], int((~kept).sum()))


def _describe(rows: pd.DataFrame) -> str:
    """The first of these rows, by name: ``split 's1', seed 0``."""
    return ", ".join(f"{column} {key!r}" for column, key in rows.head(1).to_dict("records")[0].items())


def _rounded_differences(a: Floats, b: Floats) -> Floats:
    """a - b with the last digits, which are rounding errors of a and b, removed."""
    largest = max(np.abs(a).max(), np.abs(b).max())
    return a - b if largest == 0 else np.round(a - b, 12 - math.ceil(math.log10(largest)))


def _without_rounding(difference: float, a: Floats, b: Floats) -> float:
    """A difference of means, or 0 where only rounding errors of a and b are left: its sign is counted."""
    return 0.0 if abs(difference) < 1e-12 * max(np.abs(a).max(), np.abs(b).max()) else difference


def _signed_rank_p(d: Floats) -> float:
    """Two-sided signed-rank test of non-zero differences: exact, also with ties, up to 200 of them.

    Under the null each rank counts as positive with chance ½; the distribution of their sum is built rank by rank.
    Midranks may be halves, hence twice the ranks. SciPy's test is exact without ties only, and its permutation test goes
    through all 2ⁿ signs: a million for twenty pairs.
    """
    if d.size > 200:
        return float(stats.wilcoxon(d).pvalue)
    ranks = np.rint(2 * stats.rankdata(np.abs(d))).astype(np.int64)
    chance = np.zeros(ranks.sum() + 1)
    chance[0] = 1
    for rank in ranks:
        chance[rank:] = (chance[rank:] + chance[: chance.size - rank]) / 2
        chance[:rank] /= 2
    positive = ranks[d > 0].sum()
    return float(min(1, 2 * min(chance[: positive + 1].sum(), chance[positive:].sum())))
