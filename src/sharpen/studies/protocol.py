"""Which (split, seed) pairs a cell is run on: the paper's own, twenty for paired comparisons, or draws with a number of labels.

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

A fourth, ``tuning``, draws as ``paired`` does, with seeds from 1,000 on: draws to choose settings on, which no table reports. Where
the data come with their splits, it draws half of the nodes for training and a quarter for validation.

A fifth, ``published``, is each method's own: the split that its mean was published on, where it has a setting and a mean for the
graph (:mod:`sharpen.studies.reproduction`); five seeds on one split, or one run on each of several.

Two more are families, for studies of the number of labels: ``few-5`` draws 5 labels for each class of a homophilous graph,
``share-20`` takes 20 % of the nodes of a heterophilous one, whose classes few labels do not tell apart. A study may have several,
and ``all`` stands for all of them where runs are planned.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sharpen.datasets.catalog import CATALOG, looks_like_a_file
from sharpen.errors import InputError, did_you_mean
from sharpen.studies.reproduction import published_draws, target

_PUBLISHED = "published"
PROTOCOLS = ("paper", "paired", "ablation", "tuning", _PUBLISHED)
ALL = "all"
_PAIRS = 20
# Validation and test nodes of a draw with few labels, as in the paper's splits; fewer, in the same proportion, on a small graph.
_FEW_VAL, _FEW_TEST = 500, 1000
_SHARE_VAL = 20
_TUNING, _TUNING_RUNS, _TUNED_ON = 1000, 3, "stratified-50-25-25-seed{seed}"


class Rate(NamedTuple):
    """How many labels a protocol draws.

    >>> rate_of("few-5"), rate_of("share-20").words, rate_of("paper")
    (Rate(kind='few', number=5), '20 % of the nodes', None)
    """

    kind: str
    number: int

    @property
    def words(self) -> str:
        """For people."""
        labels = "label" if self.number == 1 else "labels"
        return f"{self.number} {labels} per class" if self.kind == "few" else f"{self.number} % of the nodes"

    def split(self, dataset: str, seed: int) -> str:
        """The name of a draw."""
        if self.kind == "share":
            return f"stratified-{self.number}-{_SHARE_VAL}-{100 - _SHARE_VAL - self.number}-seed{seed}"
        info = CATALOG[dataset]
        left = info.nodes - self.number * info.classes
        val, test = (_FEW_VAL, _FEW_TEST) if left >= _FEW_VAL + _FEW_TEST else (left // 3, 2 * (left // 3))
        return f"balanced-{self.number}-{val}-{test}-seed{seed}"


def rate_of(protocol: str) -> Rate | None:
    """The number of labels that a protocol is about; None for one that has its labels from elsewhere."""
    match = re.fullmatch(r"(few|share)-([1-9]\d{0,3})", protocol)
    if match is None or (match[1] == "share" and int(match[2]) >= 100 - _SHARE_VAL):
        return None
    return Rate(match[1], int(match[2]))


def known_protocol(protocol: object, *, where: str | None = None) -> str:
    """The name, if it is that of a protocol.

    >>> known_protocol("few-3")
    'few-3'
    """
    if isinstance(protocol, str) and rate_of(protocol) is not None:
        return protocol
    return one_of("protocol", protocol, (*PROTOCOLS, "few-5", "share-20"), where=where)


def runs(dataset: str, protocol: str, count: int | None = None, model: str = "") -> list[tuple[str, int]]:
    """The (split, seed) of every run of a cell.

    Args:
        dataset: A dataset's name.
        protocol: ``paper``, ``paired``, ``ablation``, or one of a number of labels, as ``few-5``.
        count: How many runs, if not as many as the protocol says.
        model: The method, which ``published`` depends on.

    >>> runs("cora", "paper")[:2]
    [('balanced-20-500-1000-seed123', 0), ('balanced-20-500-1000-seed123', 1)]
    >>> runs("squirrel", "paired")[10:12]
    [('given-0', 10), ('given-1', 11)]
    >>> runs("cora", "tuning", 1), runs("squirrel", "tuning", 1)
    ([('balanced-20-500-1000-seed1000', 1000)], [('stratified-50-25-25-seed1000', 1000)])
    >>> runs("digits", "few-50", 1), runs("squirrel", "share-5", 1)
    ([('balanced-50-432-864-seed0', 0)], [('stratified-5-20-75-seed0', 0)])
    """
    known = one_of("dataset", dataset, tuple(CATALOG))
    if (rate := rate_of(known_protocol(protocol))) is not None:
        return [(rate.split(known, i), i) for i in range(count or _PAIRS)]
    if protocol == _PUBLISHED:
        return published_draws(known, model, count)
    splits = CATALOG[known].splits
    if protocol == "tuning":
        draws = splits.paired or _TUNED_ON
        return [(draws.format(seed=i), i) for i in range(_TUNING, _TUNING + (count or _TUNING_RUNS))]
    names, usual = splits.paper, _PAIRS if protocol == "paired" else splits.runs
    if protocol == "paired" and splits.paired is not None:
        names = tuple(splits.paired.format(seed=i) for i in range(count or usual))
    elif protocol == "ablation" and splits.ablation is not None:
        names = splits.ablation
    return [(names[i % len(names)], i) for i in range(count or usual)]


def covers(protocol: str, dataset: str, model: str) -> bool:
    """Whether a protocol has runs of its own in a cell; that of the ablations has them on Planetoid only.

    Labels per class are for graphs in which neighbours are alike, shares of the nodes for those in which they are not.

    >>> covers("paper", "photo", "gcn"), covers("ablation", "photo", "gcn"), covers("published", "cora", "h2gcn")
    (True, False, False)
    """
    if (rate := rate_of(protocol)) is not None:
        return CATALOG[dataset].heterophilous == (rate.kind == "share")
    if protocol == _PUBLISHED:
        return target(dataset, model) is not None
    return protocol != "ablation" or CATALOG[dataset].splits.ablation is not None


def one_of(what: str, value: object, allowed: Sequence[str], *, where: str | None = None) -> str:
    """The value, if it is one of those allowed; else an error that names the nearest.

    >>> one_of("protocol", "pared", PROTOCOLS)
    Traceback (most recent call last):
    sharpen.errors.InputError: there is no protocol 'pared'; did you mean 'paired'? There are paper, ...
    """
    if isinstance(value, str) and value in allowed:
        return value
    if what == "dataset" and isinstance(value, str) and looks_like_a_file(value):
        raise InputError(
            f"there is no dataset {value!r}; a study names the files of a graph of your own as {{nodes: …, edges: …}}",
            place=where,
        )
    near = did_you_mean(value, allowed)
    problem = f"there is no {what} {value!r}; {near}{'There' if near else 'there'} are {', '.join(allowed)}"
    raise InputError(problem, place=where)
