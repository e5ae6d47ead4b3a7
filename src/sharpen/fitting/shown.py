"""What a fitted classifier shows of itself: a page, and in a notebook the account of the fit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sharpen.errors import InputError
from sharpen.fitting.report import Report
from sharpen.graph import Graph


class Shown(BaseEstimator):
    """For a classifier that keeps, after ``fit``, its report, its traces, and the graph with its ids."""

    report_: Report
    curves_: Any
    _graph: Graph
    _ids: np.ndarray

    def page(self, path: str | os.PathLike[str]) -> None:
        """Writes the page of ``sharpen fit``, everything there is to see of it in one file; right after ``fit``, on its graph."""
        from sharpen.report.fitted import write_fit_page

        if not hasattr(self, "_graph"):
            raise InputError("there is no graph to show: a page is made after fit, by the classifier that fitted")
        p = self.predict_proba(self._graph)
        write_fit_page(Path(path), self.report_, self._graph, self._ids, p, self.curves_)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        if "guessing" not in getattr(self, "report_", ()):
            return dict(super()._repr_mimebundle_(**options))
        from sharpen.report.fitted import fit_html

        return {"text/plain": repr(self), "text/html": fit_html(self.report_)}

    def _repr_html_(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_graph", None)  # a file of a classifier need not hold it
        return state
