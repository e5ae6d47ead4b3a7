"""``sharpen study report``: tables, figures and findings from the records of studies."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sharpen.cli.options import DataFolder, PageOption
from sharpen.cli.outputs import make_folder, write_together
from sharpen.errors import InputError
from sharpen.studies import PROTOCOLS, each_once, list_studies, load_study
from sharpen.studies.protocol import ALL, known_protocol, rate_of
from sharpen.whole import text_bytes

if TYPE_CHECKING:
    from sharpen.report.blocks import Report

STORE = Path("sharpen-out") / "store"


def report(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Studies from `sharpen study list`, or your own YAML files.",
            show_default="all of the paper",
            autocompletion=lambda: [study.name for study in list_studies()],
        ),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help=f"{', '.join(PROTOCOLS)}, few-N or share-N.", show_default="those with results")
    ] = None,
    store: Annotated[Path, typer.Option(help="Folder of records.")] = STORE,
    out: Annotated[Path, typer.Option(help="Output folder.")] = Path("sharpen-out") / "report",
    figures: Annotated[bool, typer.Option("--figures", help="Also draw the figures, as PNG and SVG.")] = False,
    page: PageOption = True,
    findings: Annotated[Path | None, typer.Option(hidden=True)] = None,
    max_epochs: Annotated[
        int | None, typer.Option(help="Report runs with this limit.", min=1, show_default="none")
    ] = None,
    data: DataFolder = None,
) -> None:
    """Report the records of studies: an HTML report (page.html), and for each study
    and protocol its findings as Markdown, its numbers as CSV and its tables as
    LaTeX. Cells without records say why.

    Published numbers are shown next to ours. Differences are paired on the same
    splits and seeds, with 95 % confidence intervals. Nothing is trained.
    """
    if findings is not None:
        script = "python results/findings.py FILE --store STORE"
        raise InputError(f"--findings is now a script of the repository: {script}; leave the option out here")
    if protocol not in (None, ALL):
        known_protocol(protocol)
    studies = each_once(map(load_study, names)) if names else list_studies()
    # Not above: torch and what stands on it take seconds to import, and help and completion should not wait for them.
    from sharpen.analysis.provenance import costs
    from sharpen.report.builder import Reader, unavailable
    from sharpen.report.page import study_page, write_page
    from sharpen.report.study_text import cost_sentence
    from sharpen.report.text import index_markdown
    from sharpen.store import Store

    kept = Store(store)
    for problem in kept.problems():
        typer.echo(problem.line, err=True)
    if not kept.ids():
        way_out = "make some with sharpen study run, or name another store with --store"
        raise InputError(f"there are no records in {store}; {way_out}")
    reader = Reader(kept, unavailable(studies, data), max_epochs)
    make_folder(out, ["page.html"] if page else [])
    reports = []
    for study in studies:
        for chosen in [protocol] if protocol is not None else reader.protocols(study):
            of_rates = any(rate_of(each) for each in study.protocols)
            if chosen not in (*study.protocols, *[ALL] * of_rates):
                typer.echo(f"{study.name} is not run under {chosen}: left out.", err=True)
                continue
            made = reader.report(study, chosen)
            _write_report(made, out, figures)
            reports.append(made)
            typer.echo(f"{made.name}: {made.findings[0] if made.findings else made.progress + ' runs.'}")
    if not reports:
        raise InputError(f"none of these studies is run under {protocol}; leave --protocol out, or name another")
    if not names and protocol is None:
        index = index_markdown(reports, cost_sentence(costs(reader.frame)))
        write_together(out, {"README.md": partial(_write_text, index)})
    if page:
        shown = study_page(reports, costs(reader.shown(reports)), shlex.join(["sharpen", *sys.argv[1:]]))
        write_together(out, {"page.html": partial(write_page, shown)})
    if not any(reader.has_runs(study, protocol) for study in studies):
        typer.echo(reader.hint(), err=True)
    typer.echo(
        f"{len(reports)} table{'s' * (len(reports) != 1)} in Markdown, CSV and LaTeX{', and figures,' if figures else ''} in {out}"
    )
    if page:
        typer.echo(f"Report: {out / 'page.html'}")


def _write_report(report: Report, out: Path, figures: bool) -> None:
    """The files of one report, together or not at all."""
    from sharpen.report.figures import draw, save_figure
    from sharpen.report.text import report_csv, report_latex, report_markdown

    if figures and report.figures:
        make_folder(out / "figures")
        drawn = {name: draw(charts) for name, charts in report.figures.items()}
        write_together(
            out / "figures",
            {
                f"{report.name}-{name}.{ending}": partial(save_figure, figure)
                for name, figure in drawn.items()
                for ending in ("png", "svg")
            },
        )
    texts = {
        "md": report_markdown(report, "figures" if figures else None),
        "csv": report_csv(report),
        "tex": report_latex(report),
    }
    write_together(out, {f"{report.name}.{ending}": partial(_write_text, text) for ending, text in texts.items()})


def _write_text(text: str, path: Path) -> None:
    path.write_bytes(text_bytes(text))  # the same line ends everywhere
