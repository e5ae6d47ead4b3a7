"""Graphs whose neighbours tend to differ: Roman-Empire, Amazon-Ratings, Minesweeper, Squirrel and Chameleon.

From https://github.com/yandex-research/heterophilous-graphs, each with ten splits. Squirrel and Chameleon are the
filtered versions, without the duplicated nodes that let labels leak from training to test nodes.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
import torch

from sharpen.datasets.arrays import both_directions, read_arrays
from sharpen.datasets.catalog import CATALOG
from sharpen.datasets.dataset import Dataset, Splits
from sharpen.datasets.download import Folder, RemoteFile, get_file
from sharpen.graph import Graph
from sharpen.graph.splits import from_masks

_URL = (
    "https://raw.githubusercontent.com/yandex-research/heterophilous-graphs/"
    "a431395582e929d88271309716bea4fe24ce6318/data"
)

_SHA256 = {
    "roman-empire": "a58ba741d123bf892fe5c872138d07463d75a2e9012360b8dd78ac2d4766d428",
    "amazon-ratings": "4c3a3e3b9d9f6cba0fede4625a00aad8c5721c1a36ed771367f446763241c7dd",
    "minesweeper": "e664c8dacf1e8ac466c2c09ed4b237bd2c5541f47a6eae9c6092cb87f16412b3",
    "squirrel": "f06370ffb3116c5de8b7a600005400b2293c025e0ce2f6916d8201a825505ac7",
    "chameleon": "bf46f07e1fb5249280447e5fe3100f3e82fc4b93ad1e13ffcfdec924b6ac0bb5",
}

CLASS_NAMES = {"minesweeper": ("no mine", "mine")}  # the other files only number their classes
_BAG_OF_WORDS = ("squirrel", "chameleon")  # below one percent filled


def files(name: str) -> tuple[RemoteFile, ...]:
    """The one file of a graph.

    >>> files("squirrel")[0].path
    'heterophilous/filtered/squirrel_filtered.npz'
    """
    file = name.replace("-", "_")
    folder, file = ("filtered", f"{file}_filtered") if name in _BAG_OF_WORDS else (f"{file}/raw", file)
    return (RemoteFile(f"heterophilous/{folder}/{file}.npz", f"{_URL}/{file}.npz", _SHA256[name]),)


def load(name: str, root: Folder = None) -> Dataset:
    """One of the five graphs with its ten splits."""
    masks = ("train_masks", "val_masks", "test_masks")
    arrays = read_arrays(get_file(files(name)[0], root), ["node_features", "node_labels", "edges", *masks])
    x = arrays["node_features"]
    edge_index = torch.from_numpy(arrays["edges"].T.astype(np.int64))
    graph = Graph(
        x=scipy.sparse.csr_array(x) if name in _BAG_OF_WORDS else x,
        edge_index=both_directions(edge_index),
        y=arrays["node_labels"],
        class_names=CLASS_NAMES.get(name),
        name=name,
    )
    triples = zip(*(arrays[key] for key in masks), strict=True)
    given = [from_masks(train, val, test, f"given-{i}") for i, (train, val, test) in enumerate(triples)]
    return Dataset(name, graph, CATALOG[name].metric, Splits(given, y=graph.y))
