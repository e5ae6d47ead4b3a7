"""The nodes one by one: a table of who is what and how surely, and the graph itself where it is small enough to be seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import entr

from sharpen.graph import Graph
from sharpen.report.charts import Chart, numbers, rounded, texts
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
) -> Chart:
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
    things = "nodes"
    shown: np.ndarray = np.arange(graph.num_nodes)
    if graph.num_nodes > MOST_DRAWN:  # as many of the least as of the most certain
        ranked = np.argsort(first, kind="stable")
        shown = np.concatenate([ranked[: MOST_LISTED // 2], ranked[-MOST_LISTED // 2 :]])
        things = f"nodes listed, the most and the least certain of {graph.num_nodes:,}"

    def classes(name: str, values: np.ndarray) -> Chart:
        return {"name": name, "kind": "class", "values": values[shown].tolist(), "names": names, "colors": colors}

    def measured(name: str, values: np.ndarray, decimals: int) -> Chart:
        return numbers(name, rounded(values[shown], 4), decimals)

    columns = [
        texts("node", (ids[i] for i in shown)),
        classes("predicted", predicted),
        measured("probability", first, 3),
        classes("second", second),
        measured("uncertainty", unsure, 3),
    ]
    if truth is not None:
        right = [bool(guess == known) if known >= 0 else None for guess, known in zip(predicted, truth, strict=True)]
        columns += [classes("true", truth), {"name": "right", "kind": "truth", "values": [right[i] for i in shown]}]
    columns += [] if given is None else [classes("given", given)]
    columns.append(measured("neighbors", degree, 0))
    columns += [] if runs is None else [measured("runs", runs, 0)]
    for title, remarks in () if because is None else because.fillna("").items():
        said = remarks.to_numpy()[shown].tolist()
        columns.append({"name": str(title).replace("_", " "), "kind": "remark", "values": said})
    rows = {"columns": columns, "sort": 2, "things": things, "search": "Search nodes and classes"}
    chart: Chart = {"kind": "nodes", "title": "", "wide": True, "table": rows}
    if graph.num_nodes > MOST_DRAWN:
        return section("Nodes", chart, text=text)
    chart["network"], cut = _network(graph, unsure, predicted, names, colors, truth, given)
    if cut:
        chart["note"] = f"Of {cut:,} edges, {MOST_EDGES:,} are drawn, chosen evenly."
    return section("The graph and its nodes", chart, text=text)


def _network(
    graph: Graph,
    unsure: np.ndarray,
    predicted: np.ndarray,
    names: list[str],
    colors: list[str],
    truth: np.ndarray | None,
    given: np.ndarray | None,
) -> tuple[Chart, int]:
    ends = np.sort(graph.edge_index.numpy(), axis=0)
    ends = np.unique(ends[:, ends[0] != ends[1]], axis=1)
    position = layout(graph.num_nodes, ends[0], ends[1])
    position = position - position.min(0, initial=0)
    position = position * (1000 / max(1e-9, float(position.max(initial=0))))
    x, y = position.T
    cut = ends.shape[1] if ends.shape[1] > MOST_EDGES else 0
    if cut:
        ends = ends[:, np.linspace(0, ends.shape[1] - 1, MOST_EDGES).round().astype(int)]
    known, title = (given, "given") if truth is None else (truth, "true")
    open_ = known is not None and bool((known < 0).any())

    def coloring(name: str, values: np.ndarray, legend: list[tuple[str, str]], other: str = "") -> Chart:
        entries = [*legend, *([(other, "other")] if other and open_ else [])]
        shown = [{"name": entry, "color": color} for entry, color in entries]
        return {"name": name, "values": values.tolist(), "legend": shown}

    legend = list(zip(names, colors, strict=True))
    colorings = [coloring("predicted", predicted, legend)]
    if known is not None and (known >= 0).any():
        colorings.append(coloring(title, np.where(known >= 0, known, len(names)), legend, "unknown"))
    if truth is not None:
        found = np.where(truth < 0, 2, truth != predicted)
        colorings.append(coloring("right or wrong", found, [("right", "sky"), ("wrong", "vermilion")], "not known"))
    return {
        "x": x.round(1).tolist(),
        "y": y.round(1).tolist(),
        "width": float(max(1.0, x.max(initial=0))),
        "height": float(max(1.0, y.max(initial=0))),
        "source": ends[0].tolist(),
        "target": ends[1].tolist(),
        "unsure": unsure.round(3).tolist(),
        "given": (given >= 0).astype(int).tolist() if given is not None else None,
        "colorings": colorings,
        "summary": f"Drawing of the graph: {graph.num_nodes} nodes coloured by class, larger where the prediction is less sure. "
        "Plus and minus zoom, arrow keys move.",
    }, cut
