"""``sharpen study report``: tables, figures and findings from the records of studies."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sharpen.cli.outputs import make_folder, write_together
from sharpen.errors import InputError
from sharpen.studies import PROTOCOLS, Study, each_once, list_studies, load_study
from sharpen.studies.protocol import one_of

if TYPE_CHECKING:
    from sharpen.report.page import Part
    from sharpen.report.study import Sheet
    from sharpen.studies.dynamics import Traces
    from sharpen.studies.outcome import Outcome
    from sharpen.studies.store import Store

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
    from sharpen.report.page import study_page, write_page
    from sharpen.report.study import index_markdown
    from sharpen.report.study_text import cost_sentence
    from sharpen.studies.outcome import costs
    from sharpen.studies.store import Store

    kept = Store(store)
    if not kept.ids():
        raise InputError(
            f"there are no records in {store}; make some with sharpen study run, or name another store with --store"
        )
    for problem in kept.problems():
        typer.echo(problem.line, err=True)
    reader = Reader(kept, unavailable(studies, data), max_epochs)
    make_folder(out)
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
    if not names and protocol is None:
        index = index_markdown(sheets, cost_sentence(costs(reader.frame)))
        write_together(out, {"README.md": lambda path: path.write_text(index, encoding="utf-8")})
    if page and parts:
        shown = study_page(parts, costs(reader.frame), shlex.join(["sharpen", *sys.argv[1:]]))
        write_together(out, {"page.html": partial(write_page, shown)})
    if findings is not None:
        write_findings(findings, reader)
    if not any(map(reader.has_runs, studies)):
        typer.echo(reader.hint(), err=True)
    typer.echo(
        f"{len(sheets)} table{'s' * (len(sheets) != 1)} in Markdown, CSV and LaTeX{', and figures,' if figures else ''} in {out}"
    )
    if page and parts:
        typer.echo(f"To look at all of it, open {out / 'page.html'}")


class Reader:
    """Outcomes and pages of one store, each worked out once.

    Args:
        store: the records.
        unavailable: by dataset, why its cells cannot be run here.
        max_epochs: the limit that the runs were given, if they were.
    """

    def __init__(self, store: Store, unavailable: dict[str, str], max_epochs: int | None = None) -> None:
        self.store, self.unavailable, self.max_epochs = store, unavailable, max_epochs
        # With what was run again for a trace: its scores do not count, its time does.
        self.frame = store.runs()
        self._found: dict[tuple[int, str], Outcome] = {}

    def outcome(self, study: Study, protocol: str) -> Outcome:
        """What the records say about a study under a protocol."""
        from sharpen.studies.outcome import outcome

        key = id(study), protocol  # the outcome holds the study, so that no other gets its identity
        if key not in self._found:
            self._found[key] = outcome(
                study, protocol, self.frame, unavailable=self.unavailable, max_epochs=self.max_epochs
            )
        return self._found[key]

    def protocols(self, study: Study) -> list[str]:
        """The protocols under which a study has a finished comparison, or any record; else the first of its own."""
        source = study if study.reads is None else load_study(study.reads)
        offered = [protocol for protocol in study.protocols if protocol in source.protocols]
        # Runs that another study shares with this one do not make it a study that was run.
        done = [p for p in offered if self.outcome(source, p).complete]
        if study.traces:
            done = [p for p in done if self._traced(self.outcome(source, p))]
        return done or [p for p in offered if self.outcome(source, p).finished][:1] or offered[:1]

    def has_runs(self, study: Study) -> bool:
        """Whether there is any run of a study, or of the study that it reads."""
        source = study if study.reads is None else load_study(study.reads)
        return any(self.outcome(source, protocol).finished for protocol in source.protocols)

    def traces(self, outcome: Outcome) -> Traces:
        """What the runs of an outcome traced."""
        return self.store.traces(
            {run.id for cell in outcome.cells for side in cell.sides.values() for run in side.runs}
        )

    def _traced(self, outcome: Outcome) -> bool:
        """Whether the runs of complete cells were traced."""
        traces = self.traces(outcome)
        complete = [cell for cell in outcome.cells if all(effect.complete for effect in cell.effects)]
        return all(run.id in traces for cell in complete for side in cell.sides.values() for run in side.runs)

    def sheet(self, study: Study, protocol: str) -> Sheet:
        """The report of a study under a protocol."""
        from sharpen.report.study import comparison_sheet, study_sheet

        if study.reads is not None:
            return comparison_sheet(study, self.outcome(load_study(study.reads), protocol))
        found = self.outcome(study, protocol)
        return study_sheet(found, self.traces(found) if study.traces else None)

    def part(self, study: Study, protocol: str) -> Part:
        """The same for the page."""
        from sharpen.report.page import Part

        if study.reads is not None:
            return Part(study, self.outcome(load_study(study.reads), protocol))
        found = self.outcome(study, protocol)
        return Part(study, found, self.traces(found) if study.traces else None)

    def hint(self) -> str:
        """What to say when a store has records, and none of them belongs to what was asked."""
        epochs = sorted({int(value) for value in self.frame["epochs"]})
        limit = f"; if they were made with --max-epochs, give it here too (there are runs of {epochs[0]} epochs)"
        return f"None of the {len(self.frame):,} records belongs to these studies{'' if self.max_epochs else limit}."


def unavailable(studies: Sequence[Study], data: Path | None) -> dict[str, str]:
    """By dataset, why it cannot be run here: its files are not on this machine.

    >>> unavailable([], None)
    {}
    """
    from sharpen.studies.outcome import NO_DATA
    from sharpen.studies.work import why_no_data

    datasets = dict.fromkeys(dataset for study in studies for dataset in study.datasets)
    return {dataset: NO_DATA for dataset in datasets if why_no_data(dataset, data) is not None}


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
    from sharpen.report.findings import fill, findings_blocks
    from sharpen.studies.outcome import costs

    blocks = findings_blocks(
        lambda name, protocol: reader.outcome(load_study(name), protocol), reader.traces, costs(reader.frame)
    )
    text = fill(path.read_text(encoding="utf-8"), blocks)
    write_together(path.parent, {path.name: partial(_write_text, text)})


def _write_text(text: str, path: Path) -> None:
    path.write_bytes(text.encode())  # the same line ends everywhere
