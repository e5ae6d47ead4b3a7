"""Charts as data: what to draw, and nothing about how.

A chart is a dictionary that is ready for JSON. The page's script and :mod:`sharpen.report.figures` (matplotlib) paint the same
one. Its ``kind`` is one of

- ``lines``: series over one axis (:func:`lines`), as curves with a band, or as points with whiskers;
- ``forest``: means with their intervals, one row each, in groups (:func:`forest`);
- ``dots``: paired differences, a dot for each pair;
- ``heat``: a small map of numbers above and below zero;
- ``matrix``: a confusion matrix (:func:`matrix`);
- ``table``: rows that can be sorted and searched (:func:`table`); on the page only;
- ``shares`` and ``boxes``: how many cells gain or lose, and by how much; on paper only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sharpen.evaluation.paired import PairedDifference
from sharpen.models.registry import model_info
from sharpen.report.names import dataset_title, shortened

Chart = dict[str, Any]

# What charts call the line styles of matplotlib.
_DASHES: dict[str, str | bool] = {"solid": False, "dashed": True, "dotted": "dots", "dashdot": "mixed"}

# More classes than these make a table that nobody reads.
_MOST_CLASSES = 40
# A curve of more points than a screen has to spare looks the same.
_MOST_POINTS = 160


def thinned(points: int) -> np.ndarray:
    """Which of many points along a curve to draw.

    >>> thinned(4).tolist(), len(thinned(10_000))
    ([0, 1, 2, 3], 160)
    """
    return np.unique(np.linspace(0, points - 1, min(points, _MOST_POINTS)).round().astype(int))


def cell_grid(drawn: Mapping[Any, Chart]) -> dict[str, list[Chart | None]]:
    """Charts of cells in rows: by dataset, one for each model; None for what is not there.

    >>> cell_grid({("cora", "gcn"): {}, ("cs", "gat"): {}})
    {'Cora': [{}, None], 'CS': [None, {}]}
    """
    models = dict.fromkeys(model for _, model in drawn)
    return {
        dataset_title(dataset): [drawn.get((dataset, model)) for model in models]
        for dataset in dict.fromkeys(dataset for dataset, _ in drawn)
    }


def rounded(values: Iterable[float], digits: int = 5) -> list[float | None]:
    """Numbers with so many significant digits; None for what is not finite.

    >>> rounded([0.123456789, float("nan"), 12345678.0])
    [0.12346, None, 12346000.0]
    """
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in map(float, values)]


def axis(label: str, **options: Any) -> Chart:
    """An axis: its label, and what the data does not tell (``min``, ``max``, ``decimals``, ``unit``,
    ``name``, ``air``, ``most``, ``ticks``, ``symlog``: up to which value it is linear before it becomes logarithmic).

    >>> axis("epoch", decimals=0)
    {'label': 'epoch', 'decimals': 0}
    """
    return {"label": label, **options}


def series(
    name: str,
    color: str,
    x: Iterable[float],
    y: Iterable[float],
    *,
    low: Iterable[float] | None = None,
    high: Iterable[float] | None = None,
    **options: Any,
) -> Chart:
    """A curve, or points, with an interval around them; options: ``dash``, ``points``, ``line``, ``size``, ``notes``, ``pale``,
    ``filled``.

    >>> series("λ = 0.5", "blue", [0, 1], [0.5, float("nan")], dash=True)
    {'name': 'λ = 0.5', 'color': 'blue', 'x': [0.0, 1.0], 'y': [0.5, None], 'dash': True}
    """
    found = {"name": shortened(name), "color": color, "x": rounded(x), "y": rounded(y), **options}
    if low is not None and high is not None:
        found |= {"low": rounded(low), "high": rounded(high)}
    return found


def model_series(model: str, x: Iterable[float], y: Iterable[float], *, points: bool = False, **options: Any) -> Chart:
    """The curve of a model, in its colour and with its dashes; options as :func:`series` has them.

    >>> curve = model_series("sage", [0, 1], [0.5, 1.5])
    >>> curve["name"], curve["dash"]
    ('SAGE', True)
    """
    info = model_info(model)
    drawn: dict[str, Any] = {"points": True} if points else {}
    return series(info.title, info.color, x, y, **drawn, dash=_DASHES[info.dash], **options)


def lines(title: str, x: Chart, y: Chart, curves: Sequence[Chart], **options: Any) -> Chart:
    """Curves over one axis; options: ``marks``, ``zero``, ``upright``, ``diagonal``, ``hover``, ``height``, ``note``,
    ``summary``, ``wide``.

    >>> lines("Loss", axis("epoch"), axis("loss"), [])["kind"]
    'lines'
    """
    return {"kind": "lines", "title": title, "x": x, "y": y, "series": list(curves), **options}


def matrix(title: str, names: Sequence[str], counts: np.ndarray) -> Chart:
    """A confusion matrix [true, predicted]; of very many classes the most frequent, the others together.

    >>> chart = matrix("Confusion", [str(c) for c in range(50)], np.eye(50, dtype=int))
    >>> len(chart["names"]), chart["names"][-1], chart["counts"][-1][-1]
    (41, '10 others', 10)
    """
    names = [shortened(name) for name in names]
    if len(names) > _MOST_CLASSES:
        ranked = np.argsort(-counts.sum(1), kind="stable")
        kept, rest = np.sort(ranked[:_MOST_CLASSES]), ranked[_MOST_CLASSES:]
        target = np.full(len(names), _MOST_CLASSES)
        target[kept] = np.arange(_MOST_CLASSES)
        merged = np.zeros((_MOST_CLASSES + 1,) * 2, dtype=counts.dtype)
        np.add.at(merged, (target[:, None], target[None, :]), counts)
        names, counts = [*(names[c] for c in kept), f"{len(rest)} others"], merged
    return {"kind": "matrix", "title": title, "names": names, "counts": counts.astype(int).tolist()}


def forest(title: str, rows: Sequence[Chart], unit: str, **options: Any) -> Chart:
    """Means with their intervals, one row each; options: ``zero``, ``from``, ``legend``, ``note``.

    >>> forest("", [], "points")["kind"]
    'forest'
    """
    return {"kind": "forest", "title": title, "rows": list(rows), "unit": unit, "zero": False, "wide": True, **options}


def forest_row(
    group: str, name: str, color: str, mean: float, interval: tuple[float, float] | None, **options: Any
) -> Chart:
    """One row of a forest.

    Args:
        group, name: What it is; rows of one group stand together under its name.
        color: Of its mark.
        mean, interval: Where it stands.
        options: ``quoted`` (a published value), ``sure`` (drawn filled), ``strong`` (written bold), ``partly`` (drawn dotted),
            ``text`` (its numbers), ``tail`` (what stands behind them on paper), ``notes``, ``marker``.

    >>> forest_row("Cora", "GCN", "blue", 0.5, None, sure=False)["low"] is None
    True
    """
    low, high = interval or (None, None)
    return {"group": group, "name": name, "color": color, "mean": mean, "low": low, "high": high, **options}


def dots_row(
    name: str,
    text: str,
    values: Iterable[float],
    notes: Iterable[Sequence[str]],
    mean: float | None,
    interval: tuple[float, float] | None,
) -> Chart:
    """One row of paired differences: a dot for each with what it is, their mean and its interval.

    >>> dots_row("λ = 0.5", "+0.10", [0.1], [["split 0", "80.0 → 80.1 %"]], 0.1, None)["values"]
    [0.1]
    """
    low, high = interval or (None, None)
    row = {"name": name, "text": text, "values": rounded(values, 4), "notes": list(notes)}
    return row | {"mean": mean, "low": low, "high": high}


def paired_row(
    name: str, text: str, runs: Iterable[tuple[str, int, float, float]], difference: PairedDifference | None
) -> Chart:
    """One row of runs, pair by pair: the split, the seed, and the two scores in percent, before and after.

    >>> paired_row("λ = 0.5", "+0.10", [("given-0", 3, 80.0, 80.5)], None)["notes"]
    [['given-0, seed 3', '80.00 → 80.50 %']]
    """
    pairs = list(runs)
    notes = ([f"{split}, seed {seed}", f"{before:.2f} → {after:.2f} %"] for split, seed, before, after in pairs)
    mean, interval = (None, None) if difference is None else (difference.difference, difference.t_interval)
    return dots_row(name, text, (after - before for *_, before, after in pairs), notes, mean, interval)


def dots(title: str, rows: Sequence[Chart], unit: str, **options: Any) -> Chart:
    """Paired differences, in rows of :func:`dots_row`.

    >>> dots("", [], "points")["kind"]
    'dots'
    """
    return {"kind": "dots", "title": title, "rows": list(rows), "unit": unit, **options}


def table(columns: Sequence[Chart], **options: Any) -> Chart:
    """Rows that can be sorted and searched; options: ``sort`` (a column's index), ``down``, ``rows`` (how many are shown at a
    time), ``plain`` (without a search), ``things`` (what the rows are, and so what is searched).

    >>> table([texts("class", ["a"])])["columns"]
    [{'name': 'class', 'kind': 'text', 'values': ['a']}]
    """
    if "things" in options:
        options["search"] = f"Search {options['things']}"
    return {"kind": "table", "title": "", "columns": list(columns), "wide": True, **options}


def texts(name: str, values: Iterable[object]) -> Chart:
    """A column of a table that holds words.

    >>> texts("class", ["a"])["kind"]
    'text'
    """
    return {"name": name, "kind": "text", "values": [shortened(str(value)) for value in values]}


def numbers(name: str, values: Iterable[float | None], decimals: int = 0) -> Chart:
    """A column of a table that holds numbers: counts as they are, others :func:`rounded`.

    >>> numbers("probability", rounded([0.123456789]), 3)
    {'name': 'probability', 'kind': 'number', 'values': [0.12346], 'decimals': 3}
    """
    return {"name": name, "kind": "number", "values": list(values), "decimals": decimals}
