r"""How common classes are among nodes without a label, where labels do not say it: as many of each class were labeled.

What learns from as many labels of each class expects as many nodes of each. Where classes are not of equal size, that costs points:
a node between two of them is more likely of the larger. The sizes can be told from predictions that are calibrated on such labels
(Saerens, Latinne and Decaestecker, *Adjusting the outputs of a classifier to new a priori probabilities*, 2002): beginning with the
shares :math:`\lambda_c` of the labels,

.. math:: \pi_c \leftarrow \frac{\operatorname{mean}_{i \in U} q_{ic} + a \lambda_c}{1 + a}, \qquad
    q_{ic} = \frac{p_{ic} \, \pi_c / \lambda_c}{\sum_d p_{id} \, \pi_d / \lambda_d}

until they stay; q is what is predicted then. A temperature alone does not calibrate p for this: a class that is predicted too often
would be taken for common. So the scores of each class are shifted first, by as much as makes the mean prediction of held-out labels
the shares of these (Alexandari, Kundaje and Shrikumar, *Maximum likelihood with bias-corrected calibration is hard-to-beat at label
shift adaptation*, 2020), n / (n + 5) of the way for n labels of each class. On CiteSeer with twenty that is what separates a gain
of nothing from a loss of two points. And since it is still a matter of chance which nodes were labeled, the shares of the labels
stand in for a part of the nodes, :math:`a = (20 / n)^2 + 0.1`.

Where labels are a sample of the nodes, they say themselves how common classes are, and nothing is done; nor is it where predictions
are not better than guessing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sharpen.fitting.estimators import meet_prior

# The shares of the labels stand for as many nodes as there are at so many labels of each class; for this share of them at least.
_ALIKE, _LEAST = 20.0, 0.1
# With so many labels of each class, scores are shifted half of the way.
_HALFWAY = 5.0
_MOST_NODES, _STEPS, _CLOSE = 20_000, 300, 1e-6


@dataclass(frozen=True)
class Proportions:
    """How common classes are.

    Args:
        ratios: By how much each class is more common among the nodes than among the labels.
        factors: What probabilities of each class are multiplied by: that, and what makes up for how often it is predicted wrongly.
    """

    ratios: np.ndarray
    factors: np.ndarray


def drawn_evenly(count: np.ndarray) -> bool:
    """Whether labels seem to have been chosen so that each class has as many: most classes have as many as the one with most.

    A class may have fewer because it has no more nodes; chance seldom deals labels like that.

    >>> drawn_evenly(np.array([20, 20, 20, 12])), drawn_evenly(np.array([20, 21])), drawn_evenly(np.array([20, 0, 20]))
    (True, False, True)
    """
    some = count[count > 0]
    return bool(len(some) > 1 and (some == some.max()).mean() > 0.5)


def find_proportions(probabilities: np.ndarray, held_out: np.ndarray, count: np.ndarray) -> Proportions:
    """What predictions say of how common classes are.

    Args:
        probabilities: Of unlabeled nodes, [N, C].
        held_out: Of labels that were not learnt from, [n, C].
        count: How many labels each class has; of one without any nothing is told.
    """
    labels, usual = count / count.sum(), float(np.median(count[count > 0]))
    some, shift = labels > 0, np.zeros(len(count))
    scores = np.log(np.maximum(held_out[:, some], 1e-12))
    shift[some] = usual / (usual + _HALFWAY) * meet_prior(scores, np.ones(len(scores), dtype=bool), labels[some])
    shares = _shares(reweighted(probabilities, np.exp(shift))[:, some], labels[some], (_ALIKE / usual) ** 2 + _LEAST)
    ratios = np.ones(len(count))
    ratios[some] = shares / labels[some]
    return Proportions(ratios, ratios * np.exp(shift))


def _shares(probabilities: np.ndarray, labels: np.ndarray, weight: float) -> np.ndarray:
    """The share of each class among some nodes, beside those of the labels with some weight.

    >>> sure = np.array([[0.95, 0.05]] * 80 + [[0.05, 0.95]] * 20)
    >>> [_shares(sure, np.array([0.5, 0.5]), weight).round(2).tolist() for weight in (0.0, 1.0)]
    [[0.83, 0.17], [0.65, 0.35]]
    """
    p, shares = np.random.default_rng(0).permutation(probabilities)[:_MOST_NODES].astype(np.float64), labels
    for _ in range(_STEPS if len(p) else 0):
        now = (reweighted(p, shares / labels).mean(0) + weight * labels) / (1 + weight)
        close = bool(np.abs(now - shares).max() < _CLOSE)
        shares = now
        if close:
            break
    return shares


def reweighted(probabilities: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Probabilities where each class is so many times as common.

    >>> reweighted(np.array([[0.5, 0.5]]), np.array([1.5, 0.5])).tolist()
    [[0.75, 0.25]]
    """
    more = probabilities * factor
    return np.asarray(more / np.maximum(more.sum(axis=-1, keepdims=True), 1e-300))
