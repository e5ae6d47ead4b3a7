"""What a comparison trains: the pairs of splits and seeds, the λ, and a balance where labels are few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sharpen.advice import first_choice
from sharpen.datasets import Dataset
from sharpen.errors import InputError
from sharpen.trial import Trial

AUTO_LAMS = (0.05, 0.1, 0.15, 0.25, 0.35, 0.5, 0.75, 1.0)
"""What ``lam="auto"`` chooses from, besides 0. The useful λ of the paper lie below 0.5, so the grid is finest there."""
# On one split, or a few, there are seeds enough for so many pairs.
_FEWEST_PAIRS = 10
# Fewer pairs than these cannot be told from luck without assumptions: five give Wilcoxon's test p = 0.06 at best.
_CAUTION_BELOW = 6


def checked_lams(given: float | str | Sequence[float], zero_is_plain: bool) -> tuple[float, ...]:
    """Each λ once, in the order given; 0 is left out where that is the baseline itself."""
    if isinstance(given, str):
        if given != "auto":
            raise InputError(f"is {given!r}; give a number (0.25), several ([0.1, 0.25]), or 'auto'", field="lam")
        return AUTO_LAMS
    try:
        lams = [float(value) for value in (given if isinstance(given, Sequence) else [given])]
    except (TypeError, ValueError):
        raise InputError(f"is {given!r}; give a number (0.25), several ([0.1, 0.25]), or 'auto'", field="lam") from None
    for lam in lams:
        if not math.isfinite(lam):
            raise InputError(f"is {lam}, which is not finite; give a number such as 0.25", field="lam")
    lams = [lam for lam in lams if lam != 0 or not zero_is_plain]
    if not lams:
        raise InputError("is 0, which is the baseline itself; give another λ, such as 0.25, or auto", field="lam")
    return tuple(dict.fromkeys(lams))


def plan_pairs(dataset: Dataset, wanted: int | None, seeds: int | None) -> tuple[list[tuple[str, int]], list[str]]:
    """The (split, seed) of every pair, and what to tell the user about them.

    No two pairs share a seed, so that no two share their first weights. Pairs on one split share its luck; they are averaged
    before the splits are compared, unless there is only one.

    Args:
        dataset: what to compare on.
        wanted: how many splits; None for those that it comes with: the paper's.
        seeds: how many seeds on each; None for one, or for enough on the paper's splits.

    >>> from sharpen import load_dataset
    >>> plan_pairs(load_dataset("digits"), 1, seeds=2)
    ([('balanced-5-500-1000-seed0', 0), ('balanced-5-500-1000-seed0', 1)], [])
    """
    names = dataset.splits.paper if wanted is None else dataset.splits.paired_names(wanted)
    if not names:
        raise InputError(f"{dataset.name} has no splits of the paper's; give a number of splits")
    notes = []
    if wanted is None:
        each = seeds or math.ceil(_FEWEST_PAIRS / len(names))
    else:
        each = math.ceil(wanted * (seeds or 1) / len(names))
        if len(names) < wanted:
            notes.append(
                f"{dataset.name} comes with {len(names)} split{'s' * (len(names) > 1)}, not {wanted}; "
                f"{each} seeds on each are averaged, so that there are {len(names)} pairs."
            )
    return [(name, each * i + j) for i, name in enumerate(names) for j in range(each)], notes


def few_pairs(pairs: Sequence[tuple[str, int]]) -> list[str]:
    """What to say beside an interval that rests on very few pairs."""
    splits = {split for split, _ in pairs}
    count = len(splits) if len(splits) > 1 else len(pairs)  # pairs on one of several splits are averaged
    if not 1 < count < _CAUTION_BELOW:
        return []
    more = "splits" if len(splits) > 1 else "splits, or seeds on one split,"
    return [
        f"With {count} pairs the interval assumes that gains are normally distributed; Wilcoxon's test, which does "
        f"not, cannot go below p = {2.0 ** (1 - count):g}. More {more} would say more."
    ]


def advised(
    sharp: Trial, lams: tuple[float, ...], dataset: Dataset, pairs: Sequence[tuple[str, int]], balanced: bool
) -> tuple[Trial, tuple[float, ...], list[str]]:
    """The sharpened trial, the λ and a note, where λ or balance are left to the number of labels."""
    labels = min(len(dataset.splits[split].train) for split, _ in pairs) / dataset.graph.num_classes
    choice = first_choice(labels, prior=sharp.prior is not None)
    if balanced or not choice.balance:
        return sharp, lams or (choice.lam,), []
    note = (
        f"With {labels:.3g} labels per class a balance of {choice.balance:g} keeps sharpening from emptying classes; a balance of "
        "0 leaves it out."
    )
    return replace(sharp, balance=choice.balance), lams or (choice.lam,), [note]
