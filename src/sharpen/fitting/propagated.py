r"""Logistic regression on features that are averaged over hops: the first answer, within a second or so.

.. math:: S = \alpha I + \frac{1 - \alpha}{K} \sum_{k=1}^{K} \hat A^k, \qquad
    z_i = \frac{(S X)_i}{\|(S X)_i\|} W + b

with K = 16 and α = 0.05 (S²GC: Zhu and Koniusz, *Simple Spectral Graph Convolution*, 2021). S is symmetric, so that of many
columns only the rows of labeled nodes are computed, :math:`(S X)_L = (S E_L)^\top X`, and for the others :math:`S (X W)` and
lengths: nothing of nodes times columns is held.

Where a class has three labels or fewer, these alone are a poor picture of it. Self-training adds, in ten steps, ever more of the
nodes that are surest of each class, the same number for each, as if they were labeled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.linear_model import LogisticRegression

from sharpen.fitting.spreading import features_of
from sharpen.graph import Graph
from sharpen.graph.matrices import propagation_matrix

HOPS, KEPT, STRENGTH = 16, 0.05, 10.0
# Lengths of rows of more columns than this are those of a random projection to as many.
_COLUMNS = 2048
_SKETCH = 256
# Self-training: so many steps, to this share of all nodes, and no more nodes than this.
_STEPS, _SHARE, _MOST = 10, 0.5, 4000
# Of so few rows the span is found in less time than a regression on more columns takes.
_LABELS_OF_SPAN = 1000


class Hops:
    """One graph's averages over hops.

    >>> hops = Hops(Graph(x=np.eye(2), edge_index=[[0], [1]]))
    >>> hops.average(np.array([[1.0], [0.0]])).ravel().astype(float).round(3).tolist()
    [0.525, 0.475]
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._hop = propagation_matrix(graph, "symmetric").astype(np.float32)
        self._rows: dict[int, np.ndarray] = {}
        self._whole: np.ndarray | None = None
        self._norms: np.ndarray | None = None

    def average(self, columns: np.ndarray) -> np.ndarray:
        """S times some columns."""
        power = np.ascontiguousarray(columns, dtype=np.float32)
        total = KEPT * power
        for _ in range(HOPS):
            power = self._hop @ power
            total += (1 - KEPT) / HOPS * power
        return total

    @property
    def whole(self) -> np.ndarray | None:
        """S X with rows of length 1, of all nodes; None where that would be large."""
        if self._whole is None and self._graph.num_features <= _COLUMNS:
            x = features_of(self._graph)
            total = self.average(x.toarray() if self._graph.is_sparse else x)
            self._norms = np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-12)
            self._whole = total / self._norms
        return self._whole

    @property
    def lengths(self) -> np.ndarray:
        """The length of every row of S X, [N, 1]."""
        if self._norms is None and self.whole is None:
            x, width = features_of(self._graph), self._graph.num_features
            sketch = np.random.default_rng(0).normal(size=(width, _SKETCH)).astype(np.float32) / np.sqrt(_SKETCH)
            self._norms = np.maximum(np.linalg.norm(self.average(x @ sketch), axis=1, keepdims=True), 1e-12)
        assert self._norms is not None
        return self._norms

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """Rows of S X, of length 1; those that were asked for before are not computed again."""
        if self.whole is not None:
            return self.whole[nodes]
        new = np.array([node for node in nodes.tolist() if node not in self._rows], dtype=np.int64)
        for start in range(0, len(new), 512):
            part = new[start : start + 512]
            one_hot = np.zeros((self._graph.num_nodes, len(part)), dtype=np.float32)
            one_hot[part, np.arange(len(part))] = 1
            found = np.asarray((features_of(self._graph).T @ self.average(one_hot)).T)
            found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
            self._rows.update(zip(part.tolist(), found, strict=True))
        return np.stack([self._rows[node] for node in nodes.tolist()])


_HOPS: WeakKeyDictionary[Graph, Hops] = WeakKeyDictionary()


def _hops(graph: Graph) -> Hops:
    if graph not in _HOPS:
        _HOPS[graph] = Hops(graph)
    return _HOPS[graph]


class LogisticOnHops:
    """Logistic regression on rows of S X.

    >>> graph = Graph(x=np.eye(4), edge_index=[[0, 2], [1, 3]])
    >>> known = np.array([0, -1, 1, -1])
    >>> state = LogisticOnHops().fit(graph, known, 2, seed=0, balanced=False)
    >>> LogisticOnHops().scores(graph, state, known, 2).argmax(1).tolist()
    [0, 0, 1, 1]
    """

    def fit(
        self, graph: Graph, known: np.ndarray, num_classes: int, *, seed: int, balanced: bool
    ) -> dict[str, np.ndarray]:
        """As :meth:`sharpen.fitting.estimators.Estimator.fit`."""
        nodes = np.flatnonzero(known >= 0)
        return _regression(_hops(graph).rows(nodes), known[nodes], num_classes, balanced)

    def scores(self, graph: Graph, state: Mapping[str, np.ndarray], known: np.ndarray, num_classes: int) -> np.ndarray:
        """As :meth:`sharpen.fitting.estimators.Estimator.scores`."""
        hops = _hops(graph)
        if hops.whole is not None:
            return np.asarray(hops.whole @ state["weight"].T + state["bias"])
        mapped = np.asarray(features_of(graph) @ state["weight"].T.astype(np.float32))
        return np.asarray(hops.average(mapped) / hops.lengths + state["bias"])

    def check(self, state: Mapping[str, np.ndarray], num_features: int, num_classes: int) -> None:
        """As :meth:`sharpen.fitting.estimators.Estimator.check`."""
        check_shapes(state, {"weight": (num_classes, num_features), "bias": (num_classes,)})


class SelfTraining(LogisticOnHops):
    """The same, with ever more of the surest nodes of each class as if they were labeled."""

    def fit(
        self, graph: Graph, known: np.ndarray, num_classes: int, *, seed: int, balanced: bool
    ) -> dict[str, np.ndarray]:
        """As :meth:`sharpen.fitting.estimators.Estimator.fit`."""
        state = super().fit(graph, known, num_classes, seed=seed, balanced=balanced)
        labeled = np.flatnonzero(known >= 0)
        classes = np.unique(known[labeled])
        most = min(_MOST, int(_SHARE * graph.num_nodes)) // len(classes)
        for step in range(1, _STEPS + 1):
            scores = self.scores(graph, state, known, num_classes)
            nodes, labels = [labeled], [known[labeled]]
            answer, margin = scores.argmax(1), -np.sort(-scores, axis=1)[:, :2] @ np.array([1.0, -1.0])
            for c in classes:
                among = np.flatnonzero((answer == c) & (known < 0))
                surest = among[np.argsort(-margin[among], kind="stable")[: most * step // _STEPS]]
                nodes.append(surest)
                labels.append(np.full(len(surest), c))
            state = _regression(_hops(graph).rows(np.concatenate(nodes)), np.concatenate(labels), num_classes, balanced)
        return state


def _regression(x: np.ndarray, y: np.ndarray, num_classes: int, balanced: bool) -> dict[str, np.ndarray]:
    return regression(
        x, y, num_classes, LogisticRegression(C=STRENGTH, max_iter=500, class_weight="balanced" if balanced else None)
    )


def regression(x: Any, y: np.ndarray, num_classes: int, model: LogisticRegression) -> dict[str, np.ndarray]:
    """The weights of a logistic regression, a row for each class; one without a label is as improbable as a label in a hundred.

    >>> model = LogisticRegression()
    >>> regression(np.array([[0.0], [1.0]]), np.array([0, 2]), 3, model)["weight"].shape
    (3, 1)
    """
    weight, bias = np.zeros((num_classes, x.shape[1])), np.full(num_classes, -np.log(100.0))
    classes = np.unique(y)
    if len(classes) == 1:
        bias[classes] = 0.0
        return {"weight": weight, "bias": bias}
    coordinates, axes = _of_span(x) if x.shape[0] <= min(_LABELS_OF_SPAN, x.shape[1] - 1) else (x, None)
    model.fit(coordinates, y)
    learnt = model.coef_ if axes is None else np.asarray(x.T @ (axes @ model.coef_.T)).T
    if len(classes) == 2:
        weight[classes], bias[classes] = np.outer([-0.5, 0.5], learnt[0]), np.array([-0.5, 0.5]) * model.intercept_
    else:
        weight[classes], bias[classes] = learnt, model.intercept_
    return {"weight": weight, "bias": bias}


def _of_span(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of rows in an orthonormal basis of what they span, and A with which this basis is the columns of XᵀA.

    A penalty on the length of weights keeps them in this span, so that a regression on a hundred rows needs a hundred columns and
    not thousands, and finds the same weights, up to rounding.

    >>> x = np.array([[3.0, 0.0, 4.0], [0.0, 2.0, 0.0]])
    >>> coordinates, axes = _of_span(x)
    >>> np.allclose(coordinates, x @ (x.T @ axes)), np.allclose(coordinates @ (x.T @ axes).T, x)
    (True, True)
    """
    x = x.astype(np.float64)
    gram: Any = x @ x.T
    squares, vectors = np.linalg.eigh(gram if isinstance(gram, np.ndarray) else gram.toarray())
    some = squares >= 1e-12 * squares[-1]
    length = np.sqrt(np.maximum(squares[some], 1e-300))  # rows may all be zero
    return vectors[:, some] * length, vectors[:, some] / length


def check_shapes(state: Mapping[str, np.ndarray], wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Refuses arrays of other names or shapes, as a ValueError.

    >>> check_shapes({"bias": np.zeros(2)}, {"bias": (3,)})
    Traceback (most recent call last):
    ValueError: bias has shape (2,), where (3,) is needed
    """
    for name in sorted(state.keys() | wanted.keys()):
        got = state[name].shape if name in state else None
        if got != wanted.get(name):
            raise ValueError(f"{name} has shape {got}, where {wanted.get(name)} is needed")
