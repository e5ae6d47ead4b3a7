"""Finished work as a page: one HTML file that needs no server and no network."""

from sharpen.report.page.comparison import comparison_page
from sharpen.report.page.document import Page, render, write_page
from sharpen.report.page.fit import fit_page
from sharpen.report.page.study import study_page

__all__ = ["Page", "comparison_page", "fit_page", "render", "study_page", "write_page"]
