"""Which splits and seeds a comparison is paired on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sharpen.datasets import Dataset
from sharpen.errors import InputError

# On one split, or a few, there are seeds enough for so many pairs.
_FEWEST_PAIRS = 10
# Fewer pairs than these cannot be told from luck without assumptions: five give Wilcoxon's test p = 0.06 at best.
_CAUTION_BELOW = 6


def plan_pairs(dataset: Dataset, wanted: int | None, seeds: int | None) -> tuple[list[tuple[str, int]], list[str]]:
    """The (split, seed) of every pair, and what to tell the user about them.

    No two pairs share a seed, so that no two share their first weights. Pairs on one split share its luck; they are averaged
    before the splits are compared, unless there is only one.

    Args:
        dataset: what to compare on.
        wanted: how many splits; None for those that it comes with: the paper's.
        seeds: how many seeds on each; None for one, or for enough on the paper's splits.

    >>> from sharpen.datasets import load_dataset
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
