"""The parts of the page of a fit about what was predicted, and about which nodes to label next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sharpen.graph import Graph
from sharpen.report.charts import Chart, numbers, rounded, table, texts
from sharpen.report.page.nodes import nodes_section
from sharpen.report.page.sections import section, words


def suggested_sections(summary: Mapping[str, Any]) -> list[Chart]:
    """Nodes worth labeling next, if somebody asked.

    >>> suggested_sections({"suggestions": None})
    []
    >>> row = {"id": "n7", "label": "a", "probability": 0.5, "left": 0.8427}
    >>> worth = suggested_sections({"suggestions": [row]})[0]
    >>> worth["title"], worth["views"][0]["charts"][0]["columns"][-1]["values"]
    ('Worth labeling next', [84.27])
    """
    rows = summary.get("suggestions")
    if rows is None:
        return []
    if not rows:
        return [section("Worth labeling next", words(["Every node has a label."]))]
    chart = table(
        [
            texts("node", (row["id"] for row in rows)),
            texts("predicted now", (row["label"] for row in rows)),
            numbers("probability", rounded(row["probability"] for row in rows), 3),
            numbers("left uncertain, %", rounded(100 * row["left"] for row in rows), 1),
        ],
        rows=20,
        plain=len(rows) <= 20,
        things="nodes",
    )
    text = (
        "The unlabeled nodes whose labels would settle most of the others, in the order in which to label them. The last column is "
        "how much of what is uncertain would be left after this one and those above."
    )
    return [section("Worth labeling next", chart, text=text) | {"file": "suggestions.csv"}]


def predicted_sections(
    summary: Mapping[str, Any],
    graph: Graph,
    ids: Sequence[str] | np.ndarray,
    probabilities: np.ndarray,
    because: pd.DataFrame | None,
) -> list[Chart]:
    """How many nodes were given each class, and the nodes one by one; arguments as for :func:`sharpen.report.page.fit_page`."""
    counts = summary["predicted"]
    total = max(1, sum(counts.values()))
    names = sorted(counts, key=lambda name: -counts[name])
    chart = table(
        [
            texts("class", names),
            numbers("predicted", (counts[name] for name in names)),
            numbers("in %", rounded(100 * counts[name] / total for name in names), 1),
            numbers("labels given", (summary["labels"][name] for name in names)),
        ],
        sort=1,
        down=True,
        rows=12,
        plain=len(names) <= 12,
        things="classes",
    )
    abstained = ""
    if summary["abstain"] is not None:
        threshold, answered = summary["abstain"]["threshold"], 100 * summary["abstain"]["answered"]
        abstained = f" Below {threshold:g} the label is left blank: {answered:.1f} % of the unlabeled nodes have one."
    best, counted = summary["chosen"][0], f"Unlabeled nodes, by the class that they were given.{abstained}"
    nodes = nodes_section(
        graph,
        ids,
        probabilities,
        given=graph.y.numpy(),
        text=f"The most uncertain first. Calibrated probabilities of {best['name']}"
        + (" and those that are averaged with it" if len(summary["chosen"]) > 1 else "")
        + "; of nodes whose label was given, they say how well it fits in."
        + (f" {summary['reasons']['text']}" if because is not None else ""),
        because=because,
    )
    file = {"file": summary.get("predictions", "predictions.csv")}
    return [section("What was predicted", chart, text=counted) | file, nodes]
