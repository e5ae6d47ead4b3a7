"""Candidates that are no networks: each against scikit-learn or a formula written out, on graphs that fit in the head."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse
import torch
from scipy.special import softmax
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sharpen.fitting import propagated, wide
from sharpen.fitting.aggregates import LinearOnColumns, TreesOnColumns
from sharpen.fitting.backbone import Backbone
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.estimators import ESTIMATORS
from sharpen.fitting.folds import draw_round
from sharpen.fitting.propagated import LogisticOnHops, SelfTraining
from sharpen.fitting.runs import Run
from sharpen.fitting.trees import boosted_scores, check_trees, tree_arrays
from sharpen.graph import Graph
from tests.fitting.camps import two_camps
from tests.fitting.test_backbones import SETTINGS


def known_of(graph: Graph) -> np.ndarray:
    return graph.y.numpy().copy()


def averaged(graph: Graph) -> np.ndarray:
    """S²GC's features by their formula, dense."""
    a = graph.adjacency.to_scipy().toarray()
    a = a / np.sqrt(np.outer(a.sum(1), a.sum(1)))
    powers = [np.linalg.matrix_power(a, k) @ graph.x.numpy() for k in range(17)]
    x = 0.05 * powers[0] + 0.95 / 16 * sum(powers[1:])
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("columns", [2048, 3])
def test_logistic_regression_is_scikit_learns_on_averaged_features(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows at once, and row by row as for many columns; there, lengths of other rows are estimated, within a tenth or so."""
    monkeypatch.setattr(propagated, "_COLUMNS", columns)
    graph = two_camps()
    known, x, model = known_of(graph), averaged(graph), LogisticOnHops()
    state = model.fit(graph, known, 2, seed=0, balanced=False)
    labeled = known >= 0
    wanted = LogisticRegression(C=10, max_iter=500).fit(x[labeled], known[labeled])
    got = softmax(model.scores(graph, state, known, 2), axis=1)
    assert got == pytest.approx(wanted.predict_proba(x), abs=1e-3 if columns > 3 else 0.15)
    assert state["weight"][1] - state["weight"][0] == pytest.approx(wanted.coef_[0], rel=1e-2, abs=1e-3)
    sparse = dataclasses.replace(graph, x=graph.x.to_sparse_csr())
    assert model.scores(sparse, model.fit(sparse, known, 2, seed=0, balanced=False), known, 2) == pytest.approx(
        model.scores(graph, state, known, 2), abs=1e-3
    )


@pytest.mark.parametrize(("classes", "sparse"), [(2, False), (3, True)])
def test_more_columns_than_labels_change_no_weight(classes: int, sparse: bool) -> None:
    """What is learnt in the span of the rows is what scikit-learn finds on all columns; rows may be alike, or all zero."""
    x, y = np.random.default_rng(0).normal(size=(12, 40)), np.arange(12) % classes
    x[11] = x[5]
    model = LogisticRegression(C=10, max_iter=5000, tol=1e-10)
    learnt = propagated.regression(scipy.sparse.csr_array(x) if sparse else x, y, classes, model)
    asked = np.random.default_rng(1).normal(size=(5, 40))
    scores = asked @ learnt["weight"].T + learnt["bias"]
    expected = LogisticRegression(C=10, max_iter=5000, tol=1e-10).fit(x, y).predict_proba(asked)
    assert softmax(scores, axis=1) == pytest.approx(expected, abs=1e-6)
    nothing = propagated.regression(np.zeros((3, 40)), np.array([0, 0, 1]), 2, model)
    assert not nothing["weight"].any()


def test_self_training_learns_from_nodes_that_have_no_label() -> None:
    """Two rings with features that tell them apart a little: one label each is not enough, and the nodes around it help."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    ring = np.concatenate([np.stack([np.arange(60), (np.arange(60) + 1) % 60]) + 60 * k for k in range(2)], axis=1)
    graph = Graph(x=rng.normal(size=(120, 10)) + 0.6 * y[:, None], edge_index=ring, y=y)
    right = {LogisticOnHops: [], SelfTraining: []}
    for draw in range(10):
        known = np.full(120, -1)
        picked = rng.integers(60, size=2) + np.array([0, 60])
        known[picked] = y[picked]
        for kind, hits in right.items():
            model = kind()
            scores = model.scores(graph, model.fit(graph, known, 2, seed=draw, balanced=False), known, 2)
            hits.append((scores.argmax(1) == y).mean())
    assert np.mean(right[SelfTraining]) > np.mean(right[LogisticOnHops])


def test_a_table_has_columns_of_neighbours_and_never_the_own_label() -> None:
    graph = Graph(x=[[1.0, 5.0], [0.0, 2.0], [1.0, -1.0], [0.0, 7.0]], edge_index=[[0, 1], [1, 2]], y=[0, 1, 1, -1])
    model, numeric = LinearOnColumns(), np.array([False, True])
    table = model._table(graph, numeric, known_of(graph), 2)
    # Own columns, their mean over neighbours, the number of neighbours, maximum and minimum of what is no yes or no; then the
    # share of each class among labeled neighbours, with one label of no opinion, and how many there are.
    assert table[1] == pytest.approx([0, 2, 1, 2, np.log(3), 5, -1, 1.5 / 3, 1.5 / 3, np.log(3)])
    assert table[0] == pytest.approx([1, 5, 0, 2, np.log(2), 2, 2, 0.25, 0.75, np.log(2)])
    assert table[3] == pytest.approx([0, 7, 0, 0, 0, 7, 7, 0.5, 0.5, 0])
    other = dataclasses.replace(graph, y=torch.tensor([0, 0, 1, -1]))  # another label of its own: the same row
    assert model._table(other, numeric, known_of(other), 2)[1] == pytest.approx(table[1])


@pytest.mark.parametrize("around", [False, True])
def test_a_linear_model_listens_to_neighbours_as_far_as_they_help(around: bool) -> None:
    """Either a node's own columns tell its class or those of its neighbours; it is held against regression on all of them."""
    rng, gain = np.random.default_rng(0), []
    for draw in range(5):
        y = np.repeat([0, 1], 100)
        ring = np.concatenate([np.stack([np.arange(100), (np.arange(100) + k) % 100]) for k in (1, 2)], axis=1)
        edges = np.concatenate([ring, ring + 100], axis=1) if around else rng.integers(200, size=(2, 400))
        graph = Graph(x=rng.normal(size=(200, 6)) + (0.4 if around else 0.8) * y[:, None], edge_index=edges, y=y)
        known = np.full(200, -1)
        picked = np.concatenate([rng.permutation(100)[:12] + first for first in (0, 100)])
        known[picked] = y[picked]
        model = LinearOnColumns()
        state = model.fit(graph, known, 2, seed=draw, balanced=False)
        table = StandardScaler().fit_transform(model._table(graph, state["numeric"], known, 2))
        plain = LogisticRegression(max_iter=1000).fit(table[picked], y[picked])
        said = model.scores(graph, state, known, 2).argmax(1)
        gain.append(float((said == y).mean() - (plain.predict(table) == y).mean()))
    assert np.mean(gain) > (-0.01 if around else 0.01)


@pytest.mark.parametrize("sparse", [False, True])
def test_many_columns_are_taken_at_unit_length_beside_those_of_neighbours(
    sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores are those of a dense table written out; a graph that grows by a node is predicted as well."""
    monkeypatch.setattr(wide, "_MOST_COLUMNS", 2)
    camps = two_camps()
    graph = dataclasses.replace(camps, x=camps.x.to_sparse_csr()) if sparse else camps
    known, model = known_of(camps), LinearOnColumns()
    state = model.fit(graph, known, 2, seed=0, balanced=False)
    assert set(state) == {"own", "around", "more", "mean", "scale", "bias"}
    a = graph.adjacency.to_scipy().toarray() > 0
    np.fill_diagonal(a, False)
    x = camps.x.numpy() / np.linalg.norm(camps.x.numpy(), axis=1, keepdims=True)
    count = np.maximum(1, a.sum(1, keepdims=True))
    votes = np.stack([(a & (known == c)).sum(1) for c in (0, 1)], axis=1)
    total = votes.sum(1, keepdims=True)
    more = np.hstack([np.log1p(a.sum(1, keepdims=True)), (votes + 0.5) / (total + 1), np.log1p(total)])
    wanted = x @ state["own"].T + a @ x / count @ state["around"].T
    wanted += (more - more.mean(0)) / more.std(0).clip(1e-9) @ state["more"].T + state["bias"]
    assert model.scores(graph, state, known, 2) == pytest.approx(wanted, abs=1e-4)
    labeled = known >= 0
    assert (wanted.argmax(1) == known)[labeled].mean() > 0.9
    model.check(state, graph.num_features, 2)
    with pytest.raises(ValueError, match="own has shape"):
        model.check({**state, "own": state["own"][:, 1:]}, graph.num_features, 2)


@pytest.mark.parametrize("classes", [2, 3])
def test_trees_as_arrays_are_scikit_learns(classes: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 5))
    x[rng.random(x.shape) < 0.1] = np.nan
    y = (np.nan_to_num(x[:, 0]) + 0.3 * rng.normal(size=300) > 0).astype(int) + (classes - 2) * (
        np.nan_to_num(x[:, 1]) > 0.5
    )
    model = HistGradientBoostingClassifier(max_iter=20, early_stopping=False, random_state=0).fit(x[:200], y[:200])
    state = tree_arrays(model, np.array([0, 2, 3][:classes]))
    scores = boosted_scores(state, x, 4)
    absent = np.setdiff1d(np.arange(4), state["classes"])
    assert softmax(scores[:, state["classes"]], axis=1) == pytest.approx(model.predict_proba(x), abs=1e-6)
    assert (scores[:, absent] == -np.log(100)).all()
    check_trees({**state, "numeric": np.ones(5, dtype=bool)}, 5, 4)
    for name, wrong in {
        "feature": state["feature"] + 5,
        "left": np.zeros_like(state["left"]),  # a way without end
        "classes": state["classes"] + 4,
        "roots": state["roots"] + len(state["value"]),
        "base": np.zeros(9),
        "value": state["value"][:-1],
    }.items():
        with pytest.raises(ValueError, match="trees"):
            check_trees({**state, "numeric": np.ones(5, dtype=bool), name: wrong}, 5, 4)


@pytest.mark.parametrize("model", list(ESTIMATORS))
def test_what_was_learnt_is_arrays_and_says_the_same_again(model: str) -> None:
    camps = two_camps()
    backbone = Backbone(SETTINGS, "cpu")
    folds = draw_round(camps.y.numpy(), 0)
    trained = backbone.train(camps, [Run(Candidate(model), fold, 0) for fold in folds[:2]])
    assert [run.candidate.spread for run in trained] == [False, True] * 2
    for run in trained[::2]:
        assert all(isinstance(value, np.ndarray) for value in run.weights.values())
        backbone.check(model, camps.num_features, 2, [run.weights])
        with pytest.raises(ValueError, match=r"shape|columns|trees"):
            backbone.check(model, camps.num_features + 1, 2, [run.weights])
        known = run.known(camps.y.numpy())
        (again,) = Backbone(SETTINGS, "cpu").logits(camps, model, 2, [run.weights], known)
        own = np.log(np.maximum(softmax(again[run.test], axis=1), 1e-4))
        assert own == pytest.approx(run.opinions[0], abs=1e-6)
        other = dataclasses.replace(
            camps, y=torch.where(torch.isin(torch.arange(40), run.split.test), 1 - camps.y, camps.y)
        )
        (blind,) = Backbone(SETTINGS, "cpu").train(other, [Run(Candidate(model), run.split, 0)])[:1]
        assert np.array_equal(blind.opinions, run.opinions)  # held-out labels had no part in it


@pytest.mark.parametrize("model", ["logistic", "linear", "trees"])
def test_given_class_proportions_are_met_on_unlabeled_nodes(model: str) -> None:
    camps = two_camps()
    fold = draw_round(camps.y.numpy(), 0)[0]
    backbone = Backbone(SETTINGS, "cpu", prior="0.8,0.2")
    (run, _) = backbone.train(camps, [Run(Candidate(model), fold, 0)])
    known = run.known(camps.y.numpy())
    (scores,) = backbone.logits(camps, model, 2, [run.weights], known)
    assert softmax(scores[known < 0], axis=1).mean(0) == pytest.approx([0.8, 0.2], abs=1e-3)


def test_classes_that_weigh_alike_are_found_more_often() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.15).astype(int)
    graph = Graph(x=rng.normal(size=(200, 3)) + y[:, None], edge_index=[[0], [1]], y=y)
    for kind in (LogisticOnHops, LinearOnColumns, TreesOnColumns):
        plain, alike = (
            kind().scores(graph, kind().fit(graph, y, 2, seed=0, balanced=balanced), y, 2).argmax(1).sum()
            for balanced in (False, True)
        )
        assert alike > plain
