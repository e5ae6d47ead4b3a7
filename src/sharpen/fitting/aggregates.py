r"""Columns of nodes beside those of their neighbours, for models of tables: a regularised linear one, and boosted trees.

Of each column there is the node's own value and the mean over its neighbours, of numbers also their maximum and minimum (of a
column of zeros and ones, such as one for a category, the mean is the share, and says it all); the number of neighbours; and, of
the neighbours whose label is known, how many there are and which share is of each class. A node's own label is in none of these,
so that a node that is learnt from looks like one that is asked about.

Many columns, such as bags of words, are taken as they are and as means over neighbours (:mod:`sharpen.fitting.wide`); trees have no
use for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from sharpen.fitting.neighbors import neighbors_of
from sharpen.fitting.propagated import check_shapes
from sharpen.fitting.shrunk import shrunk_regression
from sharpen.fitting.spreading import features_of
from sharpen.fitting.trees import boosted_scores, check_trees, tree_arrays
from sharpen.fitting.wide import check_wide, fit_wide, is_wide, wide_scores
from sharpen.graph import Graph

_STRENGTH = 1.0


class _Columns:
    """One graph's columns and those of its neighbours."""

    def __init__(self, graph: Graph) -> None:
        self._near, x = neighbors_of(graph), features_of(graph)
        self._own = np.asarray(x.toarray() if graph.is_sparse else x, dtype=np.float32)

    def table(self, numeric: np.ndarray) -> np.ndarray:
        """All columns that no label enters, [N, K].

        Args:
            numeric: Of which columns to have extremes.
        """
        parts: list[Any] = [self._own, self._near.mean(self._own), np.log1p(self._near.count)[:, None]]
        if numeric.any():
            parts += [self._near.reduced(reduce, self._own[:, numeric]) for reduce in (np.maximum, np.minimum)]
        return np.hstack(parts).astype(np.float32)

    @property
    def numeric(self) -> np.ndarray:
        """Which columns are more than zeros and ones."""
        return np.asarray(~((self._own == 0) | (self._own == 1)).all(axis=0))


_COLUMNS: WeakKeyDictionary[Graph, _Columns] = WeakKeyDictionary()


def _columns(graph: Graph) -> _Columns:
    if graph not in _COLUMNS:
        _COLUMNS[graph] = _Columns(graph)
    return _COLUMNS[graph]


class _OnColumns:
    """What both models share: the table, and which of its columns have extremes."""

    def __init__(self) -> None:
        self._tables: WeakKeyDictionary[Graph, tuple[bytes, np.ndarray]] = WeakKeyDictionary()

    def _table(self, graph: Graph, numeric: np.ndarray, known: np.ndarray, num_classes: int) -> np.ndarray:
        key = numeric.tobytes()
        if graph not in self._tables or self._tables[graph][0] != key:
            self._tables[graph] = (key, _columns(graph).table(numeric))
        return np.hstack([self._tables[graph][1], neighbors_of(graph).labels(known, num_classes)])

    @staticmethod
    def _width(state: Mapping[str, np.ndarray], num_features: int, num_classes: int) -> int:
        """How many columns the table of a state has."""
        if "numeric" not in state or state["numeric"].shape != (num_features,) or state["numeric"].dtype.kind != "b":
            raise ValueError("it does not say which columns are numeric")
        return 2 * num_features + 1 + 2 * int(state["numeric"].sum()) + num_classes + 1


class LinearOnColumns(_OnColumns):
    """Logistic regression on standardised columns.

    >>> graph = Graph(x=[[0.0], [0.1], [1.0], [0.9]], edge_index=[[0, 2], [1, 3]])
    >>> known, model = np.array([0, -1, 1, -1]), LinearOnColumns()
    >>> model.scores(graph, model.fit(graph, known, 2, seed=0, balanced=False), known, 2).argmax(1).tolist()
    [0, 0, 1, 1]
    """

    def fit(
        self, graph: Graph, known: np.ndarray, num_classes: int, *, seed: int, balanced: bool
    ) -> dict[str, np.ndarray]:
        """As :meth:`sharpen.fitting.estimators.Estimator.fit`."""
        if is_wide(graph):
            return fit_wide(graph, known, num_classes, seed=seed, balanced=balanced)
        numeric, nodes = _columns(graph).numeric, np.flatnonzero(known >= 0)
        table = self._table(graph, numeric, known, num_classes).astype(np.float64)
        mean, scale = table.mean(0), table.std(0)
        scale = np.where(scale > 1e-9, scale, 1.0)
        model = LogisticRegression(C=_STRENGTH, max_iter=1000, class_weight="balanced" if balanced else None)
        x, own = (table[nodes] - mean) / scale, np.arange(table.shape[1]) < graph.num_features
        learnt = shrunk_regression(x, known[nodes], own, num_classes, model, seed=seed, around=graph.num_edges > 0)
        return {"numeric": numeric, "mean": mean, "scale": scale, **learnt}

    def scores(self, graph: Graph, state: Mapping[str, np.ndarray], known: np.ndarray, num_classes: int) -> np.ndarray:
        """As :meth:`sharpen.fitting.estimators.Estimator.scores`."""
        if "own" in state:
            return wide_scores(graph, state, known, num_classes)
        table = self._table(graph, state["numeric"], known, num_classes)
        return np.asarray((table - state["mean"]) / state["scale"] @ state["weight"].T + state["bias"])

    def check(self, state: Mapping[str, np.ndarray], num_features: int, num_classes: int) -> None:
        """As :meth:`sharpen.fitting.estimators.Estimator.check`."""
        if "own" in state:
            return check_wide(state, num_features, num_classes)
        width = self._width(state, num_features, num_classes)
        shapes = {"numeric": (num_features,), "mean": (width,), "scale": (width,)}
        check_shapes(state, {**shapes, "weight": (num_classes, width), "bias": (num_classes,)})


class TreesOnColumns(_OnColumns):
    """Gradient-boosted trees on the same columns, as scikit-learn grows them; kept as arrays."""

    def fit(
        self, graph: Graph, known: np.ndarray, num_classes: int, *, seed: int, balanced: bool
    ) -> dict[str, np.ndarray]:
        """As :meth:`sharpen.fitting.estimators.Estimator.fit`."""
        numeric, nodes = _columns(graph).numeric, np.flatnonzero(known >= 0)
        table = self._table(graph, numeric, known, num_classes)
        classes = np.unique(known[nodes])
        leaf = int(np.clip(len(nodes) // (4 * len(classes)), 1, 20))
        model = HistGradientBoostingClassifier(
            min_samples_leaf=leaf,
            max_leaf_nodes=15,
            early_stopping=False,
            random_state=seed,
            class_weight="balanced" if balanced else None,
        )
        return {"numeric": numeric, **tree_arrays(model.fit(table[nodes], known[nodes]), classes)}

    def scores(self, graph: Graph, state: Mapping[str, np.ndarray], known: np.ndarray, num_classes: int) -> np.ndarray:
        """As :meth:`sharpen.fitting.estimators.Estimator.scores`."""
        return boosted_scores(state, self._table(graph, state["numeric"], known, num_classes), num_classes)

    def check(self, state: Mapping[str, np.ndarray], num_features: int, num_classes: int) -> None:
        """As :meth:`sharpen.fitting.estimators.Estimator.check`."""
        check_trees(state, self._width(state, num_features, num_classes), num_classes)
