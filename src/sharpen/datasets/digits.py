r"""Handwritten digits that are joined to their ten nearest neighbours: a graph that every installation has.

The 1,797 images of 8 × 8 pixels come with scikit-learn. Nodes i and j are joined if

.. math:: j \in \text{the 10 nodes nearest to } i \quad\text{or}\quad i \in \text{the 10 nodes nearest to } j

by the Euclidean distance of their pixels; of nodes at the same distance, the one with the smaller number is nearer.
"""

from __future__ import annotations

import numpy as np
import torch

from sharpen.datasets.arrays import both_directions
from sharpen.datasets.dataset import Dataset, Splits
from sharpen.datasets.download import Folder, RemoteFile
from sharpen.graph import Graph

_NEIGHBORS = 10


def files(name: str) -> tuple[RemoteFile, ...]:
    """No file: the data are part of scikit-learn.

    >>> files("digits")
    ()
    """
    return ()


def load(name: str, root: Folder = None) -> Dataset:
    """The graph, with splits of five labels per class to draw.

    >>> digits = load("digits")
    >>> digits.graph
    Graph('digits', nodes=1797, edges=24678, features=64, classes=10)
    >>> digits.splits.paired(1)[0]
    Split('balanced-5-500-1000-seed0', train=50, val=500, test=1000)
    """
    from sklearn.datasets import load_digits  # not above: it takes as long to import as torch

    bunch = load_digits()
    pixels = bunch.data.astype(np.int64)
    nearest = nearest_neighbors(pixels, _NEIGHBORS)
    pairs = np.stack([np.repeat(np.arange(len(pixels)), _NEIGHBORS), nearest.reshape(-1)])
    graph = Graph(
        x=pixels / 16,  # pixels go from 0 to 16
        edge_index=both_directions(torch.from_numpy(pairs)),
        y=bunch.target,
        class_names=[str(digit) for digit in range(10)],
        name=name,
    )
    return Dataset(name, graph, splits=Splits.known(name, graph.y))


def nearest_neighbors(points: np.ndarray, k: int) -> np.ndarray:
    """The k nearest other points of each point, nearest first; of integers, for exact distances and the same ties everywhere.

    >>> nearest_neighbors(np.array([[0], [1], [2], [9]]), k=2)
    array([[1, 2],
           [0, 2],
           [1, 0],
           [2, 1]])
    """
    exact = points.astype(np.float64)  # whole numbers stay exact, and floats multiply fast
    norms = (exact**2).sum(axis=1)
    squared = norms[:, None] + norms - 2 * exact @ exact.T
    order = squared.astype(np.int64) * len(points) + np.arange(len(points))  # by distance, then by number
    np.fill_diagonal(order, np.iinfo(np.int64).max)  # not its own neighbor
    return np.sort(np.partition(order, k, axis=1)[:, :k], axis=1) % len(points)
