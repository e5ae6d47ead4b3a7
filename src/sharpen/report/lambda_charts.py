"""What λ does, drawn: the score of every cell over λ, Glass's Δ per model, and how many cells gain or lose."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from sharpen.analysis.curves import Band, Curve, glass_bands
from sharpen.errors import InputError
from sharpen.models.registry import model_info
from sharpen.report.blocks import Charts, Layout
from sharpen.report.cells import brief
from sharpen.report.charts import Chart, axis, cell_grid, lines, model_series, rounded, series
from sharpen.report.names import cell_title, counted_model, dataset_title, metric_title, model_title, span

# Quartiles of fewer say less than the values themselves.
_FEWEST_BOXED = 5


def gain_charts(curves: Sequence[Curve], missing: str | None = None) -> Charts:
    """The gain over λ, one chart for each dataset with a line for each model; it says which λ are missing, as all here do.

    >>> from sharpen.analysis.curves import Point
    >>> points = tuple(Point(lam, 80 + lam, 1.0, 5, lam, None, lam) for lam in (0.0, 0.5, 1.0))
    >>> [chart["title"] for chart in gain_charts([Curve("cora", "gcn", "accuracy", points, 5)]).views[""]]
    ['Cora']
    """
    charts = []
    for dataset in dict.fromkeys(curve.dataset for curve in curves):
        own = [curve for curve in curves if curve.dataset == dataset]
        gains = np.array([point.difference for curve in own for point in curve.points])
        # Gains are what one looks for: losses several times as large would flatten them.
        high = float(gains.max())
        low = max(float(gains.min()), -max(1.0, 3 * high))
        room = max(high - low, 0.4)
        drawn = [
            model_series(
                curve.model, [point.lam for point in curve.points], [point.difference for point in curve.points]
            )
            for curve in own
        ]
        y = axis("gain (points)", decimals=2, min=low - 0.05 * room)
        charts.append(lines(dataset_title(dataset), _lam(air=0.01), y, drawn, zero=True, height=220))
    text = "The gain over λ = 0, mean over runs. Losses of three times the largest gain and more leave the picture."
    return Charts("What λ does", {"": charts}, text=text + _lacking(missing))


def curve_chart(curve: Curve, title: str = "Test score over λ", note: str = "") -> Chart:
    """The scores of a cell over λ with the interval of the paired difference to λ = 0.

    >>> from sharpen.analysis.curves import Point
    >>> points = tuple(Point(lam, 80 + lam, 1.0, 5, lam, (lam - 1, lam + 1), lam) for lam in (0.0, 0.5))
    >>> curve_chart(Curve("cora", "gcn", "accuracy", points, 5))["series"][0]["high"]
    [81.0, 81.5]
    """
    zero, (low, high) = curve.zero.mean, _limits(curve)
    ends = [point.interval or (np.nan, np.nan) for point in curve.points]
    return lines(
        title,
        _lam(),
        axis(f"test {metric_title(curve.metric)} (%)", decimals=2, min=low, max=high),
        [
            series(
                "mean over runs",
                model_info(curve.model).color,
                [point.lam for point in curve.points],
                [point.mean for point in curve.points],
                low=[zero + end for end, _ in ends],
                high=[zero + end for _, end in ends],
            ),
            series("λ = 0", "grey", [curve.points[0].lam, curve.points[-1].lam], [zero, zero], dash=True),
        ],
        marks=[] if curve.chosen is None else [{"x": curve.chosen, "label": f"chosen: {curve.chosen:g}"}],
        upright=True,
        note=f"Band: 95 % interval of the paired difference to λ = 0. {note}".strip(),
    )


def curve_charts(curves: Sequence[Curve], missing: str | None = None) -> Charts:
    """Test score over λ, one chart for each cell, with the crosshair of λ = 0; on paper.

    >>> from sharpen.analysis.curves import Point
    >>> points = tuple(Point(lam, 80 + lam, 1.0, 5, lam, None, lam) for lam in (0.0, 0.5, 1.0))
    >>> [chart["title"] for chart in curve_charts([Curve("cora", "gcn", "accuracy", points, 5)]).views["Cora"]]
    ['Cora GCN']
    """
    _some(curves)
    rows = cell_grid({(c.dataset, c.model): curve_chart(c, cell_title(c.dataset, c.model)) for c in curves})
    marked = "; the dotted line marks the λ that validation chose" if any(c.chosen is not None for c in curves) else ""
    return Charts(
        "Every cell over λ",
        rows,
        text="Line: mean over runs. Band: 95 % t interval of the paired difference to λ = 0, cut off where it leaves the axes; "
        "every panel has room for a band of its median width, on a scale of its own. Crosshair: λ = 0, no sharpening"
        f"{marked}. Runs per λ: {span([curve.planned for curve in curves])}.{_lacking(missing)}",
        layout=Layout("curves", (2.5, 1.75), share="x"),
        on_page=False,
    )


def _limits(curve: Curve) -> tuple[float, float]:
    """An axis made for the line with a band of usual width around it, so that noise does not look like structure."""
    # One λ that ruins everything must not flatten the rest: what lies below the tenth percentile may leave the panel.
    means = np.array([point.mean for point in curve.points])
    low, high = np.quantile(means, 0.1), means.max()
    room = max(high - low, 0.4)
    half = float(np.median([(p.interval[1] - p.interval[0]) / 2 for p in curve.points if p.interval] or [0.0]))
    bottom = min(max(means.min() - 0.1 * room, low - 0.6 * room), low - half)
    top = max(high + 0.25 * room, high + half)
    chosen = None if curve.chosen is None else curve.at(curve.chosen)
    if chosen is not None and chosen.interval is not None:
        ends = [curve.zero.mean + end for end in chosen.interval]
        bottom, top = min(bottom, ends[0]), max(top, ends[1])
    air = 0.03 * (top - bottom)
    return float(bottom - air), float(min(top, 100.0) + air)


def glass_charts(curves: Sequence[Curve], missing: str | None = None, *, on_paper: bool = True) -> Charts:
    """Glass's Δ over λ, one chart for each model on one scale: the median over datasets, and its quartiles.

    >>> from sharpen.analysis.curves import Point
    >>> points = tuple(Point(lam, 80 + lam, 1.0, 5, lam, None, lam) for lam in (0.0, 0.5, 1.0))
    >>> [chart["title"] for chart in glass_charts([Curve("cora", "gcn", "accuracy", points, 5)]).views[""]]
    ['GCN (1 dataset)']
    """
    bands = glass_bands(curves)
    _some(bands)
    every = [*bands, *(band.whole for band in bands if band.whole is not None)]
    lams = [lam for band in every for lam in band.lams]
    quartiles = np.concatenate([values for band in every for values in (band.lower, band.upper)])
    # What strong λ breaks is many times what weak λ gains: a logarithm beyond ±2 shows both, and cuts nothing off.
    y = _symlog("Glass's Δ of the test score", 2, min(quartiles.min(), -1), max(quartiles.max(), 1))
    charts = []
    for band in bands:
        color = model_info(band.model).color
        drawn = [_band(band, "median over datasets", color)]
        if (whole := band.whole) is not None:
            drawn.append(_band(whole, f"the {len(whole.datasets)} with every λ", color, dash=True, pale=True))
        title, x = counted_model(band.model, len(band.datasets)), _lam(min=min(lams), max=max(lams))
        charts.append(lines(title, x, y, drawn, zero=True, upright=True, height=220))
    wholes = ", ".join(f"{len(b.whole.datasets)} ({model_title(b.model)})" for b in bands if b.whole is not None)
    dashed = f"Dashed and pale: the datasets with every λ, {wholes}. " if wholes else ""
    columns = 2 if len(charts) == 4 else 3
    return Charts(
        "Glass's Δ over λ",
        {"": charts},
        text="Gain over λ = 0 in standard deviations of the λ = 0 runs. Line: median over datasets; band: first to third "
        f"quartile. {dashed}Linear up to ±2, then logarithmic.{_lacking(missing)}",
        layout=Layout("glass", (2.9, 2.3), columns=columns, share="xy") if on_paper else None,
    )


def _band(band: Band, name: str, color: str, **options: object) -> Chart:
    return series(name, color, band.lams, band.median, low=band.lower, high=band.upper, **options)


def improvement_charts(curves: Sequence[Curve], missing: str | None = None) -> Charts:
    """For every λ, in how many cells the score rises or falls, and by how much in units of Glass's Δ; on paper.

    >>> from sharpen.analysis.curves import Point
    >>> points = tuple(Point(lam, 80 + lam, 1.0, 5, lam, None, lam) for lam in (0.0, 0.5, 1.0))
    >>> [chart["kind"] for chart, in improvement_charts([Curve("cora", "gcn", "accuracy", points, 5)]).views.values()]
    ['shares', 'boxes']
    """
    usable = [curve for curve in curves if curve.zero.sd]
    _some(usable)
    values = [(p.lam, p.glass) for c in usable for p in c.points if p.lam != 0 and p.glass is not None]
    values.sort(key=lambda value: value[0])
    by_lam = {lam: [glass for _, glass in own] for lam, own in itertools.groupby(values, key=lambda value: value[0])}
    cells = span([len(values) for values in by_lam.values()])
    # What the bars leave to 100 %.
    most = max(values.count(0) for values in by_lam.values())
    ties = f"What bars leave to 100 %: cells with exactly the score of λ = 0, at most {most} at a λ. " if most else ""
    return Charts(
        "Gains and losses over λ",
        {"shares": [_shares(by_lam)], "sizes": [_sizes(by_lam)]},
        text=f"{cells} cells per λ; Δ: gain over λ = 0 in standard deviations of the λ = 0 runs. {ties}Boxes: quartiles "
        "of the gains (above zero) and of the losses (below), whiskers from the 5th to the 95th percentile; of fewer than "
        f"{_FEWEST_BOXED} cells, every one as a point.{_lacking(missing)}",
        layout=Layout("improvements", (7.0, 2.3), share="x"),
        on_page=False,
    )


def _shares(by_lam: Mapping[float, Sequence[float]]) -> Chart:
    """Which share of the cells gains or loses at each λ; losses below zero, what is weak next to it."""
    loss = {"color": "vermilion", "down": True}
    bars = (
        ({"name": "gain up to 1 Δ", "color": "blue", "pale": True}, 0, 1),
        ({"name": "gain above 1 Δ", "color": "blue"}, 1, np.inf),
        ({"name": "loss up to 1 Δ", "pale": True, **loss}, -1, -1e-12),
        ({"name": "loss above 1 Δ", **loss}, -np.inf, -1),
    )
    every = by_lam.values()
    return {
        "kind": "shares",
        "title": "",
        "x": _lam(),
        "y": axis("share of cells (%)\nloss            gain"),
        "at": list(by_lam),
        "bars": [
            {**bar, "values": rounded(100 * float(np.mean([low < v <= high for v in values])) for values in every)}
            for bar, low, high in bars
        ],
    }


def _sizes(by_lam: Mapping[float, Sequence[float]]) -> Chart:
    """How much is gained and lost at each λ: boxes, and points where there are too few for one."""
    groups, ends = [], [0.0]
    for sign, color in ((1, "blue"), (-1, "vermilion")):
        own = {lam: [value for value in values if sign * value > 0] for lam, values in by_lam.items()}
        boxes = [(lam, values) for lam, values in own.items() if len(values) >= _FEWEST_BOXED]
        few = [(lam, value) for lam, values in own.items() if len(values) < _FEWEST_BOXED for value in values]
        groups.append({"color": color, "boxes": boxes, "points": few})
        ends += [float(end) for _, values in boxes for end in np.percentile(values, (5, 95))]
        ends += [value for _, value in few]
    y = _symlog("Glass's Δ\n(linear up to ±1, then logarithmic)", 1, min(ends), max(ends))
    return {"kind": "boxes", "title": "", "x": _lam(), "y": y, "at": list(by_lam), "groups": groups}


def _lam(**options: float) -> Chart:
    return axis("λ", name="λ =", decimals=2, **options)


def _symlog(label: str, linear: float, low: float, high: float) -> Chart:
    """An axis that becomes logarithmic, with room for all values from low to high."""
    steps = [times * ten for ten in (1.0, 10.0, 100.0) for times in (1.0, 2.0, 5.0)] + [1000.0]
    every = [*(-step for step in reversed(steps)), 0.0, *steps]
    ticks = [[tick, brief(tick)] for tick in every if tick == 0 or 1.1 * low <= tick <= 1.1 * high]
    return axis(label, decimals=2, min=float(1.15 * low), max=float(1.15 * high), symlog=linear, ticks=ticks)


def _lacking(missing: str | None) -> str:
    return f" Missing: {missing}." if missing else ""


def _some(given: Sequence[object]) -> None:
    if not given:
        raise InputError("there is no cell with scores over λ yet; run the study first, see sharpen study status")
