"""Logistic regression in which a part of the columns counts less: as much less as labels that it has not seen say.

How much neighbours say differs from graph to graph, and there are more of their columns than of a node's own. So the model is
learnt with theirs at full, half and less than a third of their size, which the penalty makes so much harder to use, and its weights
are the mean of the three by how probable each makes labels that it has not seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from sharpen.fitting.propagated import regression

# The sizes of columns that are not a node's own; and what they are weighed by: so many parts of the labels, at most so many labels,
# and, with fewer than two for each part, none.
_SIZES = (1.0, 0.5, 0.3)
_PARTS, _ENOUGH = 5, 500


def shrunk_regression(
    x: Any,
    y: np.ndarray,
    own: np.ndarray,
    num_classes: int,
    model: LogisticRegression,
    *,
    seed: int,
    around: bool = True,
) -> dict[str, np.ndarray]:
    """Weights and bias, as :func:`sharpen.fitting.propagated.regression` gives them.

    Args:
        x, y: Rows of labeled nodes, dense or sparse, and their classes.
        own: Which columns are a node's own, and keep their size.
        num_classes: How many there are.
        model: What learns.
        seed: Of the labels that weigh the sizes, where there are many.
        around: Whether other columns say anything; if not, one size will do.

    >>> x, y = np.array([[0.0, 1.0], [1.0, 0.0]] * 10), np.array([0, 1] * 10)
    >>> shrunk_regression(x, y, np.array([True, False]), 2, LogisticRegression(), seed=0)["weight"].shape
    (2, 2)
    """
    sizes = [np.where(own, 1.0, size) for size in _SIZES if around or size == 1]
    some = np.random.default_rng(seed).permutation(len(y))[:_ENOUGH]
    counts = softmax([-_surprise(_sized(x[some], size), y[some], num_classes, model) for size in sizes])
    weight, bias = np.zeros((num_classes, x.shape[1])), np.zeros(num_classes)
    for size, count in zip(sizes, counts, strict=True):
        if count >= 0.01 * counts.max():
            learnt = regression(_sized(x, size), y, num_classes, model)
            weight += count * size * learnt["weight"]
            bias += count * learnt["bias"]
    return {"weight": weight, "bias": bias}


def _sized(x: Any, size: np.ndarray) -> Any:
    scale: Any = scipy.sparse.diags_array(size)
    return x @ scale if scipy.sparse.issparse(x) else x * size


def _surprise(x: Any, y: np.ndarray, num_classes: int, model: LogisticRegression) -> float:
    """Minus the logarithm of the probability of all labels, each by a model of the parts that it is not in; 0 for too few.

    >>> x, y = np.array([[0.0], [1.0]] * 10), np.array([0, 1] * 10)
    >>> [round(_surprise(x, y, 2, LogisticRegression(C=c))) for c in (0.01, 100)]
    [14, 0]
    """
    part = np.empty(len(y), dtype=np.int64)
    part[np.argsort(y, kind="stable")] = np.arange(len(y)) % _PARTS
    total = 0.0
    for own in (part == k for k in range(_PARTS if len(y) >= 2 * _PARTS else 0)):
        learnt = regression(x[~own], y[~own], num_classes, model)
        said = log_softmax(x[own] @ learnt["weight"].T + learnt["bias"], axis=1)
        total -= float(said[np.arange(len(said)), y[own]].sum())
    return total
