"""Labels of any type, graphs of any kind."""

from typing import Any

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

from sharpen.errors import InputError
from sharpen.fitting.convert import as_graph, encode_labels
from sharpen.graph import Graph


@pytest.mark.parametrize(
    ("values", "numbers", "classes"),
    [
        (["b", None, "a"], [1, -1, 0], ["a", "b"]),
        ([3, -1, 1], [1, -1, 0], [1, 3]),
        ([3.0, np.nan, 1.0], [1, -1, 0], [1, 3]),
        ([0.5, np.nan, 0.25], [1, -1, 0], [0.25, 0.5]),
        ([True, None, False], [1, -1, 0], [False, True]),
        (np.array(["x", "y"]), [0, 1], ["x", "y"]),
        (torch.tensor([[2], [-1], [0]]), [1, -1, 0], [0, 2]),
        (pd.Series(["a", pd.NA, "b"]), [0, -1, 1], ["a", "b"]),
        ([1, "one", None], [0, 1, -1], [1, "one"]),
    ],
)
def test_labels_of_any_type(values: Any, numbers: list[int], classes: list[Any]) -> None:
    got, order = encode_labels(values)
    assert got.tolist() == numbers
    assert order.tolist() == classes


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([("p", 1), None], r"y\[0\] is \('p', 1\), a tuple; give text or numbers"),
        (np.eye(3), "y is not one label for each node"),
        (None, "y is not one label for each node"),
        (3, "y is not one label for each node"),
    ],
)
def test_what_is_no_label_is_named(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        encode_labels(values)


def test_a_class_that_was_not_fitted_is_named() -> None:
    with pytest.raises(InputError, match=r"y\[1\] is 'c', which is none of the classes 'a', 'b'"):
        encode_labels(["a", "c"], np.array(["a", "b"]))


def path(n: int = 4) -> scipy.sparse.coo_array:
    return scipy.sparse.coo_array((np.ones(n - 1), (np.arange(n - 1), np.arange(1, n))), shape=(n, n))


def test_every_kind_of_graph_becomes_the_same_one() -> None:
    x, y, edges = np.eye(4), ["a", "b", None, "a"], [[0, 1, 2], [1, 2, 3]]
    club = networkx.path_graph(4, create_using=networkx.DiGraph)
    for node in club:
        club.nodes[node].update(x=x[node], label=y[node])
    kinds = [
        as_graph(Graph(x, edges), y),
        as_graph(Graph(x, edges, [0, 1, -1, 0], ["a", "b"])),
        as_graph(Data(x=torch.eye(4), edge_index=torch.tensor(edges)), y),
        as_graph(club),
        as_graph((x, path()), y),
        as_graph((x, path().toarray()), y),
        as_graph((x, torch.from_numpy(path().toarray()).to_sparse()), y),
    ]
    assert {graph.fingerprint for graph, _ in kinds} == {kinds[0][0].fingerprint}
    assert all(classes.tolist() == ["a", "b"] for _, classes in kinds)


def test_labels_outside_the_masks_are_not_looked_at() -> None:
    data = Data(x=torch.eye(4), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0, 1, 1, 0]))
    data.train_mask = torch.tensor([True, True, False, False])
    data.val_mask = torch.tensor([False, False, True, False])
    assert as_graph(data)[0].y.tolist() == [0, 1, 1, -1]


def test_the_order_of_named_classes_is_kept() -> None:
    graph, classes = as_graph(Graph(np.eye(2), [[0], [1]], [0, 1], ["z", "a"]))
    assert classes.tolist() == ["z", "a"]
    assert graph.y.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("data", "y", "message"),
    [
        ("graph", None, "the graph is a str"),
        ((np.eye(3), path(4)), [0, 1, 0], "adjacency has shape"),
        ((np.eye(4), path(4)), [0, 1, 0], "y has 3 labels, but the graph has 4 nodes"),
        ((np.eye(4), path(4)), None, "holds no labels"),
        ((np.eye(4), path(4)), [1, "1", None, None], "in two types"),
    ],
)
def test_what_is_no_graph_is_named(data: Any, y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_graph(data, y)
