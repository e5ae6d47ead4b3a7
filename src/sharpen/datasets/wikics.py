"""WikiCS: articles on computer science, the mean word vector of each, and the links between them.

From https://github.com/pmernyei/wiki-cs-dataset, with twenty splits that share their test nodes. Each has two
validation sets, one of them meant for early stopping; the paper validates on both together.
"""

from __future__ import annotations

import json

import numpy as np
import torch

from sharpen.datasets.arrays import both_directions
from sharpen.datasets.dataset import Dataset, Splits
from sharpen.datasets.download import WAY_OUT, Folder, RemoteFile, get_file
from sharpen.errors import InputError
from sharpen.graph import Graph
from sharpen.graph.splits import from_masks

_URL = "https://github.com/pmernyei/wiki-cs-dataset/raw/master/dataset/data.json"
_SHA256 = "9bf8cb3ef8eeae81b25e6ccbe0ea195600c205d7edf63ce04f2ec8d9c7dcb3d8"

_CLASS_NAMES = (
    "Computational linguistics", "Databases", "Operating systems", "Computer architecture", "Computer security",
    "Internet protocols", "Computer file systems", "Distributed computing architecture", "Web technology",
    "Programming language topics",
)  # fmt: skip


def files(name: str) -> tuple[RemoteFile, ...]:
    """The one file.

    >>> files("wikics")[0].path
    'wikics/raw/data.json'
    """
    return (RemoteFile("wikics/raw/data.json", _URL, _SHA256, most=256 * 2**20),)


def load(name: str, root: Folder = None) -> Dataset:
    """The graph with its twenty splits."""
    path = get_file(files(name)[0], root)
    try:
        content = json.loads(path.read_bytes())
        x = np.array(content["features"], dtype=np.float32)
        pairs = [(i, j) for i, targets in enumerate(content["links"]) for j in targets]
        y, test = np.array(content["labels"]), np.array(content["test_mask"], dtype=bool)
        train, val, stopping = (
            np.array(content[key], dtype=bool) for key in ("train_masks", "val_masks", "stopping_masks")
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not the data.json of WikiCS ({type(error).__name__}: {error}); {WAY_OUT}"
        ) from error
    edge_index = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    graph = Graph(x, both_directions(edge_index), y, _CLASS_NAMES, name)
    given = [from_masks(train[i], val[i] | stopping[i], test, name=f"given-{i}") for i in range(len(train))]
    return Dataset(name, graph, splits=Splits(given, y=graph.y))
