"""The nodes one by one: a table of who is what and how surely, and the graph itself where it is small enough to be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import entr

from sharpen.graph import Graph
from sharpen.report.charts import numbers, rounded, texts
from sharpen.report.names import shortened
from sharpen.report.page.layout import layout
from sharpen.report.page.sections import section
from sharpen.report.palette import class_colors

# Larger graphs are not drawn, and of their nodes the most and the least certain are listed.
MOST_DRAWN, MOST_EDGES, MOST_LISTED = 4000, 15_000, 1000


def nodes_section(
    graph: Graph,
    ids: Sequence[str] | np.ndarray,
    probabilities: np.ndarray,
    *,
    text: str,
    truth: np.ndarray | None = None,
    given: np.ndarray | None = None,
    runs: np.ndarray | None = None,
    because: pd.DataFrame | None = None,
) -> dict[str, Any]:
    """The part of a page about single nodes.

    Args:
        graph: Its edges and class names.
        ids: What the user calls the nodes.
        probabilities: [N, C].
        text: A sentence that says whose predictions these are.
        truth: Classes, −1 for unknown, where they are known and had no part in these predictions.
        given: Classes, −1 for unknown, where they were given to learn from. Give one of the two.
        runs: How many runs the probabilities of each node come from.
        because: ``because_neighbors`` and ``because_columns`` of each node, None where there is nothing to say.

    >>> graph = Graph(x=np.eye(3), edge_index=[[0, 1], [1, 2]], y=[0, 1, -1])
    >>> p = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    >>> part = nodes_section(graph, ["a", "b", "c"], p, text="", given=graph.y.numpy())
    >>> [column["name"] for column in part["views"][0]["charts"][0]["table"]["columns"]]
    ['node', 'predicted', 'probability', 'second', 'uncertainty', 'given', 'neighbors']
    """
    names = [shortened(name) for name in graph.class_names]
    order = np.argsort(-probabilities, axis=1, kind="stable")
    predicted, second = order[:, 0], order[:, min(1, probabilities.shape[1] - 1)]
    first = np.take_along_axis(probabilities, order[:, :1], 1)[:, 0]
    unsure = entr(probabilities).sum(1) / np.log(max(2, probabilities.shape[1]))
    degree = graph.adjacency.degree().numpy() - 1
    colors = class_colors(np.bincount(predicted, minlength=len(names)).tolist())
    shown = _listed(first)

    def classes(name: str, values: np.ndarray) -> dict[str, Any]:
        return {"name": name, "kind": "class", "values": values[shown].tolist(), "names": names, "colors": colors}

    def measured(name: str, values: np.ndarray, decimals: int) -> dict[str, Any]:
        return numbers(name, rounded(values[shown], 4), decimals)

    columns: list[dict[str, Any]] = [
        texts("node", (ids[i] for i in shown)),
        classes("predicted", predicted),
        measured("probability", first, 3),
        classes("second", second),
        measured("uncertainty", unsure, 3),
    ]
    if truth is not None:
        columns.append(classes("true", truth))
        right = (predicted == truth)[shown]
        values = [bool(r) if t >= 0 else None for r, t in zip(right, truth[shown], strict=True)]
        columns.append({"name": "right", "kind": "truth", "values": values})
    if given is not None:
        columns.append(classes("given", given))
    columns.append(measured("neighbors", degree, 0))
    if runs is not None:
        columns.append(measured("runs", runs, 0))
    for title, remarks in () if because is None else because.fillna("").items():
        said = remarks.to_numpy()[shown].tolist()
        columns.append({"name": str(title).replace("_", " "), "kind": "remark", "values": said})
    things = (
        "nodes"
        if len(shown) == graph.num_nodes
        else f"nodes listed, the most and the least certain of {graph.num_nodes:,}"
    )
    chart: dict[str, Any] = {
        "kind": "nodes",
        "title": "",
        "wide": True,
        "table": {"columns": columns, "sort": 2, "things": things, "search": "Search nodes and classes"},
    }
    if graph.num_nodes <= MOST_DRAWN:
        chart["network"], cut = _network(graph, unsure, predicted, names, colors, truth, given)
        if cut:
            chart["note"] = f"Of {cut:,} edges, {MOST_EDGES:,} are drawn, chosen evenly."
    return section("The graph and its nodes" if "network" in chart else "Nodes", chart, text=text)


def _listed(first: np.ndarray) -> np.ndarray:
    """All nodes of a small graph; of a large one as many of the least as of the most certain."""
    if len(first) <= MOST_DRAWN:
        return np.arange(len(first))
    ranked = np.argsort(first, kind="stable")
    return np.concatenate([ranked[: MOST_LISTED // 2], ranked[-MOST_LISTED // 2 :]])


def _network(
    graph: Graph,
    unsure: np.ndarray,
    predicted: np.ndarray,
    names: list[str],
    colors: list[str],
    truth: np.ndarray | None,
    given: np.ndarray | None,
) -> tuple[dict[str, Any], int]:
    ends = np.sort(graph.edge_index.numpy(), axis=0)
    ends = np.unique(ends[:, ends[0] != ends[1]], axis=1)
    position = layout(graph.num_nodes, ends[0], ends[1])
    position = position - position.min(0, initial=0)
    scale = 1000 / max(1e-9, float(position.max(initial=0)))
    position = position * scale
    cut = ends.shape[1] if ends.shape[1] > MOST_EDGES else 0
    if cut:
        ends = ends[:, np.linspace(0, ends.shape[1] - 1, MOST_EDGES).round().astype(int)]
    legend = [{"name": name, "color": color} for name, color in zip(names, colors, strict=True)]
    colorings = [{"name": "predicted", "values": predicted.tolist(), "legend": legend}]
    known = truth if truth is not None else given
    if known is not None and (known >= 0).any():
        unknown = {"name": "unknown", "color": "other"}
        values = np.where(known >= 0, known, len(names))
        entries = [*legend, unknown] if (known < 0).any() else legend
        colorings.append(
            {"name": "true" if truth is not None else "given", "values": values.tolist(), "legend": entries}
        )
    if truth is not None:
        entries = [{"name": "right", "color": "sky"}, {"name": "wrong", "color": "vermilion"}]
        values = np.where(truth < 0, 2, truth != predicted)
        if (truth < 0).any():
            entries.append({"name": "not known", "color": "other"})
        colorings.append({"name": "right or wrong", "values": values.tolist(), "legend": entries})
    return {
        "x": position[:, 0].round(1).tolist(),
        "y": position[:, 1].round(1).tolist(),
        "width": float(max(1.0, position[:, 0].max(initial=0))),
        "height": float(max(1.0, position[:, 1].max(initial=0))),
        "source": ends[0].tolist(),
        "target": ends[1].tolist(),
        "unsure": unsure.round(3).tolist(),
        "given": (given >= 0).astype(int).tolist() if given is not None else None,
        "colorings": colorings,
        "summary": f"Drawing of the graph: {graph.num_nodes} nodes coloured by class, larger where the prediction is less sure. "
        "Plus and minus zoom, arrow keys move.",
    }, cut
