"""``sharpen study report``: tables, figures and findings from the records of studies."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sharpen.cli.outputs import make_folder, text_bytes, write_together
from sharpen.errors import InputError
from sharpen.studies import PROTOCOLS, each_once, list_studies, load_study
from sharpen.studies.protocol import one_of

if TYPE_CHECKING:
    from sharpen.report.builder import Reader
    from sharpen.report.study import Sheet

STORE = Path("sharpen-out") / "store"


def report(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Studies of `sharpen study list`, or YAML files of your own.",
            show_default="all of the paper",
            autocompletion=lambda: [study.name for study in list_studies()],
        ),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help=f"{', '.join(PROTOCOLS)}.", show_default="those with results")
    ] = None,
    store: Annotated[Path, typer.Option(help="Folder of records.")] = STORE,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("sharpen-out") / "report",
    figures: Annotated[bool, typer.Option("--figures", help="Draw the figures too, as PNG and SVG.")] = False,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Whether to make page.html, to look at.")] = True,
    findings: Annotated[
        Path | None,
        typer.Option(
            help="A Markdown file whose numbers, between markers, are made anew.", exists=True, dir_okay=False
        ),
    ] = None,
    max_epochs: Annotated[
        int | None, typer.Option(help="Report runs that were given this limit.", min=1, show_default="none")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of benchmark files.", show_default="$SHARPEN_DATA", exists=True, file_okay=False),
    ] = None,
) -> None:
    """Write what the records of studies say: page.html with all of it to look at, and
    for each study and protocol its page in Markdown, its numbers as CSV and its
    tables as LaTeX; cells without records say why.

    Published numbers stand beside ours. Differences are paired on the same splits
    and seeds, with their 95 % intervals. Nothing is trained.
    """
    if protocol is not None:
        one_of("protocol", protocol, PROTOCOLS)
    studies = each_once(map(load_study, names)) if names else list_studies()
    # Not above: torch and what stands on it take seconds to import, and help and completion should not wait for them.
    from sharpen.analysis.outcome import costs
    from sharpen.report.builder import Reader, unavailable
    from sharpen.report.page import study_page, write_page
    from sharpen.report.study import index_markdown
    from sharpen.report.study_text import cost_sentence
    from sharpen.store import Store

    kept = Store(store)
    if not kept.ids():
        raise InputError(
            f"there are no records in {store}; make some with sharpen study run, or name another store with --store"
        )
    for problem in kept.problems():
        typer.echo(problem.line, err=True)
    reader = Reader(kept, unavailable(studies, data), max_epochs)
    make_folder(out, ["page.html"] if page else [])
    sheets, parts = [], []
    for study in studies:
        for chosen in [protocol] if protocol is not None else reader.protocols(study):
            if chosen not in study.protocols:
                typer.echo(f"{study.name} is not run under {chosen}: left out.", err=True)
                continue
            sheet = reader.sheet(study, chosen)
            write_sheet(sheet, out, figures)
            sheets.append(sheet)
            parts.append(reader.part(study, chosen))
            typer.echo(f"{sheet.name}: {sheet.findings[0] if sheet.findings else sheet.progress + ' runs.'}")
    if not sheets:
        raise InputError(f"none of these studies is run under {protocol}; leave --protocol out, or name another")
    if not names and protocol is None:
        index = index_markdown(sheets, cost_sentence(costs(reader.frame)))
        write_together(out, {"README.md": partial(_write_text, index)})
    if page and parts:
        shown = study_page(parts, costs(reader.shown(parts)), shlex.join(["sharpen", *sys.argv[1:]]))
        write_together(out, {"page.html": partial(write_page, shown)})
    if findings is not None:
        write_findings(findings, reader)
    if not any(reader.has_runs(study, protocol) for study in studies):
        typer.echo(reader.hint(), err=True)
    typer.echo(
        f"{len(sheets)} table{'s' * (len(sheets) != 1)} in Markdown, CSV and LaTeX{', and figures,' if figures else ''} in {out}"
    )
    if page and parts:
        typer.echo(f"To look at all of it, open {out / 'page.html'}")


def write_sheet(sheet: Sheet, out: Path, figures: bool) -> None:
    """The files of one report, together or not at all."""
    from sharpen.report.figures import save_figure
    from sharpen.report.study import sheet_csv, sheet_latex, sheet_markdown

    if figures and sheet.figures:
        make_folder(out / "figures")
        drawn = {name: draw() for name, draw in sheet.figures.items()}
        write_together(
            out / "figures",
            {
                f"{sheet.name}-{name}.{ending}": partial(save_figure, figure)
                for name, figure in drawn.items()
                for ending in ("png", "svg")
            },
        )
    texts = {
        "md": sheet_markdown(sheet, "figures" if figures else None),
        "csv": sheet_csv(sheet),
        "tex": sheet_latex(sheet),
    }
    write_together(out, {f"{sheet.name}.{ending}": partial(_write_text, text) for ending, text in texts.items()})


def write_findings(path: Path, reader: Reader) -> None:
    """The file with its numbers made anew."""
    from sharpen.analysis.outcome import costs
    from sharpen.report.findings import fill, findings_blocks

    blocks = findings_blocks(
        lambda name, protocol: reader.outcome(load_study(name), protocol),
        reader.traces,
        costs(reader.frame),
        reader.protocols,
    )
    text = fill(path.read_text(encoding="utf-8"), blocks)
    write_together(path.parent, {path.name: partial(_write_text, text)})


def _write_text(text: str, path: Path) -> None:
    path.write_bytes(text_bytes(text))  # the same line ends everywhere
