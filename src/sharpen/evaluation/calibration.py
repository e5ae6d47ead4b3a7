r"""How far probabilities can be believed: calibration errors, temperature scaling, and accuracy against coverage.

Everything takes probabilities ``[N, C]`` (or logits, where it says so) and classes ``[N]`` as NumPy arrays and gives
numbers: pure functions, in float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import log_softmax

from sharpen.errors import InputError

_Floats = NDArray[np.float64]

# Temperatures are sought between these: beyond them a prediction is a vertex or the centre of the simplex anyway.
COLDEST, HOTTEST = 0.05, 20.0


class Reliability(NamedTuple):
    """What was promised and what was kept, bin by bin of confidence; see :func:`reliability`.

    >>> reliability([[0.9, 0.1], [0.4, 0.6]], [0, 0], bins=2).nodes.tolist()
    [0, 2]
    """

    edges: _Floats
    """``[bins + 1]``, from 0 to 1."""
    nodes: NDArray[np.int64]
    """How many nodes fall into each bin."""
    confidence: _Floats
    """Their mean probability of the predicted class; NaN in an empty bin."""
    accuracy: _Floats
    """The share of them whose prediction is right; NaN in an empty bin."""


class Coverage(NamedTuple):
    """Accuracy among those that are answered, as the threshold rises; see :func:`coverage_curve`.

    >>> coverage_curve([[0.9, 0.1], [0.4, 0.6]], [0, 0], thresholds=[0.8]).accuracy.tolist()
    [1.0]
    """

    threshold: _Floats
    coverage: _Floats
    """The share of nodes whose largest probability is at least the threshold."""
    accuracy: _Floats
    """The share of those that are right; NaN where none is answered."""


def reliability(probabilities: ArrayLike, y: ArrayLike, bins: int = 15) -> Reliability:
    """Mean confidence and accuracy in equally wide bins of confidence; bin b holds ``(b / bins, (b + 1) / bins]``.

    >>> table = reliability([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1], bins=2)
    >>> round(float(table.confidence[1]), 3), round(float(table.accuracy[1]), 3)
    (0.767, 0.667)
    """
    p, classes = _checked(probabilities, y)
    return reliability_of_confidence(p.max(1), p.argmax(1) == classes, bins)


def reliability_of_confidence(confidence: ArrayLike, hit: ArrayLike, bins: int = 15) -> Reliability:
    """The same where only the probability of the predicted class is known, and whether it was right.

    >>> reliability_of_confidence([0.9, 0.6], [True, False], bins=2).accuracy[1]
    np.float64(0.5)
    """
    confidence, hit = np.asarray(confidence, dtype=np.float64), np.asarray(hit, dtype=np.float64)
    edges = np.linspace(0, 1, bins + 1)
    # Open below, closed above: a certain prediction belongs to the last bin.
    place = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, bins - 1)
    count = np.bincount(place, minlength=bins)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(place, confidence, minlength=bins) / count
        right = np.bincount(place, hit, minlength=bins) / count
    return Reliability(edges, count, mean, right)


def ece(probabilities: ArrayLike, y: ArrayLike, bins: int = 15) -> float:
    r"""Expected calibration error: how far confidence and accuracy lie apart, bin by bin.

    .. math:: \sum_b \frac{n_b}{n} \, |\mathrm{accuracy}_b - \mathrm{confidence}_b|

    >>> round(ece([[0.9, 0.1], [0.4, 0.6]], [0, 0], bins=1), 3)  # sure to 0.75, right half the time
    0.25
    """
    return calibration_gap(reliability(probabilities, y, bins))


def calibration_gap(table: Reliability) -> float:
    """The expected calibration error of a table that is made already.

    >>> calibration_gap(reliability_of_confidence([0.9, 0.6], [True, False], bins=1))
    0.25
    """
    used = table.nodes > 0
    gap = np.abs(table.accuracy[used] - table.confidence[used])
    return float((table.nodes[used] * gap).sum() / table.nodes.sum())


def brier(probabilities: ArrayLike, y: ArrayLike) -> float:
    r"""Brier score: the mean squared distance to the truth, over all classes; 0 is perfect, 2 is the worst.

    .. math:: \frac{1}{n} \sum_i \sum_c (p_{ic} - [y_i = c])^2

    >>> round(brier([[0.9, 0.1], [0.4, 0.6]], [0, 0]), 3)
    0.37
    """
    p, classes = _checked(probabilities, y)
    truth = np.zeros_like(p)
    truth[np.arange(len(p)), classes] = 1
    return float(((p - truth) ** 2).sum(1).mean())


def log_loss(probabilities: ArrayLike, y: ArrayLike) -> float:
    r"""Mean negative log-probability of the true class; a probability of 0 counts as the smallest float64 above 0.

    >>> round(log_loss([[0.5, 0.5], [0.25, 0.75]], [0, 1]), 3)
    0.49
    """
    p, classes = _checked(probabilities, y)
    true = p[np.arange(len(p)), classes]
    return float(-np.log(np.maximum(true, np.finfo(np.float64).tiny)).mean())


def fit_temperature(logits: ArrayLike, y: ArrayLike, smoothing: float = 0.0) -> float:
    r"""The temperature T at which ``softmax(logits / T)`` has the least log-loss.

    One number for all classes: it moves confidence and never the predicted class. The log-loss is convex in 1/T, so the
    minimum is the only one; it is sought between 0.05 and 20, where perfect or useless predictions would run off.

    Args:
        logits, y: ``[N, C]`` and ``[N]``.
        smoothing: Probability mass that is moved from the true class to all others. With 1 / (N + 2), Platt's choice, a
            model that is right on all of a few nodes does not become certain of everything.

    >>> from scipy.special import softmax
    >>> logits = np.log([[0.9, 0.1]] * 4)  # says 90 %, is right in 3 of 4
    >>> round(float(softmax(logits / fit_temperature(logits, [0, 0, 0, 1]), axis=1)[0, 0]), 3)
    0.75
    """
    z, target = _targets(logits, y, smoothing, "logits", 2)

    def loss(log_inverse: float) -> float:
        return float(-(target * log_softmax(z * np.exp(log_inverse), axis=1)).sum(1).mean())

    # In log(1/T) the range is even on both sides of 1; the loss stays unimodal.
    ends = (-np.log(HOTTEST), -np.log(COLDEST))
    found = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-6})
    return float(np.exp(-found.x))


def fit_pool(opinions: ArrayLike, y: ArrayLike, smoothing: float = 0.0, caution: float = 0.0) -> _Floats:
    r"""How much to listen to each of several opinions: the weights of their log-linear pool of least log-loss plus ``caution``.

    .. math:: p_i \propto \prod_k q_{ik}^{w_k}, \qquad w_k \ge 0

    Weights need not sum to 1, so that the pool is calibrated too; for one opinion, the weight is 1 over the temperature. The
    loss is convex in the weights. They are sought from 0.001, so that nobody is quite unheard, to 20.

    Args:
        opinions: ``[K, N, C]``, logarithms of probabilities, or logits.
        y: ``[N]``.
        smoothing: As for :func:`fit_temperature`.
        caution: How much it costs if the weights sum to less than 1, so that opinions are unheard: half its square, times this.

    >>> sure, guess = np.log([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1]]), np.log([[0.3, 0.7], [0.6, 0.4], [0.8, 0.2]])
    >>> fit_pool([sure, guess], [0, 1, 0], smoothing=0.2).round(2).tolist()  # the second adds nothing to the first
    [0.63, 0.0]
    >>> [fit_pool([guess], [1, 0, 1], caution=c).round(2).tolist() for c in (0, 10)]  # what is wrong each time
    [[0.0], [0.98]]
    """
    z, target = _targets(opinions, y, smoothing, "opinions", 3)

    def loss(weights: _Floats) -> tuple[float, _Floats]:
        log_p = log_softmax(np.tensordot(weights, z, 1), axis=1)
        gap, short = (np.exp(log_p) - target) / len(target), max(0.0, 1 - float(weights.sum()))
        surprise = float(-(target * log_p).sum(1).mean())
        return surprise + caution / 2 * short**2, np.tensordot(z, gap, 2) - caution * short

    start = np.full(len(z), 1 / len(z))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0.001, 1 / COLDEST)] * len(z))
    return np.asarray(found.x)


def temperature_for_confidence(probabilities: ArrayLike, confidence: float) -> float:
    """The temperature at which the mean probability of the predicted class is the given one.

    Needs no labels: it makes predictions as sure, on average, as others are known to be. Where no temperature between 0.05
    and 20 does, the nearest.

    >>> p = np.array([[0.6, 0.4], [0.7, 0.3]])
    >>> t = temperature_for_confidence(p, 0.9)
    >>> from scipy.special import softmax
    >>> round(float(softmax(np.log(p) / t, axis=1).max(1).mean()), 6)
    0.9
    """
    scores = np.log(np.maximum(np.asarray(probabilities, dtype=np.float64), 1e-300))
    scores -= scores.max(1, keepdims=True)  # the predicted class is at 0, so its probability is 1 over the sum below

    def excess(log_t: float) -> float:
        return float((1 / np.exp(scores / np.exp(log_t)).sum(1)).mean()) - confidence

    low, high = float(np.log(COLDEST)), float(np.log(HOTTEST))
    if excess(low) <= 0:
        return COLDEST
    return HOTTEST if excess(high) >= 0 else float(np.exp(brentq(excess, low, high)))


def coverage_curve(probabilities: ArrayLike, y: ArrayLike, thresholds: ArrayLike | None = None) -> Coverage:
    """What abstaining buys: for each threshold on the largest probability, how many are answered and how well.

    Args:
        probabilities, y: as everywhere here.
        thresholds: By default 0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99.

    >>> curve = coverage_curve([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]], [0, 0, 0], thresholds=[0, 0.65])
    >>> curve.coverage.round(2).tolist(), curve.accuracy.round(2).tolist()
    ([1.0, 0.67], [0.67, 1.0])
    """
    p, classes = _checked(probabilities, y)
    levels = np.array([0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99] if thresholds is None else thresholds, dtype=np.float64)
    confidence, hit = p.max(1), p.argmax(1) == classes
    answered = confidence[None, :] >= levels[:, None]
    with np.errstate(invalid="ignore"):
        accuracy = (answered & hit).sum(1) / answered.sum(1)
    return Coverage(levels, answered.mean(1), accuracy)


def _targets(logits: ArrayLike, y: ArrayLike, smoothing: float, field: str, dimensions: int) -> tuple[_Floats, _Floats]:
    """The logits, and the probabilities that they should lead to: ``[N, C]``, smoothed."""
    z, classes = np.asarray(logits, dtype=np.float64), np.asarray(y)
    if z.ndim != dimensions or classes.shape != (z.shape[-2],) or not len(classes):
        shape = ", ".join("KNC"[-dimensions:])
        problem = f"has shape {z.shape} and y {classes.shape}; give [{shape}] and [N], N at least 1"
        raise InputError(problem, field=field)
    target = np.full(z.shape[-2:], smoothing / max(1, z.shape[-1] - 1))
    target[np.arange(len(target)), classes] = 1 - smoothing
    return z, target


def _checked(probabilities: ArrayLike, y: ArrayLike) -> tuple[_Floats, NDArray[np.int64]]:
    p, classes = np.asarray(probabilities, dtype=np.float64), np.asarray(y)
    if p.ndim != 2 or classes.shape != (len(p),) or not len(p):
        problem = f"has shape {p.shape} and y {classes.shape}; give [N, C] and [N], N at least 1"
        raise InputError(problem, field="probabilities")
    if classes.dtype.kind not in "iu" or classes.min() < 0 or classes.max() >= p.shape[1]:
        raise InputError(f"y must hold classes from 0 to {p.shape[1] - 1}; leave nodes of unknown class out")
    if not ((p >= 0) & (p <= 1 + 1e-6)).all() or not np.allclose(p.sum(1), 1, atol=1e-4):
        raise InputError("probabilities must be from 0 to 1 and sum to 1 in every row; give softmax(logits)")
    return p, classes.astype(np.int64)
