"""What λ does: the score of every cell over λ, Glass's Δ per model, and how many cells gain or lose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sharpen.analysis.curves import Band, Curve, every_band, glass_bands
from sharpen.errors import InputError
from sharpen.report.cells import brief
from sharpen.report.figures.style import (
    GAIN,
    LOSS,
    PLAIN,
    caption,
    colour,
    new_figure,
    styled,
    zero_line,
)
from sharpen.report.names import METRIC_TITLES, counted_model, dataset_title, model_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Quartiles of fewer say less than the values themselves.
_FEWEST_BOXED = 5


@styled
def lambda_panels(curves: Sequence[Curve], missing: str | None = None) -> Figure:
    """Test score over λ, one panel per cell, with the crosshair of λ = 0.

    The band is the 95 % interval of the paired difference to λ = 0, drawn around the baseline's mean plus that difference.

    Args:
        curves: One for each cell.
        missing: Which λ of the study they do not show, for the caption (:func:`sharpen.report.missing.missing_lams`).

    >>> from sharpen.analysis.curves import Point
    >>> points = [Point(lam, 80 + lam, 1.0, 5, lam, (lam - 0.5, lam + 0.5), lam) for lam in (0.0, 0.5, 1.0, 1.5)]
    >>> len(lambda_panels([Curve("cora", "gcn", "accuracy", tuple(points), 5)]).axes)
    1
    """
    _some(curves)
    models = list(dict.fromkeys(curve.model for curve in curves))
    datasets = list(dict.fromkeys(curve.dataset for curve in curves))
    figure = new_figure(max(5.2, 2.5 * len(models) + 0.3), 1.75 * len(datasets) + 0.9)
    grid = figure.subplots(len(datasets), len(models), squeeze=False, sharex=True)
    cells = {(curve.dataset, curve.model): curve for curve in curves}
    for row, dataset in zip(grid, datasets, strict=True):
        for axes, model in zip(row, models, strict=True):
            curve = cells.get((dataset, model))
            if curve is None:
                axes.set_axis_off()
                axes.text(0.5, 0.5, "not complete yet", transform=axes.transAxes, ha="center", va="center", color=PLAIN)
            else:
                _panel(axes, curve)
            axes.set_title(f"{dataset_title(dataset)} {model_title(model)}", loc="left")
    for column, model in zip(grid.T, models, strict=True):
        lowest = [a for a, dataset in zip(column, datasets, strict=True) if (dataset, model) in cells][-1]
        lowest.set_xlabel("λ")
        lowest.tick_params(labelbottom=True)
    for row, dataset in zip(grid, datasets, strict=True):
        leftmost, model = next((a, m) for a, m in zip(row, models, strict=True) if (dataset, m) in cells)
        metric = cells[dataset, model].metric
        leftmost.set_ylabel(f"test {METRIC_TITLES.get(metric, metric)} (%)")
    marked = "; the dotted line marks the λ that validation chose" if any(c.chosen is not None for c in curves) else ""
    caption(
        figure,
        "Line: mean over runs. Band: 95 % t interval of the paired difference to λ = 0, cut off where it leaves the axes; every "
        "panel has room for a band of its median width, on a scale of its own. Crosshair: λ = 0, no sharpening"
        f"{marked}. Runs per λ: {_counts(curves)}.{_lacking(missing)}",
    )
    return figure


def _panel(axes: Axes, curve: Curve) -> None:
    lams = [point.lam for point in curve.points]
    zero = curve.zero
    axes.axhline(zero.mean, color="#555555", linewidth=0.8)
    axes.axvline(0, color="#555555", linewidth=0.8)
    if curve.chosen is not None:
        axes.axvline(curve.chosen, color="#000000", linewidth=1, linestyle=":")
    bands = [(p.lam, *p.interval) for p in curve.points if p.interval is not None]
    if bands:
        at, low, high = np.array(bands).T
        own = colour(curve.model)
        axes.fill_between(at, zero.mean + low, zero.mean + high, color=own, alpha=0.16, linewidth=0)
        for ends in (low, high):  # where the band ends must be seen, however little it is darker than the ground
            axes.plot(at, zero.mean + ends, color=own, alpha=0.45, linewidth=0.5)
    axes.plot(lams, [point.mean for point in curve.points], color=colour(curve.model))
    axes.plot([0], [zero.mean], "o", color="#222222", markersize=3.5)
    axes.locator_params(axis="y", nbins=4)
    axes.set_ylim(*_limits(curve))


def _limits(curve: Curve) -> tuple[float, float]:
    """An axis made for the line with a band of usual width around it, so that noise does not look like structure."""
    # One λ that ruins everything must not flatten the rest: what lies below the tenth percentile may leave the panel.
    means = np.array([point.mean for point in curve.points])
    low, high = np.quantile(means, 0.1), means.max()
    room = max(high - low, 0.4)
    halves = [(p.interval[1] - p.interval[0]) / 2 for p in curve.points if p.interval is not None]
    half = float(np.median(halves)) if halves else 0.0
    bottom = min(max(means.min() - 0.1 * room, low - 0.6 * room), low - half)
    top = max(high + 0.25 * room, high + half)
    chosen = None if curve.chosen is None else curve.at(curve.chosen)
    if chosen is not None and chosen.interval is not None:
        ends = [curve.zero.mean + end for end in chosen.interval]
        bottom, top = min(bottom, ends[0]), max(top, ends[1])
    air = 0.03 * (top - bottom)
    return float(bottom - air), float(min(top, 100.0) + air)


@styled
def glass_figure(curves: Sequence[Curve], missing: str | None = None) -> Figure:
    """Glass's Δ over λ: the median over datasets and the interquartile band, one panel per model.

    >>> from sharpen.analysis.curves import Point
    >>> points = tuple(Point(lam, 80 + lam, 1.0, 5, lam, None, lam) for lam in (0.0, 0.5, 1.0))
    >>> glass_figure([Curve("cora", "gcn", "accuracy", points, 5)]).axes[0].get_xlabel()
    'λ'
    """
    bands = glass_bands(curves)
    _some(bands)
    columns = 2 if len(bands) == 4 else min(3, len(bands))
    rows = -(-len(bands) // columns)
    figure = new_figure(max(5.2, 2.9 * columns + 0.4), 2.3 * rows + 1.0)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes, band in zip(grid.ravel(), bands, strict=False):
        own = colour(band.model)
        zero_line(axes)
        axes.axvline(0, color="#333333", linewidth=0.9)
        axes.fill_between(band.lams, band.lower, band.upper, color=own, alpha=0.22, linewidth=0)
        for ends in (band.lower, band.upper):
            axes.plot(band.lams, ends, color=own, alpha=0.5, linewidth=0.6)
        axes.plot(band.lams, band.median, color=own, linewidth=1.8)
        if band.whole is not None:
            axes.fill_between(band.whole.lams, band.whole.lower, band.whole.upper, color=own, alpha=0.1, linewidth=0)
            axes.plot(band.whole.lams, band.whole.median, color=own, linewidth=1.1, linestyle="--")
        axes.set_title(counted_model(band.model, len(band.datasets)), loc="left")
        axes.margins(x=0.01)
    for axes in grid.ravel()[len(bands) :]:
        axes.set_axis_off()
    # What strong λ breaks is many times what weak λ gains: a logarithm beyond ±2 shows both, and cuts nothing off.
    first = grid[0, 0]
    first.set_yscale("symlog", linthresh=2)
    quartiles = np.concatenate([values for band in every_band(bands) for values in (band.lower, band.upper)])
    _symlog_ticks(first, min(quartiles.min(), -1), max(quartiles.max(), 1))
    for axes in grid[-1]:
        axes.set_xlabel("λ")
    for axes in grid[:, 0]:
        axes.set_ylabel("Glass's Δ of the test score")
    caption(
        figure,
        "Gain over λ = 0 in standard deviations of the λ = 0 runs. Line: median over datasets; band: first to third quartile. "
        f"{_dashed(bands)}Linear up to ±2, then logarithmic.{_lacking(missing)}",
    )
    return figure


def _dashed(bands: Sequence[Band]) -> str:
    whole = [f"{len(b.whole.datasets)} ({model_title(b.model)})" for b in bands if b.whole is not None]
    return f"Dashed and pale: the datasets with every λ, {', '.join(whole)}. " if whole else ""


def _symlog_ticks(axes: Axes, low: float, high: float) -> None:
    """Ticks and limits of an axis that becomes logarithmic, with room for all values from low to high."""
    steps = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
    ticks = [-step for step in reversed(steps) if -step >= 1.1 * low] + [0.0] + [t for t in steps if t <= 1.1 * high]
    axes.set_yticks(ticks, [brief(tick) for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_ylim(1.15 * low, 1.15 * high)


@styled
def improvements_figure(curves: Sequence[Curve], missing: str | None = None) -> Figure:
    """For every λ, in how many cells the score rises or falls, and by how much in units of Glass's Δ.

    >>> from sharpen.analysis.curves import Point
    >>> points = tuple(Point(lam, 80 + lam, 1.0, 5, lam, None, lam) for lam in (0.0, 0.5, 1.0))
    >>> len(improvements_figure([Curve("cora", "gcn", "accuracy", points, 5)]).axes)
    2
    """
    usable = [curve for curve in curves if curve.zero.sd]
    _some(usable)
    by_lam: dict[float, list[float]] = {}
    for curve in usable:
        for point in curve.points:
            if point.lam != 0 and point.glass is not None:
                by_lam.setdefault(point.lam, []).append(point.glass)
    lams = np.array(sorted(by_lam))
    width = 0.85 * (np.diff(lams).min() if len(lams) > 1 else 0.05)
    figure = new_figure(7.4, 5.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1.25))

    def share(low: float, high: float) -> np.ndarray:
        return np.array([100 * np.mean([low < value <= high for value in by_lam[lam]]) for lam in lams])

    strong, weak = share(1, np.inf), share(0, 1)
    mild, bad = share(-1, -1e-12), share(-np.inf, -1)
    above.bar(lams, weak, width, color=GAIN, alpha=0.45, label="gain up to 1 Δ")
    above.bar(lams, strong, width, bottom=weak, color=GAIN, label="gain above 1 Δ")
    above.bar(lams, -mild, width, color=LOSS, alpha=0.45, label="loss up to 1 Δ")
    above.bar(lams, -bad, width, bottom=-mild, color=LOSS, label="loss above 1 Δ")
    zero_line(above)
    above.set_ylim(-105, 105)
    above.set_yticks([-100, -50, 0, 50, 100], ["100", "50", "0", "50", "100"])
    above.set_ylabel("share of cells (%)\nloss            gain")
    above.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1.0), handlelength=1.2, columnspacing=1.2)

    ends = [0.0]
    for sign, own in ((1, GAIN), (-1, LOSS)):
        groups = {lam: [value for value in by_lam[lam] if sign * value > 0] for lam in lams}
        many = {lam: values for lam, values in groups.items() if len(values) >= _FEWEST_BOXED}
        _boxes(below, many, width, own)
        few = [(lam, value) for lam, values in groups.items() if lam not in many for value in values]
        below.plot([lam for lam, _ in few], [value for _, value in few], "o", color=own, markersize=2.5, linestyle="")
        ends += [float(end) for values in many.values() for end in np.percentile(values, (5, 95))]
        ends += [value for _, value in few]
    zero_line(below)
    below.set_yscale("symlog", linthresh=1)
    _symlog_ticks(below, min(ends), max(ends))
    below.set_ylabel("Glass's Δ\n(linear up to ±1, then logarithmic)")
    below.set_xlabel("λ")
    below.margins(x=0.02)
    counts = sorted({len(values) for values in by_lam.values()})
    cells = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    caption(
        figure,
        f"{cells} cells per λ; Δ: gain over λ = 0 in standard deviations of the λ = 0 runs. {_ties(by_lam)}Boxes: quartiles of "
        "the gains (above zero) and of the losses (below), whiskers from the 5th to the 95th percentile; of fewer than "
        f"{_FEWEST_BOXED} cells, every one as a point.{_lacking(missing)}",
    )
    return figure


def _boxes(axes: Axes, groups: Mapping[float, Sequence[float]], width: float, own: str) -> None:
    if not groups:  # of nothing, matplotlib would draw one empty box
        return
    boxes = axes.boxplot(
        list(groups.values()),
        positions=list(groups),
        widths=width,
        manage_ticks=False,
        patch_artist=True,
        whis=(5, 95),
        showfliers=False,
        medianprops={"color": "#111111", "linewidth": 1},
        whiskerprops={"color": own, "linewidth": 0.8},
        capprops={"color": own, "linewidth": 0.8},
    )
    for box in boxes["boxes"]:
        box.set(facecolor=own, alpha=0.5, edgecolor=own)


def _ties(by_lam: Mapping[float, Sequence[float]]) -> str:
    """What the bars leave to 100 %."""
    most = max(sum(value == 0 for value in values) for values in by_lam.values())
    if not most:
        return ""
    return f"What bars leave to 100 %: cells with exactly the score of λ = 0, at most {most} at a λ. "


def _lacking(missing: str | None) -> str:
    return f" Missing: {missing}." if missing else ""


def _counts(curves: Sequence[Curve]) -> str:
    counts = sorted({curve.planned for curve in curves})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _some(given: Sequence[object]) -> None:
    if not given:
        raise InputError("there is no cell with scores over λ yet; run the study first, see sharpen study status")
