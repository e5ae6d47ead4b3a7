"""What ``report_`` and ``summary.json`` hold, by name and type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypedDict, cast

import numpy as np

from sharpen.fitting.calibrated import Point
from sharpen.fitting.identity import identify
from sharpen.graph import Graph


class Scores(TypedDict, total=False):
    """Scores on held-out labels; ``auc`` and ``average_precision`` for two classes."""

    accuracy: float
    balanced_accuracy: float
    macro_f1: float
    ece: float
    brier: float
    log_loss: float
    auc: float
    average_precision: float


class Account(TypedDict):
    """Scores before and after calibration, of so many labels."""

    nodes: int
    before: Scores
    after: Scores


class Expected(Account):
    """What is expected of the predictions: see :mod:`sharpen.fitting.account`."""

    accuracy: float
    accuracy_interval: list[float]
    balanced_accuracy: float
    balanced_accuracy_interval: list[float]
    confusion: list[list[int]]
    reliability: dict[str, Any]


# Always answering the commonest class: see sharpen.fitting.account.beside_guessing.
Guessing = TypedDict(
    "Guessing",
    {
        "class": str,
        "accuracy": float,
        "balanced_accuracy": float,
        "log_loss": float,
        "difference": float,
        "interval": list[float] | None,
        "better": bool,
    },
)


class Answer(TypedDict):
    """Whether the graph or sharpening helps: a :class:`sharpen.fitting.verdicts.Verdict`, the two
    :class:`sharpen.evaluation.PairedDifference` by field."""

    question: str
    helps: bool
    clear: bool
    text: str
    log_loss: dict[str, Any]
    difference: dict[str, Any]
    groups: list[dict[str, float]]


class _Listed(TypedDict):
    """A candidate: what it is, its held-out score alone, and of how many runs."""

    model: str
    lam: float
    balance: float
    spread: bool
    name: str
    score: float | None
    members: int


class Tried(_Listed):
    """A candidate of the search, with how many of its runs diverged."""

    diverged: int


class Chosen(_Listed):
    """A candidate of the ensemble, with its share."""

    share: float


class Surest(TypedDict):
    """What is known of the surest answers: see :func:`sharpen.fitting.account.surest`."""

    threshold: float
    nodes: int
    labels: int
    right: int
    interval: list[float] | None
    rest: float | None
    warning: str | None


class Isolated(TypedDict):
    """Nodes without an edge: how many, and how often labeled nodes whose edges were taken away are got right."""

    unlabeled: int
    labeled: int
    temperature: float
    accuracy: float
    labels: int


class Size(TypedDict):
    """Of the graph, and what it is recognised by."""

    nodes: int
    edges: int
    features: int
    labeled: int
    fingerprint: str


class Report(TypedDict):
    """The account of a fit as ``report_`` and ``summary.json`` hold it: a :class:`FitReport`, and its first sentence."""

    expectation: str
    expected: Expected
    guessing: Guessing
    predicted: dict[str, int]
    verdicts: list[Answer]
    baselines: dict[str, Account]
    coverage: list[Point]
    surest: Surest
    chosen: list[Chosen]
    candidates: list[Tried]
    labels: dict[str, int]
    unchecked: dict[str, int]
    notes: list[str]
    metric: str
    settings: dict[str, Any]
    seed: int
    runs: int
    rounds: int
    seconds: float
    temperature: float
    isolated: Isolated | None
    graph: Size
    columns: list[str]


@dataclass(frozen=True)
class FitReport:
    """The account of a fit.

    Args:
        expected: How often what is delivered should be right, on labels that had no part in it; ``nodes`` is 0 where none could be
            held out.
        guessing: Always answering the commonest class, beside it.
        predicted: How many unlabeled nodes are answered with each class.
        verdicts: Whether the graph and sharpening help (:class:`sharpen.fitting.verdicts.Verdict`).
        baselines: The best with and without each of these.
        coverage: What abstaining buys.
        surest: What is known of the surest answers.
        chosen: The ensemble: candidates with their ``share``, their ``score`` alone, and how many runs (``members``).
        candidates: All that were tried.
        labels, unchecked: How many labels each class has; those with too few to hold any out.
        notes: What the user should know, a sentence each, without its full stop.
        metric, settings, seed: What was asked for.
        runs, rounds, seconds: What was trained, and how long that took.
        temperature: Of the ensemble's mean.
        isolated: What is known of nodes without an edge, if it matters.
        graph: Its size, and what it is recognised by.
        columns: What was made of columns, a line each.
    """

    expected: Mapping[str, Any]
    guessing: Mapping[str, Any]
    predicted: dict[str, int]
    verdicts: list[dict[str, Any]]
    baselines: Mapping[str, Any]
    coverage: list[Any]
    surest: Mapping[str, Any]
    chosen: list[dict[str, Any]]
    candidates: list[dict[str, Any]]
    labels: dict[str, int]
    unchecked: dict[str, int]
    notes: list[str]
    metric: str
    settings: dict[str, Any]
    seed: int
    runs: int
    rounds: int
    seconds: float
    temperature: float
    isolated: dict[str, Any] | None
    graph: Size
    columns: list[str]

    def to_dict(self) -> Report:
        """Ready for JSON."""
        from sharpen.report.fit import expectation

        known = {field.name: getattr(self, field.name) for field in fields(self)}
        return cast(Report, {"expectation": expectation(known), **known})


def size_of(graph: Graph) -> Size:
    """How large a graph is, and what it is recognised by.

    >>> size_of(Graph(x=np.eye(2), edge_index=[[0], [1]], y=[0, -1]))["labeled"]
    1
    """
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "labeled": int(np.count_nonzero(graph.y.numpy() >= 0)),
        "fingerprint": identify(graph),
    }
