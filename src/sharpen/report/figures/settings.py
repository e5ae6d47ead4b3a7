"""How the score moves around a setting: offsets between the two weights, and learning rate against dropout."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sharpen.errors import InputError
from sharpen.evaluation import paired_difference
from sharpen.report.figures.style import MARKERS, caption, colour, new_figure, styled, zero_line
from sharpen.report.names import dataset_title, model_title
from sharpen.studies.outcome import CellOutcome, Outcome, Side, scores_of_pairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Step(NamedTuple):
    """One variant that moves settings of the baseline: how far, and what it gains, in points."""

    x: float
    y: float
    gain: float
    interval: tuple[float, float] | None
    chosen: bool


@styled
def offset_figure(outcome: Outcome) -> Figure:
    """The gain of moving both weights by δ, one panel per dataset, one line per model.

    Args:
        outcome: of a study whose variants are (λ + δ, −λ + δ) around its baseline, such as ``offset``.
    """
    from matplotlib.lines import Line2D

    found = {(cell.dataset, cell.model): steps for cell in outcome.cells if (steps := _offsets(cell, outcome))}
    _some(found, outcome)
    datasets = list(dict.fromkeys(dataset for dataset, _ in found))
    models = list(dict.fromkeys(model for _, model in found))
    columns = min(4, len(datasets))
    rows = -(-len(datasets) // columns)
    figure = new_figure(max(2.3 * columns + 0.4, 5.0), 1.9 * rows + 1.2)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    deltas = sorted({step.x for steps in found.values() for step in steps})
    spacing = min(np.diff(deltas), default=0.05)
    for axes, dataset in zip(grid, datasets, strict=False):
        zero_line(axes)
        for index, model in enumerate(models):
            steps = sorted(found.get((dataset, model), []))
            # Side by side, so that intervals of different models do not cover each other.
            at = [step.x + 0.2 * spacing * (index - (len(models) - 1) / 2) for step in steps]
            for x, step in zip(at, steps, strict=True):
                if step.interval is not None:
                    axes.plot([x, x], step.interval, color=colour(model, index), linewidth=1.1)
                axes.plot(
                    [x],
                    [step.gain],
                    MARKERS.get(model, "o"),
                    color=colour(model, index),
                    markerfacecolor=colour(model, index) if step.chosen else "white",
                )
        axes.set_title(dataset_title(dataset), loc="left")
        axes.set_xticks(deltas, [f"{delta:+.2f}".replace("-", "−") if delta else "0" for delta in deltas])
        axes.locator_params(axis="y", nbins=5)
    for axes in grid[len(datasets) :]:
        axes.set_axis_off()
    for axes in grid[max(0, len(datasets) - columns) : len(datasets)]:
        axes.set_xlabel("offset δ")
        axes.tick_params(axis="x", labelbottom=True)
    for axes in grid[: len(datasets) : columns]:
        axes.set_ylabel("gain (points)")
    handles = [
        Line2D([], [], color=colour(m, i), marker=MARKERS.get(m, "o"), markerfacecolor="white", label=model_title(m))
        for i, m in enumerate(models)
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=4)
    caption(
        figure,
        "Paired difference of the test score to δ = 0 at (λ* + δ, −λ* + δ), with 95 % t interval. Filled: the δ that "
        "validation chooses.",
    )
    return figure


@styled
def retune_figure(outcome: Outcome) -> Figure:
    """The gain of every learning rate and dropout around the setting, one small map per cell.

    Args:
        outcome: of a study whose variants change learning rate and dropout of its baseline, such as ``retune``.
    """
    found = {(cell.dataset, cell.model): steps for cell in outcome.cells if (steps := _retunings(cell, outcome))}
    _some(found, outcome)
    datasets = list(dict.fromkeys(dataset for dataset, _ in found))
    models = list(dict.fromkeys(model for _, model in found))
    figure = new_figure(2.3 * len(models) + 1.6, 1.75 * len(datasets) + 1.2)
    grid = figure.subplots(len(datasets), len(models), squeeze=False)
    # The far corners may diverge or collapse; the colours serve the middle.
    gains = [step.gain for steps in found.values() for step in steps]
    limit = max(0.2, float(np.quantile(np.abs(gains), 0.9)))
    drawn = None
    for row, dataset in zip(grid, datasets, strict=True):
        for axes, model in zip(row, models, strict=True):
            if (dataset, model) not in found:
                axes.set_axis_off()
                continue
            steps = found[dataset, model]
            xs, ys = sorted({step.x for step in steps}), sorted({step.y for step in steps})
            table = np.full((len(ys), len(xs)), np.nan)
            for step in steps:
                table[ys.index(step.y), xs.index(step.x)] = step.gain
            drawn = axes.imshow(table, cmap="PuOr", vmin=-limit, vmax=limit, origin="lower", aspect="auto")
            axes.grid(visible=False)
            axes.set_xticks(range(len(xs)), [_times(x) for x in xs])
            axes.set_yticks(range(len(ys)), [f"{y:+.2f}".replace("-", "−") if y else "0" for y in ys])
            for step in steps:
                at = xs.index(step.x), ys.index(step.y)
                if step.chosen:
                    axes.plot(*at, "*", color="#111111", markersize=9)
                if step.x == 1 and step.y == 0:
                    axes.plot(*at, "o", color="#111111", markerfacecolor="none", markersize=10)
            axes.set_title(f"{dataset_title(dataset)} {model_title(model)}", loc="left")
    for axes in grid[-1]:
        axes.set_xlabel("learning rate ×")
    for axes in grid[:, 0]:
        axes.set_ylabel("dropout +")
    assert drawn is not None  # there is at least one cell
    figure.colorbar(
        drawn,
        ax=grid,
        label="gain of the test score (points)",
        extend="both",
        shrink=min(1, 4 / len(datasets)),
        aspect=35,
    )
    caption(
        figure,
        "Mean paired difference of the test score to the setting as it is (circle). Star: what validation chooses. Colours end at "
        f"±{limit:.1f} points.",
    )
    return figure


def _offsets(cell: CellOutcome, outcome: Outcome) -> list[Step]:
    """Variants that move both weights by the same amount."""
    steps = []
    for side, baseline, chosen in _sides(cell, outcome):
        own, base = side.trial, baseline.trial
        assert own is not None
        assert base is not None
        delta = round(own.lam - base.lam, 9)
        if replace(own, lam=base.lam, lam_labeled=base.lam_labeled) != base:
            continue
        if abs((own.lam_labeled or 0) - (base.lam_labeled or 0) - delta) < 1e-9:
            steps.append(_step(delta, 0.0, side, baseline, chosen))
    return [step for step in steps if step is not None] if len(steps) > 1 else []


def _retunings(cell: CellOutcome, outcome: Outcome) -> list[Step]:
    """Variants that change learning rate and dropout, and nothing else."""
    steps = []
    for side, baseline, chosen in _sides(cell, outcome):
        own, base = side.trial, baseline.trial
        assert own is not None
        assert base is not None
        if replace(own, lr=base.lr, dropout=base.dropout) == base:
            x = round((own.lr or 0) / (base.lr or 1), 6)
            y = round((own.dropout or 0) - (base.dropout or 0), 6)
            steps.append(_step(x, y, side, baseline, chosen))
    return [step for step in steps if step is not None] if len(steps) > 1 else []


def _sides(cell: CellOutcome, outcome: Outcome) -> list[tuple[Side, Side, bool]]:
    """Every variant with runs beside the baseline, and whether validation chose it."""
    baseline = cell.sides.get(outcome.study.baseline or "")
    if baseline is None or not baseline.n:
        return []
    chosen = {cell.sides[name].trial for name in outcome.study.choose}
    return [
        (cell.sides[name], baseline, cell.sides[name].trial in chosen)
        for name in outcome.study.variants
        if cell.sides[name].n and cell.sides[name].trial is not None
    ]


def _step(x: float, y: float, side: Side, baseline: Side, chosen: bool) -> Step | None:
    a, b, _ = scores_of_pairs(side, baseline)
    if not a:
        return None
    difference = paired_difference(a, b, resamples=0)
    return Step(x, y, difference.difference, difference.t_interval, chosen)


def _times(x: float) -> str:
    return {0.25: "¼", 0.5: "½"}.get(x, f"{x:g}")


def _some(found: object, outcome: Outcome) -> None:
    if not found:
        raise InputError(f"study {outcome.study.name!r} has no such variants with runs yet; see sharpen study status")
