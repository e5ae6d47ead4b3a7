"""``sharpen predict``: label the same, a grown, or another graph with a saved model."""

import json
from pathlib import Path
from typing import Annotated

import typer

from sharpen.cli import options
from sharpen.cli.printing import print_json, teller
from sharpen.errors import InputError


def predict(
    model: Annotated[Path, typer.Argument(help="model.safetensors from `sharpen fit`.")],
    nodes: options.NodesFile,
    edges: options.EdgesFile = None,
    *,
    id_column: options.IdColumn = None,
    label: options.LabelColumn = None,
    source: options.SourceColumn = None,
    target: options.TargetColumn = None,
    weight: options.WeightColumn = None,
    strict: options.Strict = False,
    abstain: options.Abstain = None,
    every_class: options.EveryClass = False,
    parquet: options.Parquet = False,
    out: Annotated[
        Path | None, typer.Option(help="Output file, .csv or .parquet.", show_default="predictions.csv")
    ] = None,
    device: options.Device = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print predictions and notes as JSON; write no file.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
) -> None:
    """Label a graph with a model saved by `sharpen fit`: the same graph, a larger one, or another with the same columns."""
    from sharpen.cli.outputs import write_together
    from sharpen.files import write_predictions
    from sharpen.prediction import Predictor
    from sharpen.training.device import resolve_device

    tell = teller(quiet or as_json)
    resolve_device(device)
    if as_json and (out is not None or parquet):
        raise InputError("--json prints the predictions and writes no file; leave --out and --parquet out")
    place = None if as_json else _output(out, parquet)
    options.check_abstain(abstain)
    predictor = Predictor.load(model, device)
    named = {"id": id_column, "label": label, "source": source, "target": target, "weight": weight}
    tables = predictor.read(nodes, edges, named, strict=strict)
    notes: list[str] = []
    frame = predictor.predict(tables, notes, abstain=abstain, every_class=every_class)
    if place is None:
        predictions = json.loads(frame.to_json(orient="records", double_precision=15))
        print_json({"predictions": predictions, "notes": [*tables.guesses, *notes]})
        return
    for line in [*tables.guesses, *notes]:
        tell(line)
    write_together(place.parent, {place.name: lambda path: write_predictions(path, frame)})
    blank, count = int(frame["label"].isna().sum()), len(frame)
    if abstain is None:
        tell(f"{count} nodes are labeled in {place}")
    else:
        tell(f"{count - blank} of {count} nodes are labeled in {place}; {blank} are left blank, below {abstain:g}")


def _output(out: Path | None, parquet: bool) -> Path:
    from sharpen.files import check_output

    if out is None:
        out = Path("predictions.parquet" if parquet else "predictions.csv")
    elif parquet and out.suffix.lower() != ".parquet":
        raise InputError(f"--parquet is given, but --out is {out}; leave --parquet out, or end the name in .parquet")
    return check_output(out)
