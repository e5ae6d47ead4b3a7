r"""Which neighbours and which columns carried a prediction, as parts of a sum.

A score that is linear in propagated features is a sum over neighbours, and a sum over columns. With :math:`\hat A` the normalised
adjacency (loops included), Y the known labels as indicators, and per-node factors t (1, or what scales a row to unit length),

.. math:: z_v = t_v \Big( x_v A + \sum_u \hat A_{vu} \, s_u \Big) + b, \qquad
    s = \frac{1}{K} \sum_{k=0}^{K-1} \hat A^k (X B + Y D)

:math:`t_v \hat A_{vu} s_u` is all that reaches v by way of its neighbour u. With
:math:`\bar X = \frac{1}{K} \sum_{k=1}^{K} \hat A^k X`, all that column j tells, of the node itself and of those around it, is
:math:`t_v (x_{vj} A_j + \bar x_{vj} B_j)`. What is explained is why the answer and not the second choice: the difference of their
two scores, in units of log-odds (0.7 doubles the odds). Parts over neighbours with the node's own, and parts over columns with
that of the labels, each add up to that difference without b.

Where every voter is such a model (S²GC), these are its own parts, and the method is ``exact``. Otherwise a model of this form, with
A, B, D free, is fitted by ridge regression to the logarithms of the delivered probabilities of the unlabeled nodes, and the method
is ``stand-in``: its agreement with the delivered answers is stated, and a node about which it does not agree is not explained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sharpen.fitting.spreading import features_of
from sharpen.graph import Graph
from sharpen.graph.matrices import propagation_matrix
from sharpen.models.zoo.parts import rows_of_one

_MOST_REASONS = 3
# Multiplications that finding the columns may take: seconds on one core.
_MOST_WORK = 20_000_000_000
_HOPS = 8
_STEPS, _RIDGE = 40, 0.01
_BLOCK = 512


@dataclass(frozen=True)
class LinearScores:
    """A model of the form above.

    Args:
        own, around: A and B, [F, C].
        labels: D, [C, C].
        bias: b, [C].
        hops: K.
        scale: t, [N]; None: 1.
        rows_of_one: Whether X is the features with every row divided by its sum, as S²GC has them.
    """

    own: np.ndarray = field(repr=False)
    around: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    bias: np.ndarray = field(repr=False)
    hops: int
    scale: np.ndarray | None = field(default=None, repr=False)
    rows_of_one: bool = False


class Reason(NamedTuple):
    """A column that speaks for an answer.

    Args:
        feature: Its place among the features; None: the labels of neighbours.
        around: Whether it is that of the nodes around, not that of the node itself.
        low: Whether its value is below 0, which of a standardised number is the mean.
        part: How much of the log-odds it carries.
    """

    feature: int | None
    around: bool
    low: bool
    part: float


@dataclass(frozen=True)
class Explanation:
    """Why one node is what it is said to be: parts of the log-odds of the answer over the second choice, the largest first.

    Args:
        node: Its place in the graph.
        neighbors: Places of neighbours with the part that came by way of each.
        columns: Columns with the part of each.
        log_odds: What the parts and the bias add up to.
    """

    node: int
    neighbors: list[tuple[int, float]]
    columns: list[Reason]
    log_odds: float


class Explainer:
    """The parts of the predictions for one graph.

    Args:
        graph: Its features and edges.
        known: Labels that had a part in the predictions, −1 for none.
        scores: The model to take apart.

    >>> path = Graph(x=[[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]], edge_index=[[0, 1], [1, 2]])
    >>> weights = np.array([[2.0, 0.0], [0.0, 1.0]])
    >>> scores = LinearScores(own=weights, around=weights, labels=np.zeros((2, 2)), bias=np.zeros(2), hops=1)
    >>> explainer = Explainer(path, np.full(3, -1), scores)
    >>> explainer.scores().round(2).tolist()
    [[3.0, 0.0], [0.82, 0.41], [0.0, 1.5]]
    >>> [why] = explainer.explain([1], [0], [1])
    >>> [(u, round(part, 2)) for u, part in why.neighbors], [reason.feature for reason in why.columns]
    ([(0, 0.82)], [0])
    """

    def __init__(self, graph: Graph, known: np.ndarray, scores: LinearScores) -> None:
        self._graph, self._model = graph, scores
        self._x: Any = rows_of_one(features_of(graph)) if scores.rows_of_one else features_of(graph)
        self._hop = propagation_matrix(graph, "symmetric")
        self._y = _indicators(known, scores.labels.shape[0])
        sent = np.asarray(self._x @ scores.around) + self._y @ scores.labels
        self._sent = _mean_of_powers(self._hop, sent, scores.hops)
        self._scale = np.ones(graph.num_nodes) if scores.scale is None else scores.scale

    def scores(self) -> np.ndarray:
        """z, [N, C]."""
        reached = np.asarray(self._x @ self._model.own) + self._hop @ self._sent
        return np.asarray(self._scale[:, None] * reached + self._model.bias)

    def explain(
        self,
        nodes: Sequence[int] | np.ndarray,
        answers: Sequence[int],
        seconds: Sequence[int],
        most: int = _MOST_REASONS,
    ) -> list[Explanation]:
        """Why each of the nodes is of its answer's class and not of the second one's.

        Args:
            nodes: Which.
            answers, seconds: A class for each of them.
            most: How many neighbours and columns to name; only such as speak for the answer.
        """
        nodes, found = np.asarray(nodes, dtype=np.int64), list[Explanation]()
        answer, second, z = np.asarray(answers), np.asarray(seconds), self.scores()
        for first in range(0, len(nodes), _BLOCK):
            part = slice(first, first + _BLOCK)
            around, labels = self._around(nodes[part])
            for i, v in enumerate(nodes[part].tolist()):
                a, b = int(answer[first + i]), int(second[first + i])
                columns = self._columns(v, around[i], labels[i], a, b)
                found.append(Explanation(v, self._neighbors(v, a, b)[:most], columns[:most], float(z[v, a] - z[v, b])))
        return found

    def _neighbors(self, v: int, a: int, b: int) -> list[tuple[int, float]]:
        row = slice(self._hop.indptr[v], self._hop.indptr[v + 1])
        others = self._hop.indices[row]
        parts = self._scale[v] * self._hop.data[row] * (self._sent[others, a] - self._sent[others, b])
        parts[others == v] = 0
        return [(int(others[i]), float(parts[i])) for i in np.argsort(-parts, kind="stable") if parts[i] > 0]

    def _columns(self, v: int, around: np.ndarray, labels: np.ndarray, a: int, b: int) -> list[Reason]:
        model, row = self._model, self._x[[v]]
        own = np.asarray(row.todense() if hasattr(row, "todense") else row).ravel()
        ways = ((own, model.own), (around, model.around), (labels, model.labels))
        parts = np.concatenate([self._scale[v] * values * (weight[:, a] - weight[:, b]) for values, weight in ways])
        width, found, value = len(own), list[Reason](), np.concatenate([own, around])
        whole = float(parts[2 * width :].sum())  # the labels of all classes are one reason
        for i in np.argsort(-parts[: 2 * width], kind="stable")[: 2 * _MOST_REASONS + 1]:
            if parts[i] > 0:
                found.append(Reason(int(i % width), bool(i >= width), bool(value[i] < 0), float(parts[i])))
        if whole > 0:
            found.append(Reason(None, True, False, whole))
        return sorted(found, key=lambda reason: -reason.part)

    def _around(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of X̄ and Ȳ: by propagating the columns where these are few, else what the nodes listen to."""
        width, hops = self._x.shape[1], self._model.hops
        if width <= _BLOCK:
            if not hasattr(self, "_means"):
                x = np.asarray(self._x.todense() if hasattr(self._x, "todense") else self._x, dtype=np.float64)
                self._means = self._hop @ _mean_of_powers(self._hop, np.hstack([x, self._y]), hops)
            rows = self._means[nodes]
            return rows[:, :width], rows[:, width:]
        listens = np.zeros((self._graph.num_nodes, len(nodes)))
        listens[nodes, np.arange(len(nodes))] = 1
        listens = (self._hop @ _mean_of_powers(self._hop, listens, hops)).T  # Â is symmetric
        return np.asarray(listens @ self._x), listens @ self._y


def affordable(graph: Graph) -> int:
    """How many nodes of a graph are explained in seconds: what columns around a node tell has its price where there are many.

    >>> affordable(Graph(x=np.eye(3), edge_index=[[0], [1]]))
    3
    """
    if graph.num_features <= _BLOCK:
        return graph.num_nodes
    return min(graph.num_nodes, max(1, _MOST_WORK // (16 * graph.adjacency.nnz)))


def stand_in(
    graph: Graph, known: np.ndarray, probabilities: np.ndarray, *, around: bool = True, labels: bool = True
) -> LinearScores:
    """The linear model that says most nearly what the delivered probabilities say, on the nodes without a label.

    Args:
        graph: What they are of.
        known: Labels that had a part in them, −1 for none.
        probabilities: [N, C].
        around, labels: Whether what lies around a node, and known labels there, may be named: only where what is delivered makes
            use of it.
    """
    x, hop = features_of(graph), propagation_matrix(graph, "symmetric")
    y, free = _indicators(known, probabilities.shape[1]), known < 0
    free = free if free.any() else ~free
    target = np.log(np.maximum(probabilities, 1e-4))
    target -= target.mean(axis=1, keepdims=True)
    bias = target[free].mean(axis=0)
    width, classes = graph.num_features, probabilities.shape[1]

    used = np.repeat([True, around, around and labels], [width, width, classes])[:, None]

    def forward(weights: np.ndarray) -> np.ndarray:
        a, b, d = np.split(weights, [width, 2 * width])
        sent = np.asarray(x @ b) + y @ d
        out = np.asarray(x @ a) + hop @ _mean_of_powers(hop, sent, _HOPS)
        return np.asarray(out * free[:, None])

    def backward(scores: np.ndarray) -> np.ndarray:
        back = hop @ _mean_of_powers(hop, scores, _HOPS)
        return used * np.vstack([np.asarray(x.T @ scores), np.asarray(x.T @ back), y.T @ back])

    total = float(x.multiply(x).sum() if hasattr(x, "multiply") else np.square(x, dtype=np.float64).sum())
    ridge = max(1e-9, _RIDGE * total / max(1, width))
    weights = _conjugate_gradients(
        lambda w: backward(forward(w)) + ridge * w, backward((target - bias) * free[:, None]), 2 * width + classes
    )
    a, b, d = np.split(weights, [width, 2 * width])
    return LinearScores(a, b, d, bias, _HOPS)


def _conjugate_gradients(operator: Callable[[np.ndarray], np.ndarray], wanted: np.ndarray, size: int) -> np.ndarray:
    """Solves for each column of ``wanted``; a fixed number of steps, or until nothing is left."""
    found = np.zeros((size, wanted.shape[1]))
    rest = wanted.astype(np.float64)
    direction, length = rest.copy(), np.square(rest).sum(axis=0)
    enough = 1e-12 * length
    for _ in range(_STEPS):
        if (length <= enough).all():
            break
        image = operator(direction)
        curve = (direction * image).sum(axis=0)
        step = np.divide(length, curve, out=np.zeros_like(length), where=curve > 0)
        found += step * direction
        rest -= step * image
        before, length = length, np.square(rest).sum(axis=0)
        direction = rest + direction * np.divide(length, before, out=np.zeros_like(length), where=before > 0)
    return found


def _mean_of_powers(hop: Any, x: np.ndarray, hops: int) -> np.ndarray:
    """The mean of Âᵏ x, k from 0 to hops − 1."""
    total, power = x.astype(np.float64), x
    for _ in range(hops - 1):
        power = hop @ power
        total = total + power
    return np.asarray(total / hops)


def _indicators(known: np.ndarray, classes: int) -> np.ndarray:
    y = np.zeros((len(known), classes))
    held = np.flatnonzero(known >= 0)
    y[held, known[held]] = 1
    return y
