"""Figures for paper: the charts of a report, painted with matplotlib in one style."""

from sharpen.report.figures.figure import draw
from sharpen.report.figures.style import save_figure

__all__ = ["draw", "save_figure"]
