"""The figures of a study for the page, from the same data as those on paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sharpen.analysis.curves import Band, Curve, every_band, glass_bands
from sharpen.analysis.dynamics import Dynamics
from sharpen.analysis.outcome import Outcome
from sharpen.analysis.ranking import Ranking
from sharpen.analysis.steps import Step
from sharpen.models.registry import model_info
from sharpen.report.cells import Gain, Score
from sharpen.report.names import cell_title, counted_model, dataset_title, model_title, with_every_lambda
from sharpen.report.page.charts import axis, lines, rounded, series
from sharpen.report.page.curves import MOST_POINTS
from sharpen.report.study_tables import kept_setting
from sharpen.studies.plan import Cell

# How the page draws the dashes that the registry names.
_DASHES: dict[str, str | bool] = {"solid": False, "dashed": True, "dotted": "dots", "dashdot": "mixed"}


def model_color(model: str) -> str:
    """The colour of a model, the same as in the figures.

    >>> model_color("gcn")
    'blue'
    """
    return model_info(model).color


def difference_chart(outcome: Outcome, contrast: str) -> dict[str, Any] | None:
    """All differences of one comparison with their intervals, and the paper's beside them; None if there are none.

    >>> import pandas as pd
    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> difference_chart(outcome(load_study("universal"), "paper", pd.DataFrame()), "ts-0.25 - baseline") is None
    True
    """
    shown = [(cell, effect, d) for cell, effect in outcome.effects(contrast) if (d := effect.difference) is not None]
    if not shown:
        return None
    rows = []
    for cell, effect, d in shown:
        gain = Gain(d.difference, d.t_interval, tell_n=False)
        sure = effect.verdict in ("gain", "loss") and not effect.partial
        low, high = d.t_interval or (None, None)
        on = f" on {effect.splits} splits" if d.n < effect.n else ""
        notes = [f"{effect.n} pairs{on}, {d.wins} won, {d.ties} tied, {d.losses} lost"]
        notes += [effect.reason] if effect.reason else []
        kept = kept_setting(cell, effect, outcome.study)
        said = f", {effect.n} of {effect.planned} runs" if effect.partial else f", {kept}" if kept else ""
        notes += [f"paper: {effect.published:+.2f}".replace("-", "−")] if effect.published is not None else []
        rows.append(
            {
                "group": dataset_title(cell.dataset),
                "name": model_title(cell.model),
                "color": model_color(cell.model),
                "mean": d.difference,
                "low": low,
                "high": high,
                "paper": effect.published,
                "sure": sure,
                "strong": sure,
                "partly": effect.partial,
                "text": gain.line().text + said,
                "notes": notes,
            }
        )
    legend: list[dict[str, Any]] = [
        {"name": "filled: the interval excludes zero", "color": "ink"},
        {"name": "open: it does not", "color": "ink", "open": True},
    ]
    if any(row["partly"] for row in rows):
        legend.append({"name": "dotted: only part was run", "color": "ink", "open": True})
    if any(row["paper"] is not None for row in rows):
        legend.append({"name": "what the paper says", "quoted": True})
    return {
        "kind": "forest",
        "title": "",
        "rows": rows,
        "zero": True,
        "unit": f"points of test score, {contrast.replace(' - ', ' − ')}",
        "legend": legend,
        "wide": True,
        "note": "Means of paired differences with their 95 % t intervals; an interval that leaves the picture is cut off.",
    }


def lambda_charts(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """The gain over λ, one chart for each dataset with a line for each model.

    >>> from sharpen.analysis.curves import Point
    >>> points = tuple(Point(lam, 80 + lam, 1.0, 5, lam, None, lam) for lam in (0.0, 0.5, 1.0))
    >>> [chart["title"] for chart in lambda_charts([Curve("cora", "gcn", "accuracy", points, 5)])]
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
        charts.append(
            lines(
                dataset_title(dataset),
                axis("λ", name="λ =", decimals=2, air=0.01),
                axis("gain, points", decimals=2, min=low - 0.05 * room),
                [
                    series(
                        model_title(curve.model),
                        model_color(curve.model),
                        [point.lam for point in curve.points],
                        [point.difference for point in curve.points],
                        dash=_DASHES[model_info(curve.model).dash],
                    )
                    for index, curve in enumerate(own)
                ],
                zero=True,
                height=220,
            )
        )
    return charts


def glass_charts(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """Glass's Δ over λ, one chart for each model on one scale: the median over datasets, and its quartiles.

    >>> from sharpen.analysis.curves import Point
    >>> points = tuple(Point(lam, 80 + lam, 1.0, 5, lam, None, lam) for lam in (0.0, 0.5, 1.0))
    >>> [chart["title"] for chart in glass_charts([Curve("cora", "gcn", "accuracy", points, 5)])]
    ["Glass's Δ over λ: GCN (1 dataset)"]
    """
    bands = glass_bands(curves)
    if not bands:
        return []
    drawn = every_band(bands)
    medians = np.concatenate([band.median for band in drawn])
    lowest, highest = min(min(band.lower) for band in bands), max(max(band.upper) for band in bands)
    lams = [lam for band in drawn for lam in band.lams]
    low = max(lowest, min(-4.0, 1.3 * float(medians.min()))) - 0.3
    return [
        lines(
            f"Glass's Δ over λ: {counted_model(band.model, len(band.datasets))}",
            axis("λ", name="λ =", decimals=2, min=min(lams), max=max(lams)),
            axis("Glass's Δ of the test score", decimals=2, min=low, max=highest + 0.3),
            [
                series(
                    "median over datasets",
                    model_color(band.model),
                    band.lams,
                    band.median,
                    low=band.lower,
                    high=band.upper,
                ),
                *([] if band.whole is None else [_whole_series(band.whole, model_color(band.model))]),
            ],
            zero=True,
            height=220,
            note="Gain over λ = 0 in standard deviations of the λ = 0 runs. Band: quartiles, cut off where it leaves the picture.",
        )
        for index, band in enumerate(bands)
    ]


def _whole_series(band: Band, color: str) -> dict[str, Any]:
    name = f"the {with_every_lambda(len(band.datasets))}"
    return series(name, color, band.lams, band.median, dash=True)


def dynamics_charts(cells: Sequence[Dynamics]) -> dict[str, list[dict[str, Any]]]:
    """By cell: entropy of labeled and unlabeled predictions during training, and their gap.

    >>> dynamics_charts([])
    {}
    """
    found = {}
    for cell in cells:
        epochs = np.unique(np.linspace(0, cell.epochs - 1, min(cell.epochs, MOST_POINTS)).round().astype(int))
        charts = []
        for what, title in (("labeled", "H_L"), ("unlabeled", "H_U"), ("gap", "H_L − H_U")):
            curves = []
            for side, color in ((cell.sharpened, "blue"), (cell.baseline, "grey")):
                values = getattr(side, what)[:, epochs]
                spread = {"low": values.min(0), "high": values.max(0)} if len(values) > 1 else {}
                curves.append(
                    series(side.name, color, epochs, np.median(values, axis=0), dash=color == "grey", **spread)
                )
            unit = axis("entropy of order 2", decimals=3, **({} if what == "gap" else {"min": 0}))
            charts.append(lines(title, axis("epoch", decimals=0, air=0.01), unit, curves, zero=what == "gap"))
        found[cell_title(cell.dataset, cell.model)] = charts
    return found


def offset_charts(found: Mapping[Cell, Sequence[Step]]) -> list[dict[str, Any]]:
    """The gain of moving both weights by δ, one chart for each dataset.

    >>> steps = [Step(delta, 0.0, delta, (delta - 1, delta + 1), chosen=delta == 0) for delta in (-0.05, 0.0, 0.05)]
    >>> offset_charts({("cora", "gcn"): steps})[0]["series"][0]["notes"]
    ['', 'chosen by validation', '']
    """
    charts = []
    for dataset in dict.fromkeys(dataset for dataset, _ in found):
        own = {model: sorted(steps) for (name, model), steps in found.items() if name == dataset}
        nan = float("nan")
        curves = [
            series(
                model_title(model),
                model_color(model),
                [step.x for step in steps],
                [step.gain for step in steps],
                low=[step.interval[0] if step.interval else nan for step in steps],
                high=[step.interval[1] if step.interval else nan for step in steps],
                points=True,
                dash=_DASHES[model_info(model).dash],
                notes=["chosen by validation" if step.chosen else "" for step in steps],
            )
            for index, (model, steps) in enumerate(own.items())
        ]
        unit = axis("gain, points", decimals=2)
        charts.append(
            lines(dataset_title(dataset), axis("offset δ", name="δ =", decimals=2), unit, curves, zero=True, height=220)
        )
    return charts


def retune_charts(found: Mapping[Cell, Sequence[Step]]) -> list[dict[str, Any]]:
    """The gain of every learning rate and dropout around the setting, one small map for each cell.

    >>> steps = [Step(x, y, x * y, None, chosen=x == 2) for x in (1.0, 2.0) for y in (0.0, 0.1)]
    >>> retune_charts({("cora", "gcn"): steps})[0]["values"]
    [[0.0, 0.0], [0.1, 0.2]]
    """
    gains = [abs(step.gain) for steps in found.values() for step in steps]
    limit = max(0.2, float(np.quantile(gains, 0.9))) if gains else 1.0
    charts = []
    for (dataset, model), steps in found.items():
        xs, ys = sorted({step.x for step in steps}), sorted({step.y for step in steps})
        by_place = {(step.x, step.y): step for step in steps}
        charts.append(
            {
                "kind": "heat",
                "title": cell_title(dataset, model),
                "columns": [f"×{x:g}" for x in xs],
                "rows": [f"{y:+g}".replace("-", "−") if y else "0" for y in ys],
                "values": [
                    rounded((by_place[x, y].gain if (x, y) in by_place else float("nan") for x in xs), 4) for y in ys
                ],
                "marks": [["★" if (x, y) in by_place and by_place[x, y].chosen else "" for x in xs] for y in ys],
                "limit": limit,
                "down": "dropout ↓",
                "across": "learning rate →",
                "unit": "gain of the test score in points; a star is what validation chooses",
            }
        )
    return charts


def ranking_charts(found: Sequence[Ranking]) -> dict[str, list[dict[str, Any]]]:
    """By dataset: all methods by their score, ours in colour.

    >>> from sharpen.analysis.ranking import Entry
    >>> entries = (Entry("GCN+TS", 85.7, 0.5, ours=True, rank=1), Entry("Other", 85.0, 0.5, ours=False, rank=2))
    >>> [row["name"] for row in ranking_charts([Ranking("cora", entries)])["Cora"][0]["rows"]]
    ['1. GCN+TS', '2. Other']
    """
    charts = {}
    for ranking in found:
        rows = []
        for entry in ranking.entries:
            if entry.mean is None:
                continue
            spread = entry.sd or 0.0
            rows.append(
                {
                    "group": "",
                    "name": entry.method if entry.rank is None else f"{entry.rank}. {entry.method}",
                    "color": "blue" if entry.ours else "grey",
                    "mean": entry.mean,
                    "low": entry.mean - spread if entry.sd is not None else None,
                    "high": entry.mean + spread if entry.sd is not None else None,
                    "paper": entry.paper,
                    "sure": True,
                    "strong": entry.ours,
                    "text": Score(entry.mean, entry.sd).line().text,
                    "notes": ["ours" if entry.ours else "as published"]
                    + ([f"the paper: {entry.paper:.2f}"] if entry.paper is not None else []),
                }
            )
        charts[dataset_title(ranking.dataset)] = [
            {
                "kind": "forest",
                "title": "",
                "rows": rows,
                "zero": False,
                "from": ranking.left_end if rows else None,
                "unit": "test score, %, ± standard deviation; an arrow: further to the left",
                "legend": [
                    {"name": "ours", "color": "blue"},
                    {"name": "published by others, on partly other splits", "color": "grey"},
                    {"name": "the paper's own number for ours", "quoted": True},
                ],
                "wide": True,
            }
        ]
    return charts
