r"""Scores that give every class the same say, however few nodes it has."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def balanced_accuracy(predicted: ArrayLike, y: ArrayLike) -> float:
    r"""The mean over classes of the share of their nodes that is found; classes without a node in y do not count.

    .. math:: \frac{1}{C} \sum_c \frac{|\{i : \hat y_i = c, y_i = c\}|}{|\{i : y_i = c\}|}

    >>> balanced_accuracy([0, 0, 0, 0], [0, 0, 0, 1])
    0.5
    """
    guess, truth = np.asarray(predicted), np.asarray(y)
    return float(np.mean([(guess[truth == c] == c).mean() for c in np.unique(truth)]))


def macro_f1(predicted: ArrayLike, y: ArrayLike) -> float:
    r"""The mean over the classes in y of :math:`F_1 = 2 TP / (2 TP + FP + FN)`.

    >>> round(macro_f1([0, 0, 0, 0], [0, 0, 0, 1]), 3)
    0.429
    """
    guess, truth = np.asarray(predicted), np.asarray(y)
    counts = ((guess == c, truth == c) for c in np.unique(truth))
    return float(np.mean([2 * (says & is_).sum() / (says.sum() + is_.sum()) for says, is_ in counts]))
