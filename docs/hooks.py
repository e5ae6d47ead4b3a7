"""What the site has beside the pages of this folder: the changes, the commands, and the results of our own records."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
# Where a link of the repository leads in the site.
_MOVED = {"CHANGELOG.md": "changelog.md", "results/README.md": "results/page.html"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made, and what lies elsewhere in the repository."""
    files.append(File.generated(config, "changelog.md", content=(ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))
    files.append(File.generated(config, "reference/commands.md", content=commands()))
    folders = (ROOT / "results", *(ROOT / "results" / name for name in ("field", "label-rates", "few-labels")))
    pages = [folder / "page.html" for folder in folders]
    for path in [*pages, *sorted((ROOT / "results" / "figures").glob("*.png"))]:
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to the rest of the repository to where it is in the site; leave comments out."""
    markdown = re.sub(r"<!--.*?-->\n?", "", markdown, flags=re.DOTALL)
    up = "../" * (page.file.src_uri.count("/") + 1)

    def moved(found: re.Match[str]) -> str:
        return f"]({up[3:]}{_MOVED.get(found[1], found[1])})"

    return re.sub(rf"\]\({re.escape(up)}([\w./-]+)\)", moved, markdown)


def commands() -> str:
    """The commands, their arguments and options, from the program itself."""
    sys.path.insert(0, str(ROOT / "src"))
    import typer

    from sharpen.cli.app import app
    from sharpen.cli.lazy import COMMANDS, load_command

    whole: Any = typer.main.get_command(app)
    parts = ["# Commands", _help(whole.help)]

    def tell(name: str, command: Any, depth: int) -> None:
        parts.extend([f"{'#' * depth} {name}", _help(command.help)])
        rows = [_row(parameter) for parameter in command.params if _shown(parameter)]
        if rows:
            parts.append("\n".join(["| option | |", "|---|---|", *rows]))
        for child, sub in getattr(command, "commands", {}).items():
            tell(f"{name} {child}", sub, depth + 1)

    for child in COMMANDS:
        tell(f"sharpen {child}", load_command(child), 2)
    return "\n\n".join(parts)


def _shown(parameter: Any) -> bool:
    hidden = getattr(parameter, "hidden", False)
    return not hidden and parameter.name not in ("help", "install_completion", "show_completion")


def _row(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if parameter.param_type_name == "argument":
        names = f"`{parameter.name.upper()}`"
    return f"| {names} | {_help(getattr(parameter, 'help', '')).replace('|', ',')} |"


def _help(text: str | None) -> str:
    """Help without the marks for a terminal; commands in it become code."""
    text = re.sub(r"\[/?bold\]", "", inspect.cleandoc(text or ""))
    return re.sub(r"^(sharpen [^\n]*)$", lambda found: f"    {found[1]}", text, flags=re.MULTILINE)
