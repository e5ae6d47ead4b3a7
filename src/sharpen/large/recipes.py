"""Recipes for graphs on which the setting matters as much as the method: what to train, how to cut, on which data.

Data that is there is stored once (:mod:`sharpen.large.stored`) in the per-user cache, and mapped into memory from then on. Where
it is not there, a graph of the same size is generated in its place, if asked for; everything else stays the same.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sharpen.datasets import Dataset, Splits, load_dataset
from sharpen.datasets.download import cache_folder, data_folders
from sharpen.errors import InputError
from sharpen.graph.splits import load_split, save_split
from sharpen.large.generated import generate
from sharpen.large.stored import is_free, open_graph, store_graph
from sharpen.paper import setting
from sharpen.trial import Trial


@dataclass(frozen=True)
class Recipe:
    """A setting with a name.

    Args:
        name, dataset: What to call it, and on what.
        batching: How the graph is cut; None for the full batch. Several batches a step leave the number of processes open.
        settings: What differs from the paper's setting for the dataset, if it has one.
        note: Where the numbers come from.
    """

    name: str
    dataset: str
    batching: str | None
    note: str
    settings: dict[str, Any] = field(default_factory=dict)

    def trial(self, model: str, **more: Any) -> Trial:
        """A trial of this recipe.

        >>> RECIPES["ogbn-arxiv-clusters"].trial("sage", lam=0.25).hidden
        256
        """
        return Trial(model=model, batching=self.batching, **(setting(self.dataset, model) | self.settings | more))


_PRODUCTS = {"layers": 3, "hidden": 256, "dropout": 0.5, "norm": "batch", "residual": True, "weight_decay": 0.0}

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("ogbn-arxiv", "ogbn-arxiv", None, "the paper's setting: 2000 full batches"),
        Recipe(
            "ogbn-arxiv-clusters",
            "ogbn-arxiv",
            "clusters-112-4-2",
            "the paper's setting in 14 steps an epoch, as many steps in all",
            {"epochs": 143},
        ),
        Recipe(
            "ogbn-products",
            "ogbn-products",
            None,
            "three layers of 256 as in OGB's examples; needs about 30 GB of a GPU at once, GAT 48 GB",
            _PRODUCTS | {"lr": 0.003, "epochs": 500},
        ),
        Recipe(
            "ogbn-products-clusters",
            "ogbn-products",
            "clusters-1632-8-4",
            "the same in 51 steps an epoch of 32 parts, for 1, 2 or 4 processes",
            _PRODUCTS | {"lr": 0.001, "epochs": 50},
        ),
    )
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
        _split_file(folder).parent.mkdir(parents=True, exist_ok=True)
        save_split(loaded.splits["given-0"], _split_file(folder))
        store_graph(loaded.graph, folder)
    graph = open_graph(folder)
    return Dataset(name, graph, splits=Splits([load_split(_split_file(folder))], y=graph.y))


def _split_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-split.npz")


def recipe_dataset(
    recipe: Recipe, root: str | os.PathLike[str] | None = None, generated: Path | None = None, scale: float = 1.0
) -> Dataset:
    """The data of a recipe, or a generated graph of its size in the folder ``generated``."""
    return stored_dataset(recipe.dataset, root) if generated is None else generate(recipe.dataset, generated, scale)
