"""Which (split, seed) pairs a cell is run on: the paper's own, or twenty for paired comparisons.

Only names: nothing here reads a file, so that a study can be planned on a machine that has no data. A run's seed is its number,
so that no two runs of a cell share their first weights.

===========  =====================================================  =============================================================
protocol     ``paper``                                              ``paired``
===========  =====================================================  =============================================================
Planetoid    one class-balanced draw, 5 seeds                       20 class-balanced draws
Amazon, Co.  the fixed split, 3 seeds                               20 stratified draws of the same ratio
WikiCS       the first 3 of its 20 splits                           its 20 splits
Squirrel, …  the 10 splits (Squirrel, Chameleon), the first 3 of 10  10 splits × 2 seeds
ogbn-…       its split, 5 seeds                                     its split, 20 seeds
===========  =====================================================  =============================================================

A third, ``ablation``, is the paper's with the one difference that its ablation scripts make: on Planetoid they draw the split with
seed 42, and not with seed 123 as its main sweep does. It serves to show what that difference alone does to a score, and has no
other cells.
"""

from __future__ import annotations

from collections.abc import Sequence

from sharpen.datasets.catalog import CATALOG, looks_like_a_file
from sharpen.errors import InputError, did_you_mean

PROTOCOLS = ("paper", "paired", "ablation")
_PAIRS = 20


def runs(dataset: str, protocol: str, count: int | None = None) -> list[tuple[str, int]]:
    """The (split, seed) of every run of a cell.

    Args:
        dataset: A dataset's name.
        protocol: ``paper``, ``paired`` or ``ablation``.
        count: How many runs, if not as many as the protocol says.

    >>> runs("cora", "paper")[:2]
    [('balanced-20-500-1000-seed123', 0), ('balanced-20-500-1000-seed123', 1)]
    >>> runs("squirrel", "paired")[10:12]
    [('given-0', 10), ('given-1', 11)]
    """
    splits = CATALOG[one_of("dataset", dataset, tuple(CATALOG))].splits
    names, usual = splits.paper, splits.runs
    if one_of("protocol", protocol, PROTOCOLS) == "paired":
        usual = _PAIRS
        if splits.paired is not None:
            names = tuple(splits.paired.format(seed=i) for i in range(count or usual))
    elif protocol == "ablation" and splits.ablation is not None:
        names = splits.ablation
    return [(names[i % len(names)], i) for i in range(count or usual)]


def covers(protocol: str, dataset: str) -> bool:
    """Whether a protocol has runs of its own on a dataset; that of the ablations has them on Planetoid only.

    >>> covers("paper", "photo"), covers("ablation", "photo"), covers("ablation", "cora")
    (True, False, True)
    """
    return protocol != "ablation" or CATALOG[dataset].splits.ablation is not None


def one_of(what: str, value: object, allowed: Sequence[str], *, where: str = "") -> str:
    """The value, if it is one of those allowed; else an error that names the nearest.

    >>> one_of("protocol", "pared", PROTOCOLS)
    Traceback (most recent call last):
    sharpen.errors.InputError: there is no protocol 'pared'; did you mean 'paired'? There are paper, paired, ablation
    """
    if isinstance(value, str) and value in allowed:
        return value
    if what == "dataset" and isinstance(value, str) and looks_like_a_file(value):
        raise InputError(
            f"{where}there is no dataset {value!r}; a study names the files of a graph of your own as {{nodes: …, edges: …}}"
        )
    near = did_you_mean(value, allowed)
    raise InputError(
        f"{where}there is no {what} {value!r}; {near}{'There' if near else 'there'} are {', '.join(allowed)}"
    )
