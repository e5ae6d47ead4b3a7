"""``sharpen compare``: sharpened training against plain training, paired on the same splits and seeds."""

import json
import math
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console

from sharpen.cli.completion import DATASETS, DEVICES, PRECISIONS, offer
from sharpen.cli.options import Batching
from sharpen.cli.outputs import output_folder, text_bytes, write_together
from sharpen.errors import InputError
from sharpen.trial import MODELS, NORMS, Record, Trial, to_frame

if TYPE_CHECKING:
    from sharpen.datasets import Dataset

# What `--lam auto` chooses from, besides 0. The useful λ of the paper lie below 0.5, so the grid is finest there.
AUTO_LAMS = (0.05, 0.1, 0.15, 0.25, 0.35, 0.5, 0.75, 1.0)
# On one split, or a few, there are seeds enough for so many pairs.
FEWEST_PAIRS = 10
# Fewer pairs than these cannot be told from luck without assumptions: five give Wilcoxon's test p = 0.06 at best.
CAUTION_BELOW = 6

_of_model = partial(typer.Option, rich_help_panel="Model and optimiser (by default the paper's for the dataset)")
_of_objective = partial(typer.Option, rich_help_panel="Objective of the sharpened runs")


def compare(
    dataset: Annotated[
        str,
        typer.Argument(
            help="One of `sharpen datasets`; a graph of your own goes to `sharpen fit`.",
            autocompletion=offer(*DATASETS),
        ),
    ] = "digits",
    *,
    model: Annotated[str, typer.Option(help=", ".join(MODELS) + ".", autocompletion=offer(*MODELS))] = "gcn",
    lam: Annotated[
        str | None,
        typer.Option(
            help=f"λ: a number; several, as 0.1,0.25; or auto, the best on validation of 0, "
            f"{', '.join(f'{value:g}' for value in AUTO_LAMS)}.",
            show_default="0.25; digits: 0.5",
        ),
    ] = None,
    splits: Annotated[
        str | None, typer.Option(help="How many splits; or paper, the paper's own.", show_default="10; digits: 20")
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(help="How many seeds on each split.", show_default=f"1; paper: enough for {FEWEST_PAIRS} pairs"),
    ] = None,
    device: Annotated[
        str, typer.Option(help="auto (a GPU if there is one), cpu, cuda.", autocompletion=offer(*DEVICES))
    ] = "auto",
    precision: Annotated[
        str, typer.Option(help="float32, tf32 (on GPUs), float64.", autocompletion=offer(*PRECISIONS))
    ] = "float32",
    batching: Batching = "auto",
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of benchmark files.", show_default="$SHARPEN_DATA", exists=True, file_okay=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results.", show_default="sharpen-out/compare-DATASET-MODEL")
    ] = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Whether to make page.html, to look at.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the headline, and nothing else.")] = False,
    layers: Annotated[int | None, _of_model(help="Number of layers.")] = None,
    hidden: Annotated[int | None, _of_model(help="Width of the layers.")] = None,
    dropout: Annotated[float | None, _of_model(help="Share of activations set to zero.")] = None,
    norm: Annotated[str | None, _of_model(help=", ".join(NORMS) + ".", autocompletion=offer(*NORMS))] = None,
    residual: Annotated[bool | None, _of_model("--residual/--no-residual", help="Linear shortcuts.")] = None,
    input_linear: Annotated[
        bool | None, _of_model("--input-linear/--no-input-linear", help="A linear layer before the convolutions.")
    ] = None,
    lr: Annotated[float | None, _of_model(help="Learning rate of Adam.")] = None,
    weight_decay: Annotated[float | None, _of_model(help="Weight decay of Adam.")] = None,
    epochs: Annotated[int | None, _of_model(help="Number of epochs.")] = None,
    lam_labeled: Annotated[
        float | None, _of_objective(help="Weight of the uncertainty of labeled nodes.", show_default="-λ")
    ] = None,
    q: Annotated[float, _of_objective(help="Order of the entropy: 2 Gini, 1 Shannon.")] = 2.0,
    balance: Annotated[float, _of_objective(help="Weight that rewards the uncertainty of the mean prediction.")] = 0.0,
    sharpen_val: Annotated[
        bool, _of_objective("--sharpen-val/--no-sharpen-val", help="Whether to sharpen validation nodes too.")
    ] = True,
) -> None:
    """Compare sharpened with plain training on the same splits and seeds.

    Prints the paired gain with its 95 % confidence interval, and writes into the
    output folder: page.html (everything to look at, in one file), records.parquet
    (one row per run), traces.npz (losses, entropies and scores per epoch, one row
    per run), comparison.json.

    With --lam auto, λ is the one with the best mean validation score over all
    pairs; test scores have no part in it.

    A graph that does not fit in memory at once is taken in batches. Such runs
    keep checkpoints in the output folder: the same command goes on where it was
    stopped. `torchrun --nproc_per_node 4 -m sharpen compare ...` shares the
    batches among four processes.
    """
    # Not above: torch and what stands on it take seconds to import, and help and completion should not wait for them.
    from sharpen.datasets import load_dataset
    from sharpen.evaluation import compare_lams
    from sharpen.report import headline, print_comparison
    from sharpen.report.page import comparison_page, write_page
    from sharpen.training import train
    from sharpen.training.checkpoint import checkpoint_folder, forget_checkpoints, read_decision, write_decision
    from sharpen.training.device import arithmetic_type, resolve_device
    from sharpen.training.memory import choose_batching
    from sharpen.training.ranks import joined
    from sharpen.training.trials import network_of, resolve

    resolve_device(device)  # before anything that takes time
    plain = Trial(
        model=model,
        layers=layers,
        hidden=hidden,
        dropout=dropout,
        norm=norm,
        residual=residual,
        input_linear=input_linear,
        lr=lr,
        weight_decay=weight_decay,
        epochs=epochs,
    )
    sharp = replace(plain, lam_labeled=lam_labeled, q=q, balance=balance, sharpen_val=sharpen_val)
    default_lam, default_splits = ("0.5", "20") if dataset == "digits" else ("0.25", "10")
    lams = parse_lams(default_lam if lam is None else lam, zero_is_plain=not balance and not lam_labeled)
    wanted = parse_splits(default_splits if splits is None else splits)
    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds is {seeds}; give a number of at least 1")

    loaded = load_dataset(dataset, data)
    pairs, notes = plan_pairs(loaded, wanted, seeds)
    notes += caution(pairs)
    folder = out or Path("sharpen-out") / f"compare-{loaded.name}-{model}"
    with joined(device) as (ranks, device):
        talks = ranks.writes and not quiet and not as_json
        network, where = network_of(loaded.graph, resolve(plain, loaded)), resolve_device(device)
        variants = [plain, *(replace(sharp, lam=value) for value in lams)]
        trials = [replace(variant, split=split, seed=seed) for variant in variants for split, seed in pairs]
        kept = checkpoint_folder(folder, [replace(each, dataset=loaded.name) for each in trials])
        decision = kept / "batching.json"

        def choose() -> tuple[str | None, str]:
            # What was chosen by the memory that was free stays chosen until the runs are done.
            before = read_decision(decision) if batching == "auto" else None
            return before or choose_batching(
                batching, network, loaded.graph, where, arithmetic_type(precision), ranks.world
            )

        cut, note = ranks.decided(choose)
        notes += [f"{note[0].upper()}{note[1:]}."] if note else []
        trials = [replace(each, batching=cut) for each in trials]
        start = time.perf_counter()
        try:
            with output_folder(folder, ["records.parquet", "traces.npz", "comparison.json", *["page.html"] * page]):
                if talks:
                    what = f"{len(trials)} runs on {loaded.name}: {len(pairs)} pairs, {len(lams)} λ"
                    typer.echo(f"Training {what} ...", err=True)
                    if note:
                        typer.echo(note, err=True)
                if cut and batching == "auto" and ranks.writes:
                    write_decision(decision, [cut, note])
                records = train(loaded, trials, device=device, precision=precision, progress=talks, checkpoints=kept)
        except KeyboardInterrupt:
            rest = "the same command goes on from its checkpoints" if cut else f"nothing was written to {folder}"
            typer.echo(f"Interrupted: {rest}.", err=True)
            raise typer.Exit(130) from None
    if not ranks.writes:
        return
    seconds = time.perf_counter() - start

    frame = to_frame(records)
    plain_frame, *sharp_frames = (frame[i : i + len(pairs)] for i in range(0, len(frame), len(pairs)))
    comparison = compare_lams(
        plain_frame, dict(zip(lams, sharp_frames, strict=True)), metric=loaded.metric, choose=lam == "auto"
    )
    result = {
        "headline": headline(comparison),
        "comparison": asdict(comparison),
        "notes": notes,
        "settings": settings(records[len(pairs)].trial, lams, lam_labeled),
        "pairs": [{"split": split, "seed": seed} for split, seed in pairs],
        "split_ids": {split: loaded.splits[split].id for split, _ in pairs},
        "fingerprint": loaded.graph.fingerprint,
        "device": records[0].device,
        "precision": precision,
        "seconds": round(seconds, 3),
        "versions": records[0].versions,
        "command": shlex.join(["sharpen", *sys.argv[1:]]),
    }
    text = json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False)
    files: dict[str, Callable[[Path], object]] = {
        "records.parquet": frame.to_parquet,
        "traces.npz": partial(write_traces, records=records),
        "comparison.json": lambda path: path.write_bytes(text_bytes(text)),
    }
    if page:
        plain_records, *sharp_records = (records[i : i + len(pairs)] for i in range(0, len(records), len(pairs)))
        by_lam = dict(zip(lams, sharp_records, strict=True))
        shown = comparison_page(comparison, loaded, plain_records, by_lam, result=result)
        files["page.html"] = partial(write_page, shown)
    write_together(folder, files)
    forget_checkpoints(kept)
    if as_json:
        typer.echo(text)
    elif quiet:
        typer.echo(headline(comparison))
    else:
        console = Console(highlight=False)
        cost = f"{len(trials)} runs in {seconds:.1f} s on {records[0].device}; records and settings are in {folder}"
        look = (f"To look at it, open {folder / 'page.html'}",) if page else ()
        # Nothing may be cut off in a file or a pipe.
        console.width = console.width if console.is_terminal else max(console.width, 120)
        print_comparison(comparison, console, (*notes, cost, *look))


def parse_lams(text: str, *, zero_is_plain: bool = True) -> tuple[float, ...]:
    """The values of ``--lam``, each once, in the order given; ``auto`` stands for the grid.

    Args:
        text: as typed.
        zero_is_plain: whether λ = 0 is the baseline itself, and nothing to compare it with.

    >>> parse_lams("0.1,0.25")
    (0.1, 0.25)
    >>> parse_lams("0.1;0.25")
    Traceback (most recent call last):
    sharpen.errors.InputError: --lam has '0.1;0.25', which is not a number; give one (0.25), several (0.1,0.25), or auto
    """
    if text == "auto":
        return AUTO_LAMS
    lams = []
    for part in text.split(","):
        try:
            lams.append(float(part))
        except ValueError:
            raise InputError(
                f"--lam has {part!r}, which is not a number; give one (0.25), several (0.1,0.25), or auto"
            ) from None
        if not math.isfinite(lams[-1]):
            raise InputError(f"--lam has {part!r}, which is not finite; give a number such as 0.25")
    if zero_is_plain:
        lams = [lam for lam in lams if lam != 0]
        if not lams:
            raise InputError("--lam is 0, which is the baseline itself; give another λ, such as 0.25, or auto")
    return tuple(dict.fromkeys(lams))


def parse_splits(text: str) -> int | None:
    """The value of ``--splits``: a number, or None for ``paper``.

    >>> parse_splits("30"), parse_splits("paper")
    (30, None)
    >>> parse_splits("-1")
    Traceback (most recent call last):
    sharpen.errors.InputError: --splits is '-1'; give a number of at least 1, or paper for the paper's own splits
    """
    if text == "paper":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"--splits is {text!r}; give a number of at least 1, or paper for the paper's own splits")
    return int(text)


def plan_pairs(dataset: "Dataset", wanted: int | None, seeds: int | None) -> tuple[list[tuple[str, int]], list[str]]:
    """The (split, seed) of every pair, and what to tell the user about them.

    No two pairs share a seed, so that no two share their first weights. Pairs on one split share its luck; they are averaged
    before the splits are compared, unless there is only one.

    Args:
        dataset: what to compare on.
        wanted: how many splits; None for the paper's.
        seeds: how many seeds on each; None for one, or for enough on the paper's splits.

    >>> from sharpen import load_dataset
    >>> plan_pairs(load_dataset("digits"), 1, seeds=2)
    ([('balanced-5-500-1000-seed0', 0), ('balanced-5-500-1000-seed0', 1)], [])
    """
    names = dataset.splits.paper if wanted is None else dataset.splits.paired(wanted)
    if not names:
        raise InputError(f"{dataset.name} has no splits of the paper's; give --splits a number")
    notes = []
    if wanted is None:
        each = seeds or math.ceil(FEWEST_PAIRS / len(names))
    else:
        each = math.ceil(wanted * (seeds or 1) / len(names))
        if len(names) < wanted:
            notes.append(
                f"{dataset.name} comes with {len(names)} split{'s' * (len(names) > 1)}, not {wanted}; "
                f"{each} seeds on each are averaged, so that there are {len(names)} pairs."
            )
    return [(name, each * i + j) for i, name in enumerate(names) for j in range(each)], notes


def caution(pairs: Sequence[tuple[str, int]]) -> list[str]:
    """What to say beside an interval that rests on very few pairs.

    >>> caution([("a", 0), ("b", 1), ("c", 2)])[0]
    "With 3 pairs the interval takes it on trust that gains are normally distributed; Wilcoxon's test, which does not, ..."
    """
    splits = {split for split, _ in pairs}
    count = len(splits) if len(splits) > 1 else len(pairs)  # pairs on one of several splits are averaged
    if not 1 < count < CAUTION_BELOW:
        return []
    more = "--splits" if len(splits) > 1 else "--splits, or --seeds on one split,"
    return [
        f"With {count} pairs the interval takes it on trust that gains are normally distributed; Wilcoxon's test, which does "
        f"not, cannot go below p = {2.0 ** (1 - count):g}. More {more} would say more."
    ]


def settings(trial: Trial, lams: Sequence[float], lam_labeled: float | None) -> dict[str, Any]:
    """What all runs share, in the words of Trial; lam is what was compared, and a lam_labeled of None means -lam.

    >>> settings(Trial(hidden=64), [0.25], None)["hidden"]
    64
    """
    shared = {key: value for key, value in asdict(trial).items() if key not in ("split", "seed")}
    return shared | {"lam": list(lams), "lam_labeled": lam_labeled}


def write_traces(path: Path, records: Sequence[Record]) -> None:
    """The traces of all records: one array [runs, epochs] per name, its rows in the order of the records.

    >>> import tempfile
    >>> record = Record(Trial(), 0.8, 0.7, 1, "ok", 0.5, "cpu", "float32", traces={"loss": np.array([0.9, 0.5])})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_traces(Path(folder, "traces.npz"), [record, record])
    ...     np.load(Path(folder, "traces.npz"))["loss"].shape
    (2, 2)
    """
    arrays = {name: np.stack([record.traces[name] for record in records]) for name in records[0].traces}
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]  # the stubs mix the names up with its own options
