"""Paired differences as dots with their intervals, one row per cell, the published difference beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sharpen.analysis.outcome import CellOutcome, Effect, Outcome
from sharpen.errors import InputError
from sharpen.models.registry import model_info
from sharpen.report.cells import signed
from sharpen.report.figures.style import NEUTRAL, caption, colour, new_figure, styled, zero_line
from sharpen.report.names import dataset_title, model_title, plural
from sharpen.report.study_tables import kept_setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# How far above ours the paper's difference stands, in rows.
_ABOVE = 0.33


@styled
def forest_figure(outcome: Outcome, contrast: str | None = None) -> Figure:
    """The differences of one comparison in all cells that have one; an open diamond is what the paper says.

    Args:
        outcome: of a study with comparisons.
        contrast: by its name ``a - b``; None: the study's first.

    >>> import pandas as pd
    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> forest_figure(outcome(load_study("arxiv"), "paper", pd.DataFrame()))
    Traceback (most recent call last):
    sharpen.errors.InputError: study 'arxiv' has no pairs for 'ts-0.25 - baseline' yet; run it first, see sharpen study status
    """
    name = contrast or next((contrast.name for contrast in outcome.study.compare), "")
    shown = [(cell, effect) for cell, effect in outcome.effects(name) if effect.difference is not None]
    if not shown:
        raise InputError(
            f"study {outcome.study.name!r} has no pairs for {name!r} yet; run it first, see sharpen study status"
        )
    datasets = list(dict.fromkeys(cell.dataset for cell, _ in shown))
    models = list(dict.fromkeys(cell.model for cell, _ in shown))
    heights, centres = _rows(shown, datasets)
    figure = new_figure(7.6, 0.235 * (heights[-1] + 1) + 1.7)
    axes = figure.subplots()
    zero_line(axes, vertical=True)
    for (cell, effect), height in zip(shown, heights, strict=True):
        _dot(axes, cell, effect, height, models)
    for low, high in list(centres.values())[::2]:
        axes.axhspan(low - 0.75, high + 0.75, color="#F4F4F4", zorder=0, linewidth=0)
    axes.set_yticks([sum(centres[d]) / 2 for d in datasets], [dataset_title(d) for d in datasets])
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.set_ylim(heights[-1] + 0.9, -0.9)
    cut = _limit(axes, shown, heights)
    _numbers(axes, shown, heights, outcome)
    axes.set_xlabel(f"test score: {name.replace(' - ', ' − ')} (percentage points)")
    _legend(axes, models, any(effect.published is not None for _, effect in shown))
    missing = [cell for cell, effect in outcome.effects(name) if effect.difference is None]
    whole = [effect.difference.n for _, effect in shown if effect.difference is not None and not effect.partial]
    counts = sorted(set(whole)) or [0]
    pairs = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    partly = len(shown) - len(whole)
    caption(
        figure,
        f"{outcome.study.title}, {outcome.protocol} protocol. Mean of paired differences on the same splits and seeds with 95 % t "
        "interval; "
        f"{pairs} pairs (or splits, where those have several runs) per complete cell; filled where the interval excludes zero."
        + (" An arrow: the interval goes on beyond the axes." if cut else "")
        + (f" Dotted: {partly} {plural('cell', partly)} of which only part was run." if partly else "")
        + (
            f" {len(missing)} {'cell is' if len(missing) == 1 else 'cells are'} not shown: the table says why."
            if missing
            else ""
        ),
    )
    return figure


def _rows(
    shown: list[tuple[CellOutcome, Effect]], datasets: list[str]
) -> tuple[list[float], dict[str, tuple[float, float]]]:
    """How far down every cell stands, and where each dataset begins and ends; a gap between datasets."""
    heights: list[float] = []
    ends: dict[str, tuple[float, float]] = {}
    at = 0.0
    for dataset in datasets:
        own = [cell for cell, _ in shown if cell.dataset == dataset]
        ends[dataset] = at, at + len(own) - 1
        heights += [at + i for i in range(len(own))]
        at += len(own) + 0.5
    return heights, ends


def _dot(axes: Axes, cell: CellOutcome, effect: Effect, height: float, models: list[str]) -> None:
    d = effect.difference
    assert d is not None  # only cells with a difference are shown
    own = colour(cell.model)
    if d.t_interval is not None:
        dash = ":" if effect.partial else "-"  # more runs will move it
        axes.plot(d.t_interval, [height, height], dash, color=own, linewidth=1.6, solid_capstyle="butt", zorder=2)
    sure = _sure(effect)
    axes.plot(
        [d.difference],
        [height],
        model_info(cell.model).marker,
        color=own,
        markerfacecolor=own if sure else "white",
        markersize=5.5,
        zorder=3,
    )
    if effect.published is not None:
        # Above the line of ours, which would hide it.
        at = height - _ABOVE
        axes.plot([effect.published], [at], "d", color="#111111", markerfacecolor="white", markersize=4.5, zorder=4)


def _limit(axes: Axes, shown: list[tuple[CellOutcome, Effect]], heights: list[float]) -> bool:
    """Room for all differences and published values; whether an interval far wider than the rest leaves them with an arrow."""
    points = [e.difference.difference for _, e in shown if e.difference is not None]
    points += [e.published for _, e in shown if e.published is not None]
    ends = [
        end for _, e in shown if e.difference is not None and e.difference.t_interval for end in e.difference.t_interval
    ]
    usual = 2.5 * np.quantile(np.abs(ends), 0.9) if ends else 0.0
    low, high = min([*points, 0, *(max(e, -usual) for e in ends)]), max([*points, 0, *(min(e, usual) for e in ends)])
    room = 0.05 * max(high - low, 0.2)
    axes.set_xlim(low - room, high + room)
    cut = False
    for (_, effect), height in zip(shown, heights, strict=True):
        left, right = (effect.difference.t_interval if effect.difference else None) or (low, high)
        for end, beyond, marker in ((low - room, left < low, "<"), (high + room, right > high, ">")):
            if beyond:
                axes.plot([end], [height], marker, color=NEUTRAL, markersize=5, clip_on=False, zorder=5)
                cut = True
    return cut


def _sure(effect: Effect) -> bool:
    """Whether the interval excludes zero, and no pair is missing that could change it."""
    return effect.verdict in ("gain", "loss") and not effect.partial


def _numbers(axes: Axes, shown: list[tuple[CellOutcome, Effect]], heights: list[float], outcome: Outcome) -> None:
    """Model, difference and n at the right of every row, or that there was nothing to compare."""
    for (cell, effect), height in zip(shown, heights, strict=True):
        assert effect.difference is not None
        n = f"n = {effect.n} of {effect.planned}" if effect.partial else f"n = {effect.difference.n}"
        axes.annotate(
            f"{model_title(cell.model):>4}  {signed(effect.difference.difference):>6}  "
            + (kept_setting(cell, effect, outcome.study) or n),
            (1.01, height),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=7.5,
            family="DejaVu Sans Mono",
            color="#222222" if _sure(effect) else NEUTRAL,
        )


def _legend(axes: Axes, models: list[str], published: bool) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour(m), marker=model_info(m).marker, label=model_title(m)) for i, m in enumerate(models)
    ]
    if published:
        handles.append(
            Line2D([], [], color="#111111", marker="d", linestyle="", markerfacecolor="none", label="the paper")
        )
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=5, columnspacing=1.4)
