"""The parts of a page: chapters, sections, and what stands in them beside charts, ready for JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sharpen.report.charts import Chart
from sharpen.report.names import shortened

_Views = dict[str, list[Chart]]


def section(title: str, *charts: Chart, text: str = "", half: bool = False) -> Chart:
    """A part of the page with one view; of half ones, two may stand beside each other on a wide screen.

    >>> section("Nothing")["views"]
    [{'name': '', 'charts': []}]
    """
    return {"title": title, "text": text, "half": half, "views": [{"name": "", "charts": list(charts)}]}


def choice(title: str, views: _Views, *, text: str = "", half: bool = False, shown: int = 0) -> Chart:
    """A part of the page of which one of several views is seen at a time.

    >>> [view["name"] for view in choice("Two", {"before": [], "after": []})["views"]]
    ['before', 'after']
    """
    named = [{"name": shortened(name), "charts": charts} for name, charts in views.items()]
    return {"title": title, "text": text, "half": half, "views": named, "view": shown}


def chapter(title: str, text: str, views: _Views, *, name: str, shown: int = 0) -> Chart:
    """One of several parts of a page that are seen one at a time, each in one of several views of sections.

    The address of the page may call it by its name; ``shown`` is the view to begin with.

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


def words(lines_of_text: Sequence[str]) -> Chart:
    """Sentences as a list.

    >>> words(["One."])["lines"]
    ['One.']
    """
    return {"kind": "words", "title": "", "lines": list(lines_of_text), "wide": True}


def facts(entries: Sequence[tuple[str, str]]) -> Chart:
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
