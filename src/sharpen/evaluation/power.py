"""What paired differences could have shown: the effect that would have been seen, equality within a margin, splits that overlap."""

from __future__ import annotations

import math

from scipy import optimize, stats

from sharpen.errors import InputError
from sharpen.evaluation.paired import PairedDifference


def detectable_difference(sd: float, n: int, *, power: float = 0.8, level: float = 0.95) -> float:
    r"""The true mean difference that a two-sided paired t-test finds with this chance.

    With :math:`t_c` the test's critical value and :math:`T_{n-1}(\delta)` Student's distribution with noncentrality
    :math:`\delta`, it is the :math:`d` for which :math:`P\{T_{n-1}(d\sqrt n / s) > t_c\}` is the power. That the test calls
    out the wrong sign, which is next to impossible at this power, does not count.

    Args:
        sd: standard deviation of the differences.
        n: how many there are.
        power: the chance of finding it.
        level: coverage of the interval that has to exclude zero.

    >>> round(detectable_difference(1.0, 20), 3), round(detectable_difference(2.0, 5), 3)
    (0.66, 3.364)
    """
    if n < 2 or not sd > 0 or not 0.5 <= power < 1:
        way = "give a spread above 0, at least two differences, and a power from 0.5 to 1"
        raise InputError(f"sd is {sd}, n is {n} and power is {power}; {way}")
    critical = float(stats.t.ppf((1 + level) / 2, n - 1))
    found = optimize.brentq(lambda delta: float(stats.nct.sf(critical, n - 1, delta)) - power, 0.0, critical + 8.0)
    return float(found) * sd / math.sqrt(n)


def equivalence_p(difference: PairedDifference, margin: float) -> float:
    """Two one-sided t-tests (TOST): below 0.05, the mean difference lies within ± the margin.

    The same as asking whether the 90 % interval does. Differences that are all equal have no spread: 0 or 1 by where they lie; NaN
    of one pair.

    >>> from sharpen.evaluation import paired_difference
    >>> d = paired_difference([85.1, 84.0, 86.2, 85.5], [84.9, 83.9, 86.3, 85.6])
    >>> round(equivalence_p(d, 1.0), 4), round(equivalence_p(d, 0.1), 2)
    (0.0005, 0.2)
    """
    if not margin > 0:
        raise InputError(f"the margin is {margin}; give a number above 0, in the unit of the scores")
    if difference.standard_error is None:
        return math.nan if difference.n < 2 else float(abs(difference.difference) >= margin)
    return float(stats.t.sf((margin - abs(difference.difference)) / difference.standard_error, difference.n - 1))


def overlap_factor(n: int, test_to_train: float) -> float:
    r"""By how much an interval over random splits of one graph is too narrow, after Nadeau and Bengio (2003).

    .. math:: \sqrt{1 + n \, n_\text{test} / n_\text{train}}

    Splits share nodes, so that their differences are correlated; the variance of their mean is taken to be
    :math:`(1/n + n_\text{test}/n_\text{train})\,s^2` in place of :math:`s^2/n`. A heuristic made for splits into nothing but
    training and test data; see :func:`sharpen.evaluation.paired.widened`.

    >>> round(overlap_factor(20, 20 / 60), 2)
    2.77
    """
    if n < 1 or not test_to_train >= 0:
        problem = f"n is {n} and test_to_train is {test_to_train}; give at least one split and a ratio from 0 on"
        raise InputError(problem)
    return math.sqrt(1 + n * test_to_train)
