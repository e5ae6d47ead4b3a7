"""How common classes are where as many of each were labeled, from two clouds of points whose best answers are known."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from sharpen import NodeClassifier
from sharpen.fitting.account import expected, surest
from sharpen.fitting.calibrated import HonestPredictions
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.evidence import Evidence
from sharpen.fitting.proportions import Proportions, drawn_evenly, find_proportions, reweighted, shifted
from sharpen.graph import Graph
from tests.fitting.camps import runs_of


def clouds(rare: float, nodes: int = 4000, apart: float = 2.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points on a line, their classes, and the probabilities of one who believes that classes are of equal size."""
    rng = np.random.default_rng(0)
    y = (rng.random(nodes) >= rare).astype(int)
    x = rng.normal(size=nodes) + apart * y
    density = np.stack([norm.pdf(x), norm.pdf(x - apart)], axis=1)
    return x, y, density / density.sum(1, keepdims=True)


EVEN = clouds(0.5, nodes=200)[2]


def test_shares_are_found_and_answers_are_nearly_those_of_one_who_knew_them() -> None:
    _, y, p = clouds(0.15)
    found = find_proportions(p, EVEN, np.array([100, 100]))
    assert found.ratios / 2 == pytest.approx([0.15, 0.85], abs=0.1)
    told, known = (reweighted(p, factors).argmax(1) for factors in (found.factors, np.array([0.3, 1.7])))
    assert (told == y).mean() == pytest.approx((known == y).mean(), abs=0.01)
    assert (told == y).mean() > (p.argmax(1) == y).mean() + 0.05


def test_where_classes_are_alike_nothing_is_changed() -> None:
    _, _, p = clouds(0.5)
    assert find_proportions(p, EVEN, np.array([100, 100])).ratios == pytest.approx([1, 1], abs=0.05)


def test_a_class_that_is_predicted_too_often_is_not_taken_for_common() -> None:
    _, _, p = clouds(0.5)
    partial = np.array([0.4, 1.6])
    found = find_proportions(reweighted(p, partial), reweighted(EVEN, partial), np.array([100, 100]))
    assert found.ratios == pytest.approx([1, 1], abs=0.1)
    assert found.factors * partial == pytest.approx([0.8, 0.8], rel=0.15)


def test_the_fewer_labels_the_less_is_made_of_predictions() -> None:
    _, _, p = clouds(0.15)
    rare = [find_proportions(p, EVEN, np.array([n, n])).ratios[0] for n in (3, 5, 10, 20, 100)]
    assert rare == sorted(rare, reverse=True)
    assert rare[0] > 0.9


def test_of_a_class_without_a_label_nothing_is_told() -> None:
    with_third = [np.hstack([p * 0.99, np.full((len(p), 1), 0.01)]) for p in (clouds(0.15)[2], EVEN)]
    found = find_proportions(*with_third, np.array([50, 50, 0]))
    assert found.ratios[2] == found.factors[2] == 1
    assert found.ratios[:2].mean() == pytest.approx(1)


@pytest.mark.parametrize(
    ("count", "even"),
    [([5, 5], True), ([5, 6], False), ([20, 20, 20, 9], True), ([30, 20, 20], False), ([7, 0], False)],
)
def test_labels_that_are_drawn_evenly_are_known_by_their_numbers(count: list[int], even: bool) -> None:
    assert drawn_evenly(np.array(count)) == even


def test_what_is_expected_counts_classes_as_they_are_among_the_nodes() -> None:
    """Of either class half of what is held out is told for sure; the rest is even, and goes to the commoner class."""
    y = np.repeat([0, 1], 20)
    p = np.full((40, 2), 0.5)
    for c in (0, 1):
        p[np.flatnonzero(y == c)[:10]] = np.eye(2)[c]
    honest, evidence = HonestPredictions(np.arange(40), p, p), Evidence(runs_of(Candidate("gcn"), y, []), y)
    told = expected(honest, evidence, np.array([100, 900]), Proportions(*[np.array([0.4, 1.6])] * 2))
    assert told["accuracy"] == pytest.approx(0.2 * 0.5 + 0.8 * 1.0)
    assert told["balanced_accuracy"] == pytest.approx(0.75)
    assert told["after"]["accuracy"] == 0.75  # as labels are


def test_how_often_the_surest_are_right_is_asked_of_the_answers_as_they_are_given() -> None:
    """Of two classes told by 0.6 the commoner is sure once it is known to be that: only its answers are among the surest."""
    y = np.repeat([0, 1], 20)
    honest = HonestPredictions(np.arange(40), *[np.where(np.eye(2)[y] > 0, 0.6, 0.4)] * 2)
    found, evidence = Proportions(*[np.array([0.1, 1.9])] * 2), Evidence(runs_of(Candidate("gcn"), y, []), y)
    given = shifted(honest, found)
    assert given.after[0] == pytest.approx([0.6 * 0.1 / (0.6 * 0.1 + 0.4 * 1.9), 0.4 * 1.9 / (0.6 * 0.1 + 0.4 * 1.9)])
    assert shifted(honest, None) is honest
    threshold = np.full(100, 0.95)
    assert surest(honest, evidence, threshold)["labels"] == 0
    assert surest(given, evidence, threshold)["labels"] == surest(given, evidence, threshold)["right"] == 20


def even_labels(rare: float, each: int) -> tuple[Graph, np.ndarray]:
    x, y, _ = clouds(rare, nodes=600)
    rng = np.random.default_rng(1)
    known = np.full(len(y), -1)
    for c in (0, 1):
        shown = rng.permutation(np.flatnonzero(y == c))[:each]
        known[shown] = c
    edges = np.empty((2, 0), dtype=np.int64)
    return Graph(x=x[:, None], edge_index=edges, y=known), y


def test_a_fit_of_as_many_labels_of_each_class_knows_that_one_is_rare(tmp_path) -> None:
    graph, y = even_labels(0.1, 40)
    hidden = graph.y.numpy() < 0
    options = {"model": "linear", "budget": 0.05, "device": "cpu"}
    fitted = NodeClassifier(**options).fit(graph)
    accuracy = (fitted.predict(graph).astype(int) == y)[hidden].mean()
    x, labeled = graph.x.numpy(), ~hidden
    plain = LogisticRegression().fit(x[labeled], y[labeled]).score(x[hidden], y[hidden])
    assert accuracy > plain + 0.04
    assert any("the same number of labels" in note for note in fitted.report_["notes"])
    low, high = fitted.report_["expected"]["accuracy_interval"]
    assert low < accuracy < high
    fitted.save(tmp_path / "m")
    assert NodeClassifier.load(tmp_path / "m").predict_proba(graph) == pytest.approx(fitted.predict_proba(graph))
    # Who gives proportions, or wants classes to count alike, gets what was asked for.
    for asked in ({"class_prior": "uniform"}, {"class_weight": "balanced"}, {"metric": "balanced-accuracy"}):
        other = NodeClassifier(**options, **asked).fit(graph)
        assert other._fitted.ensemble.factors is None
        assert (other.predict(graph).astype(int) == y)[hidden].mean() < accuracy - 0.02


def test_labels_that_are_a_sample_speak_for_themselves() -> None:
    graph, y = even_labels(0.1, 40)
    known = np.where(np.arange(len(y)) < 80, y, -1)
    fitted = NodeClassifier(model="linear", budget=0.05, device="cpu").fit(dataclasses.replace(graph, y=known))
    assert fitted._fitted.ensemble.factors is None


def test_predictions_that_are_no_better_than_guessing_tell_nothing() -> None:
    graph, _ = even_labels(0.1, 20)
    noise = np.random.default_rng(2).normal(size=(600, 3))
    fitted = NodeClassifier(model="linear", budget=0.05, device="cpu").fit(dataclasses.replace(graph, x=noise))
    assert fitted._fitted.ensemble.factors is None
