"""Charts of a report as one figure: a grid of panels, labels where rows begin and columns end, and how to read it below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sharpen.errors import InputError
from sharpen.report.blocks import Charts, Layout
from sharpen.report.charts import Chart
from sharpen.report.figures.paint import handles, paint, words
from sharpen.report.figures.style import NEUTRAL, caption, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_Panels = list[list[Chart | None]]


@styled
def draw(charts: Charts) -> Figure:
    """Charts as a matplotlib figure.

    >>> from sharpen.report.charts import axis, lines, series
    >>> line = lines("Loss", axis("epoch"), axis("loss"), [series("a", "blue", [0, 1], [1.0, 0.5])])
    >>> draw(Charts("Training", {"": [line]}, layout=Layout("training", (3, 2)))).axes[0].get_xlabel()
    'epoch'
    """
    layout = charts.layout
    rows = [] if layout is None else _rows(charts, layout)
    if layout is None or not any(chart for row in rows for chart in row):
        raise InputError("there is nothing to draw here yet; run the study first, see sharpen study status")
    width, height = layout.panel
    figure = new_figure(max(5.2, width * len(rows[0]) + 0.4), height * len(rows) + 1.1)
    grid = figure.subplots(
        len(rows), len(rows[0]), squeeze=False, sharex="x" in layout.share, sharey="y" in layout.share
    )
    for axes_row, row in zip(grid, rows, strict=True):
        for axes, chart in zip(axes_row, row, strict=True):
            if chart is None:
                _empty(axes, told=layout.columns is None)
            else:
                paint(axes, chart)
    names = list(charts.views) if layout.columns is None and layout.views is None else []
    _label(grid, rows, names)
    if layout.legend:
        _legend(figure, grid, rows)
    heats = [axes.images[0] for axes in grid.ravel() if axes.images]
    if heats:
        unit = next(chart["unit"] for row in rows for chart in row if chart is not None)
        shrink = min(1, 4 / len(rows))
        figure.colorbar(heats[0], ax=grid, label=unit, extend="both", shrink=shrink, aspect=35)
    caption(figure, words(charts.text))
    return figure


def _rows(charts: Charts, layout: Layout) -> _Panels:
    """The charts as they stand on paper: a row for each view, or so many in each row."""
    chosen = {name: list(own) for name, own in charts.views.items() if layout.views is None or name in layout.views}
    if layout.columns is None:
        return list(chosen.values())
    # Where a view is one panel, its name is the panel's.
    every: list[Chart | None] = [
        chart if chart is None or chart["title"] else chart | {"title": name}
        for name, own in chosen.items()
        for chart in own
    ]
    columns = min(layout.columns, len(every))
    every += [None] * (-len(every) % max(1, columns))
    return [every[i : i + columns] for i in range(0, len(every), max(1, columns))]


def _empty(axes: Axes, *, told: bool) -> None:
    axes.set_axis_off()
    if told:  # a place that could hold a cell, and not only the end of the last row
        axes.text(0.5, 0.5, "not complete yet", transform=axes.transAxes, ha="center", va="center", color=NEUTRAL)


def _label(grid: np.ndarray, rows: _Panels, names: list[str]) -> None:
    """What an axis is stands where a row begins and where a column ends; titles that all rows share, above the first."""
    titles = [[chart and chart["title"] for chart in row] for row in rows]
    shared = len(rows) > 1 and len(rows[0]) > 1 and all(own == titles[0] for own in titles[1:])
    for i, (axes_row, row) in enumerate(zip(grid, rows, strict=True)):
        for j, (axes, chart) in enumerate(zip(axes_row, row, strict=True)):
            if chart is None:
                continue
            if not (shared and i):
                axes.set_title(words(chart["title"]), loc="left")
            if all(below[j] is None for below in rows[i + 1 :]):
                axes.set_xlabel(_axis(chart, "x"))
                axes.tick_params(labelbottom=True)
            before = next((chart for chart in reversed(row[:j]) if chart is not None), None)
            unit = _axis(chart, "y")
            if before is None or _axis(before, "y") != unit:
                axes.set_ylabel(f"{names[i]}\n{unit}" if shared and names and not any(row[:j]) else unit)


def _axis(chart: Chart, name: str) -> str:
    if chart["kind"] == "heat":
        return str(chart["across" if name == "x" else "down"])
    if chart["kind"] == "forest":
        return str(chart["unit"]) if name == "x" else ""
    return str(chart[name]["label"])


def _legend(figure: Figure, grid: np.ndarray, rows: _Panels) -> None:
    found: dict[object, Artist] = {}
    for row in rows:
        for chart in row:
            if chart is not None:
                found |= {handle.get_label(): handle for handle in handles(chart)}
    every = list(found.values())
    if grid.size == 1:
        grid[0, 0].legend(handles=every, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, columnspacing=1.4)
    else:
        figure.legend(handles=every, loc="outside upper right", ncols=4)
