"""How each kind of chart is painted on the axes of a matplotlib figure; see :mod:`sharpen.report.charts` for the kinds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sharpen.report.charts import Chart
from sharpen.report.figures.style import NEUTRAL, ink, zero_line

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_DASHES: dict[str | bool, Any] = {False: "-", True: "--", "dots": (0, (1, 1)), "mixed": "-."}
# How far above ours a published value stands, in rows.
_ABOVE = 0.33


def paint(axes: Axes, chart: Chart) -> None:
    """Paint a chart: its marks, limits and ticks; titles and labels are the figure's business.

    >>> from matplotlib.figure import Figure
    >>> from sharpen.report.charts import axis, lines, series
    >>> axes = Figure().subplots()
    >>> paint(axes, lines("", axis("x"), axis("y"), [series("a", "blue", [0, 1], [0, 1], dash=True)]))
    >>> axes.lines[0].get_linestyle()
    '--'
    """
    _PAINTERS[chart["kind"]](axes, chart)


def words(text: str) -> str:
    """Text in which H_L and the like have their index below.

    >>> words("H_L − H_U")
    '$H_L$ − $H_U$'
    """
    return re.sub(r"\b([A-Z])_([A-Z])\b", r"$\1_\2$", text)


def handles(chart: Chart) -> list[Artist]:
    """What stands in the legend of a chart: its series, or the entries that it names."""
    from matplotlib.lines import Line2D

    def handle(entry: Chart) -> Artist:
        own, line = "#111111" if entry.get("quoted") else ink(entry["color"]), _DASHES[entry.get("dash", False)]
        if chart["kind"] == "forest":
            marker, line = "d" if entry.get("quoted") else "o", ":" if entry["name"].startswith("dotted") else ""
            face = "white" if entry.get("quoted") or entry.get("open") else own
        else:
            marker, face = entry.get("marker", "o") if entry.get("points") else "", "white"
        return Line2D([], [], color=own, marker=marker, linestyle=line, markerfacecolor=face, label=entry["name"])

    return [handle(entry) for entry in chart["legend" if chart["kind"] == "forest" else "series"]]


def _lines(axes: Axes, chart: Chart) -> None:
    if chart.get("zero"):
        zero_line(axes)
    if chart.get("upright"):
        axes.axvline(0, color="#555555", linewidth=0.8)
    if chart.get("diagonal"):
        axes.axline((0, 0), slope=1, color=NEUTRAL, linestyle=":", linewidth=1)
    for mark in chart.get("marks", ()):
        axes.axvline(mark["x"], color="#000000", linewidth=1, linestyle=":")
    pointed = [curve for curve in chart["series"] if curve.get("points")]
    steps = np.diff(sorted({x for curve in pointed for x in curve["x"]}))
    for index, curve in enumerate(chart["series"]):
        x, y = _numbers(curve["x"]), _numbers(curve["y"])
        if curve.get("points"):
            # Side by side, so that intervals of different series do not cover each other.
            x = x + 0.2 * (steps.min() if len(steps) else 0) * (index - (len(pointed) - 1) / 2)
            _points(axes, curve, x, y)
        else:
            _curve(axes, curve, x, y)
    axes.locator_params(axis="y" if "ticks" in chart["x"] else "both", nbins=5)
    _scale(axes, chart)


def _curve(axes: Axes, curve: Chart, x: np.ndarray, y: np.ndarray) -> None:
    own, pale = ink(curve["color"]), curve.get("pale", False)
    if "low" in curve:
        low, high = _numbers(curve["low"]), _numbers(curve["high"])
        axes.fill_between(x, low, high, color=own, alpha=0.1 if pale else 0.18, linewidth=0)
        for ends in () if pale else (low, high):  # where a band ends must be seen, however little it is darker
            axes.plot(x, ends, color=own, alpha=0.45, linewidth=0.5)
    dash = _DASHES[curve.get("dash", False)]
    axes.plot(x, y, color=own, linestyle=dash, linewidth=1.1 if pale else 1.5, label=curve["name"])


def _points(axes: Axes, curve: Chart, x: np.ndarray, y: np.ndarray) -> None:
    own = ink(curve["color"])
    if curve.get("line", True):
        axes.plot(x, y, color=own, linestyle=_DASHES[curve.get("dash", False)], linewidth=0.7, alpha=0.5)
    for i in range(len(x)):
        if "low" in curve and curve["low"][i] is not None:
            axes.plot([x[i], x[i]], [curve["low"][i], curve["high"][i]], color=own, linewidth=1.1)
        face = own if curve.get("filled", [True] * len(x))[i] else "white"
        axes.plot([x[i]], [y[i]], curve.get("marker", "o"), color=own, markerfacecolor=face)


def _scale(axes: Axes, chart: Chart) -> None:
    """Limits and ticks as the axes say."""
    for axis, scale, limit, ticks in (
        (chart["x"], axes.set_xscale, axes.set_xlim, axes.set_xticks),
        (chart["y"], axes.set_yscale, axes.set_ylim, axes.set_yticks),
    ):
        if "symlog" in axis:
            scale("symlog", linthresh=axis["symlog"])
        if "ticks" in axis:
            ticks([at for at, _ in axis["ticks"]], [text for _, text in axis["ticks"]])
            ticks([], minor=True)
        if "air" in axis:
            axes.margins(**{"x" if axis is chart["x"] else "y": axis["air"]})
        limit(axis.get("min"), axis.get("max"))


def _forest(axes: Axes, chart: Chart) -> None:
    rows, start = chart["rows"], chart.get("from")
    heights, groups = _heights(rows)
    if chart["zero"]:
        zero_line(axes, vertical=True)
    left, right = _reach(rows, zero=chart["zero"], start=start)
    axes.set_xlim(left, right)
    for row, height in zip(rows, heights, strict=True):
        if start is not None and row["mean"] < start:
            text, where = f"◂ {row['mean']:.2f}", ("axes fraction", "data")
            axes.annotate(text, (0.01, height), xycoords=where, va="center", fontsize=7, color=ink(row["color"]))
            continue
        _row(axes, row, height, left, right)
    for low, high in list(groups.values())[::2]:
        axes.axhspan(low - 0.75, high + 0.75, color="#F4F4F4", zorder=0, linewidth=0)
    if groups:
        axes.set_yticks([sum(ends) / 2 for ends in groups.values()], list(groups))
    else:
        axes.set_yticks(heights, [row["name"] for row in rows], fontsize=7.5)
        for label, row in zip(axes.get_yticklabels(), rows, strict=True):
            if row["strong"]:
                label.set(fontweight="bold", color=ink(row["color"]))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.locator_params(axis="x", nbins=8 if groups else 5)
    axes.set_ylim(heights[-1] + 0.9, -0.9)


def _heights(rows: Sequence[Chart]) -> tuple[list[float], dict[str, tuple[float, float]]]:
    """How far down every row stands, and where each group begins and ends; a gap between groups."""
    heights: list[float] = []
    ends: dict[str, tuple[float, float]] = {}
    for row in rows:
        group = row["group"]
        gap = 0.5 if group and heights and group not in ends else 0.0
        heights.append(heights[-1] + 1 + gap if heights else 0.0)
        if group:
            ends[group] = ends.get(group, heights[-1:])[0], heights[-1]
    return heights, ends


def _row(axes: Axes, row: Chart, height: float, left: float, right: float) -> None:
    own = ink(row["color"])
    if row["low"] is not None:
        dash = ":" if row.get("partly") else "-"  # more runs will move it
        ends = [row["low"], row["high"]]
        axes.plot(ends, [height, height], dash, color=own, linewidth=1.5, solid_capstyle="butt", zorder=2)
        for end, beyond, marker in ((left, row["low"] < left, "<"), (right, row["high"] > right, ">")):
            if beyond:
                axes.plot([end], [height], marker, color=NEUTRAL, markersize=5, clip_on=False, zorder=5)
    face = own if row["sure"] else "white"
    axes.plot([row["mean"]], [height], row["marker"], color=own, markerfacecolor=face, markersize=5, zorder=3)
    if row["quoted"] is not None and row["group"]:
        # Above the line of ours, which would hide it.
        at = height - _ABOVE
        axes.plot([row["quoted"]], [at], "d", color="#111111", markerfacecolor="white", markersize=4.5, zorder=4)
    if row.get("tail"):
        where, color = ("axes fraction", "data"), "#222222" if row["sure"] else NEUTRAL
        style: dict[str, Any] = {"family": "DejaVu Sans Mono", "fontsize": 7.5, "color": color}
        axes.annotate(row["tail"], (1.01, height), xycoords=where, va="center", **style)


def _reach(rows: Sequence[Chart], *, zero: bool, start: float | None) -> tuple[float, float]:
    """Room for all means and published values; an interval far wider than the rest may leave."""
    shown = [row for row in rows if start is None or row["mean"] >= start]
    points = [row["mean"] for row in shown] + ([0.0] if zero else [])
    points += [row["quoted"] for row in shown if row["quoted"] is not None and row["group"]]
    ends = [row[end] for row in shown for end in ("low", "high") if row[end] is not None]
    usual = 2.5 * np.quantile(np.abs(ends), 0.9) if ends and zero else np.inf
    low, high = min([*points, *(max(e, -usual) for e in ends)]), max([*points, *(min(e, usual) for e in ends)])
    room = 0.05 * max(high - low, 0.2)
    return (low if start is None else max(low, start)) - room, high + room


def _heat(axes: Axes, chart: Chart) -> None:
    values = np.array([_numbers(row) for row in chart["values"]])
    limit = chart["limit"]
    axes.imshow(values, cmap="PuOr", vmin=-limit, vmax=limit, origin="lower", aspect="auto")
    axes.grid(visible=False)
    axes.set_xticks(range(len(chart["columns"])), chart["columns"])
    axes.set_yticks(range(len(chart["rows"])), chart["rows"])
    for i, marks in enumerate(chart["marks"]):
        for j, mark in enumerate(marks):
            if mark:
                axes.plot([j], [i], "*", color="#111111", markersize=9)
    if chart["own"] is not None:
        i, j = chart["own"]
        axes.plot([j], [i], "o", color="#111111", markerfacecolor="none", markersize=10)


def _shares(axes: Axes, chart: Chart) -> None:
    at = np.array(chart["at"])
    ends = {-1: np.zeros(len(at)), 1: np.zeros(len(at))}
    for bar in chart["bars"]:
        sign = -1 if bar.get("down") else 1
        values, style = sign * _numbers(bar["values"]), {"color": ink(bar["color"]), "label": bar["name"]}
        axes.bar(at, values, _width(at), bottom=ends[sign], alpha=0.45 if bar.get("pale") else 1.0, **style)
        ends[sign] = ends[sign] + values
    zero_line(axes)
    axes.set_ylim(-105, 105)
    axes.set_yticks([-100, -50, 0, 50, 100], ["100", "50", "0", "50", "100"])
    axes.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1.0), handlelength=1.2, columnspacing=1.2)


def _boxes(axes: Axes, chart: Chart) -> None:
    for group in chart["groups"]:
        own = ink(group["color"])
        if group["boxes"]:  # of nothing, matplotlib would draw one empty box
            lams, values = zip(*group["boxes"], strict=True)
            thin = {"color": own, "linewidth": 0.8}
            drawn = axes.boxplot(
                values,
                positions=lams,
                widths=_width(np.array(chart["at"])),
                manage_ticks=False,
                patch_artist=True,
                whis=(5, 95),
                showfliers=False,
                medianprops={"color": "#111111", "linewidth": 1},
                whiskerprops=thin,
                capprops=thin,
            )
            for box in drawn["boxes"]:
                box.set(facecolor=own, alpha=0.5, edgecolor=own)
        few = np.array(group["points"], dtype=np.float64).reshape(-1, 2)
        axes.plot(few[:, 0], few[:, 1], "o", color=own, markersize=2.5, linestyle="")
    zero_line(axes)
    axes.margins(x=0.02)
    _scale(axes, chart)


def _width(at: np.ndarray) -> float:
    return 0.85 * float(np.diff(at).min() if len(at) > 1 else 0.05)


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


_PAINTERS = {"lines": _lines, "forest": _forest, "heat": _heat, "shares": _shares, "boxes": _boxes}
