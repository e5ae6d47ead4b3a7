"""Every method of the field as the study ``field`` runs it, beside the plain loop over the same module, one run at a time.

    python benchmarks/field_speed.py --datasets cora --out field-h200.csv        # this machine: a GPU if there is one
    python benchmarks/field_speed.py --datasets digits --members 2 --seconds 0   # a quick look anywhere

Both sides are warm, in one process, on one device, in one precision, with the method's published setting for the graph; an epoch
is a training step and an evaluation. The loop trains one run at a time and has torch's own dropout and optimizer. What the
population takes until it is warm (compiling, and capture on a GPU) stands in a column of its own and not in the ratio. A line is
written to the file after every method; what stands there already is not measured again.
"""

from __future__ import annotations

import csv
import gc
from dataclasses import asdict, fields
from pathlib import Path
from statistics import geometric_mean
from typing import Annotated

import torch
import typer

from sharpen import InputError, Trial, load_dataset
from sharpen.bench.cells import Timing, time_cells
from sharpen.datasets import Dataset
from sharpen.models.registry import MODELS
from sharpen.models.zoo.settings import settings_of
from sharpen.studies.tuning import configuration
from sharpen.training.device import describe_device, resolve_device

HEADER = ["device", *(field.name for field in fields(Timing)), "ratio"]


def known(file: Path | None) -> dict[tuple[str, str, str, str], float]:
    """The ratios of what was measured before, by device, precision, dataset and method."""
    if file is None or not file.is_file():
        return {}
    lines = file.read_text(encoding="utf-8").split("\n")
    rows = csv.DictReader(lines[:-1])  # what does not end in a newline was cut off
    return {
        (row["device"], row["precision"], row["dataset"], row["model"]): float(row["ratio"])
        for row in rows
        if row["ratio"]
    }


def write(file: Path | None, row: dict[str, object]) -> None:
    """Adds a line to the file, if there is one."""
    if file is None:
        return
    if new := not file.is_file():
        file.touch()
    whole = file.read_bytes()
    if not whole.endswith(b"\n"):
        file.write_bytes(whole[: whole.rfind(b"\n") + 1])
    with file.open("a", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, HEADER, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


def measured(
    data: Dataset, trial: Trial, where: torch.device, precision: str, members: int, seconds: float
) -> Timing | str:
    """The timing of a method, with fewer runs at once if so many do not fit; else why there is none."""
    said = ""
    while members:
        try:
            (timing,) = time_cells([(data, trial)], where, precision, members, seconds, ceiling=False)
            return timing
        except InputError as error:
            return str(error)
        except torch.OutOfMemoryError as error:
            said = str(error).splitlines()[0]
        members //= 2  # outside the handler, which holds what the failed population had
        gc.collect()
        torch.cuda.empty_cache()
    return said


def main(
    datasets: Annotated[str, typer.Option(help="Comma-separated.")] = "cora",
    models: Annotated[str, typer.Option(help="Comma-separated; by default all of the field.")] = "",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    precision: Annotated[str, typer.Option(help="float32 or tf32; by default tf32 on a GPU.")] = "",
    members: Annotated[int, typer.Option(help="Runs per population: ten draws, plain and sharpened.", min=1)] = 20,
    seconds: Annotated[float, typer.Option(help="How long to time each side, at least 15 epochs on a GPU.")] = 0.2,
    out: Annotated[Path | None, typer.Option(help="A CSV file that gets a line per method.")] = None,
) -> None:
    """Print the table, and for each graph the geometric mean of the ratio."""
    where = resolve_device(device)
    precision, name = precision or ("tf32" if where.type == "cuda" else "float32"), describe_device(where)
    print(f"{name}, torch {torch.__version__}, {precision}; milliseconds per epoch of one run, {members} runs at once")
    done = known(out)
    for graph in datasets.split(","):
        data, ratios = load_dataset(graph), []
        print(f"\n{'cell':<24}{'loop':>10}{'ours':>10}{'ratio':>8}{'warm-up s':>11}  way")
        for model in models.split(",") if models else [name for name in MODELS if settings_of(name) is not None]:
            trial = Trial(model=model, dataset=graph, **configuration(graph, model, 0))
            title = f"{graph} {model}"
            before = next((done[key] for key in done if key == (name, precision, graph, model)), None)
            if before is not None:
                ratios.append(before)
                print(f"{title:<24}{'':>20}{before:>8.1f}  measured before")
                continue
            t = measured(data, trial, where, precision, members, seconds)
            if isinstance(t, str):
                print(f"{title:<24}  not measured: {t[:100]}", flush=True)
                write(out, {"device": name, "dataset": graph, "model": model, "precision": precision, "way": t})
                continue
            ratios.append(t.ratio)
            times = f"{1e3 * t.plain:>10.3f}{1e3 * t.population:>10.4f}{t.ratio:>8.1f}{t.ready:>11.1f}"
            print(f"{title:<24}{times}  {t.way}", flush=True)
            write(out, asdict(t) | {"device": name, "model": model, "ratio": round(t.ratio, 3)})
        if ratios:
            print(f"{graph}: geometric mean {geometric_mean(ratios):.1f} of {len(ratios)}, least {min(ratios):.1f}")


if __name__ == "__main__":
    typer.run(main)
