"""Reasons of predictions and nodes worth labeling next, as tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from sharpen.errors import InputError
from sharpen.fitting.explanations import Explainer, Explanation, LinearScores, Reason, affordable, stand_in
from sharpen.fitting.fitted import Fitted
from sharpen.fitting.propagated import HOPS, KEPT, Hops
from sharpen.fitting.suggestions import suggest
from sharpen.graph import Graph
from sharpen.models.s2gc import S2GC

# So many nodes are explained unless somebody asks for more.
_MOST_EXPLAINED = 10_000


@dataclass(frozen=True)
class Reasons:
    """Why nodes are what they are said to be.

    Args:
        nodes: Which; in no other order than asked.
        neighbors, columns: For each, what spoke for the answer, with its part of the log-odds over the second choice; blank where
            nothing did, or where the stand-in does not agree with the answer.
        method: ``exact`` or ``stand-in`` (:mod:`sharpen.fitting.explanations`).
        agreement: The share of unlabeled nodes that the explained model answers as the delivered one does.
        of: How many unlabeled nodes there are.
    """

    nodes: np.ndarray
    neighbors: list[str]
    columns: list[str]
    method: str
    agreement: float
    of: int

    @property
    def sentence(self) -> str:
        """What is explained, and by which method."""
        parts = "neighbours and columns are parts of the log-odds of the answer over the second choice"
        how = (
            f"Reasons are exact: {parts}, as the chosen model adds them up"
            if self.method == "exact"
            else f"Reasons are those of a linear model on propagated features that stands in for the chosen ones ({parts}); it "
            f"agrees on {100 * self.agreement:.0f} % of the unlabeled nodes, and the others are left blank"
        )
        cut = f"; given for {len(self.nodes):,} of {self.of:,} unlabeled nodes" if len(self.nodes) < self.of else ""
        return f"{how}{cut}."

    def summary(self) -> dict[str, Any]:
        """For ``summary.json``."""
        agreement = round(self.agreement, 4)
        return {"method": self.method, "agreement": agreement, "nodes": len(self.nodes), "text": self.sentence}

    def frame(self, num_nodes: int) -> pd.DataFrame:
        """Columns for a table of all nodes: ``because_neighbors`` and ``because_columns``, None where there is nothing to say."""
        out = np.full((num_nodes, 2), None, dtype=object)
        for i, node in enumerate(self.nodes.tolist()):
            out[node] = self.neighbors[i] or None, self.columns[i] or None
        return pd.DataFrame(out, columns=["because_neighbors", "because_columns"])


def find_reasons(
    graph: Graph,
    known: np.ndarray,
    probabilities: np.ndarray,
    scores: LinearScores,
    method: str,
    *,
    ids: Sequence[Any] | np.ndarray,
    names: Sequence[str] | None = None,
    nodes: Sequence[int] | np.ndarray | None = None,
    most: int = _MOST_EXPLAINED,
) -> Reasons:
    """Explains predictions.

    Args:
        graph, known, probabilities: What is predicted, by the help of which labels.
        scores, method: Of :func:`delivered_scores`.
        ids, names: What people call nodes and features; ``column 0`` and so on if nobody named these.
        nodes: Which; None: those without a label, the least sure first, as many as are affordable.
        most: How many at most, where ``nodes`` is None.
    """
    free = np.flatnonzero(known < 0)
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :2]
    if nodes is None:
        sure = probabilities[free, order[free, 0]]
        nodes = free[np.argsort(sure, kind="stable")][: min(most, affordable(graph))]
    chosen = np.asarray(nodes, dtype=np.int64)
    explainer = Explainer(graph, known, scores)
    said = explainer.scores().argmax(axis=1)
    agrees = said == order[:, 0]
    speaking = chosen[agrees[chosen]]
    parts = explainer.explain(speaking, order[speaking, 0], order[speaking, 1])
    found = {why.node: why for why in parts}
    texts = [_texts(found.get(int(node)), ids, names) for node in chosen]
    among = free if len(free) else np.arange(graph.num_nodes)
    return Reasons(
        chosen,
        [neighbors for neighbors, _ in texts],
        [columns for _, columns in texts],
        method,
        float(agrees[among].mean()),
        len(free),
    )


def delivered_scores(
    fitted: Fitted, graph: Graph, known: np.ndarray, probabilities: np.ndarray, model_args: Any = None
) -> tuple[LinearScores, str]:
    """What a fit delivers as a model to take apart, and by which method: the mean of its runs' scores if these are linear in
    propagated features, else what stands in for it, without neighbours or their labels where it makes no use of them.

    Args:
        fitted: The fit.
        graph, known, probabilities: What it predicts, by the help of which labels.
        model_args: As for the classifier.
    """
    exact = _exact_scores(fitted, graph, model_args)
    if exact is not None:
        return exact, "exact"
    used = [part.candidate for part in fitted.ensemble.parts]
    uses = {"around": any(c.uses_graph for c in used), "labels": any(c.uses_labels for c in used)}
    return stand_in(graph, known, probabilities, **uses), "stand-in"


def _exact_scores(fitted: Fitted, graph: Graph, model_args: Any) -> LinearScores | None:
    parts = fitted.ensemble.parts
    network = all(part.candidate.model == "s2gc" for part in parts)
    regression = all(part.candidate.model in ("logistic", "self-training") for part in parts)
    if not (network or regression) or any(part.candidate.spread for part in parts):
        return None
    if fitted.ensemble.factors is not None and fitted.ensemble.isolated is not None:
        return None  # nodes without an edge have a temperature of their own, and one bias cannot be right for all
    runs = [(part.share / len(part.weights) * part.counts[0], own) for part in parts for own in part.weights]
    head = "head." * network
    weight = np.sum([count * own[f"{head}weight"].astype(np.float64) for count, own in runs], axis=0).T
    bias = np.sum([count * (own[f"{head}bias"] + own.get("prior", 0.0)) for count, own in runs], axis=0)
    if fitted.ensemble.factors is not None:  # which come after the temperature
        bias = bias + fitted.ensemble.temperature * np.log(fitted.ensemble.factors)
    model = S2GC(1, 1, **(model_args or {})) if network else None
    kept, hops = (KEPT, HOPS) if model is None else (model.alpha, model.hops)
    scale = None if network else 1 / Hops(graph).lengths[:, 0].astype(np.float64)
    labels = np.zeros((len(bias), len(bias)))
    return LinearScores(kept * weight, (1 - kept) * weight, labels, bias, hops, scale, rows_of_one=network)


def suggestion_frame(
    graph: Graph,
    known: np.ndarray,
    probabilities: np.ndarray,
    classes: Sequence[Any] | np.ndarray,
    ids: Sequence[Any] | np.ndarray,
    n: int,
) -> pd.DataFrame:
    """The nodes worth labeling next, in this order.

    Args:
        graph, known, probabilities, n: As for :func:`sharpen.fitting.suggestions.suggest`.
        classes, ids: What people call classes and nodes.

    Returns:
        ``id``, ``label`` (what is predicted now), ``probability``, and ``left``: the share of what is uncertain that labels of this
        node and of those above it leave.

    >>> groups = Graph(x=np.eye(2)[[0, 0, 1, 1]], edge_index=[[0, 2], [1, 3]])
    >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.5, 0.5], [0.5, 0.5]])
    >>> suggestion_frame(groups, np.array([0, -1, -1, -1]), p, ["x", "y"], ["a", "b", "c", "d"], 1).values.tolist()
    [['c', 'x', 0.5, 0.57...]]
    """
    found = suggest(graph, known, probabilities, n)
    best = probabilities[found.nodes].argmax(axis=1)
    return pd.DataFrame(
        {
            "id": np.asarray(ids, dtype=object)[found.nodes],
            "label": np.array([str(name) for name in classes], dtype=object)[best],
            "probability": probabilities[found.nodes, best],
            "left": found.left,
        }
    )


class Reasoned(BaseEstimator):
    """For a classifier that keeps its graph after ``fit``: what else to ask it."""

    classes_: np.ndarray
    _graph: Graph
    _ids: np.ndarray
    _names: list[str] | None
    _fitted: Fitted
    model_args: Any

    def suggest(self, n: int = 20) -> pd.DataFrame:
        """The unlabeled nodes whose labels would help most, in the order in which to label them; right after ``fit``.

        Args:
            n: How many; all unlabeled nodes where there are fewer.

        Returns:
            ``id``, ``label``, ``probability`` (as predicted now) and ``left``, the share of what is uncertain that is left.
        """
        graph, p = self._asked()
        return suggestion_frame(graph, graph.y.numpy(), p, self.classes_, self._ids, n)

    def explain(self, nodes: Sequence[int] | np.ndarray | None = None) -> pd.DataFrame:
        """Which neighbours and which columns carried predictions; right after ``fit``, on its graph.

        Args:
            nodes: Places of nodes; None: those without a label, the least sure first, up to ten thousand.

        Returns:
            ``id``, ``label``, ``because_neighbors``, ``because_columns``; ``attrs["method"]`` says how these were found.

        >>> from sharpen import NodeClassifier
        >>> camps = Graph(x=np.repeat(np.eye(2), 4, axis=0), edge_index=[[0, 1, 2, 4, 5, 6], [1, 2, 3, 5, 6, 7]],
        ...     y=[0, 0, 0, -1, 1, 1, 1, -1], class_names=["red", "blue"])
        >>> classifier = NodeClassifier(model="gcn", lam=0, epochs=30, ensemble=False, device="cpu").fit(camps)
        >>> classifier.explain()[["id", "label"]].values.tolist()
        [[3, 'red'], [7, 'blue']]
        >>> classifier.explain()["because_neighbors"].str.split().str[0].tolist(), classifier.suggest(1)["label"].tolist()
        (['2', '6'], ['red'])
        """
        graph, p = self._asked()
        scores, method = delivered_scores(self._fitted, graph, graph.y.numpy(), p, self.model_args)
        if nodes is not None:
            chosen = np.asarray(nodes)
            if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or ((chosen < 0) | (chosen >= graph.num_nodes)).any():
                raise InputError(f"nodes are not places from 0 to {graph.num_nodes - 1}; give a list of whole numbers")
        why = find_reasons(graph, graph.y.numpy(), p, scores, method, ids=self._ids, names=self._names, nodes=nodes)
        frame = pd.DataFrame(
            {
                "id": np.asarray(self._ids, dtype=object)[why.nodes],
                "label": self.classes_[p[why.nodes].argmax(axis=1)],
                "because_neighbors": why.neighbors,
                "because_columns": why.columns,
            }
        )
        frame.attrs["method"] = why.sentence
        return frame

    def _asked(self) -> tuple[Graph, np.ndarray]:
        if not hasattr(self, "_graph"):
            raise InputError("there is no graph to ask about: call this after fit, on the classifier that fitted")
        return self._graph, self.predict_proba(self._graph)


def _texts(why: Explanation | None, ids: Any, names: Sequence[str] | None) -> tuple[str, str]:
    if why is None:
        return "", ""
    return (
        "; ".join(f"{ids[node]} ({part:+.2f})" for node, part in why.neighbors),
        "; ".join(f"{_named(reason, names)} ({reason.part:+.2f})" for reason in why.columns),
    )


def _named(reason: Reason, names: Sequence[str] | None) -> str:
    """What to call a column that speaks for an answer.

    >>> _named(Reason(1, True, True, 0.5), ["age", "income"]), _named(Reason(0, False, False, 0.5), None)
    ('low income of neighbours', 'column 0')
    """
    if reason.feature is None:
        return "labels of neighbours"
    name = f"column {reason.feature}" if names is None else names[reason.feature]
    return f"{'low ' * reason.low}{name}{' of neighbours' * reason.around}"
