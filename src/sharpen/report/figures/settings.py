"""How the score moves around a setting: offsets between the two weights, and learning rate against dropout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sharpen.analysis.steps import Step
from sharpen.errors import InputError
from sharpen.models.registry import model_info
from sharpen.report.figures.style import caption, colour, new_figure, styled, zero_line
from sharpen.report.names import dataset_title, model_title
from sharpen.studies.plan import Cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def offset_figure(found: Mapping[Cell, Sequence[Step]]) -> Figure:
    """The gain of moving both weights by δ, one panel per dataset, one mark per model.

    Args:
        found: by cell, as :func:`sharpen.analysis.steps.offset_steps` gives them.

    >>> steps = [Step(delta, 0.0, delta, (delta - 1, delta + 1), chosen=delta == 0) for delta in (-0.05, 0.0, 0.05)]
    >>> len(offset_figure({("cora", "gcn"): steps}).axes)
    1
    """
    from matplotlib.lines import Line2D

    _some(found)
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
            steps = sorted(found.get(Cell(dataset, model), []))
            # Side by side, so that intervals of different models do not cover each other.
            at = [step.x + 0.2 * spacing * (index - (len(models) - 1) / 2) for step in steps]
            for x, step in zip(at, steps, strict=True):
                if step.interval is not None:
                    axes.plot([x, x], step.interval, color=colour(model), linewidth=1.1)
                axes.plot(
                    [x],
                    [step.gain],
                    model_info(model).marker,
                    color=colour(model),
                    markerfacecolor=colour(model) if step.chosen else "white",
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
        Line2D([], [], color=colour(m), marker=model_info(m).marker, markerfacecolor="white", label=model_title(m))
        for i, m in enumerate(models)
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=4)
    caption(
        figure,
        "Paired difference of the test score to δ = 0 at (λ* + δ, −λ* + δ), with 95 % t interval. Filled: the δ that "
        "validation chooses; of equals it is the smallest change. Panels differ in scale; of a model without marks the table "
        "says why.",
    )
    return figure


@styled
def retune_figure(found: Mapping[Cell, Sequence[Step]]) -> Figure:
    """The gain of every learning rate and dropout around the setting, one small map per cell.

    Args:
        found: by cell, as :func:`sharpen.analysis.steps.retune_steps` gives them.

    >>> steps = [Step(x, y, x * y, None, chosen=x == 2 and y == 0) for x in (0.5, 1.0, 2.0) for y in (-0.1, 0.0, 0.1)]
    >>> len(retune_figure({("cora", "gcn"): steps}).axes)  # the map and its colours
    2
    """
    _some(found)
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
            steps = found[Cell(dataset, model)]
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


def _times(x: float) -> str:
    return {0.25: "¼", 0.5: "½"}.get(x, f"{x:g}")


def _some(found: Mapping[Cell, Sequence[Step]]) -> None:
    if not found:
        raise InputError("no cell has runs around its setting yet; run the study first, see sharpen study status")
