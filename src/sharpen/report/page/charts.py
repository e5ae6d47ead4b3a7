"""The words that the page's script understands: sections, charts, and the numbers in them, ready for JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sharpen.report.page.document import shortened

# More classes than these make a table that nobody reads.
MOST_CLASSES = 40


def rounded(values: Iterable[float], digits: int = 5) -> list[float | None]:
    """Numbers with so many significant digits; None for what is not finite.

    >>> rounded([0.123456789, float("nan"), 12345678.0])
    [0.12346, None, 12346000.0]
    """
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in map(float, values)]


def section(title: str, *charts: dict[str, Any], text: str = "", half: bool = False) -> dict[str, Any]:
    """A part of the page with one view.

    Args:
        title: Its heading.
        charts: What it shows.
        text: A sentence above them.
        half: Whether two such may stand beside each other on a wide screen.

    >>> section("Nothing")["views"]
    [{'name': '', 'charts': []}]
    """
    return {"title": title, "text": text, "half": half, "views": [{"name": "", "charts": list(charts)}]}


def choice(
    title: str, views: dict[str, list[dict[str, Any]]], *, text: str = "", half: bool = False, shown: int = 0
) -> dict[str, Any]:
    """A part of the page of which one of several views is seen at a time.

    >>> [view["name"] for view in choice("Two", {"before": [], "after": []})["views"]]
    ['before', 'after']
    """
    named = [{"name": shortened(name), "charts": charts} for name, charts in views.items()]
    return {"title": title, "text": text, "half": half, "views": named, "view": shown}


def chapter(
    title: str, text: str, views: dict[str, list[dict[str, Any]]], *, name: str, shown: int = 0
) -> dict[str, Any]:
    """One of several parts of a page that are seen one at a time, each in one of several views.

    Args:
        title, text: Its heading, and what it is about.
        views: By name, the sections.
        name: What the address of the page may call it.
        shown: The view to begin with.

    >>> chapter("Main results", "", {"paired": []}, name="main & more")["id"]
    'main-more'
    """
    return {
        "id": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"),
        "title": shortened(title),
        "text": text,
        "views": [{"name": shortened(view), "sections": sections} for view, sections in views.items()],
        "view": shown,
    }


def words(lines_of_text: Sequence[str]) -> dict[str, Any]:
    """Sentences as a list.

    >>> words(["One."])["lines"]
    ['One.']
    """
    return {"kind": "words", "title": "", "lines": list(lines_of_text), "wide": True}


def axis(label: str, **options: Any) -> dict[str, Any]:
    """An axis: its label, and what the data does not tell (``min``, ``max``, ``decimals``, ``unit``, ``name``, ``air``, ``most``).

    >>> axis("epoch", decimals=0)
    {'label': 'epoch', 'decimals': 0}
    """
    return {"label": label, **options}


def series(
    name: str,
    color: str,
    x: Iterable[float],
    y: Iterable[float],
    *,
    low: Iterable[float] | None = None,
    high: Iterable[float] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """A curve, or points, with an interval around them; options: ``dash``, ``points``, ``line``, ``size``, ``notes``.

    >>> series("λ = 0.5", "blue", [0, 1], [0.5, float("nan")], dash=True)
    {'name': 'λ = 0.5', 'color': 'blue', 'x': [0.0, 1.0], 'y': [0.5, None], 'dash': True}
    """
    found = {"name": shortened(name), "color": color, "x": rounded(x), "y": rounded(y), **options}
    if low is not None and high is not None:
        found |= {"low": rounded(low), "high": rounded(high)}
    return found


def lines(
    title: str, x: dict[str, Any], y: dict[str, Any], curves: Sequence[dict[str, Any]], **options: Any
) -> dict[str, Any]:
    """Curves over one axis; options: ``marks``, ``diagonal``, ``hover``, ``height``, ``note``, ``summary``, ``wide``.

    >>> lines("Loss", axis("epoch"), axis("loss"), [])["kind"]
    'lines'
    """
    return {"kind": "lines", "title": title, "x": x, "y": y, "series": list(curves), **options}


def matrix(title: str, names: Sequence[str], counts: np.ndarray) -> dict[str, Any]:
    """A confusion matrix [true, predicted]; of very many classes the most frequent, the others together.

    >>> chart = matrix("Confusion", [str(c) for c in range(50)], np.eye(50, dtype=int))
    >>> len(chart["names"]), chart["names"][-1], chart["counts"][-1][-1]
    (41, '10 others', 10)
    """
    names = [shortened(name) for name in names]
    if len(names) > MOST_CLASSES:
        ranked = np.argsort(-counts.sum(1), kind="stable")
        kept, rest = np.sort(ranked[:MOST_CLASSES]), ranked[MOST_CLASSES:]
        target = np.full(len(names), MOST_CLASSES)
        target[kept] = np.arange(MOST_CLASSES)
        merged = np.zeros((MOST_CLASSES + 1,) * 2, dtype=counts.dtype)
        np.add.at(merged, (target[:, None], target[None, :]), counts)
        names, counts = [*(names[c] for c in kept), f"{len(rest)} others"], merged
    return {"kind": "matrix", "title": title, "names": names, "counts": counts.astype(int).tolist()}


def facts(entries: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Names and what they stand for.

    >>> facts([("seed", "0")])["entries"]
    [('seed', '0')]
    """
    return {"kind": "facts", "title": "", "entries": list(entries), "wide": True}


def described(value: Any) -> str:
    """A setting as text.

    >>> described(None), described([0.1, 0.25]), described(True)
    ('default', '0.1, 0.25', 'yes')
    """
    match value:
        case None:
            return "default"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case list() | tuple():
            return ", ".join(described(part) for part in value)
        case _:
            return str(value)
