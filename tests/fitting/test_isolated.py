"""Nodes without an edge: how sure to be of them."""

import dataclasses

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from sharpen import NodeClassifier
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.evidence import Evidence
from sharpen.fitting.folds import draw_round
from sharpen.fitting.isolated import judge_isolated, without_edges
from sharpen.fitting.runs import Run
from sharpen.graph import Graph

from .camps import two_camps

QUICK = {"model": "gcn", "lam": 0.0, "balance": 0.0, "hidden": 16, "epochs": 60}


class FeaturesOnly:
    """A backbone whose scores are those given where there is no edge, and refuses to be asked with edges."""

    def __init__(self, scores: np.ndarray) -> None:
        self.scores = scores

    def logits(self, graph, model, num_classes, weights, known):  # type: ignore[no-untyped-def]
        assert graph.num_edges == 0
        assert model == "gcn"
        for own in weights:
            yield self.scores * own["scale"]


def test_the_temperature_is_that_of_held_out_labels_without_edges() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    graph = Graph(x=np.eye(30), edge_index=[[0, 1], [1, 2]], y=y)
    scores = 1.5 * np.eye(3)[np.where(rng.random(30) < 0.8, y, (y + 1) % 3)]
    gcn = Candidate("gcn", 0.0)
    runs = [
        Run(
            gcn,
            fold,
            opinions=log_softmax(4.0 * np.eye(3)[y[fold.test.numpy()]], axis=1)[None],
            weights={"scale": np.array(1.0 + k)},
        )
        for k, fold in enumerate(draw_round(y, 0))
    ]
    evidence = Evidence(runs, y)
    isolated = judge_isolated(evidence, {gcn: 1.0}, graph, FeaturesOnly(scores))  # type: ignore[arg-type]
    assert isolated is not None
    count = evidence.weights(gcn)[0]
    p = np.zeros((30, 3))
    for own in runs:
        p[own.test] = softmax(count * log_softmax(scores[own.test] * own.weights["scale"], axis=1), axis=1)
    right = p.argmax(1) == y
    assert isolated.accuracy == pytest.approx(right.mean())
    assert isolated.labels == 30

    def loss(log_t: float) -> float:
        log_p = log_softmax(np.log(p) / np.exp(log_t), axis=1)
        s = 1 / 32
        target = np.where(np.eye(3)[y] == 1, 1 - s, s / 2)
        return float(-(target * log_p).sum(1).mean())

    best = minimize_scalar(loss, bounds=(-3, 5), method="bounded")
    assert loss(np.log(isolated.temperature)) == pytest.approx(best.fun, abs=1e-4)


def _with_isolated(isolated: int = 12, seed: int = 0) -> Graph:
    """The two camps, and unlabeled nodes beside them without edges."""
    camps = two_camps(60, 30, seed)
    more = np.random.default_rng(seed + 1).normal(size=(isolated, 6))
    x = np.concatenate([camps.x.numpy(), more])
    y = np.concatenate([camps.y.numpy(), np.full(isolated, -1)])
    return Graph(x=x, edge_index=camps.edge_index, y=y, class_names=camps.class_names)


def test_isolated_nodes_get_a_modest_probability_and_a_note() -> None:
    graph = _with_isolated()
    fitted = NodeClassifier(**QUICK).fit(graph)
    p = fitted.predict_proba(graph).max(1)
    account = fitted.report_["isolated"]
    assert (account["unlabeled"], account["labeled"], account["labels"]) == (12, 0, 30)
    assert account["temperature"] > fitted.report_["temperature"]
    assert p[60:].mean() < p[30:60].mean() - 0.1
    assert abs(p[60:].mean() - account["accuracy"]) < 0.2
    (note,) = [note for note in fitted.report_["notes"] if "no edge" in note]
    assert note.startswith(
        "12 unlabeled nodes have no edge, and the accuracy above is not theirs: of labeled nodes whose"
    )


def test_other_nodes_do_not_notice() -> None:
    graph = _with_isolated()
    fitted = NodeClassifier(**QUICK).fit(graph)
    ensemble = fitted._fitted.ensemble
    assert ensemble.isolated is not None
    without = dataclasses.replace(ensemble, isolated=None)
    known = np.where(graph.y.numpy() >= 0, graph.y.numpy(), -1)
    ours, plain = (e.probabilities(graph, known, 2, fitted._backbone()) for e in (ensemble, without))
    np.testing.assert_array_equal(ours[:60], plain[:60])
    assert (ours[60:] != plain[60:]).any()


def test_a_saved_model_is_as_modest(tmp_path) -> None:  # type: ignore[no-untyped-def]
    graph = _with_isolated()
    fitted = NodeClassifier(**QUICK).fit(graph)
    fitted.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(
        NodeClassifier.load(tmp_path / "m.safetensors").predict_proba(graph), fitted.predict_proba(graph)
    )


def test_without_isolated_nodes_or_without_edges_nothing_is_said() -> None:
    plain = NodeClassifier(**QUICK).fit(two_camps())
    assert plain.report_["isolated"]["unlabeled"] == 0
    assert not any("no edge" in note for note in plain.report_["notes"])
    alone = NodeClassifier(**(QUICK | {"model": "mlp"})).fit(without_edges(_with_isolated()))
    assert alone.report_["isolated"] is None
    assert not any("no edge, and the accuracy" in note for note in alone.report_["notes"])


class Weighted(torch.nn.Module):
    """Demands edge weights, and sums neighbours by them."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(features, classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, edge_weight: torch.Tensor) -> torch.Tensor:
        source, target = edge_index
        return self.linear(x + torch.zeros_like(x).index_add(0, target, edge_weight[:, None] * x[source]))


def test_a_module_that_demands_weights_gets_ones() -> None:
    fitted = NodeClassifier(Weighted, lam=0.0, balance=0.0, epochs=20).fit(_with_isolated())
    assert fitted.report_["isolated"]["labels"] == 30


class NeedsAnEdge(torch.nn.Module):
    """Looks at the largest end of an edge, so that it cannot do without one."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(features, classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        assert edge_index.max() < len(x)
        return self.linear(x)


def test_a_module_that_cannot_do_without_an_edge_is_fitted_all_the_same() -> None:
    fitted = NodeClassifier(NeedsAnEdge, lam=0.0, balance=0.0, epochs=5).fit(_with_isolated())
    assert fitted.report_["isolated"] is None
    assert fitted.predict(_with_isolated()).shape == (72,)


def test_without_labels_the_temperature_is_that_of_the_models_alone() -> None:
    """Two rings, each of one class; features say little, so that labels are spread and the model counts less beside them."""
    rng = np.random.default_rng(0)
    ring, y = np.arange(40), np.repeat([0, 1], 40)
    edges = np.concatenate([np.stack([ring, (ring + 1) % 40]), np.stack([ring, (ring + 1) % 40]) + 40], axis=1)
    x = np.concatenate([rng.normal(size=(80, 4)) + 0.5 * y[:, None], rng.normal(size=(5, 4))])
    known = np.concatenate([np.where(np.arange(80) % 4 == 0, y, -1), np.full(5, -1)])
    fitted = NodeClassifier(**QUICK).fit(Graph(x=x, edge_index=edges, y=known))._fitted
    assert fitted.ensemble.uses_labels
    assert fitted.without_labels is not None
    assert fitted.ensemble.parts[0].counts[0] != fitted.without_labels.parts[0].counts[0]
    assert None not in (fitted.ensemble.isolated, fitted.without_labels.isolated)
    assert fitted.ensemble.isolated != fitted.without_labels.isolated
