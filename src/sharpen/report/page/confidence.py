"""How far confidence can be believed, drawn: reliability before and after calibration, accuracy against coverage."""

from __future__ import annotations

from typing import Any

import numpy as np

from sharpen.evaluation.calibration import Reliability, calibration_gap
from sharpen.report.charts import Chart, axis, lines, series

_MOST_LEVELS = 60


def reliability_chart(before: Reliability, after: Reliability) -> Chart:
    """What was promised against what was kept; on the diagonal they agree.

    >>> from sharpen.evaluation.calibration import reliability_of_confidence
    >>> table = reliability_of_confidence([0.9, 0.6], [True, False], bins=2)
    >>> [curve["name"] for curve in reliability_chart(table, table)["series"]]
    ['before calibration, ECE 0.250', 'after, ECE 0.250']
    """
    least = min(float(table.edges[np.flatnonzero(table.nodes)[0]]) for table in (before, after))
    return lines(
        "",
        axis("confidence: probability of the predicted class", name="confidence", decimals=3, min=least, max=1.0),
        axis("accuracy", decimals=3, min=0.0, max=1.0),
        [
            _bins(f"before calibration, ECE {calibration_gap(before):.3f}", "vermilion", before, dash=True),
            _bins(f"after, ECE {calibration_gap(after):.3f}", "blue", after),
        ],
        diagonal=True,
        hover="point",
        note="One point per confidence bin, larger for more nodes. The dotted line is perfect calibration.",
        summary=f"Expected calibration error {calibration_gap(before):.3f} before and {calibration_gap(after):.3f} after.",
    )


def _bins(name: str, color: str, table: Reliability, **options: Any) -> Chart:
    used = table.nodes > 0
    share = table.nodes[used] / table.nodes.sum()
    return series(
        name,
        color,
        table.confidence[used],
        table.accuracy[used],
        points=True,
        size=[round(2.5 + 8 * float(np.sqrt(part)), 1) for part in share],
        notes=[f"{int(count)} nodes" for count in table.nodes[used]],
        **options,
    )


def coverage_chart(
    curves: dict[str, tuple[str, np.ndarray, np.ndarray, np.ndarray]],
    note: str = "",
    interval: tuple[np.ndarray, np.ndarray, list[str]] | None = None,
) -> Chart:
    """What abstaining buys: accuracy among the answered, as fewer and fewer are.

    Args:
        curves: By name: a colour, thresholds, the share answered at each, the accuracy among those.
        note: Below the chart.
        interval: Where there is one curve of a few points: the ends of the interval of each accuracy, and what it rests on.

    >>> threshold, share, right = np.array([0.0, 0.9]), np.array([1.0, 0.5]), np.array([0.8, 0.9])
    >>> coverage_chart({"λ = 0.5": ("blue", threshold, share, right)})["series"][0]["y"]
    [80.0, 90.0]
    """
    found = []
    least = min((100 * np.nanmin(right) for *_, right in curves.values() if np.isfinite(right).any()), default=0.0)
    for name, (color, threshold, share, right) in curves.items():
        known = np.isfinite(right)
        options: dict[str, Any] = {"dash": True} if color == "grey" else {}
        notes = [f"answering from {level:.2f} on" for level in threshold[known]]
        if interval is not None:
            low, high, rests_on = interval
            options |= {"low": 100 * low[known], "high": 100 * high[known]}
            notes = [f"{one}; {other}" for one, other in zip(notes, np.array(rests_on)[known], strict=True)]
        points = len(threshold) < 20
        found.append(series(name, color, 100 * share[known], 100 * right[known], points=points, notes=notes, **options))
    return lines(
        "",
        axis("coverage, % of nodes answered", name="answered", decimals=1, max=100.0, unit="%"),
        # From 50 or from 0: a few points less must not look like a fall.
        axis("accuracy of answered nodes, %", decimals=1, min=50.0 if least > 70 else 0.0, max=100.0),
        found,
        hover="point",
        note=note,
        summary="Accuracy when only confident predictions are kept.",
    )


def coverage_of(confidence: np.ndarray, hit: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thresholds, the share answered, and the accuracy among those, from all nodes to the surest tenth.

    >>> threshold, share, right = coverage_of(np.array([0.6, 0.9]), np.array([False, True]))
    >>> share.tolist(), right.tolist()
    ([0.5, 1.0], [1.0, 0.5])
    """
    order = np.argsort(-confidence, kind="stable")
    running = np.cumsum(hit[order]) / np.arange(1, len(order) + 1)
    levels = np.unique(np.linspace(0.1, 1, _MOST_LEVELS) * len(order)).round().astype(int)
    last = np.unique(np.maximum(levels, 1)) - 1
    # Nodes as sure as each other are answered together.
    ordered = confidence[order]
    last = np.unique(len(ordered) - 1 - np.searchsorted(ordered[::-1], ordered[last], side="left"))
    return ordered[last], (last + 1) / len(order), running[last]
