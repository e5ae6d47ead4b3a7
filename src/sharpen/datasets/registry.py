"""Every graph that can be loaded by name, what it is, and who reads it."""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from sharpen.datasets import digits, gnn_benchmark, heterophilous, ogb, planetoid, wikics
from sharpen.datasets.dataset import Dataset
from sharpen.datasets.download import Folder, RemoteFile, find_folder
from sharpen.errors import InputError, did_you_mean


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a dataset before it is loaded.

    Args:
        name: The name to load it by.
        nodes, edges, features, classes: Its size; edges are undirected and without self-loops.
        metric: ``"accuracy"`` or ``"roc-auc"``.
        source: Where it is published.
        licence: The licence it is published under.

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


class _Source(Protocol):
    """What each module of a source offers."""

    def files(self, name: str) -> tuple[RemoteFile, ...]: ...

    def load(self, name: str, root: Folder = None) -> Dataset: ...


_PLANETOID = ("github.com/kimiyoung/planetoid", "MIT")
_GNN_BENCHMARK = ("github.com/shchur/gnn-benchmark", "MIT")
_HETEROPHILOUS = ("github.com/yandex-research/heterophilous-graphs", "MIT")

_DATASETS: tuple[tuple[DatasetInfo, _Source], ...] = (
    (DatasetInfo("cora", 2708, 5278, 1433, 7, "accuracy", *_PLANETOID), planetoid),
    (DatasetInfo("citeseer", 3327, 4552, 3703, 6, "accuracy", *_PLANETOID), planetoid),
    (DatasetInfo("pubmed", 19717, 44324, 500, 3, "accuracy", *_PLANETOID), planetoid),
    (DatasetInfo("computer", 13752, 245861, 767, 10, "accuracy", *_GNN_BENCHMARK), gnn_benchmark),
    (DatasetInfo("photo", 7650, 119081, 745, 8, "accuracy", *_GNN_BENCHMARK), gnn_benchmark),
    (DatasetInfo("cs", 18333, 81894, 6805, 15, "accuracy", *_GNN_BENCHMARK), gnn_benchmark),
    (DatasetInfo("physics", 34493, 247962, 8415, 5, "accuracy", *_GNN_BENCHMARK), gnn_benchmark),
    (DatasetInfo("wikics", 11701, 215863, 300, 10, "accuracy", "github.com/pmernyei/wiki-cs-dataset", "MIT"), wikics),
    (DatasetInfo("squirrel", 2223, 46998, 2089, 5, "accuracy", *_HETEROPHILOUS), heterophilous),
    (DatasetInfo("chameleon", 890, 8854, 2325, 5, "accuracy", *_HETEROPHILOUS), heterophilous),
    (DatasetInfo("amazon-ratings", 24492, 93050, 300, 5, "accuracy", *_HETEROPHILOUS), heterophilous),
    (DatasetInfo("roman-empire", 22662, 32927, 300, 18, "accuracy", *_HETEROPHILOUS), heterophilous),
    (DatasetInfo("minesweeper", 10000, 39402, 7, 2, "roc-auc", *_HETEROPHILOUS), heterophilous),
    (DatasetInfo("ogbn-arxiv", 169343, 1157799, 128, 40, "accuracy", "ogb.stanford.edu", "ODC-BY"), ogb),
    (DatasetInfo("ogbn-products", 2449029, 61859140, 100, 47, "accuracy", "ogb.stanford.edu", "Amazon"), ogb),
    (DatasetInfo("digits", 1797, 12339, 64, 10, "accuracy", "scikit-learn, from UCI", "CC BY 4.0"), digits),
)
_SOURCES = {info.name: source for info, source in _DATASETS}


def list_datasets() -> tuple[DatasetInfo, ...]:
    """What can be loaded, in the order of the paper's tables.

    >>> [info.name for info in list_datasets()][:3]
    ['cora', 'citeseer', 'pubmed']
    """
    return tuple(info for info, _ in _DATASETS)


def find_dataset(name: str, root: Folder = None) -> Path | None:
    """The folder on this machine that holds the files of a dataset, or None if it would have to be downloaded.

    Args:
        name: The name to load it by.
        root: The data folder to look in before the cache. None: that of ``SHARPEN_DATA``.

    >>> find_dataset("digits").name  # with scikit-learn
    'data'
    """
    files = _source(name).files(name)
    if files:
        return find_folder(files, root)
    package = find_spec("sklearn")
    return None if package is None else Path(str(package.origin)).parent / "datasets" / "data"


def load_dataset(name: str, root: Folder = None) -> Dataset:
    """A dataset by name. What is missing on this machine is downloaded into the per-user cache.

    Args:
        name: One of :func:`list_datasets`.
        root: The data folder to look in before the cache; it is only read. None: that of ``SHARPEN_DATA``.

    >>> load_dataset("digits").graph
    Graph('digits', nodes=1797, edges=24678, features=64, classes=10)
    >>> load_dataset("coral")
    Traceback (most recent call last):
    sharpen.errors.InputError: there is no dataset 'coral'; did you mean 'cora'? There are cora, citeseer, pubmed, ...
    """
    return _source(name).load(name, root)


def _source(name: str) -> _Source:
    if name in _SOURCES:
        return _SOURCES[name]
    if looks_like_a_file(name):
        raise InputError(
            f"there is no dataset {name!r}, and files are not read here; label a graph of your own with sharpen fit, or compare "
            f"on it from Python with sharpen.train(graph, trials, splits=...)"
        )
    near = did_you_mean(name, _SOURCES)
    raise InputError(f"there is no dataset {name!r}; {near}{'There' if near else 'there'} are {', '.join(_SOURCES)}")


def looks_like_a_file(name: str) -> bool:
    """Whether what should be the name of a dataset is the path of a file.

    >>> looks_like_a_file("people.csv"), looks_like_a_file("graphs/mine"), looks_like_a_file("coral")
    (True, True, False)
    """
    return any(mark in name for mark in "./\\") or os.path.isfile(name)
