"""What pairs could have shown: against simulation, SciPy's own tests, and a formula by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from sharpen.errors import InputError
from sharpen.evaluation import detectable_difference, equivalence_p, overlap_factor, paired_difference


@pytest.mark.parametrize(("sd", "n"), [(1.0, 20), (2.5, 5), (0.3, 3)])
def test_eight_of_ten_samples_show_the_detectable_difference(sd, n):
    rng = np.random.default_rng(n)
    samples = detectable_difference(sd, n) + sd * rng.normal(size=(20_000, n))
    found = stats.ttest_1samp(samples, 0, axis=1)
    assert np.mean((found.pvalue < 0.05) & (found.statistic > 0)) == pytest.approx(0.8, abs=0.01)


def test_more_power_needs_a_larger_difference():
    assert (
        detectable_difference(1, 20, power=0.5)
        < detectable_difference(1, 20)
        < detectable_difference(1, 20, power=0.95)
    )
    assert detectable_difference(1, 80) < detectable_difference(1, 20)
    for sd, n, power in ((0.0, 5, 0.8), (1.0, 1, 0.8), (1.0, 5, 1.0)):
        with pytest.raises(InputError, match="give a spread above 0"):
            detectable_difference(sd, n, power=power)


@pytest.mark.parametrize("shift", [-0.7, 0.0, 0.2])
def test_equality_is_two_one_sided_tests(shift):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=12) + shift, rng.normal(size=12)
    for margin in (0.3, 1.0, 2.0):
        above = stats.ttest_rel(a, b - margin, alternative="greater").pvalue
        below = stats.ttest_rel(a, b + margin, alternative="less").pvalue
        assert equivalence_p(paired_difference(a, b), margin) == pytest.approx(max(above, below))
        low, high = stats.ttest_rel(a, b).confidence_interval(0.9)
        assert (equivalence_p(paired_difference(a, b), margin) < 0.05) == (-margin < low and high < margin)


def test_differences_without_spread_are_equal_or_not():
    same = paired_difference([2.0, 3.0], [1.5, 2.5])
    assert (equivalence_p(same, 0.6), equivalence_p(same, 0.4)) == (0.0, 1.0)
    assert math.isnan(equivalence_p(paired_difference([2.0], [1.5]), 1.0))
    with pytest.raises(InputError, match="margin"):
        equivalence_p(same, 0.0)


def test_the_variance_of_splits_that_overlap():
    """(1/n + test/train) s² in place of s²/n."""
    n, ratio = 10, 0.25
    assert overlap_factor(n, ratio) ** 2 / n == pytest.approx(1 / n + ratio)
    assert overlap_factor(n, 0) == 1
    with pytest.raises(InputError, match="ratio"):
        overlap_factor(n, math.nan)
