"""Datasets by name: where their files are, and who reads them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from sharpen.datasets.catalog import CATALOG, DatasetInfo, SplitNames, looks_like_a_file
from sharpen.datasets.dataset import Dataset
from sharpen.datasets.download import Folder, find_folder
from sharpen.errors import InputError, did_you_mean

# On how many random splits a graph of the user's own is run, unless something else is asked for.
_DRAWS = 10
# Graphs of the user's own, by name.
_OWN: dict[str, Dataset] = {}


def find_dataset(name: str, root: Folder = None) -> Path | None:
    """The folder on this machine that holds the files of a dataset, ``root`` first; None if it would have to be downloaded.

    >>> find_dataset("digits").name  # with scikit-learn
    'data'
    """
    if name in _OWN:
        return Path()
    files = _source(name).files(name)
    if files:
        return find_folder(files, root)
    package = find_spec("sklearn")
    return None if package is None else Path(str(package.origin)).parent / "datasets" / "data"


def load_dataset(name: str, root: Folder = None) -> Dataset:
    """A dataset by name. What is missing on this machine is downloaded into the per-user cache.

    Args:
        name: One of :func:`sharpen.list_datasets`.
        root: The data folder to look in before the cache; it is only read. None: that of ``SHARPEN_DATA``.

    >>> load_dataset("digits").graph
    Graph('digits', nodes=1797, edges=24678, features=64, classes=10)
    >>> load_dataset("coral")
    Traceback (most recent call last):
    sharpen.errors.InputError: there is no dataset 'coral'; did you mean 'cora'? There are cora, citeseer, pubmed, ...
    """
    return _OWN[name] if name in _OWN else _source(name).load(name, root)


def add_dataset(dataset: Dataset) -> str:
    """Lets a dataset of your own be loaded by name in this process, as studies do; gives the name.

    The name ends in a part of the graph's fingerprint: records of it are never taken for those of another state of it.

    >>> graph = load_dataset("digits").graph
    >>> add_dataset(Dataset("mine", graph)) == f"mine-{graph.fingerprint[:8]}"
    True
    """
    graph = dataset.graph
    name = f"{dataset.name}-{graph.fingerprint[:8]}"
    draws = dataset.splits.paired_names(_DRAWS)
    pattern = draws[0].removesuffix("0") + "{seed}" if draws[0].endswith("-seed0") else None
    splits = SplitNames(draws, _DRAWS, pattern)
    size = (graph.num_nodes, graph.num_edges // 2, graph.num_features, graph.num_classes)
    CATALOG[name] = DatasetInfo(name, *size, dataset.metric, "your own", "", dataset.name, "", splits)
    _OWN[name] = Dataset(name, graph, dataset.metric, dataset.splits)
    return name


def _source(name: str) -> ModuleType:
    """The module that reads a dataset, with ``files(name)`` and ``load(name, root)``."""
    if name in CATALOG:
        return import_module(f"sharpen.datasets.{CATALOG[name].reader}")
    if looks_like_a_file(name):
        way_out = "sharpen fit and sharpen compare take those of a graph of your own"
        raise InputError(f"there is no dataset {name!r}, and files are not read here", hint=way_out)
    near = did_you_mean(name, CATALOG)
    raise InputError(f"there is no dataset {name!r}; {near}{'There' if near else 'there'} are {', '.join(CATALOG)}")
