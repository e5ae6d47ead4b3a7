"""``sharpen study``: the paper's tables and figures, or your own studies, as runs that resume."""

from __future__ import annotations

import itertools
import math
import shlex
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from sharpen.cli.ending import INTERRUPTED, handling, note_signal, tell_at_once
from sharpen.cli.options import DataFolder, Device, JsonFlag, On, Precision, split_names
from sharpen.cli.printing import listing, print_json, print_table
from sharpen.cli.study_report import STORE, report
from sharpen.errors import InputError
from sharpen.studies import PROTOCOLS, Study, each_once, list_studies, load_study, own_studies, runs
from sharpen.studies.protocol import ALL, covers, known_protocol, one_of

if TYPE_CHECKING:
    from rich.table import Table

    from sharpen.studies.runner import Summary
    from sharpen.studies.status import CellProgress

study = typer.Typer(
    no_args_is_help=True, help="Run and report the paper's tables and figures, or your own studies; runs resume."
)
study.command()(report)

_Names = Annotated[
    list[str],
    typer.Argument(
        help="Studies from `sharpen study list`, or your own YAML files.",
        autocompletion=lambda: [study.name for study in (*list_studies(), *own_studies())],
    ),
]
_Protocol = Annotated[
    str,
    typer.Option(
        help="paper (the paper's splits and seeds), paired (20 splits or seeds), ablation (the split of its ablations), few-5 "
        "(5 labels per class), share-20 (20 % of the nodes); all: every one that the study has."
    ),
]
_Only = Annotated[str | None, typer.Option(help="Only these, comma-separated.", show_default="all of the study")]
_MaxEpochs = Annotated[int | None, typer.Option(help="Maximum epochs, for a quick look.", min=1)]
_StoreFolder = Annotated[Path, typer.Option(help="Folder of records.")]


@study.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List the paper's studies, and ours."""
    studies, own = list_studies(), own_studies()
    trials = {each.name: {name: _trials(each, name) for name in each.protocols} for each in (*studies, *own)}
    if as_json:
        told = ("name", "title", "about", "leaves_open", "published", "datasets", "models", "reads")
        every = (*studies, *own)
        print_json([{name: getattr(each, name) for name in told} | {"trials": trials[each.name]} for each in every])
        return
    protocols = [name for name in PROTOCOLS if any(name in each.protocols for each in studies)]
    table = listing("name", "title", right=("cells", *(f"trials, {protocol}" for protocol in protocols)))
    for each in studies:
        counts = [f"{trials[each.name][name]:,}" if name in each.protocols else "" for name in protocols]
        if each.reads is not None:
            counts = [f"reads {each.reads}", *[""] * (len(protocols) - 1)]
        table.add_row(each.name, each.title, str(len(each.datasets) * len(each.models)), *counts)
    print_table(table)
    typer.echo("\nBeyond the paper, to be run with --protocol all or one of their own:\n")
    table = listing("name", "title", right=("cells", "trials"), left=("protocols",))
    for each in own:
        cells, count = str(len(each.datasets) * len(each.models)), sum(trials[each.name].values())
        table.add_row(each.name, each.title, cells, f"{count:,}", ", ".join(each.protocols))
    print_table(table)
    typer.echo("\nA study of your own is a YAML file with the same keys: docs/studies.md.")


@study.command()
def run(
    names: _Names,
    protocol: _Protocol = "paper",
    datasets: _Only = None,
    models: _Only = None,
    variants: _Only = None,
    runs: Annotated[
        int | None, typer.Option(help="Only the first so many of each cell.", min=1, show_default="as the study says")
    ] = None,
    on: On = "here",
    device: Device = "auto",
    precision: Precision = "float32",
    max_epochs: _MaxEpochs = None,
    store: _StoreFolder = STORE,
    data: DataFolder = None,
    download: Annotated[bool, typer.Option("--download", help="Download missing datasets.")] = False,
    time_limit: Annotated[
        float | None, typer.Option(help="Time limit in minutes; nothing is started that would exceed it.", min=0)
    ] = None,
    traces: Annotated[bool, typer.Option("--traces", help="Keep losses, entropies and scores of every epoch.")] = False,
    max_members: Annotated[int, typer.Option(help="Maximum trials per batch.", min=1)] = 205,
) -> None:
    """Train what is missing, cheapest first, and save every finished batch.

    Can be interrupted or killed at any time: the same command resumes. Several
    processes can share a store.
    """
    studies = [each.part(split_names(variants, "--variants"), runs) for each in _studies(names)]
    # Not above: torch takes seconds to import, and help and completion should not wait for it.
    from sharpen.store import Store
    from sharpen.studies import runner

    with _ending_gently() as stop:
        summary = runner.run(
            studies,
            Store(store),
            protocol=protocol,
            on=on,
            device=device,
            precision=precision,
            datasets=split_names(datasets, "--datasets"),
            models=split_names(models, "--models"),
            max_epochs=max_epochs,
            max_members=max_members,
            time_limit=None if time_limit is None else 60 * time_limit,
            traces=traces,
            data=data,
            download=download,
            stop=stop,
            say=typer.echo,
            progress=True,
        )
        _conclude(summary, store, studies)


@study.command()
def status(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Studies to show in detail.",
            show_default="a summary of all",
            autocompletion=lambda: [study.name for study in list_studies()],
        ),
    ] = None,
    protocol: _Protocol = "paper",
    datasets: _Only = None,
    models: _Only = None,
    device: Device = "auto",
    precision: Precision = "float32",
    max_epochs: _MaxEpochs = None,
    store: _StoreFolder = STORE,
    data: DataFolder = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what is done, running and missing, why, and the estimated time left.

    Read-only. Times are estimated from records of the same cells, or else from
    measurements of similar ones.
    """
    if protocol != ALL:
        known_protocol(protocol)
    every = [each for each in (*list_studies(), *own_studies()) if each.reads is None]
    all_studies = [each for each in every if protocol in (ALL, *each.protocols)]
    studies = _studies(names) if names else all_studies
    from sharpen.store import Store
    from sharpen.studies.cost import Costs
    from sharpen.studies.status import progress
    from sharpen.training.device import PRECISIONS, check_precision, describe_device, resolve_device

    one_of("precision", precision, PRECISIONS)
    where, kept = resolve_device(device), Store(store)
    check_precision(precision, where.type)
    costs = Costs(where.type, describe_device(where), precision, kept.runs())
    chosen = {"datasets": split_names(datasets, "--datasets"), "models": split_names(models, "--models")}
    found = {
        each.name: progress(each, protocol, kept, costs, **chosen, max_epochs=max_epochs, data=data) for each in studies
    }
    problems = kept.problems()
    if as_json:
        rows = {name: [_cell_row(cell) for cell in cells] for name, cells in found.items()}
        wrong = [{"path": str(problem.path), "reason": problem.reason} for problem in problems]
        print_json({"store": str(store), "protocol": protocol, "studies": rows, "problems": wrong})
        return
    print_table(_cells_table(found) if names else _studies_table(found))
    offered = [p for p in (*PROTOCOLS, ALL) if p != protocol and any(p in (ALL, *each.protocols) for each in studies)]
    others = f" ({', '.join(f'--protocol {each}' for each in offered)} for others)" if offered else ""
    records = f"Records in {store}" if store.exists() else f"There is no store {store} yet"
    typer.echo(f"\n{records}, protocol {protocol}{others}; times for {describe_device(where)}, {precision}.")
    for problem in problems:
        typer.echo(problem.line)


def _studies(names: Sequence[str]) -> list[Study]:
    """The studies of these names; one that only reads another's records stands for that one."""
    studies = [load_study(name) for name in names]
    for each in studies:
        if each.reads is not None:
            typer.echo(f"{each.name} has no trials of its own: it reads those of {each.reads}.", err=True)
    return each_once(each if each.reads is None else load_study(each.reads) for each in studies)


@contextmanager
def _ending_gently() -> Iterator[threading.Event]:
    """The first Ctrl-C, SIGTERM or SIGHUP asks to end after what is in flight; the second ends at once."""
    stop = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        note_signal(number)
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        tell_at_once("Ending after what is in flight; Ctrl-C again ends at once.")

    try:
        with handling(ask):
            yield stop
    except KeyboardInterrupt:
        typer.echo(f"Interrupted; what was finished is kept. To go on:\n  {_this_command()}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _this_command() -> str:
    started = ["python", "-m", "sharpen"] if Path(sys.argv[0]).name == "__main__.py" else ["sharpen"]
    return shlex.join([*started, *sys.argv[1:]])


def _conclude(summary: Summary, store: Path, studies: Sequence[Study]) -> None:
    """Says what was done and what was not, and ends with the exit code for it."""
    from sharpen.studies.cost import duration

    for reason in dict.fromkeys(summary.skipped.values()):
        cells = [str(cell) for cell, why in summary.skipped.items() if why == reason]
        typer.echo(f"Left out: {', '.join(cells)}: {reason}")
    if summary.elsewhere:
        typer.echo(f"{summary.elsewhere} trials are being trained by another runner.")
    typer.echo(f"{summary.trained} trials trained, {summary.recorded} recorded before, {summary.left} left; in {store}")
    if summary.needed is not None:
        typer.echo(
            f"The time limit is too short for any of them: the cheapest population needs about {duration(summary.needed)}; "
            f"give --time-limit {math.ceil(summary.needed / 6) / 10:g} or more."
        )
    elif summary.ended != "done":
        why = "Interrupted" if summary.ended == "interrupted" else "The time limit is reached"
        typer.echo(f"{why}. To go on:\n  {_this_command()}")
    if summary.ended == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if not summary.trained + summary.recorded + summary.elsewhere + summary.left:
        if summary.skipped:
            raise InputError("nothing could be run; the lines above say why")
        cells = [f"{each.name} has {', '.join(each.datasets)} with {', '.join(each.models)}" for each in studies]
        raise InputError(f"no cell is left to run; {'; '.join(cells)}")


def _trials(each: Study, protocol: str) -> int:
    """How many different trials a study has under a protocol, counted by one run of each cell."""
    total = 0
    for dataset, model in itertools.product(each.datasets, each.models):
        if covers(protocol, dataset, model) and (dataset, model) not in each.skip:
            different = {variant.trial(dataset, model).resolve("any") for variant in each.variants.values()}
            total += len(different) * len(runs(dataset, protocol, each.runs.get(dataset), model))
    return total


def _cell_row(cell: CellProgress) -> dict[str, object]:
    counts = {name: getattr(cell, name) for name in ("done", "running", "missing")}
    return cell.cell._asdict() | counts | {"seconds_left": round(cell.seconds, 1), "reason": cell.reason}


def _cells_table(found: dict[str, list[CellProgress]]) -> Table:
    from sharpen.studies.cost import duration

    table = listing("study", "cell", right=("done", "running", "missing", "time left"), left=("why",))
    for name, cells in found.items():
        for cell in cells:
            left = duration(cell.seconds) if cell.seconds and cell.reason is None else ""
            counts = (f"{cell.done} / {cell.total}", str(cell.running or ""), str(cell.missing or ""))
            table.add_row(name, str(cell.cell), *counts, left, cell.reason or "")
        table.add_section()
    return table


def _studies_table(found: dict[str, list[CellProgress]]) -> Table:
    from sharpen.studies.cost import duration

    table = listing("study", right=("done", "running", "missing", "not runnable here", "time left"))
    for name, cells in found.items():
        here = [cell for cell in cells if cell.reason is None]
        away = [cell for cell in cells if cell.reason is not None]
        seconds = sum(cell.seconds for cell in here)
        table.add_row(
            name,
            f"{sum(cell.done for cell in cells)} / {sum(cell.total for cell in cells)}",
            str(sum(cell.running for cell in cells) or ""),
            str(sum(cell.missing for cell in here) or ""),
            str(sum(cell.missing for cell in away) or ""),
            duration(seconds) if seconds else "",
        )
    return table
