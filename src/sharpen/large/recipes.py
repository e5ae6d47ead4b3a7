"""Recipes for graphs on which the setting matters as much as the method: what to train, how to cut, on which data.

The recipes themselves are data, ``recipes.yaml``. A dataset is stored once (:mod:`sharpen.large.stored`) in the per-user cache, and
mapped into memory from then on; a graph that someone stored can take its place, and everything else stays the same.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from sharpen.datasets import Dataset, Splits, load_dataset
from sharpen.datasets.download import cache_folder, data_folders
from sharpen.errors import InputError, called
from sharpen.graph.split_files import load_split, save_split
from sharpen.graph.splits import Split
from sharpen.large.disk import is_free
from sharpen.large.stored import open_graph, store_graph
from sharpen.paper import setting
from sharpen.trial import Trial


@dataclass(frozen=True)
class Recipe:
    """A setting with a name, and a note on where its numbers are from: how a graph is cut, and what is not the paper's."""

    name: str
    dataset: str
    note: str
    batching: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def trial(self, model: str, **more: Any) -> Trial:
        """A trial of this recipe.

        >>> RECIPES["ogbn-arxiv-clusters"].trial("sage", lam=0.25).hidden
        256
        """
        return Trial(model=model, batching=self.batching, **(setting(self.dataset, model) | self.settings | more))


RECIPES: dict[str, Recipe] = {
    name: Recipe(name, **entry)
    for name, entry in yaml.safe_load((files("sharpen.large") / "recipes.yaml").read_text(encoding="utf-8")).items()
}


def find_recipe(name: str) -> Recipe:
    """A recipe by name.

    >>> find_recipe("ogbn-mag")
    Traceback (most recent call last):
    sharpen.errors.InputError: there is no recipe 'ogbn-mag'; choose one of ogbn-arxiv, ogbn-arxiv-clusters, ogbn-products, ...
    """
    if name not in RECIPES:
        raise InputError(f"there is no recipe {name!r}; choose one of {', '.join(RECIPES)}")
    return RECIPES[name]


def stored_dataset(name: str, root: str | os.PathLike[str] | None = None) -> Dataset:
    """A dataset whose graph is mapped from disk: from the cache, or loaded and stored there, once for each folder of data."""
    source = hashlib.sha256(str(data_folders(root)[0].resolve()).encode()).hexdigest()[:12]
    folder = cache_folder() / "stored" / f"{name}-{source}"
    if is_free(folder):
        loaded = load_dataset(name, root)
        keep_split(loaded.splits["given-0"], folder)
        store_graph(loaded.graph, folder)
    return _open_stored(name, folder)


def _open_stored(name: str, folder: Path) -> Dataset:
    """A stored graph with the split that was kept beside it (:func:`keep_split`)."""
    if not _split_file(folder).is_file():
        raise InputError(
            f"{folder} is no stored graph with a split, {_split_file(folder).name}; make a synthetic one with python "
            f"benchmarks/synthetic.py {name} {folder}, or leave {called('stored')} out"
        )
    graph = open_graph(folder)
    return Dataset(name, graph, splits=Splits([load_split(_split_file(folder))], y=graph.y))


def keep_split(split: Split, folder: Path) -> None:
    """Keep the split of a stored graph beside its folder."""
    _split_file(folder).parent.mkdir(parents=True, exist_ok=True)
    save_split(split, _split_file(folder))


def _split_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-split.npz")


def recipe_dataset(recipe: Recipe, root: str | os.PathLike[str] | None = None, stored: Path | None = None) -> Dataset:
    """The data of a recipe, or the stored graph of a folder in its place."""
    return stored_dataset(recipe.dataset, root) if stored is None else _open_stored(recipe.dataset, stored)
