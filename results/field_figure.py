"""The figure of the field: test score against the time of a run, plain and sharpened, every method by its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sharpen.analysis.leaderboard import Leaderboard
from sharpen.report.figures.style import caption, ink, new_figure, save_figure, styled
from sharpen.report.names import dataset_title, model_title

_NOTE = (
    "Dot: plain; end of the line: with λ = 0.25; means of ten draws. Seconds are a run's share of the GPU while several "
    "populations were trained on it at once, so they compare methods, not machines."
)
_SIZE, _HIGH, _WIDE = 6.5, 9.0, 3.9  # of a label, in points: font, line, letter


@styled()
def plot(boards: Sequence[Leaderboard], path: Path) -> None:
    """A panel for each graph that has scores."""
    figure = new_figure(9, 4.6 * len(boards) + 0.4)
    for axes, board in zip(figure.subplots(len(boards), 1, squeeze=False).ravel(), boards, strict=True):
        points = {
            one.model: (one.seconds, one.mean)
            for one in board.ranked
            if one.seconds is not None and one.mean is not None
        }
        for model, (seconds, mean) in points.items():
            axes.plot([seconds] * 2, [mean, board.sharpened.get(model, mean)], color=ink("blue"), linewidth=1.1)
            axes.plot(seconds, mean, "o", color="#333333", markersize=3)
        low, high = min(x for x, _ in points.values()), max(x for x, _ in points.values())
        axes.set(title=dataset_title(board.dataset), xscale="log", xlabel="seconds per run", ylabel="test score, %")
        axes.set_xlim(low / 1.25, high * 1.9)
        axes.xaxis.set_major_locator(_steps())
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
        figure.draw_without_rendering()
        _name(axes, points)
    caption(figure, _NOTE)
    save_figure(figure, path)


def _steps() -> Any:
    from matplotlib.ticker import LogLocator

    return LogLocator(subs=(1.0, 2.0, 5.0))


def _name(axes: Any, points: dict[str, tuple[float, float]]) -> None:
    """Puts a name beside every point, in the nearest place that covers nothing; a thin line leads to one further away."""
    scale = 72 / axes.figure.dpi
    at = {model: axes.transData.transform(point) * scale for model, point in points.items()}
    taken = [(x - 2.0, x + 2.0, y - 2.0, y + 2.0) for x, y in at.values()]
    for model in sorted(at, key=lambda name: -at[name][1]):
        (x, y), wide = at[model], _WIDE * len(model_title(model))
        places = [
            (dx, step * _HIGH / 2)
            for step in sorted(range(-12, 13), key=lambda k: (abs(k), k < 0))
            for dx in (4.0, -wide - 4.0)
        ]
        dx, dy = min(places, key=lambda place: (_covered(_box(x, y, *place, wide), taken), abs(place[1]), place[0] < 0))
        taken.append(_box(x, y, dx, dy, wide))
        line = {"arrowstyle": "-", "color": "#AAAAAA", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 1}
        axes.annotate(
            model_title(model),
            points[model],
            xytext=(dx, dy),
            textcoords="offset points",
            fontsize=_SIZE,
            verticalalignment="center",
            arrowprops=line if abs(dy) > _HIGH else None,
        )


def _box(x: float, y: float, dx: float, dy: float, wide: float) -> tuple[float, float, float, float]:
    return x + dx, x + dx + wide, y + dy - _HIGH / 2, y + dy + _HIGH / 2


def _covered(box: tuple[float, float, float, float], taken: Sequence[tuple[float, float, float, float]]) -> float:
    """The area that a box shares with others."""
    left, right, low, high = box
    return sum(max(0.0, min(right, b) - max(left, a)) * max(0.0, min(high, d) - max(low, c)) for a, b, c, d in taken)
