"""Spreading against its closed form, and the opinions that are gathered from it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch

from sharpen.fitting.candidates import Candidate
from sharpen.fitting.identity import identify
from sharpen.fitting.runs import LEAST, Listener, Run
from sharpen.fitting.spreading import Spreading
from sharpen.graph import Graph
from sharpen.graph.splits import Split
from sharpen.large.stored import StoredGraph, store_graph
from tests.fitting.camps import two_camps


def weighted_camps() -> Graph:
    camps = two_camps()
    return dataclasses.replace(camps, edge_weight=torch.linspace(0.5, 3, camps.num_edges, dtype=torch.float64))


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
    assert Spreading(camps).similar.toarray() == pytest.approx(s / s.sum(1, keepdims=True), abs=1e-7)


def arrival(graph: Graph, known: np.ndarray) -> np.ndarray:
    """Harmonic functions: the chance that a walk which gives up with 1 % at each step ends at each class, for unknown nodes."""
    s = Spreading(graph).similar.toarray()
    inside, held = np.flatnonzero(known < 0), np.flatnonzero(known >= 0)
    arrives = 0.99 * s[np.ix_(inside, held)] @ np.eye(2)[known[held]]
    return np.asarray(np.linalg.solve(np.eye(len(inside)) - 0.99 * s[np.ix_(inside, inside)], arrives))


def test_labels_spread_to_where_a_walk_meets_them_first() -> None:
    camps = two_camps()
    known = camps.y.numpy()
    p = np.exp(Spreading(camps).spread(known, num_classes=2, caution=0))
    assert p.sum(1) == pytest.approx(1)
    r = arrival(camps, known)
    odds = r[:, 1] / r[:, 0] * np.sqrt(r[:, 0].sum() / r[:, 1].sum())  # as many labels of each class
    second = odds / (1 + odds)
    closed = r.sum(1) * second + (1 - r.sum(1)) / 2
    assert p[known < 0, 1] == pytest.approx(closed, abs=0.02)  # fifty steps are almost all


def test_a_class_whose_labels_lie_well_is_held_back() -> None:
    """A star around a label of one class, and a label of the other at the end of one of its rays."""
    star = Graph(x=np.ones((12, 1)), edge_index=[[0] * 10 + [10], list(range(1, 12))])
    known = np.full(12, -1)
    known[[0, 11]] = 0, 1
    r = arrival(star, known)
    without = r.sum(0)[1] / r.sum()
    p = np.exp(Spreading(star).spread(known, num_classes=2, caution=0))
    ours = (p[known < 0] - (1 - r.sum(1, keepdims=True)) / 2).sum(0)
    assert without < ours[1] / ours.sum() < 0.5
    assert p[1:10, 0].min() > 0.9  # but not where there is no doubt


def test_a_class_without_labels_is_not_ruled_out() -> None:
    p = np.exp(Spreading(two_camps()).spread(two_camps().y.numpy(), num_classes=3))
    assert p.sum(1) == pytest.approx(1)
    assert 0 < p[:, 2].min() < p[:, 2].max() < 0.2


def test_where_no_label_arrives_there_is_no_opinion() -> None:
    graph = Graph(x=np.ones((4, 1)), edge_index=[[0, 2], [1, 3]])
    p = np.exp(Spreading(graph).spread(np.array([1, -1, -1, -1]), num_classes=2, caution=0))
    assert p[1, 1] > 0.95
    assert p[2:] == pytest.approx(0.5)
    assert np.exp(Spreading(graph).spread(np.full(4, -1), num_classes=3)) == pytest.approx(1 / 3)


def test_one_label_makes_less_sure_than_many_that_agree() -> None:
    """A leaf at one label, and the middle of a star of twenty labels: what arrives is the same, how many say it is not."""
    edges = [[0] + [2] * 20, [1, *range(3, 23)]]
    graph = Graph(x=np.ones((23, 1)), edge_index=edges)
    known = np.array([0, -1, -1, *[0] * 20])
    leaf, middle = np.exp(Spreading(graph).spread(known, num_classes=2))[[1, 2], 0]
    bare_leaf, bare_middle = np.exp(Spreading(graph).spread(known, num_classes=2, caution=0))[[1, 2], 0]
    assert abs(bare_leaf - bare_middle) < 0.01
    assert leaf == pytest.approx(
        (1 * bare_leaf + 2 / 2) / (1 + 2), abs=1e-6
    )  # one label: its signs have the same square each
    assert middle == pytest.approx(
        (20 * bare_middle + 2 / 2) / (20 + 2), abs=0.05
    )  # twenty, as far as sixteen signs can tell


def test_caution_moves_no_answer_but_how_sure_it_is() -> None:
    camps = two_camps()
    known = camps.y.numpy()
    bare, cautious = (Spreading(camps).spread(known, 2, caution=a) for a in (0.0, 2.0))
    assert (bare.argmax(1) == cautious.argmax(1)).all()
    assert (np.exp(cautious).max(1) <= np.exp(bare).max(1) + 1e-9).all()
    assert (Spreading(camps).spread(known, 2) == cautious).all()  # the same signs every time


def test_equal_features_leave_the_weights_as_they_are() -> None:
    graph = Graph(x=np.ones((4, 1)), edge_index=[[0, 1, 2], [1, 2, 3]], edge_weight=[1, 2, 4])
    a = graph.adjacency.to_scipy().toarray()
    assert Spreading(graph).similar.toarray() == pytest.approx(a / a.sum(1, keepdims=True))


def test_spreading_holds_one_float32_for_an_entry_and_the_graphs_own_arrays() -> None:
    camps = weighted_camps()
    similar = Spreading(camps).similar
    assert similar.data.dtype == np.float32
    assert np.shares_memory(similar.indices, camps.adjacency.col.numpy())
    assert np.shares_memory(similar.indptr, camps.adjacency.rowptr.numpy())


@pytest.mark.parametrize("name", ["camps", "hub"])
def test_fifty_steps_in_float32_are_those_in_float64(name: str) -> None:
    """A dense product in float64 is the oracle; the hub's row, of thousands of entries, is longer than one block."""
    rng = np.random.default_rng(0)
    hub = Graph(x=rng.normal(size=(5000, 3)), edge_index=np.stack([np.zeros(4999, dtype=int), np.arange(1, 5000)]))
    graph = two_camps() if name == "camps" else hub
    node = np.arange(graph.num_nodes)
    known = np.where((node > 0) & (node < 17), node % 2, -1)  # the hub is not among them
    a = graph.adjacency.to_scipy().astype(float).tocoo()
    x = graph.x.numpy().astype(float)
    distance = ((x[a.row] - x[a.col]) ** 2).sum(1)
    s = scipy.sparse.coo_array(
        (a.data * np.exp(-distance / np.median(distance[a.row != a.col])), (a.row, a.col))
    ).tocsr()
    s = scipy.sparse.diags_array(1 / s.sum(1)) @ s
    r = np.zeros((graph.num_nodes, 2))
    for _ in range(50):
        r[known >= 0] = np.eye(2)[known[known >= 0]]
        r = 0.99 * (s @ r)
    even = r / np.sqrt(r[known < 0].sum(0))  # as many labels of each class
    expected = even / even.sum(1, keepdims=True) * r.sum(1, keepdims=True) + (1 - r.sum(1, keepdims=True)) / 2
    assert Spreading(graph).spread(known, 2, caution=0) == pytest.approx(np.log(expected), abs=1e-5)


def test_a_graph_is_recognised_without_its_edges_being_listed(tmp_path: Path) -> None:
    class Unlisted(StoredGraph):
        @property
        def edge_index(self) -> torch.Tensor:
            raise AssertionError("all edges, int64, in memory")

    for graph in (two_camps(), weighted_camps()):
        place = tmp_path / str(graph.edge_weight is None)
        store_graph(graph, place)
        assert identify(Unlisted(place)) == identify(graph)
        assert identify(dataclasses.replace(graph, x=graph.x.to_sparse_csr())) == identify(graph)
        assert identify(dataclasses.replace(graph, y=None)) == identify(graph)
        assert identify(dataclasses.replace(graph, x=graph.x + 1)) != identify(graph)
        fewer = dataclasses.replace(graph, edge_index=graph.edge_index[:, 1:], edge_weight=None)
        assert identify(fewer) != identify(graph)
    assert identify(two_camps()) != identify(weighted_camps())


def test_a_member_is_judged_without_the_labels_it_is_judged_by() -> None:
    camps = two_camps()
    logits = np.random.default_rng(0).normal(size=(40, 2)) * 30
    split = Split("first", train=range(4, 16), val=[], test=range(4))
    alone, beside = Listener(camps).judged(Run(Candidate("gcn"), split, 0), logits, {}, True)
    assert (alone.candidate, beside.candidate) == (Candidate("gcn"), Candidate("gcn", spread=True))
    p = np.exp(logits - logits.max(1, keepdims=True))
    own = np.log(np.maximum(p / p.sum(1, keepdims=True), 1e-4))[:4]
    assert alone.opinions == pytest.approx(own[None])
    assert beside.opinions[0] == pytest.approx(own)
    assert own.min() == LEAST  # however sure it is
    known = np.where(np.arange(40) < 4, -1, camps.y.numpy())
    assert beside.opinions[1] == pytest.approx(Spreading(camps).spread(known, 2)[:4])
    other = dataclasses.replace(camps, y=torch.where(torch.arange(40) < 4, 1 - camps.y, camps.y))
    again = Listener(other).judged(Run(Candidate("gcn"), split, 0), logits, {}, True)[1]
    assert np.array_equal(again.opinions, beside.opinions)
