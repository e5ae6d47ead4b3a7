"""Results for people: sentences, tables, pages."""

from sharpen.report.headline import headline
from sharpen.report.terminal import comparison_table, print_comparison

__all__ = ["comparison_table", "headline", "print_comparison"]
