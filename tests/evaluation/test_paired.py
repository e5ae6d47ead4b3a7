"""Paired statistics against SciPy, enumeration, and examples worked by hand."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sharpen.errors import InputError
from sharpen.evaluation import (
    by_split,
    consistent_with,
    glass_delta,
    holm,
    pair,
    paired_difference,
    unpaired_difference,
)

pytestmark = pytest.mark.filterwarnings("error")

RNG = np.random.default_rng(0)
BASELINE = 84 + RNG.normal(size=24)
SHARPENED = BASELINE + 0.4 + RNG.gamma(1.0, size=24)


@pytest.mark.parametrize("unit", [1.0, 0.01])
def test_t_interval_and_test_equal_scipy(unit: float) -> None:
    a, b = SHARPENED * unit, BASELINE * unit
    ours, scipy = paired_difference(a, b), stats.ttest_rel(a, b)
    assert ours.difference == pytest.approx(a.mean() - b.mean())
    assert ours.t_p == pytest.approx(scipy.pvalue)
    assert ours.t_interval == pytest.approx(tuple(scipy.confidence_interval(0.95)))
    assert (ours.sd_a, ours.sd_b) == pytest.approx((a.std(ddof=1), b.std(ddof=1)))


def test_bootstrap_is_bca_seeded_and_blind_to_order() -> None:
    ours = paired_difference(SHARPENED, BASELINE, resamples=40_000)
    assert ours == paired_difference(SHARPENED, BASELINE, resamples=40_000)
    assert (
        ours.bootstrap_interval
        == paired_difference(SHARPENED[::-1], BASELINE[::-1], resamples=40_000).bootstrap_interval
    )
    assert (
        ours.bootstrap_interval != paired_difference(SHARPENED, BASELINE, resamples=40_000, seed=1).bootstrap_interval
    )
    # Efron's formula, written out on resamples of its own.
    d = SHARPENED - BASELINE
    means = np.random.default_rng(5).choice(d, size=(40_000, d.size)).mean(axis=1)
    z0 = stats.norm.ppf((means < d.mean()).mean())
    left_out = np.array([np.delete(d, i).mean() for i in range(d.size)])
    u = left_out.mean() - left_out
    acceleration = (u**3).sum() / (6 * (u**2).sum() ** 1.5)
    z = z0 + stats.norm.ppf([0.025, 0.975])
    expected = np.quantile(means, stats.norm.cdf(z0 + z / (1 - acceleration * z)))
    assert ours.bootstrap_interval == pytest.approx(tuple(expected), abs=0.01)
    # Skewed differences: what is checked here is not the percentile interval.
    assert tuple(expected) != pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.01)


@pytest.mark.parametrize(("n", "given"), [(2, False), (3, False), (7, False), (8, True)])
def test_a_bootstrap_of_few_pairs_is_not_given(n: int, given: bool) -> None:
    ours = paired_difference(SHARPENED[:n], BASELINE[:n])
    assert (ours.bootstrap_interval is not None) == given
    assert ours.t_interval == pytest.approx(stats.ttest_rel(SHARPENED[:n], BASELINE[:n]).confidence_interval(0.95))
    if given:
        scipy = stats.bootstrap(((SHARPENED - BASELINE)[:n],), np.mean, n_resamples=40_000, rng=1).confidence_interval
        assert ours.bootstrap_interval == pytest.approx(tuple(scipy), abs=0.03)


def test_signed_rank_equals_scipy_without_ties() -> None:
    for n in (10, 50, 300):
        d = np.random.default_rng(n).normal(0.2, size=n)
        assert paired_difference(d, np.zeros(n)).wilcoxon_p == pytest.approx(stats.wilcoxon(d).pvalue)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=8))
def test_signed_rank_with_ties_equals_enumeration_of_all_signs(d: list[int]) -> None:
    nonzero = np.array([v for v in d if v])
    ours = paired_difference(np.array(d) / 1000 + 0.85, np.full(len(d), 0.85)).wilcoxon_p
    if nonzero.size == 0:
        assert ours is None
        return
    ranks = stats.rankdata(np.abs(nonzero))
    sums = [
        sum(r for r, s in zip(ranks, signs, strict=True) if s) for signs in itertools.product([0, 1], repeat=len(ranks))
    ]
    seen = ranks[nonzero > 0].sum()
    below = sum(s <= seen for s in sums) / len(sums)
    above = sum(s >= seen for s in sums) / len(sums)
    assert ours == pytest.approx(min(1, 2 * min(below, above)))


def test_wins_ties_losses_survive_rounding() -> None:
    # 0.3 - 0.1 and 0.9 - 0.7 differ in the last bit, and both equal 0.2.
    d = paired_difference([0.3, 0.9, 0.5, 0.4], [0.1, 0.7, 0.5, 0.6])
    assert (d.wins, d.ties, d.losses, d.win_rate) == (2, 1, 1, 0.625)
    assert d.wilcoxon_p == pytest.approx(1.0)


def test_one_pair_has_no_interval_and_says_why() -> None:
    d = paired_difference([0.9], [0.8])
    assert d.difference == pytest.approx(0.1)
    assert (d.n, d.wins, d.win_rate) == (1, 1, 1)
    assert d.t_interval is d.bootstrap_interval is d.t_p is d.wilcoxon_p is d.sd_a is None
    assert d.note == "one pair has no spread: take at least two splits or seeds"


@pytest.mark.parametrize("gain", [0.0, 0.1])
def test_equal_differences_have_no_interval_and_say_why(gain: float) -> None:
    b = np.array([0.1, 0.2, 0.3, 0.7])
    d = paired_difference(b + gain, b)
    assert d.difference == pytest.approx(gain)
    assert d.t_interval is d.bootstrap_interval is d.t_p is None
    assert d.note == "all differences are equal: no spread to judge by"
    assert d.wilcoxon_p == (None if gain == 0 else pytest.approx(2 / 2**4))


def test_what_cannot_differ_counts_among_several_tests() -> None:
    same, one, shifted = ([4.0, 5.0], [4.0, 5.0]), ([4.0], [4.0]), ([4.0, 5.0], [3.0, 4.0])
    assert paired_difference(*same).family_p == 1
    assert math.isnan(paired_difference(*one).family_p)
    assert math.isnan(paired_difference(*shifted).family_p)
    assert paired_difference(SHARPENED, BASELINE).family_p == pytest.approx(stats.ttest_rel(SHARPENED, BASELINE).pvalue)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([1.0], [1.0, 2.0], "a has 1 scores and b has 2"),
        ([], [], "a has shape"),
        ([1.0, math.nan], [1.0, 2.0], "a holds a score that is not finite"),
        ([[1.0]], [[1.0]], r"a has shape \(1, 1\)"),
    ],
)
def test_scores_that_cannot_be_paired_are_named(a: list[float], b: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        paired_difference(a, b)


def test_unpaired_equals_scipys_welch_and_is_labeled() -> None:
    ours, scipy = (
        unpaired_difference(SHARPENED, BASELINE[:9]),
        stats.ttest_ind(SHARPENED, BASELINE[:9], equal_var=False),
    )
    assert ours.kind == "unpaired"
    assert ours.t_p == pytest.approx(scipy.pvalue)
    assert ours.t_interval == pytest.approx(tuple(scipy.confidence_interval(0.95)))
    assert unpaired_difference([1.0], [2.0, 3.0]).t_interval is None
    assert unpaired_difference([1.0, 1.0], [2.0, 2.0]).note == "neither sample has a spread to judge by"


def test_consistency_equals_scipys_test_from_statistics() -> None:
    ours = [84.1, 84.9, 84.4, 85.0, 83.9, 84.6]
    for published in (84.0, 84.5, 86.0):
        scipy = stats.ttest_ind_from_stats(
            np.mean(ours), np.std(ours, ddof=1), len(ours), published, 0.3, 5, equal_var=False
        )
        result = consistent_with(published, 0.3, 5, ours)
        assert result.t_p == pytest.approx(scipy.pvalue)
        assert result.consistent == (scipy.pvalue >= 0.05)
        assert result.distance == pytest.approx((np.mean(ours) - published) / math.hypot(np.std(ours, ddof=1), 0.3))


def test_a_missing_spread_is_borrowed() -> None:
    ours = [84.1, 84.9, 84.4, 85.0]
    sd = np.std(ours, ddof=1)
    # Equal spreads: Student's two-sample error, with the degrees of freedom of the side that has one.
    t = (np.mean(ours) - 85.5) / (sd * math.sqrt(1 / 4 + 1 / 5))
    result = consistent_with(85.5, None, 5, ours)
    assert result.t_p == pytest.approx(2 * stats.t.cdf(t, 3))
    assert result.note == "the published spread is unknown; the other side's stands in for it"
    single = consistent_with(85.5, 0.5, 5, [84.0])
    assert single.t_p == pytest.approx(2 * stats.t.cdf(-1.5 / (0.5 * math.sqrt(1 + 1 / 5)), 4))
    assert consistent_with(85.5, None, 5, [84.0]).consistent is None
    with pytest.raises(InputError, match="n_published 0"):
        consistent_with(85.5, 0.5, 0, ours)
    with pytest.raises(InputError, match="published_mean is nan"):
        consistent_with(math.nan, 0.5, 5, ours)


def test_means_that_differ_by_rounding_alone_are_equal() -> None:
    # Counts over 1,000 test nodes in percent: one up by two, two down by one.
    a, b = np.array([81.4, 82.3, 80.6]), np.array([81.2, 82.4, 80.7])
    assert a.mean() != b.mean()
    assert paired_difference(a, b).difference == 0
    assert paired_difference(a, b).t_p == 1
    assert glass_delta(a, b) == 0
    assert paired_difference([1e-9, 3e-9], [1e-9, 2e-9]).difference == pytest.approx(
        5e-10
    )  # small scores are no rounding


def test_glass_delta_by_hand() -> None:
    assert glass_delta([86.0, 88.0], [84.0, 85.0, 86.0]) == 2.0
    assert math.isnan(glass_delta([86.0], [84.0, 84.0]))
    assert math.isnan(glass_delta([86.0], [84.0]))


def test_holm_by_hand() -> None:
    # Sorted 0.005 0.01 0.03 0.04 times 4 3 2 1 is 0.02 0.03 0.06 0.04; the running maximum lifts the last to 0.06.
    np.testing.assert_allclose(holm([0.04, 0.005, 0.03, 0.01]), [0.06, 0.02, 0.06, 0.03])
    np.testing.assert_allclose(holm([0.6, 0.9]), [1.0, 1.0])
    np.testing.assert_allclose(holm([0.02, math.nan, 0.03]), [0.04, math.nan, 0.04])
    assert holm([]).size == 0
    with pytest.raises(InputError, match="from 0 to 1"):
        holm([1.2])


def frame(*rows: tuple[str, int, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["split", "seed", "test"])


def test_pairs_are_aligned_and_diverged_ones_counted() -> None:
    a = frame(("s0", 0, 0.80), ("s0", 1, 0.81), ("s1", 0, 0.90), ("s1", 1, math.nan))
    b = frame(("s1", 1, 0.71), ("s1", 0, 0.70), ("s0", 1, math.nan), ("s0", 0, 0.60))
    pairs = pair(a, b)
    assert pairs.keys.to_numpy().tolist() == [["s0", 0], ["s1", 0]]
    assert pairs.a.tolist() == [0.80, 0.90]
    assert pairs.b.tolist() == [0.60, 0.70]
    assert pairs.dropped == 2


def test_a_key_on_one_side_only_is_named() -> None:
    a, b = frame(("s0", 0, 0.8), ("s1", 0, 0.8)), frame(("s0", 0, 0.7))
    with pytest.raises(InputError, match="frame_b lacks split 's1', seed 0"):
        pair(a, b)
    with pytest.raises(InputError, match="frame_a lacks split 's1', seed 0"):
        pair(b, a)


def test_a_key_given_twice_is_named() -> None:
    a, b = frame(("s0", 0, 0.8), ("s0", 0, 0.8)), frame(("s0", 0, 0.7))
    with pytest.raises(InputError, match="frame_a has split 's0', seed 0 more than once"):
        pair(a, b)
    with pytest.raises(InputError, match="frame_b has no column 'seed'"):
        pair(b, b[["split", "test"]])


def test_the_runs_of_a_split_are_one_observation():
    splits = ["s0", "s1", "s2"] * 2
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=6), rng.normal(size=6)
    frame = pd.DataFrame({"split": splits, "a": a, "b": b}).groupby("split").mean()
    assert [side.tolist() for side in by_split(splits, a, b)] == [pytest.approx(frame[name].tolist()) for name in "ab"]
    for alone in (["s"] * 6, list("abcdef")):  # one split only, or one run each: nothing to average
        assert by_split(alone, a, b)[0].tolist() == a.tolist()
