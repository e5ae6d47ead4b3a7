"""A fit from Python: its page, and what a notebook shows of it."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sharpen.graph import Graph
from sharpen.report.fit import accounts, opening
from sharpen.report.page import fit_page, write_page


def write_fit_page(
    path: Path,
    report: Mapping[str, Any],
    graph: Graph,
    ids: Sequence[Any] | np.ndarray,
    probabilities: np.ndarray,
    curves: Mapping[str, Any],
) -> None:
    """The page of a fit from Python, by its ``report_``; all else as for :func:`sharpen.report.page.fit_page`."""
    from sharpen.training.records import versions

    beside = {"abstain": None, "total_seconds": report["seconds"], "command": ""}
    names = [str(name) for name in ids]
    page = fit_page(
        {**report, **beside}, graph, names, probabilities, name=graph.name, curves=curves, versions=versions()
    )
    for section in page.sections:
        section.pop("file", None)  # there is none beside it
    write_page(page, path)


def fit_html(report: Mapping[str, Any]) -> str:
    """What a notebook shows of a ``report_``: the headline, what was predicted, what helped, and the rows that are compared."""
    headline, *lines = opening(report)
    lines += [f"Note: {note}." for note in report["notes"]]
    keys = {"log_loss": "log-loss", "accuracy": "accuracy", "brier": "Brier", "ece": "ECE"}
    head, body = "".join(f"<th>{title}</th>" for title in ("labels", *keys.values())), ""
    for name, account in accounts(report).items():
        numbers = "".join(f"<td>{account['after'][key]:.3f}</td>" for key in keys)
        body += f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{account['nodes']:,}</td>{numbers}</tr>"
    text = "".join(f"<p>{html.escape(line)}</p>" for line in lines)
    title = f"<p><b>{html.escape(headline)}</b></p>"
    table = f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>" if body else ""
    return f"<div>{title}{text}{table}</div>"
