"""The account of a fit, from predictions written by hand."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from sharpen.fitting.account import beside_guessing, expected, surest
from sharpen.fitting.calibrated import HonestPredictions, coverage, quality
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.evidence import Evidence
from tests.fitting.camps import runs_of


def judged(y: np.ndarray, p: np.ndarray) -> tuple[HonestPredictions, Evidence]:
    return HonestPredictions(np.arange(len(y)), p, p), Evidence(runs_of(Candidate("gcn"), y, []), y)


def sure(predicted: np.ndarray, confidence: np.ndarray | float = 0.8) -> np.ndarray:
    p = np.empty((len(predicted), 2))
    p[np.arange(len(predicted)), predicted] = confidence
    p[np.arange(len(predicted)), 1 - predicted] = 1 - np.asarray(confidence)
    return p


def test_always_answering_the_commonest_class_is_no_better_than_guessing() -> None:
    y = np.array([0] * 80 + [1] * 20)
    guess = beside_guessing(*judged(y, sure(np.zeros(100, dtype=int))), ("a", "b"), "accuracy")
    assert guess["class"] == "a"
    assert guess["accuracy"] == 0.8
    assert guess["balanced_accuracy"] == 0.5
    assert guess["log_loss"] == pytest.approx(-0.8 * np.log(0.8) - 0.2 * np.log(0.2))
    assert guess["difference"] == 0
    assert not guess["better"]


def test_what_is_better_than_guessing_is_said_to_be_so_by_the_metric_asked_for() -> None:
    y = np.array([0] * 80 + [1] * 20)
    predicted = y.copy()
    predicted[:12] = 1  # fewer right than by guessing in no case, and most of the rare class found
    found = beside_guessing(*judged(y, sure(predicted)), ("a", "b"), "accuracy")
    assert found["difference"] == pytest.approx(8)
    balanced = beside_guessing(*judged(y, sure(predicted)), ("a", "b"), "balanced-accuracy")
    assert balanced["difference"] == pytest.approx(100 * ((68 / 80 + 1) / 2 - 0.5))
    assert balanced["better"]


def test_hits_count_by_how_often_the_delivered_answers_are_given() -> None:
    """Of the held-out labels half are answered with the rare class, and mostly wrongly; of the unlabeled nodes a tenth is."""
    y = np.array([0] * 90 + [1] * 10)
    predicted = np.array([0] * 50 + [1] * 50)
    told = expected(*judged(y, sure(predicted)), answers=np.array([900, 100]))
    hit = 60 / 100
    assert told["after"]["accuracy"] == hit
    assert told["accuracy"] == pytest.approx(0.9 * (50 + 2 * hit) / 52 + 0.1 * (10 + 2 * hit) / 52)
    low, high = told["accuracy_interval"]
    assert low < told["accuracy"] < high
    same = expected(*judged(y, sure(predicted)), answers=np.array([500, 500]))
    assert same["accuracy"] == pytest.approx(hit, abs=0.01)


def test_with_no_node_left_to_answer_hits_count_as_they_are() -> None:
    y = np.array([0, 1] * 20)
    told = expected(*judged(y, sure(y)), answers=np.array([0, 0]))
    assert told["accuracy"] == 1


def test_a_tail_that_rests_on_few_labels_is_warned_of() -> None:
    y = np.array([0, 1] * 50)
    told = surest(*judged(y, sure(y, np.linspace(0.5, 0.9, 100))), np.linspace(0.5, 0.9, 1000))
    assert told["labels"] == 5
    assert told["nodes"] == 50
    assert "of the surest 5 % of answers, those with a probability of 0.88 or more, little is known" in told["warning"]


def test_surest_answers_that_are_worst_are_warned_of() -> None:
    y = np.array([0, 1] * 500)
    predicted, confidence = y.copy(), np.linspace(0.5, 0.9, 1000)
    predicted[950:] = 1 - y[950:]
    told = surest(*judged(y, sure(predicted, confidence)), confidence)
    assert told["right"] == 0
    assert told["warning"].startswith("the surest 5 % of answers are not more often right than the others: 0 of 50")
    assert surest(*judged(y, sure(y, confidence)), confidence)["warning"] is None


def test_ranking_scores_are_those_of_the_rarer_class() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.2).astype(int)
    p = np.clip(0.2 + 0.3 * y + 0.2 * rng.normal(size=200), 0.01, 0.99)
    scores = quality(np.column_stack([1 - p, p]), y)
    assert scores["auc"] == pytest.approx(roc_auc_score(y, p))
    assert scores["average_precision"] == pytest.approx(average_precision_score(y, p))
    turned = quality(np.column_stack([p, 1 - p]), 1 - y)
    assert turned["average_precision"] == pytest.approx(scores["average_precision"])
    assert "auc" not in quality(np.full((3, 3), 1 / 3), np.array([0, 1, 2]))


def test_what_abstaining_buys_has_counts_and_intervals() -> None:
    y = np.array([0] * 10)
    points = coverage(sure(np.array([0] * 8 + [1] * 2), np.linspace(0.55, 0.95, 10)), y)
    point = next(point for point in points if point["threshold"] == 0.9)
    assert (point["nodes"], point["right"], point["accuracy"]) == (2, 0, 0.0)
    assert point["interval"][1] < 0.7
    assert points[-1]["nodes"] == 0
    assert points[-1]["interval"] is None
