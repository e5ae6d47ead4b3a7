"""Docstrings as Markdown for the site: Sphinx roles become code, formulas MathML, doctests blocks of code."""

from __future__ import annotations

import re
from typing import Any

import griffe
from latex2mathml.converter import convert


class Roles(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(text: str) -> str:
    """A docstring in reStructuredText as Markdown.

    >>> markdown("The :func:`sharpen.train` of ``x``.")
    'The `train` of `x`.'
    """
    text = re.sub(r":math:`([^`]*)`", lambda found: convert(found[1]), text)
    text = re.sub(r":[a-z]+:`~?(?:sharpen\.)?([^`]*)`", r"`\1`", text).replace("``", "`")
    text = re.sub(r"^( *)\.\. code-block:: (\w+)\n\n((?:\1 +.*\n?|\n)+)", _code, text, flags=re.MULTILINE)
    text = re.sub(r"^( *)\.\. math::((?:.*\n?)(?:\n?\1 +.*\n?)*)", _formula, text, flags=re.MULTILINE)
    # A doctest stands until the next empty line.
    return re.sub(r"(?:^ *>>>.*\n?(?:^ *\S.*\n?)*)", _example, text, flags=re.MULTILINE)


def _formula(found: re.Match[str]) -> str:
    formula = " ".join(found[2].split())
    return f"\n<div>{convert(formula, display='block')}</div>\n\n"


def _code(found: re.Match[str]) -> str:
    lines = [line.removeprefix(found[1]).removeprefix("    ") for line in found[3].rstrip().splitlines()]
    return "\n".join([f"```{found[2]}", *lines, "```", ""])


def _example(found: re.Match[str]) -> str:
    lines = found[0].rstrip().splitlines()
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    return "\n".join(["", f"{indent}```pycon", *lines, f"{indent}```", ""])
