"""Datasets by name: where their files are, and who reads them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, cast

from sharpen.datasets.catalog import CATALOG, looks_like_a_file
from sharpen.datasets.dataset import Dataset
from sharpen.datasets.download import Folder, RemoteFile, find_folder
from sharpen.errors import InputError, did_you_mean


class _Source(Protocol):
    """What each module of a source offers."""

    def files(self, name: str) -> tuple[RemoteFile, ...]: ...

    def load(self, name: str, root: Folder = None) -> Dataset: ...


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
        name: One of :func:`sharpen.list_datasets`.
        root: The data folder to look in before the cache; it is only read. None: that of ``SHARPEN_DATA``.

    >>> load_dataset("digits").graph
    Graph('digits', nodes=1797, edges=24678, features=64, classes=10)
    >>> load_dataset("coral")
    Traceback (most recent call last):
    sharpen.errors.InputError: there is no dataset 'coral'; did you mean 'cora'? There are cora, citeseer, pubmed, ...
    """
    return _source(name).load(name, root)


def _source(name: str) -> _Source:
    if name in CATALOG:
        return cast(_Source, import_module(f"sharpen.datasets.{CATALOG[name].reader}"))
    if looks_like_a_file(name):
        raise InputError(
            f"there is no dataset {name!r}, and files are not read here; label a graph of your own with sharpen fit, or compare "
            f"on it from Python with sharpen.train(graph, trials, splits=...)"
        )
    near = did_you_mean(name, CATALOG)
    raise InputError(f"there is no dataset {name!r}; {near}{'There' if near else 'there'} are {', '.join(CATALOG)}")
