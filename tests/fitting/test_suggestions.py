"""Suggestions take the most off the variance, one after the other, and stay whole where there is little to choose from."""

import numpy as np
import pytest

from sharpen import Graph
from sharpen.fitting.suggestions import _least_variance, suggest


def test_each_choice_takes_the_most_off_the_variance() -> None:
    """Against inverses computed anew for every node that could be labeled."""
    random = np.random.default_rng(0)
    f, unsure, favor = random.normal(size=(10, 3)), random.random(10), random.random(10)
    labeled = np.arange(10) < 2
    unsure[labeled] = 0

    def variance(held: np.ndarray) -> float:
        q = np.linalg.inv(np.eye(3) + f[held].T @ f[held])
        return sum(u * row @ q @ row for u, row in zip(unsure, f, strict=True))

    found, held = _least_variance(f, labeled, unsure, favor, 4), labeled.copy()
    for node, left in zip(found.nodes, found.left, strict=True):
        gain = [
            favor[i] * (variance(held) - variance(held | (np.arange(10) == i))) if not held[i] else -1
            for i in range(10)
        ]
        assert node == int(np.argmax(gain))
        held[node] = True
        assert left == pytest.approx(variance(held) / variance(labeled))


def path(count: int = 6) -> Graph:
    return Graph(x=np.eye(count), edge_index=[list(range(count - 1)), list(range(1, count))])


def test_more_than_there_are_gives_each_unlabeled_node_once() -> None:
    known = np.array([0, -1, -1, 1, -1, -1])
    found = suggest(path(), known, np.full((6, 2), 0.5), n=99)
    assert sorted(found.nodes.tolist()) == [1, 2, 4, 5]
    assert (np.diff(found.left) <= 0).all()


def test_nothing_is_suggested_where_every_node_has_a_label() -> None:
    assert suggest(path(), np.zeros(6, dtype=int), np.full((6, 2), 0.5)).nodes.tolist() == []


def test_a_class_without_labels_nodes_without_edges_and_certain_predictions_are_no_obstacle() -> None:
    graph = Graph(x=np.eye(4)[[0, 0, 1, 2]], edge_index=[[0], [1]])
    found = suggest(graph, np.array([0, -1, -1, -1]), np.eye(3)[[0, 0, 0, 0]], n=2)
    assert found.nodes.tolist() == [2, 3]  # node 1 is what node 0 is already


def test_a_graph_of_zeros_still_gets_an_answer() -> None:
    graph = Graph(x=np.zeros((3, 2)), edge_index=[[0], [1]])
    found = suggest(graph, np.array([0, -1, -1]), np.full((3, 2), 0.5), n=2)
    assert found.nodes.tolist() == [1, 2]
    assert found.left.tolist() == [0, 0]


def test_many_columns_are_reduced_the_same_way_every_time() -> None:
    random = np.random.default_rng(0)
    graph = Graph(x=random.random((200, 150)), edge_index=random.integers(0, 200, (2, 400)))
    known, p = np.where(np.arange(200) < 5, 0, -1), np.full((200, 2), 0.5)
    once, again = (suggest(graph, known, p, n=10).nodes.tolist() for _ in range(2))
    assert once == again
    assert len(set(once)) == 10
