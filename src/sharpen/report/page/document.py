"""One page as one file: text, data, style and script together, and a promise that nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from sharpen.report.palette import PALETTE

# In this order: what a file uses is in the files before it.
_SCRIPTS = ("dom", "lines", "dots", "matrix", "forest", "table", "network", "sheet", "page")


@dataclass(frozen=True)
class Page:
    """What a page says; how it looks is not its business.

    Args:
        kind: What made it, in a few words above the headline.
        headline: The result in one sentence.
        below: What else must be known to trust the headline.
        tiles: The numbers to see first, each with what it is.
        sections: From :func:`sharpen.report.page.sections.section`.
        command: The command that reproduces it.
        chapters: From :func:`sharpen.report.page.sections.chapter`; one of them is seen at a time, above the sections.
        opened: Which of them is seen first.

    >>> Page("toy", "Nothing happened.").sections
    []
    """

    kind: str
    headline: str
    below: Sequence[str] = ()
    tiles: Sequence[tuple[str, str]] = ()
    sections: list[dict[str, Any]] = field(default_factory=list)
    command: str = ""
    chapters: list[dict[str, Any]] = field(default_factory=list)
    opened: int = 0


def render(page: Page) -> str:
    """The page as HTML that needs no other file and no network, and could not use one.

    A content security policy allows the script and the style of this very page, by their hashes, and no connection. Data is
    embedded as JSON that cannot end its element; the script shows it as text and never as markup.

    >>> text = render(Page("toy", "A < B, says </script><script>alert(1)</script>"))
    >>> "<script>alert" in text, "A &lt; B" in text
    (False, True)
    """
    style, script = _style(), _script()
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    tiles = "".join(f"<li><b>{_text(value)}</b><span>{_text(name)}</span></li>" for value, name in page.tiles)
    below = "".join(f'<p class="below">{_text(line)}</p>' for line in page.below)
    command = f'<p>To reproduce:</p><code class="command">{_text(page.command)}</code>' if page.command else ""
    data = embedded({"chapters": page.chapters, "opened": page.opened, "sections": page.sections})
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{_text(page.kind)}</title>
<style>{style}</style>
</head>
<body>
<header>
<p class="kind">{_text(page.kind)}</p>
<h1>{_text(page.headline)}</h1>
{below}
<ul class="tiles">{tiles}</ul>
</header>
<noscript><p class="below">The charts of this page need JavaScript, which is turned off; nothing is fetched by it.</p></noscript>
<main></main>
<footer>{command}</footer>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def write_page(page: Page, path: Path) -> None:
    """Write a page to a file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(Page("toy", "Nothing happened."), Path(folder, "page.html"))
    ...     Path(folder, "page.html").stat().st_size < 100_000
    True
    """
    path.write_bytes(render(page).encode("utf-8", "backslashreplace"))


def embedded(data: Any) -> str:
    r"""JSON that may stand inside a script element: no character that means something to HTML is left in it.

    >>> embedded({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # A lone surrogate, from a name that is no text, cannot be written as UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


def _text(text: str) -> str:
    return html.escape(text.encode("utf-8", "replace").decode("utf-8"))


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _style() -> str:
    light, dark = ("".join(f"--{name}:{colors[i]};" for name, colors in PALETTE.items()) for i in (0, 1))
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{_asset('page.css')}"


@cache
def _script() -> str:
    body = "\n".join(_asset(f"{name}.js") for name in _SCRIPTS)
    return f'"use strict";\n(() => {{\n{body}\n}})();'


def _asset(name: str) -> str:
    return (files("sharpen.report.page") / "assets" / name).read_text(encoding="utf-8")
