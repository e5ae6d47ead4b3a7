r"""How common classes are among nodes without a label, where labels do not say it: as many of each class were labeled.

What learns from as many labels of each class expects as many nodes of each. Where classes are not of equal size, that costs points:
a node between two of them is more likely of the larger. The sizes can be told from predictions that are calibrated on such labels
(Saerens, Latinne and Decaestecker, *Adjusting the outputs of a classifier to new a priori probabilities*, 2002): beginning with the
shares :math:`\lambda_c` of the labels,

.. math:: \pi_c \leftarrow \frac{\operatorname{mean}_{i \in U} q_{ic} + a \lambda_c}{1 + a}, \qquad
    q_{ic} = \frac{p_{ic} \, \pi_c / \lambda_c}{\sum_d p_{id} \, \pi_d / \lambda_d}

until they stay; q is what is predicted then. Predictions are calibrated on labels, and the fewer these are, the more is made of
their chance: so the shares of the labels stand in for a part of the nodes, :math:`a = (10 / n)^2 + 0.1` for n labels of each class.
Of predictions that are not better than guessing nothing is told at all.

Where labels are a sample of the nodes, they say themselves how common classes are, and nothing is done.
"""

from __future__ import annotations

import numpy as np

# The shares of the labels stand for as many nodes as there are at so many labels of each class, and for this share of them at least.
_ALIKE, _LEAST = 10.0, 0.1
_MOST_NODES, _STEPS, _CLOSE = 20_000, 300, 1e-6


def drawn_evenly(count: np.ndarray) -> bool:
    """Whether labels seem to have been chosen so that each class has as many: most classes have as many as the one with most.

    A class may have fewer because it has no more nodes; chance seldom deals labels like that.

    >>> drawn_evenly(np.array([20, 20, 20, 12])), drawn_evenly(np.array([20, 21])), drawn_evenly(np.array([20, 0, 20]))
    (True, False, True)
    """
    some = count[count > 0]
    return bool(len(some) > 1 and (some == some.max()).mean() > 0.5)


def class_shares(probabilities: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The share of each class among some nodes, [C]; 0 for a class without a label.

    Args:
        probabilities: Of the nodes, calibrated on the labels, [N, C].
        count: How many labels each class has.

    >>> sure = np.array([[0.95, 0.05]] * 80 + [[0.05, 0.95]] * 20)
    >>> class_shares(sure, np.array([100, 100])).round(2).tolist(), class_shares(sure, np.array([3, 3])).round(2).tolist()
    ([0.79, 0.21], [0.52, 0.48])
    """
    own = count / count.sum()
    some = own > 0
    p = np.random.default_rng(0).permutation(probabilities)[:_MOST_NODES, some].astype(np.float64)
    labels, shares = own[some], own[some]
    weight = (_ALIKE / np.median(count[some])) ** 2 + _LEAST
    for _ in range(_STEPS if len(p) else 0):
        q = p * (shares / labels)
        total = np.maximum(q.sum(1, keepdims=True), 1e-300)
        now = ((q / total).mean(0) + weight * labels) / (1 + weight)
        close = bool(np.abs(now - shares).max() < _CLOSE)
        shares = now
        if close:
            break
    found = np.zeros(len(own))
    found[some] = shares
    return found


def reweighted(probabilities: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Probabilities where each class is so many times as common.

    >>> reweighted(np.array([[0.5, 0.5]]), np.array([1.5, 0.5])).tolist()
    [[0.75, 0.25]]
    """
    more = probabilities * factor
    return np.asarray(more / more.sum(axis=-1, keepdims=True))
