"""What ``report_`` and ``summary.json`` hold, by name and type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

import numpy as np

from sharpen.fitting.calibrated import Point
from sharpen.fitting.fitted import identify
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


class Guessing(TypedDict):
    """Always answering the commonest class: see :func:`sharpen.fitting.account.beside_guessing`."""

    accuracy: float
    balanced_accuracy: float
    log_loss: float
    difference: float
    interval: list[float] | None
    better: bool


class Size(TypedDict):
    """Of the graph, and what it is recognised by."""

    nodes: int
    edges: int
    features: int
    labeled: int
    fingerprint: str


class Report(TypedDict):
    """The account of a fit."""

    expectation: str
    expected: Expected
    guessing: Guessing
    predicted: dict[str, int]
    verdicts: list[dict[str, Any]]
    baselines: dict[str, Account]
    coverage: list[Point]
    surest: dict[str, Any]
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
    lonely: dict[str, Any] | None
    graph: Size
    columns: list[str]


def whole_report(report: Mapping[str, Any], graph: Graph, columns: Sequence[str]) -> Report:
    """The account with its first sentence, the size of the graph, and what was made of columns.

    Args:
        report: From :func:`sharpen.fitting.fitted.conclude`.
        graph: What was fitted.
        columns: What was guessed and encoded, a line each.
    """
    from sharpen.report.fit import expectation

    labeled = int(np.count_nonzero(graph.y.numpy() >= 0))
    size = {"nodes": graph.num_nodes, "edges": graph.num_edges, "features": graph.num_features, "labeled": labeled}
    found = {"expectation": expectation(report), **report, "graph": {**size, "fingerprint": identify(graph)}}
    return cast(Report, found | {"columns": list(columns)})
