"""NodeClassifier by scikit-learn's conventions, and what it saves."""

import dataclasses
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import load_file, save_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from torch_geometric.data import Data
from torch_geometric.nn.models import SGFormer

from sharpen.errors import InputError
from sharpen.estimator import NodeClassifier
from sharpen.files import FeatureEncoder, read_nodes_and_edges
from sharpen.fitting import search
from sharpen.fitting.backbone import Backbone
from sharpen.fitting.runs import Run
from sharpen.graph import Graph
from sharpen.training import memory, scores
from tests.fitting.camps import two_camps

SMALL = {"hidden": 8, "epochs": 15, "device": "cpu"}
TRUTH = np.array(["left", "right"] * 20)


def make_sgformer(features: int, classes: int) -> torch.nn.Module:
    return SGFormer(features, 8, classes, trans_num_layers=1, gnn_num_layers=2)


@pytest.fixture(scope="module")
def fitted() -> NodeClassifier:
    """Every family, two λ: what most tests look at."""
    families = ["mlp", "gcn", "sage", "grand", "logistic", "linear", "trees"]
    return NodeClassifier(families, lam=0.25, balance=0.0, **SMALL).fit(two_camps())


def test_it_labels_the_unlabeled(fitted: NodeClassifier) -> None:
    graph = two_camps()
    p = fitted.predict_proba(graph)
    assert p.shape == (40, 2)
    assert p.sum(1) == pytest.approx(1)
    assert (fitted.classes_[p.argmax(1)] == fitted.predict(graph)).all()
    assert fitted.score(graph, np.where(np.arange(40) < 16, None, TRUTH)) > 0.7
    assert fitted.n_features_in_ == 6


def test_the_report_is_json_and_holds_the_baselines(fitted: NodeClassifier) -> None:
    report = json.loads(json.dumps(fitted.report_, allow_nan=False))
    assert report["expected"]["nodes"] == 16
    sides = ("the graph", "sharpening")
    assert set(report["baselines"]) == {f"{word} {side}" for word in ("with", "without") for side in sides}
    scores = {"accuracy", "balanced_accuracy", "macro_f1", "ece", "brier", "log_loss", "auc", "average_precision"}
    assert set(report["expected"]["after"]) == scores
    assert sum(report["predicted"].values()) == 24
    assert {verdict["question"] for verdict in report["verdicts"]} <= {"graph", "sharpening"}
    assert report["labels"] == {"left": 8, "right": 8}
    assert len(report["candidates"]) == 2 * 11  # each alone, and with spread labels
    assert sum(entry["share"] for entry in report["chosen"]) == pytest.approx(1, abs=1e-3)
    assert report["runs"] == sum(c["members"] for c in report["candidates"]) / 2  # trained once


def test_parameters_clone_and_pickle(fitted: NodeClassifier) -> None:
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "classes_")
    assert copy.set_params(lam=0.5).lam == 0.5
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(two_camps()), fitted.predict_proba(two_camps()))
    module = make_sgformer(6, 2)
    assert isinstance(clone(NodeClassifier(model=module)).model, SGFormer)


def test_fitting_twice_gives_the_same_bits(fitted: NodeClassifier) -> None:
    again = clone(fitted).fit(two_camps())
    assert np.array_equal(again.predict_proba(two_camps()), fitted.predict_proba(two_camps()))


@pytest.mark.parametrize("labels", ["text", "numbers", "floats"])
def test_labels_come_back_as_they_were_given(labels: str) -> None:
    graph = two_camps()
    values = {"text": ["b", "a"], "numbers": [7, 3], "floats": [2.5, 0.5]}[labels]
    y = [values[c] if c >= 0 else None for c in graph.y.tolist()]
    adjacency = graph.to_scipy()[0]
    classifier = NodeClassifier(model="gcn", lam=0.0, balance=0.0, **SMALL).fit((graph.x.numpy(), adjacency), y)
    assert classifier.classes_.tolist() == sorted(values)
    assert set(classifier.predict((graph.x.numpy(), adjacency)).tolist()) <= set(values)


def test_a_grown_and_another_graph_can_be_labeled(fitted: NodeClassifier) -> None:
    graph = two_camps()
    x = torch.cat([graph.x, graph.x[:2]])
    grown = Graph(x, torch.cat([graph.edge_index, torch.tensor([[40, 41], [2, 3]])], 1))
    assert fitted.predict(grown).shape == (42,)
    assert fitted.predict(two_camps(seed=5)).shape == (40,)
    alone = Graph(graph.x, torch.zeros(2, 0, dtype=torch.long))
    assert fitted.predict(alone).shape == (40,)
    with pytest.raises(InputError, match="has 3 features, but the model was fitted on 6"):
        fitted.predict(Graph(x[:, :3], graph.edge_index))


def test_labels_behind_the_test_mask_are_scored_and_not_learnt() -> None:
    graph = two_camps(labeled=40)
    data = Data(x=graph.x, edge_index=graph.edge_index, y=graph.y)
    data.train_mask = torch.arange(40) < 16
    data.test_mask = ~data.train_mask
    classifier = NodeClassifier(model="gcn", lam=0.0, balance=0.0, **SMALL)
    p = classifier.fit(data).predict_proba(data)
    assert classifier.score(data) == (p.argmax(1) == graph.y.numpy())[16:].mean()
    data.y = torch.where(data.test_mask, 1 - data.y, data.y)
    assert np.array_equal(clone(classifier).fit(data).predict_proba(data), p)


def test_one_run_decides_without_an_ensemble() -> None:
    one = NodeClassifier(model="gcn", lam=0.25, balance=0.0, ensemble=False, **SMALL).fit(two_camps())
    assert sum(len(group.weights) for group in one._fitted.ensemble.parts) == 1
    assert one.report_["chosen"][0]["members"] == 1
    unlabeled = one.predict_proba(two_camps())[16:]
    # It is as sure as the folds were found to be right, not as sure as it was trained to be.
    assert unlabeled.max(1).mean() == pytest.approx(one.report_["expected"]["after"]["accuracy"], abs=0.2)


def test_if_the_one_run_diverges_the_folds_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    train = Backbone.train

    def diverging(self: Backbone, graph: Graph, runs: list[Run]) -> list[Run]:
        return [dataclasses.replace(m, ok=m.test.size > 0) for m in train(self, graph, runs)]

    monkeypatch.setattr(Backbone, "train", diverging)
    one = NodeClassifier(model="gcn", lam=0.0, balance=0.0, ensemble=False, **SMALL).fit(two_camps())
    assert len(one._fitted.ensemble.parts[0].weights) == one.report_["chosen"][0]["members"] > 1
    assert any("the one run on all labels diverged" in note for note in one.report_["notes"])


def test_save_and_load_in_a_new_process_to_the_last_bit(fitted: NodeClassifier, tmp_path: Path) -> None:
    graph = two_camps()
    fitted.save(tmp_path / "model.safetensors", extra={"note": "λ"})
    np.savez(tmp_path / "graph.npz", x=graph.x.numpy(), edges=graph.edge_index.numpy())
    code = (
        "import sys, numpy as np; from sharpen import Graph, NodeClassifier\n"
        "data = np.load(sys.argv[1] + '/graph.npz'); clf = NodeClassifier.load(sys.argv[1] + '/model.safetensors')\n"
        "assert clf.extra_ == {'note': 'λ'} and clf.classes_.tolist() == ['left', 'right']\n"
        "np.save(sys.argv[1] + '/p.npy', clf.predict_proba(Graph(data['x'], data['edges'])))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert np.array_equal(np.load(tmp_path / "p.npy"), fitted.predict_proba(graph))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.npz", "model.safetensors", "p.npy"]


def two_rings(nodes: int = 60, seed: int = 0) -> Graph:
    """Two rings, each of one class; features are noise, and only labels that travel far along the rings tell them apart."""
    rng = np.random.default_rng(seed)
    ring = np.arange(nodes)
    source = np.concatenate([ring, ring + nodes])
    target = np.concatenate([(ring + 1) % nodes, (ring + 1) % nodes + nodes])
    y = np.repeat([0, 1], nodes)
    return Graph(rng.normal(size=(2 * nodes, 4)), np.stack([source, target]), y, ["inner", "outer"])


def some_labels(graph: Graph) -> list[str | None]:
    return [graph.class_names[c] if node % 5 == 0 else None for node, c in enumerate(graph.y.tolist())]


@pytest.fixture(scope="module")
def spreading() -> NodeClassifier:
    graph = two_rings()
    return NodeClassifier(model=["gcn", "mlp"], lam=0.25, balance=0.0, **SMALL).fit(graph, some_labels(graph))


def test_labels_are_spread_where_that_is_best(spreading: NodeClassifier) -> None:
    graph = two_rings()
    assert all(chosen["spread"] for chosen in spreading.report_["chosen"])
    assert spreading.score(graph) > 0.95
    assert spreading.report_["expected"]["after"]["accuracy"] > 0.9
    # On the same graph the labels of the fit are remembered; those that the graph holds are not looked at.
    bare = Graph(graph.x, graph.edge_index)
    assert np.array_equal(spreading.predict_proba(bare), spreading.predict_proba(graph))
    assert np.array_equal(spreading.predict_proba(bare, some_labels(graph)), spreading.predict_proba(graph))
    assert not spreading.lacks_labels(bare)


def test_a_spreading_model_labels_other_graphs_with_and_without_labels(spreading: NodeClassifier) -> None:
    other = two_rings(nodes=50, seed=1)
    assert spreading.lacks_labels(other)
    assert not spreading.lacks_labels(other, some_labels(other))
    p = spreading.predict_proba(other)
    assert np.isfinite(p).all()
    assert p.sum(1) == pytest.approx(1)
    with_labels = spreading.predict(other, some_labels(other))
    truth = np.array(["inner", "outer"])[other.y.numpy()]
    assert (with_labels == truth).mean() > 0.95 > (spreading.predict(other) == truth).mean()
    with pytest.raises(InputError, match="y has 3 labels, but the graph has 100 nodes"):
        spreading.predict(other, ["inner", None, None])


def test_a_spreading_model_is_saved_whole(spreading: NodeClassifier, tmp_path: Path) -> None:
    spreading.save(tmp_path / "m.safetensors")
    again = NodeClassifier.load(tmp_path / "m.safetensors")
    for graph in (two_rings(), two_rings(50, seed=1)):
        assert np.array_equal(again.predict_proba(graph), spreading.predict_proba(graph))
    again.save(tmp_path / "again.safetensors")
    names = [set(load_file(tmp_path / f"{name}.safetensors")) for name in ("m", "again")]
    assert names[0] == names[1]


def test_whether_the_graph_was_cut_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was fitted in batches is predicted in batches later, however much memory there is then: the same bits."""
    monkeypatch.setattr(memory, "memory_left", lambda device: 1000)
    monkeypatch.setattr(search, "rounds_wanted", lambda labeled: 1)
    classifier = NodeClassifier(model="gcn", lam=0.25, balance=0.0, **(SMALL | {"epochs": 3})).fit(two_camps())
    assert any("training in batches" in note for note in classifier.report_["notes"])
    assert any("known labels are not spread" in note for note in classifier.report_["notes"])
    before = classifier.predict_proba(two_camps())
    classifier.save(tmp_path / "m.safetensors")
    monkeypatch.undo()
    again, layerwise = NodeClassifier.load(tmp_path / "m.safetensors"), []
    original = scores.layerwise_logits
    monkeypatch.setattr(scores, "layerwise_logits", lambda *a: layerwise.append(1) or original(*a))
    assert np.array_equal(again.predict_proba(two_camps()), before)
    assert layerwise


def test_a_module_is_saved_without_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "rounds_wanted", lambda labeled: 1)
    classifier = NodeClassifier(make_sgformer, lam=0.0, balance=0.0, **(SMALL | {"epochs": 3})).fit(two_camps())
    assert classifier.report_["chosen"][0]["model"].endswith(":make_sgformer")
    classifier.save(tmp_path / "m.safetensors")
    with pytest.raises(InputError, match="load it with model="):
        NodeClassifier.load(tmp_path / "m.safetensors")
    again = NodeClassifier.load(tmp_path / "m.safetensors", model=make_sgformer)
    assert np.array_equal(again.predict_proba(two_camps()), classifier.predict_proba(two_camps()))


def test_files_that_are_no_models_are_named(fitted: NodeClassifier, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        NodeClassifier.load(tmp_path / "none.safetensors")
    pickled = tmp_path / "pickled.safetensors"
    pickled.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(InputError, match="is not a model that sharpen saved"):
        NodeClassifier.load(pickled)
    other = tmp_path / "other.safetensors"
    save_file({"a": np.zeros(1)}, other)
    with pytest.raises(InputError, match="not a model of this library"):
        NodeClassifier.load(other)
    fitted.save(tmp_path / "model.safetensors")
    damaged = tmp_path / "damaged.safetensors"
    save_file(load_file(tmp_path / "model.safetensors"), damaged, metadata={"format": "sharpen-5", "sharpen": "{}"})
    with pytest.raises(InputError, match="is damaged"):
        NodeClassifier.load(damaged)
    save_file(load_file(tmp_path / "model.safetensors"), damaged, metadata={"format": "sharpen-1", "sharpen": "{}"})
    with pytest.raises(
        InputError, match=r"another version of this library \(format sharpen-1, here sharpen-7\); fit again"
    ):
        NodeClassifier.load(damaged)
    whole = (tmp_path / "model.safetensors").read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="is not a model that sharpen saved"):
        NodeClassifier.load(damaged)


@pytest.mark.parametrize(
    ("arguments", "y", "message"),
    [
        ({"model": "gnc"}, None, "model is 'gnc'"),
        ({"hidden": 0}, None, "hidden is 0"),
        ({"metric": "f1"}, None, "metric is 'f1'"),
        ({"budget": 0}, None, "budget is 0"),
        ({"class_weight": "heavy"}, None, "class_weight is 'heavy'; give 'balanced'"),
        ({}, [None] * 40, "no node has a label"),
        ({}, ["a"] * 40, "all 40 labels are 'a'"),
    ],
)
def test_what_cannot_be_fitted_is_named(arguments: dict[str, object], y: list[str | None] | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        NodeClassifier(**(SMALL | arguments)).fit(two_camps(), y)


def test_with_one_label_each_there_is_an_answer_and_no_promise(tmp_path: Path) -> None:
    graph = two_camps()
    y = ["left", "right", *[None] * 38]
    classifier = NodeClassifier(**SMALL).fit(graph, y)
    assert classifier.score(graph, TRUTH) > 0.6
    report = json.loads(json.dumps(classifier.report_, allow_nan=False))
    assert report["expectation"].startswith("How often predictions are right cannot be said")
    assert report["expected"]["accuracy"] is None
    assert any("at least 3 labeled nodes in each of two classes" in note for note in report["notes"])
    classifier.page(tmp_path / "page.html")
    assert "cannot be said" in classifier._repr_html_()
    classifier.save(tmp_path / "m.safetensors")
    again = NodeClassifier.load(tmp_path / "m.safetensors")
    assert np.array_equal(again.predict_proba(graph), classifier.predict_proba(graph))
    asked = NodeClassifier("gcn", **SMALL).fit(graph, y)
    assert [entry["name"] for entry in asked.report_["chosen"]] == ["plain GCN"]


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_blank_labels_are_unknown(kind: Callable[[list[str]], Any]) -> None:
    known = [label if node < 16 else ("", " ")[node % 2] for node, label in enumerate(TRUTH)]
    classifier = NodeClassifier("mlp", lam=0.25, balance=0.0, **SMALL).fit(two_camps(), kind(known))
    assert classifier.classes_.tolist() == ["left", "right"]
    assert classifier.report_["labels"] == {"left": 8, "right": 8}
    assert classifier.score(two_camps(), kind(known)) == classifier.score(two_camps(), [*TRUTH[:16], *[None] * 24])
    assert not classifier.lacks_labels(two_camps(), kind(known))


def test_blank_labels_of_networkx_are_unknown() -> None:
    camps = two_camps().to_networkx()
    for node, attributes in camps.nodes(data=True):
        attributes["label"] = TRUTH[node] if node < 16 else ""
    assert NodeClassifier("mlp", lam=0.25, **SMALL).fit(camps).classes_.tolist() == ["left", "right"]


def test_a_networkx_graph_without_features_gets_those_of_its_structure(tmp_path: Path) -> None:
    club = networkx.karate_club_graph()
    truth = [club.nodes[node]["club"] for node in club]
    y = [side if node in (0, 1, 2, 3, 30, 31, 32, 33) else None for node, side in zip(club, truth, strict=True)]
    classifier = NodeClassifier(model="gcn", lam=0.25, balance=0.0, **SMALL).fit(club, y)
    assert any("degree, PageRank" in note for note in classifier.report_["notes"])
    assert classifier.score(club, truth) > 0.8
    classifier.save(tmp_path / "m.safetensors")
    loaded = NodeClassifier.load(tmp_path / "m.safetensors")
    assert np.array_equal(loaded.predict_proba(club), classifier.predict_proba(club))
    club.add_edge(33, "new")
    assert loaded.predict(club)[-1] == "Officer"
    (tmp_path / "nodes.csv").write_text("id\n" + "".join(f"{node}\n" for node in club))  # the same from files
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in club.edges))
    tables = read_nodes_and_edges(tmp_path / "nodes.csv", tmp_path / "edges.csv")
    x = FeatureEncoder.fit(tables).transform(tables)
    same = NodeClassifier(model="gcn", lam=0.25, balance=0.0, **SMALL).fit(club, [*y, None])
    pair = NodeClassifier(model="gcn", lam=0.25, balance=0.0, **SMALL).fit(
        (x, networkx.to_scipy_sparse_array(club)), [*y, None]
    )
    assert same.n_features_in_ == x.shape[1]
    assert same.predict_proba(club) == pytest.approx(
        pair.predict_proba((x, networkx.to_scipy_sparse_array(club))), abs=1e-5
    )


def test_nothing_is_predicted_before_a_fit(tmp_path: Path) -> None:
    for method in ("predict", "predict_proba", "score", "save"):
        with pytest.raises(NotFittedError, match="call fit first"):
            getattr(NodeClassifier(), method)(tmp_path / "m.safetensors" if method == "save" else two_camps())
