"""Figures: functions that return a matplotlib figure, in one style."""

from sharpen.report.figures.entropy import entropy_figure
from sharpen.report.figures.forest import forest_figure
from sharpen.report.figures.lambdas import glass_figure, improvements_figure, lambda_panels
from sharpen.report.figures.ranks import ranking_figure
from sharpen.report.figures.settings import offset_figure, retune_figure
from sharpen.report.figures.style import save_figure

__all__ = [
    "entropy_figure",
    "forest_figure",
    "glass_figure",
    "improvements_figure",
    "lambda_panels",
    "offset_figure",
    "ranking_figure",
    "retune_figure",
    "save_figure",
]
