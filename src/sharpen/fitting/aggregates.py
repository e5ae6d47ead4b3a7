r"""Columns of nodes beside those of their neighbours, for models of tables: a regularised linear one, and boosted trees.

Of each column there is the node's own value and the mean over its neighbours, of numbers also their maximum and minimum (of a
column of zeros and ones, such as one for a category, the mean is the share, and says it all); the number of neighbours; and, of
the neighbours whose label is known, how many there are and which share is of each class. A node's own label is in none of these,
so that a node that is learnt from looks like one that is asked about.

How much neighbours say differs from graph to graph, and there are three of their columns for each of the node's own. So the linear
model is learnt with theirs at full, half and less than a third of their size, which the penalty makes so much harder to use, and
its weights are the mean of the three by how probable each makes labels that it has not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse
from scipy.special import log_softmax, softmax
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from sharpen.fitting.propagated import check_shapes, regression
from sharpen.fitting.spreading import features_of
from sharpen.fitting.trees import boosted_scores, check_trees, tree_arrays
from sharpen.graph import Graph
from sharpen.graph.matrices import propagation_matrix

_BLOCK = 2**18
_STRENGTH = 1.0
# The sizes that columns of neighbours have for the linear model, beside 1 for a node's own; and what they are weighed by: so many
# parts of the labels, at most so many labels, and, with fewer than two for each part, none.
_SIZES = (1.0, 0.5, 0.3)
_PARTS, _ENOUGH = 5, 500


class _Columns:
    """One graph's columns and those of its neighbours."""

    def __init__(self, graph: Graph) -> None:
        pattern = propagation_matrix(graph, "pattern")
        pattern = scipy.sparse.csr_array(pattern - scipy.sparse.diags_array(pattern.diagonal()))
        pattern.eliminate_zeros()
        self._pattern, self.count = pattern, np.diff(pattern.indptr)
        x = features_of(graph)
        self._own = np.asarray(x.toarray() if graph.is_sparse else x, dtype=np.float32)

    def table(self, numeric: np.ndarray) -> np.ndarray:
        """All columns that no label enters, [N, K].

        Args:
            numeric: Of which columns to have extremes.
        """
        some = np.maximum(1, self.count)[:, None]
        parts: list[Any] = [self._own, (self._pattern @ self._own) / some, np.log1p(self.count)[:, None]]
        if numeric.any():
            parts += [self._reduced(reduce, self._own[:, numeric]) for reduce in (np.maximum, np.minimum)]
        return np.hstack(parts).astype(np.float32)

    def _reduced(self, reduce: Any, columns: np.ndarray) -> np.ndarray:
        """An extreme over neighbours; a node without any stands for itself."""
        out, rowptr = columns.copy(), self._pattern.indptr
        rows = np.flatnonzero(self.count)
        size = np.cumsum(self.count[rows]) // max(1, _BLOCK // columns.shape[1])
        for part in np.split(rows, np.flatnonzero(np.diff(size)) + 1) if len(rows) else ():
            first, last = rowptr[part[0]], rowptr[part[-1] + 1]
            # Rows without a neighbour have no entry, so that those of this part lie side by side.
            out[part] = reduce.reduceat(columns[self._pattern.indices[first:last]], rowptr[part] - first, axis=0)
        return out

    def labels(self, known: np.ndarray, num_classes: int) -> np.ndarray:
        """The share of each class among labeled neighbours, beside one label's worth of no opinion, and how many there are."""
        held = np.flatnonzero(known >= 0)
        one_hot = scipy.sparse.csr_array((np.ones(len(held)), (held, known[held])), shape=(len(known), num_classes))
        votes = (self._pattern @ one_hot).toarray()
        total = votes.sum(1, keepdims=True)
        return np.hstack([(votes + 1 / num_classes) / (total + 1), np.log1p(total)]).astype(np.float32)

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
        columns, key = _columns(graph), numeric.tobytes()
        if graph not in self._tables or self._tables[graph][0] != key:
            self._tables[graph] = (key, columns.table(numeric))
        return np.hstack([self._tables[graph][1], columns.labels(known, num_classes)])

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
        numeric, nodes = _columns(graph).numeric, np.flatnonzero(known >= 0)
        table = self._table(graph, numeric, known, num_classes).astype(np.float64)
        mean, scale = table.mean(0), table.std(0)
        scale = np.where(scale > 1e-9, scale, 1.0)
        model = LogisticRegression(C=_STRENGTH, max_iter=1000, class_weight="balanced" if balanced else None)
        x, y = (table[nodes] - mean) / scale, known[nodes]
        own = np.arange(x.shape[1]) < graph.num_features
        sizes = [np.where(own, 1.0, size) for size in _SIZES if graph.num_edges or size == 1]
        some = np.random.default_rng(seed).permutation(len(y))[:_ENOUGH]
        counts = softmax([-_surprise(x[some] * size, y[some], num_classes, model) for size in sizes])
        state = {"weight": np.zeros((num_classes, x.shape[1])), "bias": np.zeros(num_classes)}
        for size, count in zip(sizes, counts, strict=True):
            if count >= 0.01 * counts.max():
                learnt = regression(x * size, y, num_classes, model)
                state["weight"] += count * size * learnt["weight"]
                state["bias"] += count * learnt["bias"]
        return {"numeric": numeric, "mean": mean, "scale": scale, **state}

    def scores(self, graph: Graph, state: Mapping[str, np.ndarray], known: np.ndarray, num_classes: int) -> np.ndarray:
        """As :meth:`sharpen.fitting.estimators.Estimator.scores`."""
        table = self._table(graph, state["numeric"], known, num_classes)
        return np.asarray((table - state["mean"]) / state["scale"] @ state["weight"].T + state["bias"])

    def check(self, state: Mapping[str, np.ndarray], num_features: int, num_classes: int) -> None:
        """As :meth:`sharpen.fitting.estimators.Estimator.check`."""
        width = self._width(state, num_features, num_classes)
        shapes = {"numeric": (num_features,), "mean": (width,), "scale": (width,)}
        check_shapes(state, {**shapes, "weight": (num_classes, width), "bias": (num_classes,)})


def _surprise(x: np.ndarray, y: np.ndarray, num_classes: int, model: LogisticRegression) -> float:
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
