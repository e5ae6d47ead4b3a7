"""Sharpened training against its baseline: one paired comparison per λ, and the choice of λ by validation."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd

from sharpen.errors import InputError
from sharpen.evaluation.paired import PairedDifference, by_split, holm, pair, paired_difference

_Name = TypeVar("_Name")


@dataclass(frozen=True)
class LamComparison:
    """One λ against the baseline, in percent and percentage points; see :func:`compare_lams`.

    Args:
        lam: λ.
        val: mean validation score of its runs, those that diverged left out; None if all did.
        difference: test scores, this variant (a) against the baseline (b), over splits, or over seeds where there is one split;
            None if no pair is left.
        corrected_p: the p-value of the paired t-test after Holm's correction over all variants.
        diverged: how many of its runs diverged.
        dropped: how many pairs are left out because one of the two runs diverged.

    >>> LamComparison(lam=0.25, val=None, difference=None, corrected_p=None, diverged=3, dropped=3).verdict()
    'unknown'
    """

    lam: float
    val: float | None
    difference: PairedDifference | None
    corrected_p: float | None
    diverged: int
    dropped: int

    def verdict(self, *, corrected: bool = False) -> str:
        """``gain`` or ``loss`` where the 95 % interval excludes zero, else ``unclear``; ``unknown`` if there is none.

        Args:
            corrected: let Holm's p-value below 0.05 decide instead of the interval, where several λ are judged at once.
        """
        d = self.difference
        if d is None or d.t_interval is None:
            return "unknown"
        low, high = d.t_interval
        sure = (self.corrected_p or 0) < 0.05 if corrected else not low <= 0 <= high
        return "unclear" if not sure else "gain" if d.difference > 0 else "loss"


@dataclass(frozen=True)
class Comparison:
    """A baseline and its variants on the same splits and seeds, in percent.

    Args:
        dataset, model, metric: what was compared.
        splits, seeds: how many splits, and how many seeds on each.
        val, test, test_sd: of the baseline's runs, those that diverged left out; None where there are too few.
        diverged: how many of the baseline's runs diverged.
        variants: one per λ, in the order in which they were given.
        chosen: the λ with the best mean validation score, 0 being the baseline; None if none was to be chosen.
    """

    dataset: str
    model: str
    metric: str
    splits: int
    seeds: int
    val: float | None
    test: float | None
    test_sd: float | None
    diverged: int
    variants: tuple[LamComparison, ...]
    chosen: float | None = None

    @property
    def pairs(self) -> int:
        """How many pairs of runs there are, those that diverged included."""
        return self.splits * self.seeds

    @property
    def subject(self) -> LamComparison | None:
        """The variant that the comparison is about: the chosen one, or the only one; None if there is no such one."""
        if self.chosen is None:
            return self.variants[0] if len(self.variants) == 1 else None
        return next((variant for variant in self.variants if variant.lam == self.chosen), None)


def compare_lams(
    baseline: pd.DataFrame, variants: Mapping[float, pd.DataFrame], *, metric: str = "accuracy", choose: bool = False
) -> Comparison:
    """Compare the records of each λ with those of the baseline, paired on (split, seed).

    Where several splits have several seeds each, the seeds of a split are averaged first (:func:`by_split`): they are one
    observation.

    With ``choose``, λ is picked by :func:`choose_by_validation` among the variants and the baseline (λ = 0). Test
    scores have no part in that, so the p-value of the chosen one stands without a correction. Where every λ is judged
    on its own, Holm's corrected p-values hold together.

    Args:
        baseline: records of the plain runs, as :func:`sharpen.to_frame` makes them.
        variants: records by λ.
        metric: what ``val`` and ``test`` are.
        choose: whether to pick λ by validation.

    >>> runs = {"dataset": "toy", "model": "gcn", "split": ["s0", "s1", "s2"], "seed": 0}
    >>> plain = pd.DataFrame({**runs, "val": 0.80, "test": [0.81, 0.79, 0.80]})
    >>> sharp = pd.DataFrame({**runs, "val": 0.82, "test": [0.83, 0.82, 0.81]})
    >>> comparison = compare_lams(plain, {0.25: sharp}, choose=True)
    >>> comparison.chosen, round(comparison.subject.difference.difference, 2), comparison.subject.verdict()
    (0.25, 2.0, 'unclear')
    """
    if baseline.empty:
        raise InputError("the baseline has no records; give at least one split and seed")
    measured: list[tuple[float, PairedDifference | None, int]] = []
    for lam, frame in variants.items():
        pairs = pair(frame, baseline)
        scores = by_split(pairs.keys["split"].tolist(), 100 * pairs.a, 100 * pairs.b) if pairs.a.size else None
        measured.append((lam, None if scores is None else paired_difference(*scores), pairs.dropped))
    corrected = holm([math.nan if d is None else d.family_p for _, d, _ in measured])
    splits = baseline["split"].nunique()
    return Comparison(
        dataset=str(baseline["dataset"].iloc[0]),
        model=str(baseline["model"].iloc[0]),
        metric=metric,
        splits=splits,
        seeds=len(baseline) // splits,
        val=_percent(baseline["val"].mean()),
        test=_percent(baseline["test"].mean()),
        test_sd=_percent(baseline["test"].std()),
        diverged=int(baseline["test"].isna().sum()),
        variants=tuple(
            LamComparison(
                lam=lam,
                val=_percent(variants[lam]["val"].mean()),
                difference=difference,
                corrected_p=None if math.isnan(p) else float(p),
                diverged=int(variants[lam]["test"].isna().sum()),
                dropped=dropped,
            )
            for (lam, difference, dropped), p in zip(measured, corrected, strict=True)
        ),
        chosen=choose_by_validation({0.0: baseline, **variants}) if choose else None,
    )


def choose_by_validation(candidates: Mapping[_Name, pd.DataFrame], change: Callable[[Any], Any] = abs) -> _Name:
    """The λ, or what else has runs, with the highest mean validation score over all its runs; test scores are not read.

    One whose runs diverge more often than another's is not chosen, and of equals the one that changes least is, and then the first.

    Args:
        candidates: By λ, or by name: their runs.
        change: How much one changes, to tell equals apart; for λ, its size.

    >>> choose_by_validation({0.0: pd.DataFrame({"val": [0.7, 0.8]}), 0.25: pd.DataFrame({"val": [0.8, 0.8]})})
    0.25
    >>> same = pd.DataFrame({"val": [0.7, 0.8]})
    >>> choose_by_validation({"much": same, "little": same}, {"much": 2, "little": 1}.__getitem__)
    'little'
    """

    def demerit(name: _Name) -> tuple[int, float, Any]:
        val = candidates[name]["val"]
        # Scores are counts over counts: means of the same total must tie, whatever their last digits say.
        mean = round(float(val.mean()), 9)
        return int(val.isna().sum()), math.inf if math.isnan(mean) else -mean, change(name)

    return min(candidates, key=demerit)


def _percent(fraction: float) -> float | None:
    return None if math.isnan(fraction) else 100 * float(fraction)
