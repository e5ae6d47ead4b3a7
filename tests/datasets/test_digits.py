from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

from sharpen.datasets import load_dataset
from sharpen.datasets.digits import nearest_neighbors


def test_neighbors_are_as_near_as_those_of_scikit_learn():
    pixels = load_digits().data
    oracle, _ = NearestNeighbors(n_neighbors=11, algorithm="brute").fit(pixels).kneighbors(pixels)
    ours = nearest_neighbors(pixels.astype(np.int64), 10)
    distance = np.linalg.norm(pixels[:, None] - pixels[ours], axis=2)
    np.testing.assert_allclose(distance, oracle[:, 1:], atol=1e-5)  # the first of theirs is the point itself
    assert not (ours == np.arange(len(pixels))[:, None]).any()


def test_of_equally_near_points_the_first_is_taken():
    square = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [0, 0]])  # the last lies on the first
    assert nearest_neighbors(square, 2).tolist() == [[4, 1], [0, 3], [0, 3], [1, 2], [0, 1]]


def test_graph_joins_both_ways_and_loses_no_neighbor():
    graph = load_dataset("digits").graph
    matrix = graph.to_scipy()[0]
    assert (matrix != matrix.T).nnz == 0
    assert matrix.diagonal().sum() == 0
    ours = nearest_neighbors(load_digits().data.astype(np.int64), 10)
    wanted = np.zeros((1797, 1797), dtype=bool)
    for i, row in enumerate(ours):
        wanted[i, row] = True
    assert ((wanted | wanted.T) == (matrix.toarray() > 0)).all()


def test_features_labels_and_class_names():
    graph = load_dataset("digits").graph
    assert graph.x.min() == 0
    assert graph.x.max() == 1
    np.testing.assert_allclose(graph.x.numpy() * 16, load_digits().data)
    assert graph.y.tolist() == load_digits().target.tolist()
    assert graph.class_names == tuple("0123456789")


def test_same_graph_everywhere():
    fingerprint = "9a93042804fb16147dbf91f255ce28bb48c687f3a4ab768f58e6c4c20738be91"
    assert load_dataset("digits").graph.fingerprint == fingerprint
    assert load_dataset("digits").graph.fingerprint == fingerprint


def test_splits_have_five_labels_per_class():
    dataset = load_dataset("digits")
    assert dataset.splits.paper == ("balanced-5-500-1000-seed0",)
    assert dataset.splits.paired_names(3) == tuple(f"balanced-5-500-1000-seed{seed}" for seed in range(3))
    split = dataset.splits["balanced-5-500-1000-seed2"]
    assert torch.bincount(dataset.graph.y[split.train]).tolist() == [5] * 10
    assert (len(split.val), len(split.test)) == (500, 1000)
