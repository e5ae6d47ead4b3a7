"""Smoothing and spreading against their closed forms, and what they must not know."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse
import torch

from sharpen.fitting.neighbours import Neighbours
from sharpen.graph import Graph
from tests.fitting.camps import two_camps


def softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits)
    return e / e.sum(1, keepdims=True)


LOGITS = np.random.default_rng(0).normal(size=(40, 2))


def weighted_camps() -> Graph:
    camps = two_camps()
    return dataclasses.replace(camps, edge_weight=torch.linspace(0.5, 3, camps.num_edges, dtype=torch.float64))


@pytest.mark.parametrize("weighted", [False, True])
def test_smoothing_is_the_sum_over_walks(weighted: bool) -> None:
    camps = weighted_camps() if weighted else two_camps()
    a = camps.adjacency.to_scipy().toarray().astype(float)
    walk, p = a / a.sum(1, keepdims=True), softmax(LOGITS)
    closed = sum(0.1 * 0.9**k * np.linalg.matrix_power(walk, k) @ p for k in range(20)) + 0.9**20 * (
        np.linalg.matrix_power(walk, 20) @ p
    )
    assert np.exp(Neighbours(camps).smoothed(LOGITS)) == pytest.approx(closed)
    assert closed.sum(1) == pytest.approx(1)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_similar_neighbours_count_more(weighted: bool, sparse: bool) -> None:
    camps = weighted_camps() if weighted else two_camps()
    x = camps.x.numpy().astype(float)
    if sparse:
        camps = dataclasses.replace(camps, x=torch.from_numpy(x).to_sparse_csr())
    a = camps.adjacency.to_scipy().toarray().astype(float)
    distance = ((x[:, None] - x[None]) ** 2).sum(2)
    edges = (a > 0) & ~np.eye(40, dtype=bool)
    s = a * np.exp(-distance / np.median(distance[edges]))
    assert Neighbours(camps).similar.toarray() == pytest.approx(s / s.sum(1, keepdims=True), abs=1e-7)


def test_spreading_holds_what_is_known() -> None:
    camps = two_camps()
    known, p = camps.y.numpy(), softmax(LOGITS)
    s = Neighbours(camps).similar.toarray()
    q = p
    for _ in range(50):
        q = np.where(known[:, None] >= 0, np.eye(2)[known], q)
        q = 0.99 * s @ q + 0.01 * p
    assert np.exp(Neighbours(camps).spread(LOGITS, known)) == pytest.approx(q)
    assert q.sum(1) == pytest.approx(1)


def test_far_from_any_opinion_labels_decide_as_in_sklearn() -> None:
    """Harmonic functions: with no opinion of its own and for many steps, a node gets the label that a walk meets first."""
    camps = two_camps()
    known = camps.y.numpy()
    ours = np.exp(Neighbours(camps).spread(np.zeros((40, 2)), known)).argmax(1)
    s = Neighbours(camps).similar
    inside = np.flatnonzero(known < 0)
    laplacian = scipy.sparse.eye_array(40).tocsr() - s
    ends = np.eye(2)[known[known >= 0]]
    harmonic = np.linalg.solve(
        laplacian[inside][:, inside].toarray(), s[inside][:, np.flatnonzero(known >= 0)].toarray() @ ends
    )
    assert (ours[inside] == harmonic.argmax(1)).mean() > 0.95


def test_a_component_without_labels_keeps_its_own_opinion() -> None:
    graph = Graph(x=np.ones((4, 1)), edge_index=[[0, 2], [1, 3]])
    logits = np.log([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1], [0.7, 0.3]])
    p = np.exp(Neighbours(graph).spread(logits, np.array([1, -1, -1, -1])))
    assert p[1, 1] > 0.9
    assert p[2:, 0] == pytest.approx(0.8, abs=0.02)


def test_equal_features_leave_the_weights_as_they_are() -> None:
    graph = Graph(x=np.ones((4, 1)), edge_index=[[0, 1, 2], [1, 2, 3]])
    neighbours = Neighbours(graph)
    assert neighbours.similar.toarray() == pytest.approx(neighbours.mean.toarray())
