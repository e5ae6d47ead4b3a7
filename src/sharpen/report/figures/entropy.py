"""Entropy during training: labeled, unlabeled, and their gap, without sharpening and with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sharpen.analysis.dynamics import Dynamics, Series
from sharpen.errors import InputError
from sharpen.report.figures.style import PLAIN, SHARP, caption, new_figure, styled, zero_line
from sharpen.report.names import cell_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = (("labeled", "$H_L$"), ("unlabeled", "$H_U$"), ("gap", "$H_L - H_U$"))


@styled
def entropy_figure(cells: Sequence[Dynamics]) -> Figure:
    """H_L, H_U and their gap per epoch, one row of panels per cell: grey without sharpening, blue with it.

    >>> import numpy as np
    >>> from sharpen.evaluation import paired_difference
    >>> from sharpen.analysis.dynamics import Trajectories
    >>> runs = Trajectories("baseline", np.full((2, 9), 0.5), np.full((2, 9), 0.6))
    >>> cell = Dynamics("cora", "gcn", runs, runs, paired_difference([0.1, 0.2], [0.1, 0.1]), above=0.5)
    >>> len(entropy_figure([cell]).axes)
    3
    """
    if not cells:
        raise InputError("there are no traces to draw yet; run a study that keeps them, such as entropy-dynamics")
    figure = new_figure(7.6, 1.65 * len(cells) + 1.1)
    grid = figure.subplots(len(cells), 3, squeeze=False)
    for row, cell in zip(grid, cells, strict=True):
        for axes, (what, _) in zip(row, _COLUMNS, strict=True):
            for side, own, dash in ((cell.baseline, PLAIN, (0, (4, 1.5))), (cell.sharpened, SHARP, "-")):
                _lines(axes, getattr(side, what), own, dash, side.name)
            axes.margins(x=0.01)
            axes.locator_params(axis="both", nbins=4)
        # Both entropies of a row on one scale: what is to be seen is that they differ.
        top = 1.05 * max(axes.dataLim.y1 for axes in row[:2])
        for axes in row[:2]:
            axes.set_ylim(0, top)
        row[0].set_ylabel(f"{cell_title(cell.dataset, cell.model)}\nmean entropy")
        row[2].set_ylabel("gap")
        zero_line(row[2])
    for axes, (_, title) in zip(grid[0], _COLUMNS, strict=True):
        axes.set_title(title)
    for axes in grid[-1]:
        axes.set_xlabel("epoch")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2)
    counts = sorted({cell.baseline.labeled.shape[0] for cell in cells})
    pairs = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    caption(
        figure,
        "Mean Tsallis entropy of order 2 of labeled ($H_L$) and unlabeled ($H_U$) predictions in the training step of each epoch, "
        "dropout on. Thick: the median over runs, which one run that collapses for a while does not move; thin: every run. $H_L$ "
        f"and $H_U$ of a row have one scale, the gap its own. {pairs} runs per cell, the same splits and seeds for both.",
    )
    return figure


def _lines(axes: Axes, values: Series, own: str, dash: str | tuple[int, tuple[float, float]], label: str) -> None:
    # More points than pixels make a large file and no better picture.
    step = -(-values.shape[1] // 250)
    epochs = np.arange(0, values.shape[1], step)
    thinned = values[:, ::step]
    axes.plot(epochs, thinned.T, color=own, alpha=0.3, linewidth=0.5)
    axes.plot(epochs, np.median(thinned, axis=0), color=own, linestyle=dash, linewidth=1.4, label=label)
