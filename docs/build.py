"""These pages as a static site: Markdown from this folder, the reference from docstrings, the commands from their help.

``python docs/build.py [OUT]`` writes the site; by default into ``site/``. Nothing is fetched, nothing needs a server.
"""

from __future__ import annotations

import html
import importlib
import inspect
import posixpath
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent

# What the menu shows, in order: the heading of a group, and its pages by their path in the site without the ending.
MENU: dict[str, list[str]] = {
    "": ["index"],
    "Guide": [
        "guide/own-graph",
        "guide/fit",
        "guide/own-loop",
        "guide/compare",
        "studies",
        "guide/gpu",
        "guide/paper",
        "guide/looking",
        "scale",
        "ray",
    ],
    "Reference": [
        "reference/sharpen",
        "reference/evaluation",
        "reference/report",
        "reference/page",
        "reference/commands",
    ],
    "Behind it": ["performance", "reliability", "findings", "contributing", "changelog"],
}
# Pages of the reference: which modules each shows.
REFERENCE = {
    "reference/sharpen": ("sharpen",),
    "reference/evaluation": ("sharpen.evaluation",),
    "reference/report": ("sharpen.report", "sharpen.report.figures", "sharpen.report.tables"),
    "reference/page": ("sharpen.report.page",),
}


@dataclass
class Sheet:
    """One page of the site: its Markdown, and what becomes of it; the pictures and other files that it shows or links to."""

    path: str
    text: str
    title: str = ""
    body: str = ""
    anchors: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)


def build(out: Path) -> list[str]:
    """Write the site; gives the paths of its pages."""
    sheets = {sheet.path: sheet for sheet in gather()}
    for sheet in sheets.values():
        render(sheet, sheets)
    check_anchors(sheets)
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    for file in {file for sheet in sheets.values() for file in sheet.files}:
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(DOCS / file, out / file)
    if results_page().is_file():
        (out / "results").mkdir()
        shutil.copy(results_page(), out / "results" / "page.html")
    style = (DOCS / "site.css").read_text(encoding="utf-8")
    for sheet in sheets.values():
        target = out / f"{sheet.path}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(frame(sheet, sheets, style), encoding="utf-8")
    return list(sheets)


def results_page() -> Path:
    """The page of our own records, where it was made."""
    return ROOT / "results" / "page.html"


def gather() -> Iterator[Sheet]:
    """All pages as Markdown: those of this folder, the list of changes, and the reference."""
    for path in sorted(DOCS.rglob("*.md")):
        yield Sheet(path.relative_to(DOCS).with_suffix("").as_posix(), path.read_text(encoding="utf-8"))
    yield Sheet("changelog", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    for path, names in REFERENCE.items():
        yield Sheet(path, "\n\n".join(module_text(importlib.import_module(name)) for name in names))
    yield Sheet("reference/commands", commands_text())


def render(sheet: Sheet, sheets: dict[str, Sheet]) -> None:
    """Turn Markdown into HTML: headings get anchors, links between pages are checked and rewritten."""
    parser = MarkdownIt("commonmark", {"html": False, "highlight": colored}).enable("table")
    tokens = parser.parse(re.sub(r"<!--.*?-->\n?", "", sheet.text, flags=re.DOTALL))
    for i, token in enumerate(tokens):
        if token.type == "heading_open":
            text = tokens[i + 1].content
            anchor = slug(text)
            token.attrSet("id", anchor)
            sheet.anchors.add(anchor)
            sheet.title = sheet.title or re.sub(r"[`*]", "", text)
        for child in token.children or []:
            mend(child, sheet, sheets)
    sheet.body = parser.renderer.render(tokens, parser.options, {}).replace("<table>", '<div class="scroll"><table>')
    sheet.body = sheet.body.replace("</table>", "</table></div>")


def mend(token: Token, sheet: Sheet, sheets: dict[str, Sheet]) -> None:
    """Point a link or a picture to where it will be; one that leads nowhere is an error."""
    name = {"link_open": "href", "image": "src"}.get(token.type)
    if name is None:
        return
    address, _, anchor = str(token.attrGet(name)).partition("#")
    if re.match(r"[a-z]+:", address):
        return
    target = posixpath.normpath(posixpath.join(posixpath.dirname(sheet.path), address)) if address else sheet.path
    if target == "../CHANGELOG.md":  # where it is in the repository
        target = "changelog.md"
    if target.startswith("../results"):
        token.attrSet(name, up(sheet) + "results/page.html" if results_page().is_file() else "#")
    elif not target.endswith(".md") and (DOCS / target).is_file():
        sheet.files.add(target)
    else:
        page = target.removesuffix(".md")
        if page not in sheets:
            raise SystemExit(f"docs/{sheet.path}.md links to {address}, which is not there")
        token.attrSet(name, f"{up(sheet)}{page}.html" + (f"#{anchor}" if anchor else ""))


def check_anchors(sheets: dict[str, Sheet]) -> None:
    """A link to a part of a page leads to a heading that is there."""
    for sheet in sheets.values():
        for target, anchor in re.findall(r'href="([^":]*)\.html#([^"]+)"', sheet.body):
            page = posixpath.normpath(posixpath.join(posixpath.dirname(sheet.path), target))
            if anchor not in sheets[page].anchors:
                raise SystemExit(f"docs/{sheet.path}.md links to #{anchor} of {page}, which has no such heading")


def frame(sheet: Sheet, sheets: dict[str, Sheet], style: str) -> str:
    """The whole HTML of a page: menu and text."""
    menu = []
    for heading, pages in MENU.items():
        links = "".join(
            f'<li><a href="{up(sheet)}{path}.html"{" aria-current=page" if path == sheet.path else ""}>'
            f"{html.escape(sheets[path].title)}</a></li>"
            for path in pages
        )
        menu.append((f"<h2>{heading}</h2>" if heading else "") + f"<ul>{links}</ul>")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{html.escape(sheet.title)} · sharpen</title>
<style>{style}
{code_style()}</style>
</head>
<body>
<nav aria-label="Pages">{"".join(menu)}</nav>
<main>{sheet.body}</main>
</body>
</html>
"""


def up(sheet: Sheet) -> str:
    return "../" * sheet.path.count("/")


def slug(text: str) -> str:
    """What a heading is called in an address.

    >>> slug("The `Graph`, and its λ")
    'the-graph-and-its-λ'
    """
    return re.sub(r"[^\w]+", "-", text.lower()).strip("-")


def colored(code: str, language: str, attributes: str) -> str:
    """Code with its words marked, if its language is known."""
    try:
        lexer = get_lexer_by_name(language or "text")
    except ClassNotFound:
        return html.escape(code)
    return highlight(code, lexer, HtmlFormatter(nowrap=True))


def code_style() -> str:
    light = HtmlFormatter(style="default").get_style_defs("pre")
    dark = HtmlFormatter(style="github-dark").get_style_defs("pre")
    light, dark = (re.sub(r"pre \{[^}]*\}|^(td|span).*$", "", text, flags=re.MULTILINE) for text in (light, dark))
    return f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}"


def public_names(module: ModuleType) -> list[str]:
    """What a module offers: what it lists, else what it defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [name for name, value in vars(module).items()
            if not name.startswith("_") and callable(value) and value.__module__ == module.__name__]  # fmt: skip


def module_text(module: ModuleType) -> str:
    """The reference of a module as Markdown."""
    parts = [f"# {module.__name__}", docstring(module)]
    for name in public_names(module):
        value = getattr(module, name)
        if not callable(value):
            continue
        parts += [f"## {name}", signature(name, value), docstring(value)]
        if inspect.isclass(value):
            for method, function in vars(value).items():
                shown = function.__func__ if isinstance(function, classmethod | staticmethod) else function
                if method.startswith("_") or not (inspect.isfunction(shown) or isinstance(shown, property)):
                    continue
                if not inspect.getdoc(shown):
                    continue
                is_property = isinstance(shown, property)
                title = f"**{name}.{method}**" if is_property else signature(f"{name}.{method}", shown)
                parts += [title, docstring(shown)]
    return "\n\n".join(part for part in parts if part)


def signature(name: str, value: Callable[..., Any]) -> str:
    """How something is called, one argument per line if it is long."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    arguments = [parameter for parameter in found.parameters.values() if parameter.name not in ("self", "cls")]
    shown, starred = [], False
    for parameter in arguments:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        text = parameter.name if parameter.default is parameter.empty else f"{parameter.name}={parameter.default!r}"
        shown.append("*" * {parameter.VAR_POSITIONAL: 1, parameter.VAR_KEYWORD: 2}.get(parameter.kind, 0) + text)
    line = f"{name}({', '.join(shown)})"
    if len(line) > 100:
        line = f"{name}(\n    " + ",\n    ".join(shown) + ",\n)"
    return f"```python\n{line}\n```"


def docstring(value: Any) -> str:
    """A docstring as Markdown: roles become code, arguments a list, examples a block."""
    text = inspect.getdoc(value) or ""
    text = re.sub(r":math:`([^`]*)`", lambda found: f"`{plain_math(found[1])}`", text)
    text = re.sub(r":[a-z]+:`~?(?:sharpen\.)?([^`]*)`", r"`\1`", text)
    text = text.replace("``", "`")
    lines: list[str] = []
    block: str | None = None
    for line in text.splitlines():
        stripped = line.strip()
        if block == "math" and stripped and not line.startswith(" "):
            block = None
        if stripped.startswith(">>>") and block != "example":
            lines += ["", "```pycon"]
            block = "example"
        elif block == "example" and not stripped:
            lines += ["```", ""]
            block = None
        elif stripped.startswith(".. math::"):
            formula = stripped.removeprefix(".. math::").strip()
            lines += ["", f"    {plain_math(formula)}" if formula else ""]
            block = "math"
            continue
        elif block == "math" and line.startswith(" "):
            lines.append("    " + plain_math(stripped))
            continue
        elif re.match(r"\.\. code-block::", stripped):
            continue
        elif re.fullmatch(r"(Args|Returns|Raises):", stripped):
            lines += ["", {"Args": "Arguments:", "Returns": "Gives:", "Raises": "Raises:"}[stripped[:-1]], ""]
            block = stripped[:-1]
            continue
        elif block in ("Args", "Raises") and (found := re.match(r"    ([\w, *]+): (.*)", line)):
            lines.append(f"- `{found[1]}`: {found[2]}")
            continue
        elif block in ("Args", "Raises") and line.startswith("     "):
            lines.append(f"  {stripped}")
            continue
        elif block in ("Args", "Returns", "Raises") and stripped and not line.startswith(" "):
            lines.append("")
            block = None
        lines.append(stripped if block in ("Args", "Returns", "Raises") else line)
    if block == "example":
        lines.append("```")
    return "\n".join(lines)


_SIGNS = {
    r"\lambda": "λ", r"\beta": "β", r"\alpha": "α", r"\nu": "ν", r"\Delta": "Δ", r"\sum": "Σ", r"\in": "∈", r"\cdot": "·",
    r"\pm": "±", r"\sqrt": "√", r"\tfrac12": "½", r"\log": "log", r"\max": "max", r"\min": "min", r"\le": "≤", r"\ge": "≥",
    r"\qquad": " ", r"\quad": " ", r"\,": " ", r"\;": " ", r"\Big": "", r"\big": "", r"\top": "ᵀ", r"\times": "×",
}  # fmt: skip
_GROUP = r"\{((?:[^{}]|\{[^{}]*\})*)\}"


def plain_math(text: str) -> str:
    r"""A formula in the letters of plain text.

    >>> plain_math(r"\overline{H}(V_U) + \frac{\lambda}{|V_L|}")
    'H̄(V_U) + λ / |V_L|'
    """
    text = text.replace(r"\{", "⦃").replace(r"\}", "⦄")
    for mark, accent in ((r"overline|bar", "\u0304"), ("hat", "\u0302"), ("tilde", "\u0303")):
        text = re.sub(rf"\\(?:{mark})\s*\{{?([A-Za-z])\}}?", rf"\1{accent}", text)
    text = re.sub(r"\\(?:mathrm|text|mathbf|mathbb|operatorname)\s*\{([^{}]*)\}", r"\1", text)
    text = re.sub(rf"\\sqrt{_GROUP}", r"√(\1)", text)
    text = re.sub(rf"\\frac{_GROUP}{_GROUP}", r"\1 / \2", text)
    for sign, plain in sorted(_SIGNS.items(), key=lambda pair: -len(pair[0])):
        text = re.sub(re.escape(sign) + (r"(?![A-Za-z])" if sign[1].isalpha() else ""), plain, text)
    text = re.sub(r"\^2(?!\d)", "²", re.sub(r"[{}]", "", text))
    return re.sub(r" +", " ", text.replace("⦃", "{").replace("⦄", "}")).strip()


def commands_text() -> str:
    """The commands, their arguments and options, from the program itself."""
    import typer

    from sharpen.cli.app import app

    parts = ["# Commands", help_text(typer.main.get_command(app).help or "")]

    def tell(name: str, command: Any, depth: int) -> None:
        parts.extend([f"{'#' * depth} {name}", help_text(command.help or "")])
        rows = []
        for parameter in command.params:
            if parameter.name in ("help", "install_completion", "show_completion"):
                continue
            names = ", ".join(f"`{opt}`" for opt in (*parameter.opts, *parameter.secondary_opts))
            if parameter.param_type_name == "argument":
                names = f"`{parameter.name.upper()}`"
            rows.append(f"| {names} | {help_text(getattr(parameter, 'help', '') or '').replace('|', ',')} |")
        if rows:
            parts.append("\n".join(["| | |", "|---|---|", *rows]))
        for child, sub in getattr(command, "commands", {}).items():
            tell(f"{name} {child}", sub, depth + 1)

    for child, sub in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        tell(f"sharpen {child}", sub, 2)
    return "\n\n".join(parts)


def help_text(text: str) -> str:
    """Help without the marks for a terminal; commands in it become code."""
    text = re.sub(r"\[/?bold\]", "", inspect.cleandoc(text))
    return re.sub(r"^(sharpen [^\n]*)$", lambda found: f"    {found[1]}", text, flags=re.MULTILINE)


if __name__ == "__main__":
    written = build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site")
    print(f"{len(written)} pages; open {Path(sys.argv[1] if len(sys.argv) > 1 else 'site') / 'index.html'}")
