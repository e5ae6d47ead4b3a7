"""``sharpen recipe``: large graphs with settings that are known to work; in clusters on one process or several, and resumable."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from sharpen.cli.compare import parse_lams
from sharpen.cli.options import DataFolder, Device, Precision
from sharpen.cli.outputs import make_folder, write_together
from sharpen.errors import InputError
from sharpen.models.registry import PAPER_MODELS
from sharpen.trial import to_frame

recipe = typer.Typer(
    no_args_is_help=True,
    help="Train on large graphs with tested settings; cluster recipes resume and run under torchrun.",
)


@recipe.command("list")
def list_() -> None:
    """List the recipes."""
    from sharpen.large.recipes import RECIPES

    for each in RECIPES.values():
        typer.echo(f"{each.name:<24}{each.batching or 'full batch':<20}{each.note}")


@recipe.command()
def run(
    name: Annotated[str, typer.Argument(help="A recipe from `sharpen recipe list`.")],
    *,
    model: Annotated[str, typer.Option(help=", ".join(PAPER_MODELS) + ".")] = "sage",
    lam: Annotated[str, typer.Option(help="Values of λ, comma-separated; 0 is plain training.")] = "0,0.25",
    seeds: Annotated[int, typer.Option(help="Seeds per λ.", min=1)] = 1,
    epochs: Annotated[int | None, typer.Option(help="Epochs.", show_default="the recipe's", min=1)] = None,
    stored: Annotated[
        Path | None,
        typer.Option(
            "--stored", "--generated", help="Use this stored graph instead of the dataset, e.g. a synthetic one."
        ),
    ] = None,
    scale: Annotated[float | None, typer.Option(hidden=True)] = None,
    data: DataFolder = None,
    device: Device = "auto",
    precision: Precision = "float32",
    out: Annotated[
        Path | None, typer.Option(help="Output folder.", show_default="sharpen-out/recipe-NAME-MODEL")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the records as JSON only.")] = False,
) -> None:
    """Run a recipe and keep its records.

    Cluster recipes keep checkpoints: the same command resumes, on any number of
    processes. Full-batch recipes start over.

    `torchrun --nproc_per_node 4 -m sharpen recipe run ogbn-products-clusters`
    shares the batches of each step among four processes.
    """
    from sharpen.comparison_plan import AUTO_LAMS
    from sharpen.large.recipes import find_recipe, recipe_dataset
    from sharpen.training import train
    from sharpen.training.checkpoint import checkpoint_folder, forget_checkpoints
    from sharpen.training.ranks import joined

    if scale is not None:
        way_out = (
            "make a synthetic one of this scale with python benchmarks/synthetic.py, and give it as --stored FOLDER"
        )
        raise InputError(f"--scale is {scale}, but a graph has the size it has; {way_out}")
    chosen = find_recipe(name)
    more = {} if epochs is None else {"epochs": epochs}
    parsed = parse_lams(lam)
    lams = AUTO_LAMS if isinstance(parsed, str) else tuple(dict.fromkeys(parsed))
    trials = [chosen.trial(model, lam=value, seed=seed, **more) for seed in range(seeds) for value in lams]
    folder = out or Path("sharpen-out") / f"recipe-{name}-{model}{'-stored' if stored else ''}"
    kept = checkpoint_folder(folder, trials)

    def prepare() -> int:
        make_folder(folder)
        return recipe_dataset(chosen, data, stored).graph.num_nodes

    with joined(device) as (ranks, device):
        ranks.decided(prepare)  # by one process, found by the others
        start = time.perf_counter()
        records = train(
            recipe_dataset(chosen, data, stored),
            trials,
            device=device,
            precision=precision,
            progress=ranks.writes and not as_json,
            checkpoints=kept,
        )
        seconds = time.perf_counter() - start
    if not ranks.writes:
        return
    frame = to_frame(records)
    write_together(folder, {"records.parquet": frame.to_parquet})
    forget_checkpoints(kept)
    if as_json:
        columns = ["model", "batching", "lam", "seed", "val", "test", "best_epoch", "status", "seconds"]
        typer.echo(json.dumps(frame[columns].to_dict("records"), default=str))
        return
    for record in records:
        scores = f"validation {100 * record.val:.2f}, test {100 * record.test:.2f}, epoch {record.best_epoch}"
        typer.echo(f"λ = {record.trial.lam:g}, seed {record.trial.seed}: {scores}")
    where = f"{ranks.world} x {records[0].device}"
    typer.echo(f"{len(records)} runs in {seconds:.1f} s on {where}; records are in {folder}")
