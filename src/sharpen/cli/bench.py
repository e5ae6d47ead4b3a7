"""``sharpen bench``: this machine, us against a plain PyG loop."""

from __future__ import annotations

import itertools
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from sharpen.cli.completion import offer
from sharpen.cli.options import ModelArgs, parse_model_args, split_names
from sharpen.errors import InputError
from sharpen.models.registry import CONVOLUTIONS, MODELS, MODELS_SHORT

_HEADER = (
    f"{'cell':<22}{'members':>8}{'plain ms':>10}{'ours ms':>10}{'ratio':>8}{'floor':>8}{'plain GB':>10}{'ours GB':>9}"
)


def bench(
    datasets: Annotated[
        str,
        typer.Option(help="Comma-separated names; by default all available; on a CPU, the small ones."),
    ] = "",
    models: Annotated[
        str,
        typer.Option(
            "--models",
            "--model",
            help=f"Comma-separated: {MODELS_SHORT}, or your own as my_net.py:MyNet; by default {', '.join(CONVOLUTIONS)}.",
            autocompletion=offer(*MODELS),
        ),
    ] = "",
    model_args: ModelArgs = None,
    precision: Annotated[str, typer.Option(help="float32 or tf32; or both, comma-separated.")] = "float32",
    members: Annotated[int, typer.Option(help="Runs per population; 0: up to 205, as many as fit.", min=0)] = 0,
    seconds: Annotated[float, typer.Option(help="Seconds to time each side of a cell.", min=0.01)] = 1.0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    data: Annotated[Path | None, typer.Option(help="Folder of benchmark graphs; by default $SHARPEN_DATA.")] = None,
    out: Annotated[Path | None, typer.Option(help="A CSV file that gets a line per cell.")] = None,
) -> None:
    """Time per epoch of one run: in a plain PyG loop, and in a population of runs trained as one batch."""
    # Not above: torch takes seconds to import, and help and completion should not wait for it.
    import pandas as pd
    import torch
    from rich.console import Console

    from sharpen.bench.cells import CPU_CELLS, Timing, geometric_mean, time_cells
    from sharpen.datasets import find_dataset, list_datasets, load_dataset
    from sharpen.training.device import describe_device, resolve_device

    where = resolve_device(device)
    if set(precision.replace(" ", "").split(",")) - {"float32", "tf32"}:
        why = "the plain loop computes in float32 or tf32"
        raise InputError(f"--precision is {precision!r}; {why}: give one of them, or both")
    if out is not None and not out.absolute().parent.is_dir():
        raise InputError(f"--out is {out}, but there is no folder {out.absolute().parent}; make it first")
    names, chosen = split_names(datasets), split_names(models)
    at_hand = names or [info.name for info in list_datasets() if find_dataset(info.name, data) is not None]
    cells = [(name, model) for name in at_hand for model in chosen or CONVOLUTIONS]
    if where.type == "cpu" and not names and not chosen:
        cells = [cell for cell in CPU_CELLS if cell[0] in at_hand]
    if not cells:
        raise InputError("no benchmark graph is at hand; name their folder with --data, or one dataset with --datasets")
    console = Console(highlight=False)
    console.print(f"{describe_device(where)}, torch {torch.__version__}; milliseconds per epoch of one run")
    rows: list[dict[str, Any]] = []
    for each in precision.split(","):
        timings: list[Timing] = []
        console.print(f"\n[bold]{each.strip()}[/bold]\n{_HEADER}")
        by_dataset = itertools.groupby(cells, key=lambda cell: cell[0])
        loaded = ((load_dataset(name, data), list(group)) for name, group in by_dataset)
        pairs = ((dataset, model) for dataset, group in loaded for _, model in group)
        for t in time_cells(pairs, where, each.strip(), members or None, seconds, parse_model_args(model_args)):
            timings.append(t)
            console.print(
                f"{t.dataset + ' ' + t.model:<22}{t.members:>8}{1e3 * t.plain:>10.2f}{1e3 * t.population:>10.3f}{t.ratio:>8.1f}"
                f"{_share(t.floor_share):>8}{_gigabytes(t.plain_memory):>10}{_gigabytes(t.population_memory):>9}",
                soft_wrap=True,
            )
            if ": " in t.way:
                console.print(f"  {t.way}", soft_wrap=True)
            rows.append(asdict(t) | {"ratio": t.ratio, "floor_share": t.floor_share})
            if out is not None:
                pd.DataFrame(rows).to_csv(out, index=False)
        console.print(
            f"geometric mean of the ratio {geometric_mean(timings):.1f}, least {min(t.ratio for t in timings):.1f}"
        )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f}%"


def _gigabytes(peak: int) -> str:
    """A GPU's peak memory; on a CPU the two sides share a process, and nobody knows."""
    return f"{peak / 1e9:.2f}" if peak else "-"
