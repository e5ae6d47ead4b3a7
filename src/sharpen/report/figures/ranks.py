"""Our scores among published ones, per dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sharpen.analysis.ranking import SHARPENED, Entry, Ranking
from sharpen.errors import InputError
from sharpen.report.figures.style import NEUTRAL, PLAIN, SHARP, caption, new_figure, styled
from sharpen.report.names import dataset_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def ranking_figure(rankings: Sequence[Ranking]) -> Figure:
    """Every method's score with its standard deviation, one panel per dataset that has one of ours, the best on top.

    >>> entries = (Entry("Other", 85.0, 0.5, ours=False, rank=1), Entry("GCN+TS", 84.0, 0.4, ours=True, n=5, rank=2))
    >>> len(ranking_figure([Ranking("cora", entries)]).axes)
    1
    """
    shown = [ranking for ranking in rankings if ranking.best_of_ours is not None]
    if not shown:
        raise InputError("none of our scores is there to rank yet; run the study main first, see sharpen study status")
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    most = max(sum(entry.rank is not None for entry in ranking.entries) for ranking in shown)
    figure = new_figure(3.3 * columns + 0.4, rows * (0.165 * most + 0.7) + 0.7)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, ranking in zip(grid, shown, strict=False):
        _panel(axes, ranking)
    for axes in grid[len(shown) :]:
        axes.set_axis_off()
    for axes in grid[max(0, len(shown) - columns) : len(shown)]:
        axes.set_xlabel("test score (%)")
    sharpened = any(e.ours and e.rank is not None and e.method.endswith(SHARPENED) for r in shown for e in r.entries)
    kinds = "circles without sharpening and squares with λ by validation" if sharpened else "all without sharpening"
    caption(
        figure,
        f"Mean and standard deviation. Filled: ours, {kinds}. Open grey: other methods as published, on partly other "
        "splits, without pairing; an arrow: further to the left. Scales begin where the scores of a panel do. An order of means, "
        f"and no test.{_left_out(rankings)}",
    )
    return figure


def _left_out(rankings: Sequence[Ranking]) -> str:
    """Which datasets have no panel, and why."""
    why: dict[str, list[str]] = {}
    for ranking in rankings:
        if ranking.best_of_ours is None:
            reason = next(
                (entry.reason for entry in ranking.entries if entry.ours and entry.reason), "no score of ours"
            )
            why.setdefault(reason, []).append(dataset_title(ranking.dataset))
    return "".join(f" Left out ({reason}): {', '.join(names)}." for reason, names in why.items())


def _panel(axes: Axes, ranking: Ranking) -> None:
    entries = [(entry, entry.mean) for entry in ranking.entries if entry.mean is not None]
    left = ranking.left_end
    for height, (entry, mean) in enumerate(entries):
        own, marker, filled = _look(entry)
        if mean < left:
            axes.annotate(
                f"◂ {mean:.2f}", (0.01, height), xycoords=("axes fraction", "data"), va="center", color=own, fontsize=7
            )
            continue
        axes.errorbar(
            [mean],
            [height],
            xerr=None if entry.sd is None else [entry.sd],
            fmt=marker,
            color=own,
            markerfacecolor=own if filled else "white",
            markersize=4.5,
            linewidth=1.1,
        )
    axes.set_yticks(range(len(entries)), [f"{entry.rank}  {entry.method}" for entry, _ in entries], fontsize=7.5)
    for label, (entry, _) in zip(axes.get_yticklabels(), entries, strict=True):
        if entry.ours:
            label.set(fontweight="bold", color=_look(entry)[0])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(entries) - 0.4, -0.6)
    right = max(mean + (entry.sd or 0) for entry, mean in entries)
    axes.set_xlim(left - 0.02 * (right - left), right + 0.03 * (right - left))
    axes.grid(axis="y", visible=False)
    axes.locator_params(axis="x", nbins=5)
    axes.set_title(dataset_title(ranking.dataset), loc="left", fontweight="bold")


def _look(entry: Entry) -> tuple[str, str, bool]:
    if not entry.ours:
        return NEUTRAL, "o", False
    return (SHARP, "s", True) if entry.method.endswith(SHARPENED) else (PLAIN, "o", True)
