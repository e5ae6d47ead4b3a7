"""Comparisons of λ with the baseline: pairing, choice by validation, diverged runs."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sharpen.errors import InputError
from sharpen.evaluation import choose_by_validation, compare_lams

NAN = math.nan


def records(test: list[float], val: list[float] | float = 0.8, splits: int | None = None) -> pd.DataFrame:
    """Records of runs over so many splits (default: one per run), seeds counting on."""
    each = len(test) // (splits or len(test))
    return pd.DataFrame(
        {
            "dataset": "toy",
            "model": "gcn",
            "split": [f"s{i // each}" for i in range(len(test))],
            "seed": range(len(test)),
            "val": val,
            "test": test,
        }
    )


def test_differences_are_in_points_and_paired_whatever_the_order_of_rows() -> None:
    plain, sharp = records([0.80, 0.70, 0.60, 0.50]), records([0.82, 0.71, 0.63, 0.50])
    comparison = compare_lams(plain, {0.25: sharp[::-1]})
    (variant,) = comparison.variants
    assert variant.difference is not None
    assert variant.difference.difference == pytest.approx(1.5)
    assert variant.difference.t_p == pytest.approx(stats.ttest_rel(sharp["test"], plain["test"]).pvalue)
    assert (variant.difference.wins, variant.difference.ties, variant.difference.losses) == (3, 1, 0)
    assert comparison.test == pytest.approx(65.0)
    assert comparison.test_sd == pytest.approx(100 * np.std(plain["test"], ddof=1))
    assert comparison.subject is variant
    assert comparison.chosen is None


def test_splits_and_seeds_are_counted() -> None:
    comparison = compare_lams(records([0.8] * 6, splits=2), {0.25: records([0.8] * 6, splits=2)})
    assert (comparison.splits, comparison.seeds, comparison.pairs) == (2, 3, 6)


def test_seeds_of_one_split_are_one_observation() -> None:
    plain, sharp = np.array([0.80, 0.70, 0.60, 0.50, 0.7, 0.6]), np.array([0.82, 0.71, 0.63, 0.50, 0.70, 0.65])
    (variant,) = compare_lams(records(list(plain), splits=3), {0.25: records(list(sharp), splits=3)}).variants
    means = [scores.reshape(3, 2).mean(1) for scores in (sharp, plain)]
    assert variant.difference is not None
    assert variant.difference.n == 3
    assert variant.difference.t_p == pytest.approx(stats.ttest_rel(*means).pvalue)


def test_several_lams_carry_holms_correction() -> None:
    rng = np.random.default_rng(0)
    plain = records(list(rng.normal(0.8, 0.02, 10)))
    variants = {lam: records(list(plain["test"] + rng.normal(lam / 50, 0.01, 10))) for lam in (0.1, 0.5)}
    comparison = compare_lams(plain, variants)
    p = sorted(stats.ttest_rel(frame["test"], plain["test"]).pvalue for frame in variants.values())
    corrected = sorted(variant.corrected_p or NAN for variant in comparison.variants)
    assert corrected == pytest.approx([2 * p[0], max(2 * p[0], p[1])])
    assert comparison.subject is None


def test_verdicts_follow_the_interval() -> None:
    plain = records([0.80, 0.70, 0.60])
    gain = compare_lams(plain, {1: records([0.82, 0.721, 0.62])}).variants[0]
    loss = compare_lams(plain, {1: records([0.78, 0.679, 0.58])}).variants[0]
    unclear = compare_lams(plain, {1: records([0.81, 0.69, 0.60])}).variants[0]
    unknown = compare_lams(plain, {1: plain}).variants[0]
    assert [v.verdict() for v in (gain, loss, unclear, unknown)] == ["gain", "loss", "unclear", "unknown"]


def test_corrected_verdicts_are_more_careful() -> None:
    plain = records([0.80, 0.70, 0.60])
    barely = records([0.82, 0.71, 0.62])  # p = 0.038 alone
    alone = compare_lams(plain, {1.0: barely}).variants[0]
    beside = compare_lams(plain, {1.0: barely, 2.0: records([0.81, 0.69, 0.60])}).variants[0]
    assert alone.verdict(corrected=True) == "gain"
    assert beside.verdict() == "gain"
    assert beside.verdict(corrected=True) == "unclear"


def test_the_choice_reads_validation_and_never_test() -> None:
    plain = records([0.80, 0.80], val=[0.80, 0.80])
    worse_on_test = records([0.10, 0.20], val=[0.90, 0.80])
    better_on_test = records([0.99, 0.98], val=[0.70, 0.80])
    comparison = compare_lams(plain, {0.25: worse_on_test, 0.5: better_on_test}, choose=True)
    assert comparison.chosen == 0.25
    assert comparison.subject is comparison.variants[0]
    candidates = {0.0: plain, 0.25: worse_on_test, 0.5: better_on_test}
    assert choose_by_validation({lam: frame.drop(columns="test") for lam, frame in candidates.items()}) == 0.25


def test_the_baseline_may_be_chosen_and_wins_ties() -> None:
    comparison = compare_lams(records([0.8, 0.7], val=0.8), {0.25: records([0.9, 0.9], val=0.8)}, choose=True)
    assert comparison.chosen == 0
    assert comparison.subject is None


def test_a_lam_that_diverges_is_not_chosen_for_the_runs_that_survived() -> None:
    plain = records([0.8, 0.7], val=[0.8, 0.7])
    survivor = records([0.9, NAN], val=[0.9, NAN])
    comparison = compare_lams(plain, {0.25: survivor}, choose=True)
    assert comparison.chosen == 0
    (variant,) = comparison.variants
    assert (variant.diverged, variant.dropped) == (1, 1)
    assert variant.difference is not None
    assert variant.difference.n == 1
    assert variant.val == pytest.approx(90)


def test_a_diverged_baseline_takes_its_pair_along() -> None:
    comparison = compare_lams(records([0.8, NAN, 0.7]), {0.25: records([0.9, 0.9, 0.9])})
    assert comparison.diverged == 1
    assert (comparison.variants[0].diverged, comparison.variants[0].dropped) == (0, 1)


def test_nothing_but_diverged_runs() -> None:
    comparison = compare_lams(
        records([NAN, NAN], val=NAN),
        {0.25: records([NAN, 0.9], val=[NAN, 0.9]), 0.5: records([NAN, NAN], val=NAN)},
        choose=True,
    )
    assert (comparison.test, comparison.test_sd, comparison.val) == (None, None, None)
    assert [variant.difference for variant in comparison.variants] == [None, None]
    assert comparison.chosen == 0.25


def test_no_records_are_named() -> None:
    with pytest.raises(InputError, match="no records"):
        compare_lams(records([0.8])[:0], {})


def test_equal_totals_tie_however_they_are_distributed():
    rng = np.random.default_rng(0)
    for _ in range(300):
        hits = rng.integers(395, 425, 5)
        moved = hits.copy()
        i, j = rng.choice(5, 2, replace=False)
        moved[i] += 3
        moved[j] -= 3
        plain, sharp = (pd.DataFrame({"val": [100 * float(h / 500) for h in counts]}) for counts in (hits, moved))
        assert choose_by_validation({0.0: plain, 1.0: sharp}) == 0.0
        assert choose_by_validation({1.0: plain, 0.0: sharp}) == 0.0
