r"""The regularised linear model where there are many columns, such as bags of words or embeddings of texts.

.. math:: z_i = \hat x_i W + \Big( \frac{1}{|N_i|} \sum_{j \in N_i} \hat x_j \Big) U + v_i V + b, \qquad \hat x_i = x_i / |x_i|

with :math:`v_i` the number of neighbours, how many of them are labeled, and which share of these is of each class. Rows have length
1 in the place of columns being standardised, extremes over neighbours say nothing of words, and only rows of labeled nodes are ever
put together: for all others the mean over neighbours is taken of :math:`\hat X U`.

A mean lies nearer to other means than a row to other rows, the more so the more neighbours there are and the fuller the columns;
the penalty would make of this that neighbours say little. So either part is divided by how far labeled nodes lie from their mean,
and that of neighbours counts twice, which the regression may shrink.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from sharpen.fitting.neighbors import Neighbors, neighbors_of
from sharpen.fitting.propagated import check_shapes
from sharpen.fitting.shrunk import shrunk_regression
from sharpen.fitting.spreading import features_of
from sharpen.graph import Graph

# Graphs with more columns are wide.
_MOST_COLUMNS = 512
_STRENGTH = 10.0
# How far labeled nodes lie from their mean by the means over neighbours, where it is 1 by their own columns. Three or four is
# better where neighbours are alike and labels few, but costs ten points where edges say nothing (citation graphs with their edges
# replaced at random); two costs at most two.
_AROUND = 2.0
_UNIT: WeakKeyDictionary[Graph, Any] = WeakKeyDictionary()


def is_wide(graph: Graph) -> bool:
    """Whether a graph has so many columns that a table of them and their extremes over neighbours is not made.

    >>> is_wide(Graph(x=np.eye(3), edge_index=[[0], [1]]))
    False
    """
    return graph.num_features > _MOST_COLUMNS


def fit_wide(graph: Graph, known: np.ndarray, num_classes: int, *, seed: int, balanced: bool) -> dict[str, np.ndarray]:
    """As :meth:`sharpen.fitting.estimators.Estimator.fit`."""
    unit, near, nodes = _unit(graph), neighbors_of(graph), np.flatnonzero(known >= 0)
    more = _more(near, known, num_classes)
    mean, scale = more.mean(0), np.maximum(more.std(0), 1e-9)
    rows, around = unit[nodes], near.mean_rows(unit, nodes)
    sizes = 1 / _distance(rows), _AROUND / _distance(around)
    parts = [rows * sizes[0], around * sizes[1], (more[nodes] - mean) / scale]
    x = scipy.sparse.csr_array(scipy.sparse.hstack([scipy.sparse.csr_array(part) for part in parts]))
    own = np.arange(x.shape[1]) < graph.num_features
    model = LogisticRegression(C=_STRENGTH, max_iter=500, class_weight="balanced" if balanced else None)
    learnt = shrunk_regression(x, known[nodes], own, num_classes, model, seed=seed, around=graph.num_edges > 0)
    weight, width = learnt["weight"], graph.num_features
    return {
        "own": sizes[0] * weight[:, :width],
        "around": sizes[1] * weight[:, width : 2 * width],
        "more": weight[:, 2 * width :],
        "mean": mean,
        "scale": scale,
        "bias": learnt["bias"],
    }


def wide_scores(graph: Graph, state: Mapping[str, np.ndarray], known: np.ndarray, num_classes: int) -> np.ndarray:
    """As :meth:`sharpen.fitting.estimators.Estimator.scores`."""
    unit, near = _unit(graph), neighbors_of(graph)
    more = (_more(near, known, num_classes) - state["mean"]) / state["scale"]
    around = near.mean(np.asarray(unit @ state["around"].T))
    return np.asarray(unit @ state["own"].T + around + more @ state["more"].T + state["bias"])


def check_wide(state: Mapping[str, np.ndarray], num_features: int, num_classes: int) -> None:
    """As :meth:`sharpen.fitting.estimators.Estimator.check`."""
    columns, more = (num_classes, num_features), num_classes + 2
    shapes = {"own": columns, "around": columns, "more": (num_classes, more), "mean": (more,), "scale": (more,)}
    check_shapes(state, shapes | {"bias": (num_classes,)})


def _unit(graph: Graph) -> Any:
    """Rows of length 1; kept, since every fold asks for them."""
    if graph not in _UNIT:
        _UNIT[graph] = normalize(features_of(graph))
    return _UNIT[graph]


def _distance(rows: Any) -> float:
    """How far rows lie from their mean: the root of the mean square; 1 where all are alike.

    >>> _distance(np.array([[0.0, 3.0], [0.0, 5.0]])), _distance(scipy.sparse.csr_array([[1.0], [1.0]]))
    (1.0, 1.0)
    """
    x: Any = scipy.sparse.csr_array(rows)
    square = float(np.square(x.data).sum() / x.shape[0] - np.square(x.mean(axis=0)).sum())
    return float(np.sqrt(square)) if square > 1e-9 else 1.0


def _more(near: Neighbors, known: np.ndarray, num_classes: int) -> np.ndarray:
    return np.hstack([np.log1p(near.count)[:, None], near.labels(known, num_classes)])
