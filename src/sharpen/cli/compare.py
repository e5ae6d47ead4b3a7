"""``sharpen compare``: sharpened training against plain training, paired on the same splits and seeds."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from sharpen.cli import fit_options, options
from sharpen.cli.completion import DATASETS, offer
from sharpen.cli.outputs import output_folder, write_together
from sharpen.cli.printing import print_json, teller
from sharpen.cli.trial_options import trial_options
from sharpen.datasets.catalog import looks_like_a_file
from sharpen.errors import InputError
from sharpen.models.registry import MODELS, MODELS_SHORT, model_info

if TYPE_CHECKING:
    from sharpen.comparison import ComparisonResult

_Model = Annotated[
    str,
    typer.Option(
        help=f"{MODELS_SHORT}; or your own: my_net.py:MyNet, package.module:MyNet. Naming a file runs its code.",
        autocompletion=offer(*MODELS),
    ),
]
_Lams = Annotated[
    str | None,
    typer.Option(
        help="λ: a number; several, as 0.1,0.25; or auto: the one with the best validation score of a grid.",
        show_default="by the number of labels; digits: 0.5",
    ),
]


@trial_options
def compare(
    dataset: Annotated[
        str,
        typer.Argument(
            help="One of `sharpen datasets`; or a graph of your own: a node table, or a file with nodes and edges.",
            autocompletion=offer(*DATASETS),
        ),
    ] = "digits",
    edges: options.EdgesFile = None,
    *,
    id_column: options.IdColumn = None,
    label: options.LabelColumn = None,
    source: options.SourceColumn = None,
    target: options.TargetColumn = None,
    weight: options.WeightColumn = None,
    ignore: fit_options.Ignore = None,
    model: _Model = "gcn",
    model_args: options.ModelArgs = None,
    lam: _Lams = None,
    splits: Annotated[
        str | None, typer.Option(help="How many splits; or paper, the paper's own.", show_default="10; digits: 20")
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(help="How many seeds on each split.", show_default="1; paper: enough for 10 pairs"),
    ] = None,
    device: options.Device = "auto",
    precision: options.Precision = "float32",
    batching: options.Batching = "auto",
    data: options.DataFolder = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results.", show_default="sharpen-out/compare-DATASET-MODEL")
    ] = None,
    page: options.PageOption = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON only.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the headline only.")] = False,
    **settings: Any,
) -> None:
    """Compare sharpened with plain training on the same splits and seeds.

    Prints the paired gain with its 95 % confidence interval, and writes into the
    output folder: page.html (a self-contained report), records.parquet
    (one row per run), traces.npz (losses, entropies and scores per epoch, one row
    per run), comparison.json.

    With --lam auto, λ is the one with the best mean validation score over all
    pairs; test scores have no part in it. Without --lam it is 0.25. In both cases a
    balance keeps classes in use where there are fewer than 20 labels per class,
    unless --balance says otherwise.

    Finished runs are kept in the output folder until all are there: after an
    interruption the same command resumes.

    On a graph of your own the labeled nodes are split at random, 60 % for training,
    20 % for validation, 20 % for testing.

    A graph that does not fit in memory at once is trained in batches.
    `torchrun --nproc_per_node 4 -m sharpen compare ...` shares the batches among
    four processes.
    """
    # Not above: torch and what stands on it take seconds to import, and help and completion should not wait for them.
    from sharpen.comparison import compare as run_comparison
    from sharpen.files import Columns
    from sharpen.training.checkpoint import forget_checkpoints
    from sharpen.training.ranks import joined

    default_lam, default_splits = ("0.5", "20") if dataset == "digits" else (None, "10")
    columns = Columns(id_column, label, source, target, weight, ignore=options.split_names(ignore) or ())
    folder = out or Path("sharpen-out") / f"compare-{_title(dataset, edges)}-{model_info(model).title.lower()}"
    given = {name: value for name, value in settings.items() if value is not None}
    given |= {"seeds": seeds, "precision": precision, "batching": batching, "folder": data, "keep": folder}
    given |= {"columns": columns, "model_args": options.parse_model_args(model_args)}
    lam = lam or default_lam
    splits = default_splits if splits is None else splits
    given["splits"] = int(splits) if splits.isdecimal() and int(splits) else splits
    with joined(device) as (ranks, device):
        talks = ranks.writes and not quiet and not as_json
        given |= {"device": device, "progress": talks, "tell": teller(not talks)}
        try:
            with output_folder(folder, ["records.parquet", "traces.npz", "comparison.json", *["page.html"] * page]):
                result = run_comparison((dataset, edges) if edges else dataset, model, lam and parse_lams(lam), **given)
        except KeyboardInterrupt:
            typer.echo("Interrupted: finished runs are kept; the same command resumes.", err=True)
            raise typer.Exit(130) from None
    if not ranks.writes:
        return
    result = replace(result, command=shlex.join(["sharpen", *sys.argv[1:]]))
    write_together(folder, result.files(page))
    if result.kept is not None:
        forget_checkpoints(result.kept)
    if as_json:
        print_json(result.summary)
    elif quiet:
        typer.echo(result.headline)
    else:
        _show(result, folder, page)


def _title(dataset: str, edges: Path | None) -> str:
    from sharpen.files.dataset import dataset_name

    return dataset if edges is None and not looks_like_a_file(dataset) else dataset_name(dataset)


def _show(result: ComparisonResult, folder: Path, page: bool) -> None:
    from sharpen.report import print_comparison

    console = Console(highlight=False)
    runs, where = len(result.records), result.records[0].device
    cost = f"{runs} runs in {result.seconds:.1f} s on {where}; records and settings are in {folder}"
    look = (f"Open {folder / 'page.html'} for the full report",) if page else ()
    # Nothing may be cut off in a file or a pipe.
    console.width = console.width if console.is_terminal else max(console.width, 120)
    print_comparison(result.comparison, console, (*result.notes, cost, *look))


def parse_lams(text: str, field: str = "lam") -> str | list[float]:
    """The values of ``--lam``, in the order given; ``auto`` stands for itself.

    >>> parse_lams("0.1,0.25")
    [0.1, 0.25]
    >>> parse_lams("0.1;0.25")
    Traceback (most recent call last):
    sharpen.errors.InputError: lam has '0.1;0.25', which is not a number; give one (0.25), several (0.1,0.25), or auto
    """
    if text == "auto":
        return text
    lams = []
    for part in text.split(","):
        try:
            lams.append(float(part))
        except ValueError:
            raise InputError(
                f"has {part!r}, which is not a number; give one (0.25), several (0.1,0.25), or auto", field=field
            ) from None
    return lams
