r"""How good a fit is: its scores on labels that had no part in it, beside guessing, and how far its confidence can be believed.

**Expected accuracy.** Held-out labels are predicted by the few runs that never met them; what is delivered is the mean of all,
and answers each class as often as it does, not as often as those few. So hits are counted class by class of the *answer*, and
weighted by how often that answer is given to the unlabeled nodes:

.. math:: \hat a = \sum_c s_c \, \frac{h_c + 2 \bar h}{n_c + 2}

with :math:`s_c` the share of unlabeled nodes that are answered c, :math:`h_c` of the :math:`n_c` held-out labels that were
answered c right, and :math:`\bar h` the share that is right in all, which stands in for two labels where an answer is rare. It
matters most where classes weigh alike in training: single runs then answer a rare class more often than their mean does.
Nodes that were labeled by chance are more or less like the others; this makes up for a part of that too.

Where how common classes are was told from predictions (:mod:`sharpen.fitting.proportions`), hits are counted class by class of the
*label* and weighted by that; there are as many labels as these weights are worth. What a threshold buys is
of the answers as they are given; all other scores are of those before that, on the labels as they are.

Its interval is Wilson's with a standard error above that of independent draws (``_INFLATED``): runs and groups share labels, so
hits hang together (Bates, Hastie and Tibshirani, *Cross-validation: what does it estimate and how well does it do it?*, 2024).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sharpen.evaluation.calibration import reliability
from sharpen.evaluation.paired import paired_difference, widened
from sharpen.fitting.calibrated import HonestPredictions, coverage, quality, wilson
from sharpen.fitting.evidence import Evidence
from sharpen.fitting.proportions import Proportions, shifted

_INFLATED = 1.25
# The surest answers are looked at separately: so large a share of all, and so many labels at least to say something of them.
SUREST, ENOUGH = 0.05, 20


def account(honest: HonestPredictions, evidence: Evidence) -> dict[str, Any]:
    """Scores of held-out labels before and after calibration.

    Args:
        honest: What was said of labels that had no part in it.
        evidence: Of all runs.
    """
    y = evidence.y[honest.rows]
    return {"nodes": len(y), "before": quality(honest.before, y), "after": quality(honest.after, y)}


def expected(
    honest: HonestPredictions, evidence: Evidence, answers: np.ndarray, proportions: Proportions | None = None
) -> dict[str, Any]:
    """What is expected of the answers that are delivered.

    Args:
        honest, evidence: As for :func:`account`.
        answers: How many unlabeled nodes are answered with each class.
        proportions: How common classes are among these; None where the labels say it.
    """
    y, predicted = evidence.y[honest.rows], shifted(honest, proportions).after.argmax(1)
    hit = predicted == y
    share = (
        answers / answers.sum() if answers.sum() else np.bincount(predicted, minlength=len(answers)) / len(predicted)
    )
    if proportions is None:
        accuracy, labels = _weighted_by_answer(hit, predicted, share), float(len(y))
    else:
        weight = proportions.ratios[y]
        accuracy, labels = float(np.average(hit, weights=weight)), float(weight.sum() ** 2 / np.square(weight).sum())
    count = np.bincount(y, minlength=evidence.num_classes)
    found = np.bincount(y, hit, minlength=evidence.num_classes)
    told = account(honest, evidence)
    balanced = float((found[count > 0] / count[count > 0]).mean())
    return {
        **told,
        "accuracy": accuracy,
        "accuracy_interval": _interval(accuracy, labels, int((count > 0).sum())),
        "balanced_accuracy": balanced,
        "balanced_accuracy_interval": _balanced_interval(found[count > 0], count[count > 0], balanced),
        **_detail(honest, evidence),
    }


def beside_guessing(
    honest: HonestPredictions, evidence: Evidence, classes: tuple[str, ...], metric: str
) -> dict[str, Any]:
    """The same labels, always answered with the commonest class.

    Args:
        honest, evidence: As for :func:`account`.
        classes: Their names.
        metric: What candidates were chosen by; by it the two are compared.

    Returns:
        ``class`` and the scores of answering it (``accuracy``, ``balanced_accuracy``, and ``log_loss`` of saying the classes'
        shares), the ``difference`` in points with its ``interval``, and whether the fit is ``better`` beyond doubt.
    """
    y, hit = evidence.y[honest.rows], honest.after.argmax(1) == evidence.y[honest.rows]
    count = np.bincount(y, minlength=len(classes))
    most = int(count.argmax())
    share = count[count > 0] / len(y)
    weight = np.ones(len(y)) if metric == "accuracy" else len(y) / (len(share) * count[y])
    gap = widened(paired_difference(100 * weight * hit, 100 * weight * (y == most), resamples=0), _INFLATED)
    interval = gap.t_interval
    return {
        "class": classes[most],
        "accuracy": float(count[most] / len(y)),
        "balanced_accuracy": 1 / len(share),
        "log_loss": float(-(share * np.log(share)).sum()),
        "difference": gap.difference,
        "interval": None if interval is None else list(interval),
        "better": interval is not None and interval[0] > 0,
    }


def above_chance(honest: HonestPredictions, evidence: Evidence) -> bool:
    """Whether held-out labels are told beyond doubt more often than one class has of them."""
    y = evidence.y[honest.rows]
    right = int((honest.after.argmax(1) == y).sum())
    return wilson(right, len(y), _INFLATED)[0] > np.bincount(y).max() / len(y)


def surest(honest: HonestPredictions, evidence: Evidence, confidence: np.ndarray) -> dict[str, Any]:
    """What is known of the surest answers: how many held-out labels are answered as surely, and how many of them rightly.

    Args:
        honest, evidence: As for :func:`account`.
        confidence: The probability of the answer at each unlabeled node.

    Returns:
        ``threshold``, the probability from which on an answer is among the surest; ``nodes``, how many unlabeled nodes are;
        ``labels`` and ``right``, of held-out labels; their ``interval``; ``rest``, the accuracy of the other labels; and a
        ``warning``, or None.
    """
    y = evidence.y[honest.rows]
    hit, sure = honest.after.argmax(1) == y, honest.after.max(1)
    asked = confidence if len(confidence) else sure
    threshold = float(np.quantile(asked, 1 - SUREST))
    among = sure >= threshold
    labels, right = int(among.sum()), int(hit[among].sum())
    rest = float(hit[~among].mean()) if (~among).any() else None
    told: dict[str, Any] = {
        "threshold": threshold,
        "nodes": int((asked >= threshold).sum()),
        "labels": labels,
        "right": right,
        "interval": wilson(right, labels) if labels else None,
        "rest": rest,
    }
    warning = None
    if labels < ENOUGH:
        warning = (
            f"of the surest {100 * SUREST:.0f} % of answers, those with a probability of {threshold:.2f} or more, little is known: "
            f"{labels} held-out label{'s were' if labels != 1 else ' was'} answered as surely"
            + (f", {right} of them rightly" if labels else "")
        )
    elif rest is not None and right / labels < rest:
        warning = (
            f"the surest {100 * SUREST:.0f} % of answers are not more often right than the others: {right} of {labels} held-out "
            f"labels with a probability of {threshold:.2f} or more, against {100 * rest:.1f} % of the rest"
        )
    return told | {"warning": warning}


def what_abstaining_buys(honest: HonestPredictions, evidence: Evidence) -> list[dict[str, Any]]:
    """Accuracy among the answered at rising thresholds, with counts and intervals."""
    return [dict(point) for point in coverage(honest.after, evidence.y[honest.rows])]


def _weighted_by_answer(hit: np.ndarray, predicted: np.ndarray, share: np.ndarray) -> float:
    """Hits class by class of the answer, weighted by shares of the answers; where an answer is rare, all hits count beside it.

    >>> hit, predicted = np.array([True, True, False, False]), np.array([0, 0, 1, 1])
    >>> round(_weighted_by_answer(hit, predicted, np.array([1.0, 0.0])), 3)
    0.75
    """
    right = np.bincount(predicted, hit, minlength=len(share))
    count = np.bincount(predicted, minlength=len(share))
    return float((share * (right + 2 * hit.mean()) / (count + 2)).sum())


def _interval(accuracy: float, labels: float, classes: int) -> list[float]:
    """The 95 % interval of the expected accuracy. What is right less often on held-out labels than one answer in C at random would
    be has most likely been unlucky: the upper end is then that of answers at random.

    >>> [[round(end, 2) for end in _interval(share, 40, 2)] for share in (0.8, 0.5, 0.3)]
    [[0.61, 0.91], [0.32, 0.68], [0.16, 0.68]]
    """
    low, high = (wilson(share * labels, labels, _INFLATED) for share in (accuracy, max(accuracy, 1 / classes)))
    return [low[0], high[1]]


def _balanced_interval(found: np.ndarray, count: np.ndarray, balanced: float) -> list[float]:
    """The 95 % interval of the mean over classes of the share found; a label and a miss more in each, so that none is certain."""
    share = (found + 1) / (count + 2)
    error = _INFLATED * float(np.sqrt((share * (1 - share) / (count + 2)).sum())) / len(count)
    return [max(0.0, balanced - 1.96 * error), min(1.0, balanced + 1.96 * error)]


def _detail(honest: HonestPredictions, evidence: Evidence) -> dict[str, Any]:
    """Which class is taken for which, and bin by bin how far confidence can be believed."""
    y = evidence.y[honest.rows]
    confusion = np.zeros((evidence.num_classes, evidence.num_classes), dtype=np.int64)
    np.add.at(confusion, (y, honest.after.argmax(1)), 1)
    bins = {}
    for name, probabilities in (("before", honest.before), ("after", honest.after)):
        table = reliability(probabilities, y)
        bins[name] = {
            "nodes": table.nodes.tolist(),
            "confidence": [None if np.isnan(value) else float(value) for value in table.confidence],
            "accuracy": [None if np.isnan(value) else float(value) for value in table.accuracy],
        }
    return {"confusion": confusion.tolist(), "reliability": bins}
