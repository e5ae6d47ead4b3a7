"""From runs to probabilities that can be believed, and an honest account of how far.

The opinions of each candidate have weights of their own, which for a single one are a temperature, so that none outvotes the
others by being louder; the mean of their probabilities, each candidate by its share of the ensemble, gets one temperature more. All
are fitted on nodes that the runs in question never met.

For the account, the labeled nodes are dealt into five groups; for each group, candidates are chosen and weights and temperatures
fitted on the other four. So a label is judged by runs that have not learnt from it, and its own hit or miss counts neither in
the choice of candidates nor in what is fitted, but for the last of these. Four things keep the account from being exact:

- Which candidates were trained for more than one round was decided by all labels. It flatters, a little.
- The predictions for the other four groups, by which candidates are chosen, come from runs that have learnt from labels of
  the group. That ties the choice to them, weakly, in no certain direction.
- What is judged has learnt from four fifths of the labels and is the mean of one run of each round; what is delivered has seen all
  labels and is the mean of all runs. It is too modest, the more so the fewer labels there are.
- Where labels are spread, the hits of the other four groups, by which candidates are chosen, were counted with two weights (the
  model's and the spread labels') that are fitted across all groups: of the group itself each label has a small part in two numbers.
  They are fitted once for all choices, since to fit them anew for each group would take five times as long. What the group is
  then judged by has weights from the other four groups alone.

And like any number from labels, it holds for nodes like the labeled ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from scipy import stats
from scipy.special import softmax
from sklearn.metrics import average_precision_score, roc_auc_score

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
    evidence: Evidence, shares: Mapping[Candidate, float], keep: np.ndarray | None = None, *, calibrated: bool = True
) -> np.ndarray:
    """What the candidates together say of each labeled node they never met, [n, C]; NaN rows for all others.

    Args:
        evidence: Of all runs.
        shares: How much each candidate contributes; where one has nothing to say, the others do.
        keep, calibrated: As for :meth:`sharpen.fitting.evidence.Evidence.probabilities`.
    """
    total, heard = np.zeros((len(evidence.y), evidence.num_classes)), np.zeros((len(evidence.y), 1))
    for candidate, share in shares.items():
        said = evidence.probabilities(candidate, keep, calibrated=calibrated)
        some = ~np.isnan(said[:, 0])
        total[some] += share * said[some]
        heard[some] += share
    with np.errstate(invalid="ignore"):
        return total / heard


def fit_mean_temperature(
    evidence: Evidence, chosen: Mapping[Candidate, float], keep: np.ndarray | None = None
) -> float:
    """The temperature of the ensemble's mean, of least log-loss on the labeled nodes to keep."""
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

    def of(self, rows: np.ndarray) -> HonestPredictions:
        """The same of some of the rows."""
        kept = np.isin(self.rows, rows)
        return HonestPredictions(self.rows[kept], self.before[kept], self.after[kept])


def cross_fit(
    evidence: Evidence,
    groups: Sequence[np.ndarray],
    *,
    ensemble: bool = True,
    among: Callable[[Candidate], bool] = lambda candidate: True,
) -> HonestPredictions:
    """Choose and calibrate on all groups but one, predict that one; for each group in turn.

    Args:
        evidence: Of all runs.
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
    """Every score of some probabilities, by name; of two classes also how well nodes are ranked by that of the rarer one.

    >>> scores = quality(np.array([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]]), np.array([0, 0, 1]))
    >>> round(scores["accuracy"], 3), scores["auc"], scores["average_precision"]
    (0.333, 0.5, 0.5)
    """
    predicted = probabilities.argmax(1)
    scores = {
        "accuracy": float((predicted == y).mean()),
        "balanced_accuracy": balanced_accuracy(predicted, y),
        "macro_f1": macro_f1(predicted, y),
        "ece": ece(probabilities, y),
        "brier": brier(probabilities, y),
        "log_loss": log_loss(probabilities, y),
    }
    if probabilities.shape[1] == 2 and 0 < y.sum() < len(y):
        rarer = int(np.bincount(y, minlength=2).argmin())
        scores["auc"] = float(roc_auc_score(y == rarer, probabilities[:, rarer]))
        scores["average_precision"] = float(average_precision_score(y == rarer, probabilities[:, rarer]))
    return scores


class Point(TypedDict):
    """What abstaining below a threshold buys: see :func:`coverage`."""

    threshold: float
    coverage: float
    accuracy: float | None
    nodes: int
    right: int
    interval: list[float] | None


def coverage(probabilities: np.ndarray, y: np.ndarray, threshold: float | None = None) -> list[Point]:
    """Accuracy among the answered at rising thresholds, the user's among them: the share answered, how many labels that are, how
    many of them right, and the 95 % interval of the accuracy (Wilson's).

    >>> point = coverage(np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 0]), 0.8)[5]
    >>> point["threshold"], point["coverage"], point["accuracy"], point["nodes"], [round(end, 2) for end in point["interval"]]
    (0.8, 0.5, 1.0, 1, [0.21, 1.0])
    """
    levels = sorted(
        {0.0, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.99} | ({threshold} if threshold is not None else set())
    )
    points: list[Point] = []
    for level, share, accuracy in zip(*coverage_curve(probabilities, y, levels), strict=True):
        nodes = round(share * len(y))
        right = round(accuracy * nodes) if nodes else 0
        points.append(
            {
                "threshold": float(level),
                "coverage": float(share),
                "accuracy": float(accuracy) if nodes else None,
                "nodes": nodes,
                "right": right,
                "interval": wilson(right, nodes) if nodes else None,
            }
        )
    return points


def wilson(right: float, count: float, factor: float = 1.0) -> list[float]:
    """Wilson's 95 % interval of a share.

    Args:
        right, count: So many of so many.
        factor: How much larger the standard error is than that of as many independent draws.

    >>> [round(end, 3) for end in wilson(8, 10)]
    [0.49, 0.943]
    >>> [round(end, 3) for end in wilson(8, 10, factor=1.5)]
    [0.355, 0.967]
    """
    share, n, z = right / count, count / factor**2, float(stats.norm.ppf(0.975))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * float(np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)))
    return [max(0.0, middle - half), min(1.0, middle + half)]
