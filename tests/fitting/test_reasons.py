"""Reasons of a fitted classifier, exact where it is linear, and what it would ask next."""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from sharpen import Graph, NodeClassifier
from sharpen.errors import InputError
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.ensemble import Part
from sharpen.fitting.explanations import Explainer, LinearScores, stand_in
from sharpen.fitting.fitted import Fitted
from sharpen.fitting.propagated import LogisticOnHops
from sharpen.fitting.reasons import delivered_scores, find_reasons
from sharpen.models.inputs import Inputs
from sharpen.models.s2gc import S2GC


@pytest.fixture(scope="module")
def camps() -> Graph:
    random = np.random.default_rng(0)
    y = np.arange(24) // 12
    x = random.normal(size=(24, 3)) + y[:, None] * np.array([2.0, 0.0, 0.0])
    ends = random.integers(0, 12, (2, 50)) + 12 * random.integers(0, 2, 50)
    return Graph(x=x, edge_index=ends, y=np.where(np.arange(24) % 3 == 0, y, -1), class_names=["left", "right"])


@pytest.fixture(scope="module")
def linear(camps: Graph) -> NodeClassifier:
    settings: dict[str, Any] = {
        "model": "s2gc",
        "lam": 0,
        "balance": 0,
        "ensemble": False,
        "epochs": 30,
        "device": "cpu",
    }
    return NodeClassifier(**settings, budget=0.2).fit(camps)


def only(classifier: NodeClassifier, part: Part, factors: tuple[float, ...] | None = None) -> Fitted:
    ensemble = dataclasses.replace(classifier._fitted.ensemble, parts=[part], factors=factors)
    return dataclasses.replace(classifier._fitted, ensemble=ensemble)


def taken_apart(fitted: Fitted, graph: Graph) -> tuple[LinearScores, str]:
    return delivered_scores(fitted, graph, graph.y.numpy(), np.full((24, 2), 0.5))


def test_reasons_of_s2gc_are_those_of_the_network_itself(camps: Graph, linear: NodeClassifier) -> None:
    [part] = linear._fitted.ensemble.parts
    part = dataclasses.replace(part, counts=[2.0], candidate=dataclasses.replace(part.candidate, spread=False))
    scores, method = taken_apart(only(linear, part), camps)
    assert method == "exact"
    network = S2GC(3, 2)
    network.load_state_dict({name: torch.from_numpy(value) for name, value in part.weights[0].items()})
    inputs = Inputs(camps, torch.device("cpu"), torch.float32)
    said = 2 * network(inputs.x, inputs).detach().numpy()
    np.testing.assert_allclose(Explainer(camps, camps.y.numpy(), scores).scores(), said, atol=1e-4)


def test_reasons_know_how_common_classes_are(camps: Graph, linear: NodeClassifier) -> None:
    """What is explained gives the delivered answers, and these hear that one class is 99 times as common, after the temperature."""
    y = camps.y.numpy()
    state = LogisticOnHops().fit(camps, y, 2, seed=0, balanced=False)
    fitted = only(linear, Part(Candidate("logistic"), 1.0, [1.0], [state]), (1.98, 0.02))
    fitted = dataclasses.replace(fitted, ensemble=dataclasses.replace(fitted.ensemble, temperature=2.0))
    scores, _ = taken_apart(fitted, camps)
    delivered = fitted.ensemble.probabilities(camps, y, 2, linear._backbone())
    assert (Explainer(camps, y, scores).scores().argmax(1) == delivered.argmax(1)).all()
    assert (delivered.argmax(1) == 0).sum() > 12


def test_reasons_of_regression_on_hops_are_its_own(camps: Graph, linear: NodeClassifier) -> None:
    """Rows at unit length: each node has a factor of its own; and the mean of two runs, one with a prior."""
    model, y = LogisticOnHops(), camps.y.numpy()
    states = [model.fit(camps, known, 2, seed=0, balanced=False) for known in (y, np.where(np.arange(24) % 2, y, -1))]
    states[1]["prior"] = np.array([0.5, -0.5])
    scores, method = taken_apart(only(linear, Part(Candidate("logistic"), 1.0, [3.0], states)), camps)
    assert method == "exact"
    said = [model.scores(camps, state, y, 2) + state.get("prior", 0) for state in states]
    np.testing.assert_allclose(Explainer(camps, y, scores).scores(), 3 * np.mean(said, axis=0), atol=1e-4)


def test_what_is_not_used_is_not_named(camps: Graph, linear: NodeClassifier) -> None:
    """Labels that spread are no part of an exact sum; a model without the graph has no reasons around a node."""
    [part] = linear._fitted.ensemble.parts
    for candidate, around, labels in ((Candidate("s2gc", spread=True), True, True), (Candidate("gcn"), True, False),
                                      (Candidate("mlp"), False, False)):  # fmt: skip
        fitted = only(linear, dataclasses.replace(part, candidate=candidate))
        p = np.random.default_rng(0).dirichlet(np.ones(2), size=24)
        scores, method = delivered_scores(fitted, camps, camps.y.numpy(), p)
        assert method == "stand-in"
        assert scores.own.any()
        assert (scores.around.any(), scores.labels.any()) == (around, labels)


def test_the_column_that_decides_is_named(camps: Graph, linear: NodeClassifier) -> None:
    frame = linear.explain()
    assert len(frame) == 16
    assert list(frame) == ["id", "label", "because_neighbors", "because_columns"]
    first = [text.split(" (")[0] for text in frame["because_columns"] if text]
    assert len(first) > 12
    assert np.mean(["column 0" in name or name == "labels of neighbours" for name in first]) > 0.7
    assert "parts of the log-odds" in frame.attrs["method"]
    assert linear.explain([5, 1])["id"].tolist() == [5, 1]


def test_places_that_are_none_are_refused(linear: NodeClassifier) -> None:
    for wrong in ([24], [-1], [0.5], ["a"]):
        with pytest.raises(InputError, match="nodes are not places from 0 to 23"):
            linear.explain(wrong)  # type: ignore[arg-type]


def test_suggestions_come_with_what_is_predicted_now(camps: Graph, linear: NodeClassifier) -> None:
    frame = linear.suggest(4)
    assert (camps.y.numpy()[frame["id"].to_numpy(dtype=int)] == -1).all()
    assert set(frame["label"]) <= {"left", "right"}
    assert frame["left"].is_monotonic_decreasing
    assert len(linear.suggest(99)) == 16
    with pytest.raises(InputError, match="suggest is 0"):
        linear.suggest(0)


def test_columns_of_data_frames_keep_their_names(camps: Graph) -> None:
    """Also those that became several, and words that were hashed."""
    y, who = camps.y.numpy(), [f"p{i}" for i in range(24)]
    side = np.arange(24) // 12
    words = [f"{'boat' if s else 'hill'} {'walk' if i % 2 else 'sit'} number {i % 5}" for i, s in enumerate(side)]
    nodes = pd.DataFrame(
        {"who": who, "height": camps.x[:, 0].numpy(), "diary": words, "label": [["a", "b", None][k] for k in y]}
    )
    edges = pd.DataFrame(
        {"source": [who[i] for i in camps.edge_index[0]], "target": [who[i] for i in camps.edge_index[1]]}
    )
    settings: dict[str, Any] = {
        "model": "mlp",
        "lam": 0,
        "balance": 0,
        "ensemble": False,
        "epochs": 30,
        "device": "cpu",
    }
    frame = NodeClassifier(**settings, budget=0.2).fit((nodes, edges)).explain()
    entries = {entry.split(" (+")[0] for text in frame["because_columns"] for entry in text.split("; ") if entry}
    names = {name.removeprefix("low ").removesuffix(" of neighbours") for name in entries} - {"labels of neighbours"}
    assert names <= {"height", *(f"diary: {word}" for word in ("boat", "hill", "walk", "sit", "number"))}
    assert names & {"height", "diary: boat", "diary: hill"}


def test_only_so_many_are_explained_and_the_sentence_says_so(camps: Graph) -> None:
    random = np.random.default_rng(0)
    p = random.dirichlet(np.ones(2), size=24)
    scores = stand_in(camps, camps.y.numpy(), p)
    why = find_reasons(camps, camps.y.numpy(), p, scores, "stand-in", ids=np.arange(24), most=3)
    sure = np.where(camps.y.numpy() < 0, p.max(1), np.inf)
    assert why.nodes.tolist() == np.argsort(sure)[:3].tolist()
    assert "given for 3 of 16 unlabeled nodes" in why.sentence
    assert why.frame(24).notna().any(axis=1).sum() <= 3


def test_a_loaded_classifier_has_no_graph_to_ask_about(linear: NodeClassifier, tmp_path: Any) -> None:
    linear.save(tmp_path / "model.safetensors")
    with pytest.raises(InputError, match="there is no graph to ask about"):
        NodeClassifier.load(tmp_path / "model.safetensors").suggest()
