"""Statistics of samples that share no splits or seeds: differences that are labeled as unpaired, and published numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sharpen.errors import InputError
from sharpen.evaluation.samples import Interval, checked_scores, spread, t_interval_of, t_p_value, welch


@dataclass(frozen=True)
class UnpairedDifference:
    """What two separate samples say about ``a`` against ``b``; see :func:`unpaired_difference`.

    >>> unpaired_difference([0.82, 0.85], [0.81, 0.83]).kind
    'unpaired'
    """

    n_a: int
    n_b: int
    mean_a: float
    mean_b: float
    sd_a: float | None
    sd_b: float | None
    difference: float
    t_interval: Interval | None
    t_p: float | None
    note: str | None = None
    kind: Literal["unpaired"] = "unpaired"


@dataclass(frozen=True)
class Consistency:
    """Whether our scores agree with a published mean; see :func:`consistent_with`.

    ``consistent`` is ``None`` when neither side has a spread. ``distance`` is the difference in combined standard
    deviations, √(sd² + published sd²): how far apart two single runs of the two sides would be expected to lie.

    >>> round(consistent_with(84.0, 0.3, 5, [84.1, 84.9, 84.5]).distance, 2)
    1.0
    """

    consistent: bool | None
    difference: float
    t_interval: Interval | None
    t_p: float | None
    distance: float | None
    note: str | None = None


def unpaired_difference(a: ArrayLike, b: ArrayLike, *, level: float = 0.95) -> UnpairedDifference:
    r"""The difference of the means of two separate samples, with Welch's interval and test.

    .. math:: \bar a - \bar b \pm t_\nu \sqrt{s_a^2 / n_a + s_b^2 / n_b}

    For samples that share no splits or seeds, such as runs on different splits. The result calls itself unpaired, and
    so must every table that shows it: the spread of the splits is in it, and it says much less than pairs would.

    >>> u = unpaired_difference([85.1, 84.0, 86.2, 85.5], [84.6, 83.8, 85.3])
    >>> f"{u.kind}: {u.difference:+.2f}, p = {u.t_p:.2f}"
    'unpaired: +0.63, p = 0.36'
    """
    a, b = checked_scores(a, "a"), checked_scores(b, "b")
    sd_a, sd_b = spread(a), spread(b)
    difference = float(a.mean() - b.mean())
    known = UnpairedDifference(a.size, b.size, float(a.mean()), float(b.mean()), sd_a, sd_b, difference, None, None)
    if sd_a is None or sd_b is None:
        return replace(known, note="a sample of one has no spread: take at least two runs of each")
    if sd_a == sd_b == 0:
        return replace(known, note="neither sample has a spread to judge by")
    interval, p = welch(difference, sd_a, a.size, sd_b, b.size, level)
    return replace(known, t_interval=interval, t_p=p)


def consistent_with(
    published_mean: float, published_std: float | None, n_published: int, ours: ArrayLike, *, level: float = 0.95
) -> Consistency:
    """Whether our scores agree with a published "mean ± std over n runs", given both spreads.

    Consistent means that zero lies within Welch's interval of the difference of the two means (ours minus published):
    both spreads and both numbers of runs count. A side without a spread of its own (one run, or a std that was not
    published) borrows the other's; with no spread on either side nothing is decided.

    Args:
        published_mean: as published, in the unit of ``ours``.
        published_std: standard deviation (n - 1) over the published runs, or ``None``.
        n_published: the number of published runs.
        ours: our scores, one per run.
        level: coverage of the interval.

    >>> consistent_with(84.52, 0.36, 5, [84.1, 84.9, 84.4, 85.0, 83.9]).consistent
    True
    >>> consistent_with(84.52, 0.36, 5, [81.1, 81.9, 81.4, 82.0, 80.9]).consistent
    False
    """
    ours = checked_scores(ours, "ours")
    if not np.isfinite(published_mean):
        problem = f"is {published_mean}; give the published number, or skip what was not reported"
        raise InputError(problem, field="published_mean")
    if n_published < 1 or (published_std is not None and not published_std >= 0):
        way = "give a standard deviation of at least 0 (or None) and a number of runs of at least 1"
        raise InputError(f"is {published_std} over n_published {n_published} runs; {way}", field="published_std")
    difference = float(ours.mean() - published_mean)
    n, sd = ours.size, spread(ours)
    published_sd = None if n_published == 1 else published_std
    if not sd and not published_sd:
        return Consistency(None, difference, None, None, None, "neither side has a spread to judge by")
    if sd is not None and published_sd is not None:
        note, (interval, p) = None, welch(difference, sd, n, published_sd, n_published, level)
    else:
        note = f"{'our' if sd is None else 'the published'} spread is unknown; the other side's stands in for it"
        known, freedom = (published_sd, n_published - 1) if sd is None else (sd, n - 1)
        assert known is not None
        sd = published_sd = known
        error = float(known * np.sqrt(1 / n + 1 / n_published))
        interval, p = t_interval_of(difference, error, freedom, level), t_p_value(difference, error, freedom)
    distance = difference / float(np.hypot(sd, published_sd))
    return Consistency(interval[0] <= 0 <= interval[1], difference, interval, p, distance, note)
