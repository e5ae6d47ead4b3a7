r"""How common classes are among nodes without a label, where labels do not say it: as many of each class were labeled.

What learns from these expects classes of equal size. How large they are can be told from calibrated predictions p (Saerens, Latinne
and Decaestecker, *Adjusting the outputs of a classifier to new a priori probabilities*, 2002): from their shares of labels on,

.. math:: \pi_c \leftarrow \frac{\operatorname{mean}_i q_{ic} + a \lambda_c}{1 + a}, \quad q_{ic} \propto p_{ic} \pi_c / \lambda_c

until they stay. A class that is predicted too often would be taken for common; so scores are shifted first, by class, until the
mean prediction of held-out labels is their shares (Alexandari, Kundaje and Shrikumar, *Maximum likelihood with bias-corrected
calibration is hard-to-beat at label shift adaptation*, 2020), five of each class of which nothing is said beside them: without,
CiteSeer with twenty lost two points. And :math:`a = (20 / n)^2 + 0.1` for n of each, since which were labeled is chance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sharpen.fitting.calibrated import HonestPredictions
from sharpen.fitting.estimators import meet_prior

# For how many nodes the shares of the labels stand, and beside how many for each class of which nothing is said scores are shifted.
_ALIKE, _LEAST, _SILENT = 20.0, 0.1, 5
_MOST_NODES, _STEPS = 20_000, 200


class Proportions(NamedTuple):
    """By how much each class is more common than among labels; and by what to multiply its probabilities: that, after the shift."""

    ratios: np.ndarray
    factors: np.ndarray


def drawn_evenly(count: np.ndarray) -> bool:
    """Whether most classes have the same number of labels, that of the largest, which chance seldom deals to many labels; some
    may have no more nodes.

    >>> drawn_evenly(np.array([20, 20, 20, 12])), drawn_evenly(np.array([20, 21])), drawn_evenly(np.array([20, 0, 20]))
    (True, False, True)
    """
    some = count[count > 0]
    return bool(len(some) > 1 and (some == some.max()).mean() > 0.5)


def find_proportions(probabilities: np.ndarray, held_out: np.ndarray, count: np.ndarray) -> Proportions:
    """What predictions of unlabeled nodes, [N, C], and of held-out labels, [n, C], say of classes with so many labels."""
    labels, usual = count / count.sum(), float(np.median(count[count > 0]))
    some, shift = labels > 0, np.zeros(len(count))
    scores = np.vstack([held_out[:, some], np.tile(labels[some], (_SILENT * int(some.sum()), 1))])
    shift[some] = meet_prior(np.log(np.maximum(scores, 1e-12)), np.ones(len(scores), dtype=bool), labels[some])
    shares = _shares(reweighted(probabilities, np.exp(shift))[:, some], labels[some], (_ALIKE / usual) ** 2 + _LEAST)
    ratios = np.ones(len(count))
    ratios[some] = shares / labels[some]
    return Proportions(ratios, ratios * np.exp(shift))


def shifted(honest: HonestPredictions, found: Proportions | None) -> HonestPredictions:
    """What is said of labeled nodes as the answers are delivered: by how common classes are, where that was found."""
    return honest if found is None else replace(honest, after=reweighted(honest.after, found.factors))


def _shares(probabilities: np.ndarray, labels: np.ndarray, weight: float) -> np.ndarray:
    """The share of each class among some nodes, beside those of the labels with some weight."""
    p, shares = np.random.default_rng(0).permutation(probabilities)[:_MOST_NODES], labels
    for _ in range(_STEPS):
        shares = (reweighted(p, shares / labels).mean(0) + weight * labels) / (1 + weight)
    return shares


def reweighted(probabilities: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Probabilities where each class is so many times as common.

    >>> reweighted(np.array([[0.5, 0.5]]), np.array([1.5, 0.5])).tolist()
    [[0.75, 0.25]]
    """
    more = probabilities * factor
    return np.asarray(more / np.maximum(more.sum(axis=-1, keepdims=True), 1e-300))
