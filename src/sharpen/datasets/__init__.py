"""Graphs by name, each with its metric and its splits; :class:`Dataset` is also what to wrap your own graph in."""

from sharpen.datasets.dataset import Dataset, Splits
from sharpen.datasets.download import cache_folder
from sharpen.datasets.registry import DatasetInfo, find_dataset, list_datasets, load_dataset

__all__ = ["Dataset", "DatasetInfo", "Splits", "cache_folder", "find_dataset", "list_datasets", "load_dataset"]
