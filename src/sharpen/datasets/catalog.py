"""Every graph that can be loaded by name, and all that is known of it before it is loaded; nothing here needs torch.

A new dataset is an entry here and a module that reads it, with ``files(name)`` and ``load(name, root)``.
"""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from typing import NamedTuple


class SplitNames(NamedTuple):
    """How a dataset names its splits, and on how many runs the paper reports.

    >>> SplitNames.given(2, runs=3).paper
    ('given-0', 'given-1')
    """

    paper: tuple[str, ...]
    runs: int
    paired: str | None = None
    """What is drawn for pairs; None: the given splits, again with other seeds."""
    ablation: tuple[str, ...] | None = None
    """What the paper's ablation scripts use; None: the same as its main sweep."""

    @classmethod
    def given(cls, splits: int, runs: int, paired: str | None = None) -> SplitNames:
        """The splits that come with the data."""
        return cls(tuple(f"given-{i}" for i in range(splits)), runs, paired)


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a dataset before it is loaded.

    Args:
        name: The name to load it by.
        nodes, edges, features, classes: Its size; edges are undirected and without self-loops.
        metric: ``"accuracy"`` or ``"roc-auc"``.
        source: Where it is published.
        licence: The licence it is published under.
        title: Its name as tables and figures write it.
        reader: The module of :mod:`sharpen.datasets` that reads it.
        splits: How its splits are called; a test compares the names with those of ``load_dataset(name).splits``.
        heterophilous: Whether neighbours mostly differ in class.

    >>> next(info for info in list_datasets() if info.name == "cora").edges
    5278
    """

    name: str
    nodes: int
    edges: int
    features: int
    classes: int
    metric: str
    source: str
    licence: str
    title: str
    reader: str
    splits: SplitNames
    heterophilous: bool = False


_PLANETOID = ("github.com/kimiyoung/planetoid", "MIT")
_SHCHUR = ("github.com/shchur/gnn-benchmark", "MIT")
_WIKI = ("github.com/pmernyei/wiki-cs-dataset", "MIT")
_OGBN = ("ogb.stanford.edu",)
_YANDEX = ("github.com/yandex-research/heterophilous-graphs", "MIT")

_BALANCED = "balanced-20-500-1000-seed{seed}"
_DRAWN = SplitNames((_BALANCED.format(seed=123),), runs=5, paired=_BALANCED, ablation=(_BALANCED.format(seed=42),))
_FIXED = SplitNames.given(1, runs=3, paired="stratified-60-20-20-seed{seed}")
_TWENTY = SplitNames.given(20, runs=3)
_TEN = SplitNames.given(10, runs=10)
_THREE = SplitNames.given(10, runs=3)
_OGB = SplitNames.given(1, runs=5)
_FEW = "balanced-5-500-1000-seed{seed}"
_DIGITS = SplitNames((_FEW.format(seed=0),), runs=5, paired=_FEW)

# In the order of the paper's tables.
_ROWS = (
    DatasetInfo("cora", 2708, 5278, 1433, 7, "accuracy", *_PLANETOID, "Cora", "planetoid", _DRAWN),
    DatasetInfo("citeseer", 3327, 4552, 3703, 6, "accuracy", *_PLANETOID, "CiteSeer", "planetoid", _DRAWN),
    DatasetInfo("pubmed", 19717, 44324, 500, 3, "accuracy", *_PLANETOID, "PubMed", "planetoid", _DRAWN),
    DatasetInfo("computer", 13752, 245861, 767, 10, "accuracy", *_SHCHUR, "Computer", "gnn_benchmark", _FIXED),
    DatasetInfo("photo", 7650, 119081, 745, 8, "accuracy", *_SHCHUR, "Photo", "gnn_benchmark", _FIXED),
    DatasetInfo("cs", 18333, 81894, 6805, 15, "accuracy", *_SHCHUR, "CS", "gnn_benchmark", _FIXED),
    DatasetInfo("physics", 34493, 247962, 8415, 5, "accuracy", *_SHCHUR, "Physics", "gnn_benchmark", _FIXED),
    DatasetInfo("wikics", 11701, 215863, 300, 10, "accuracy", *_WIKI, "WikiCS", "wikics", _TWENTY),
    DatasetInfo("squirrel", 2223, 46998, 2089, 5, "accuracy", *_YANDEX, "Squirrel", "heterophilous", _TEN, True),
    DatasetInfo("chameleon", 890, 8854, 2325, 5, "accuracy", *_YANDEX, "Chameleon", "heterophilous", _TEN, True),
    DatasetInfo("amazon-ratings", 24492, 93050, 300, 5, "accuracy", *_YANDEX, "Amazon-Ratings", "heterophilous", _THREE, True),
    DatasetInfo("roman-empire", 22662, 32927, 300, 18, "accuracy", *_YANDEX, "Roman-Empire", "heterophilous", _THREE, True),
    DatasetInfo("minesweeper", 10000, 39402, 7, 2, "roc-auc", *_YANDEX, "Minesweeper", "heterophilous", _THREE, True),
    DatasetInfo("ogbn-arxiv", 169343, 1157799, 128, 40, "accuracy", *_OGBN, "ODC-BY", "ogbn-arxiv", "ogb", _OGB),
    DatasetInfo("ogbn-products", 2449029, 61859140, 100, 47, "accuracy", *_OGBN, "Amazon", "ogbn-products", "ogb", _OGB),
    DatasetInfo("digits", 1797, 12339, 64, 10, "accuracy", "scikit-learn, from UCI", "CC BY 4.0", "Digits", "digits", _DIGITS),
)  # fmt: skip

CATALOG = {info.name: info for info in _ROWS}
"""All that can be loaded by name; graphs of the user's own are added by :func:`sharpen.datasets.registry.add_dataset`."""
DATASETS = tuple(CATALOG)
"""The names of those that come with this package."""


def list_datasets() -> tuple[DatasetInfo, ...]:
    """What can be loaded, in the order of the paper's tables.

    >>> [info.name for info in list_datasets()][:3]
    ['cora', 'citeseer', 'pubmed']
    """
    return _ROWS


def looks_like_a_file(name: str) -> bool:
    """Whether what should be the name of a dataset is the path of a file.

    >>> looks_like_a_file("people.csv"), looks_like_a_file("graphs/mine"), looks_like_a_file("coral")
    (True, True, False)
    """
    return any(mark in name for mark in "./\\") or os.path.isfile(name)
