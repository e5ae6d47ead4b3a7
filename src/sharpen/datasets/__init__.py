"""Graphs by name, each with its metric and its splits; :class:`Dataset` is also what to wrap your own graph in.

Names are loaded when they are first used: :mod:`sharpen.datasets.catalog` needs no torch, the rest does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharpen.datasets.catalog import DatasetInfo, list_datasets
    from sharpen.datasets.dataset import Dataset, Splits
    from sharpen.datasets.download import cache_folder
    from sharpen.datasets.registry import find_dataset, load_dataset

_HOMES = {
    "Dataset": "dataset",
    "DatasetInfo": "catalog",
    "Splits": "dataset",
    "cache_folder": "download",
    "find_dataset": "registry",
    "list_datasets": "catalog",
    "load_dataset": "registry",
}

__all__ = ["Dataset", "DatasetInfo", "Splits", "cache_folder", "find_dataset", "list_datasets", "load_dataset"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'sharpen.datasets' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"sharpen.datasets.{_HOMES[name]}"), name)
