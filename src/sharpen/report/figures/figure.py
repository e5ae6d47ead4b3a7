"""Charts of a report as one figure: a grid of panels, labels where rows begin and columns end, and how to read it below."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from sharpen.errors import InputError
from sharpen.report.blocks import Charts, Layout
from sharpen.report.charts import Chart
from sharpen.report.figures.paint import handles, paint, words
from sharpen.report.figures.style import NEUTRAL, caption, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Panels = list[list[Chart | None]]


@styled()
def draw(charts: Charts) -> Figure:
    """Charts as a matplotlib figure.

    >>> from sharpen.report.charts import axis, lines, series
    >>> line = lines("Loss", axis("epoch"), axis("loss"), [series("a", "blue", [0, 1], [1.0, 0.5])])
    >>> draw(Charts("Training", {"": [line]}, layout=Layout("training", (3, 2)))).axes[0].get_xlabel()
    'epoch'
    """
    layout = charts.layout
    rows = [] if layout is None else _rows(charts, layout)
    shown = [chart for row in rows for chart in row if chart]
    if layout is None or not shown:
        raise InputError("there is nothing to draw here yet; run the study first, see sharpen study status")
    width, height = layout.panel
    figure = new_figure(max(5.2, width * len(rows[0]) + 0.4), height * len(rows) + 1.1)
    x, y = (name in layout.share for name in "xy")
    grid = figure.subplots(len(rows), len(rows[0]), squeeze=False, sharex=x, sharey=y)
    for axes, chart in zip(grid.ravel(), (chart for row in rows for chart in row), strict=True):
        if chart is not None:
            paint(axes, chart)
            continue
        axes.set_axis_off()
        if layout.columns is None:  # a place that could hold a cell, and not only the end of the last row
            axes.text(0.5, 0.5, "not complete yet", transform=axes.transAxes, ha="center", va="center", color=NEUTRAL)
    _label(grid, rows, list(charts.views) if layout.columns is None and layout.views is None else [])
    if layout.legend:
        every = list({handle.get_label(): handle for chart in shown for handle in handles(chart)}.values())
        if grid.size == 1:
            grid[0, 0].legend(handles=every, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, columnspacing=1.4)
        else:
            figure.legend(handles=every, loc="outside upper right", ncols=4)
    if heats := [axes.images[0] for axes in grid.ravel() if axes.images]:
        shrink = min(1, 4 / len(rows))
        figure.colorbar(heats[0], ax=grid, label=shown[0]["unit"], extend="both", shrink=shrink, aspect=35)
    caption(figure, words(charts.text))
    return figure


def _rows(charts: Charts, layout: Layout) -> _Panels:
    """The charts as they stand on paper: a row for each view, or so many in each row."""
    chosen = {name: list(own) for name, own in charts.views.items() if layout.views is None or name in layout.views}
    if layout.columns is None:
        return list(chosen.values())
    # Where a view is one panel, its name is the panel's.
    every = [chart and {**chart, "title": chart["title"] or name} for name, own in chosen.items() for chart in own]
    columns = max(1, min(layout.columns, len(every)))
    rows = itertools.zip_longest(*[iter(every)] * columns)  # the last one is filled with None
    return [list(row) for row in rows]


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
