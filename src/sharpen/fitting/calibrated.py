"""From members to probabilities that can be believed, and an honest account of how far.

The opinions of each candidate have weights of their own, which for a single one are a temperature, so that none outvotes the
others by being louder; the mean of their probabilities gets one temperature more. All are fitted on nodes that the members in
question never met.

For the account, the labeled nodes are dealt into five groups; for each group, candidates are chosen and weights and temperatures
fitted on the other four. So a label is judged by members that have not learnt from it, and its own hit or miss counts neither in
the choice of candidates nor in what is fitted, but for the last of these. Four things keep the account from being exact:

- Which candidates were trained for more than one round was decided by all labels. It flatters, a little.
- The predictions for the other four groups, by which candidates are chosen, come from members that have learnt from labels of
  the group. That ties the choice to them, weakly, in no certain direction.
- What is judged has learnt from four fifths of the labels and votes with one member of each round; what is delivered has seen all
  labels and votes with all. It is too modest, the more so the fewer labels there are.
- Where labels are spread, the hits of the other four groups, by which candidates are chosen, were counted with two weights (the
  model's and the spread labels') that are fitted across all groups: of the group itself each label has a small part in two numbers.
  They are fitted once for all choices, since to fit them anew for each group would take five times as long. What the group is
  then judged by has weights from the other four groups alone.

And like any number from labels, it holds for nodes like the labeled ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from sharpen.evaluation.calibration import brier, coverage_curve, ece, fit_temperature, log_loss
from sharpen.evaluation.classes import balanced_accuracy, macro_f1
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.evidence import Evidence
from sharpen.fitting.selection import choose


def sharpen_by(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """Probabilities at another temperature.

    >>> sharpen_by(np.array([[0.8, 0.2]]), 0.5).round(3).tolist()
    [[0.941, 0.059]]
    """
    return softmax(np.log(np.maximum(probabilities, 1e-300)) / temperature, axis=-1)


def mean_probabilities(
    evidence: Evidence, chosen: Sequence[Candidate], keep: np.ndarray | None = None, *, calibrated: bool = True
) -> np.ndarray:
    """What the candidates together say of each labeled node they never met, [n, C]; NaN rows for all others.

    Args:
        evidence: Of all members.
        chosen: Who votes.
        keep: The labeled nodes to fit the weights of the candidates' opinions on; None: all.
        calibrated: Whether opinions are weighed; otherwise each counts 1.
    """
    total, voters = np.zeros((len(evidence.y), evidence.num_classes)), np.zeros(len(evidence.y))
    for candidate in chosen:
        rows, scores = evidence.test_scores(candidate, evidence.weights(candidate, keep) if calibrated else None)
        np.add.at(total, rows, softmax(scores, axis=1))
        np.add.at(voters, rows, 1)
    with np.errstate(invalid="ignore"):
        return total / voters[:, None]


def fit_mean_temperature(evidence: Evidence, chosen: Sequence[Candidate], keep: np.ndarray | None = None) -> float:
    """The temperature of the mean of all votes, of least log-loss on the labeled nodes to keep."""
    p = mean_probabilities(evidence, chosen, keep)
    counted = ~np.isnan(p[:, 0]) if keep is None else keep & ~np.isnan(p[:, 0])
    if not counted.any():
        return 1.0
    scores = np.log(np.maximum(p[counted], 1e-300))
    return fit_temperature(scores, evidence.y[counted], smoothing=1 / (int(counted.sum()) + 2))


@dataclass(frozen=True)
class HonestPredictions:
    """What a search of this kind says of labeled nodes that had no part in it.

    Args:
        rows: The labeled nodes that were judged, as rows of the evidence.
        before, after: Their probabilities before and after calibration.
    """

    rows: np.ndarray
    before: np.ndarray
    after: np.ndarray


def cross_fit(
    evidence: Evidence,
    groups: Sequence[np.ndarray],
    *,
    ensemble: bool = True,
    among: Callable[[Candidate], bool] = lambda candidate: True,
) -> HonestPredictions:
    """Choose and calibrate on all groups but one, predict that one; for each group in turn.

    Args:
        evidence: Of all members.
        groups: Rows of labeled nodes, each at most once.
        ensemble, among: As for :func:`sharpen.fitting.selection.choose`.
    """
    before = np.full((len(evidence.y), evidence.num_classes), np.nan)
    after = before.copy()
    for group in groups:
        keep = np.ones(len(evidence.y), dtype=bool)
        keep[group] = False
        chosen = choose(evidence, ensemble=ensemble, keep=keep, among=among)
        temperature = fit_mean_temperature(evidence, chosen, keep)
        before[group] = mean_probabilities(evidence, chosen, calibrated=False)[group]
        after[group] = sharpen_by(mean_probabilities(evidence, chosen, keep)[group], temperature)
    rows = np.flatnonzero(~np.isnan(after[:, 0]))
    return HonestPredictions(rows, before[rows], after[rows])


def quality(probabilities: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Every score of some probabilities, by name.

    >>> quality(np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 0]))["accuracy"]
    0.5
    """
    predicted = probabilities.argmax(1)
    return {
        "accuracy": float((predicted == y).mean()),
        "balanced_accuracy": balanced_accuracy(predicted, y),
        "macro_f1": macro_f1(predicted, y),
        "ece": ece(probabilities, y),
        "brier": brier(probabilities, y),
        "log_loss": log_loss(probabilities, y),
    }


def coverage(probabilities: np.ndarray, y: np.ndarray, threshold: float | None = None) -> list[dict[str, float | None]]:
    """Accuracy among the answered at rising thresholds, the user's among them.

    >>> coverage(np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 0]), 0.8)[5]
    {'threshold': 0.8, 'coverage': 0.5, 'accuracy': 1.0}
    """
    levels = sorted(
        {0.0, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.99} | ({threshold} if threshold is not None else set())
    )
    curve = coverage_curve(probabilities, y, levels)
    return [
        {"threshold": float(t), "coverage": float(c), "accuracy": None if np.isnan(a) else float(a)}
        for t, c, a in zip(*curve, strict=True)
    ]
