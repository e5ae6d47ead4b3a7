"""``sharpen predict``: label the same, a grown, or another graph with a saved model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sharpen.cli.options import (
    Abstain,
    Device,
    EdgesFile,
    EveryClass,
    IdColumn,
    LabelColumn,
    NodesFile,
    SourceColumn,
    TargetColumn,
    WeightColumn,
    check_abstain,
)
from sharpen.errors import InputError


def predict(
    model: Annotated[Path, typer.Argument(help="model.safetensors from `sharpen fit`.")],
    nodes: NodesFile,
    edges: EdgesFile = None,
    *,
    id_column: IdColumn = None,
    label: LabelColumn = None,
    source: SourceColumn = None,
    target: TargetColumn = None,
    weight: WeightColumn = None,
    abstain: Abstain = None,
    every_class: EveryClass = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Write predictions.parquet instead of .csv.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Output file, .csv or .parquet.", show_default="predictions.csv")
    ] = None,
    device: Device = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
) -> None:
    """Label a graph with a model saved by `sharpen fit`: the same graph, a larger one, or another with the same columns."""
    from sharpen.cli.outputs import write_together
    from sharpen.estimator import NodeClassifier
    from sharpen.files import FeatureEncoder, to_graph, write_predictions
    from sharpen.fitting.predictions import prediction_frame
    from sharpen.training.device import resolve_device

    def tell(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    resolve_device(device)
    out = _output(out, parquet)
    check_abstain(abstain)
    classifier = NodeClassifier.load(model, device=device)
    if "encoder" not in classifier.extra_:
        raise InputError(
            f"{model}: does not know how to make features from tables; give a model that sharpen fit has saved"
        )
    encoder = FeatureEncoder.from_json(classifier.extra_["encoder"])
    named = {"id": id_column, "label": label, "source": source, "target": target, "weight": weight}
    tables = _read(nodes, edges, named, _saved_columns(model, classifier.extra_), encoder)
    _check_edges(model, classifier.extra_, tables)
    notes: list[str] = []
    x = encoder.transform(tables, notes)
    classes = [str(name) for name in classifier.classes_]
    graph = to_graph(tables, x, classes, unit=encoder.unit, notes=notes)
    if graph.edge_weight is not None and encoder.unit is not None:
        notes.append(f"edge weights are divided by {encoder.unit:g}, their mean when the model was fitted")
    for line in [*tables.guesses, *notes]:
        tell(line)
    labeled = graph.y.numpy() >= 0
    known = [None if c < 0 else classifier.classes_[c] for c in graph.y.tolist()] if labeled.any() else None
    if classifier.lacks_labels(graph, known):
        tell(
            "no label of this graph is known: what would be spread is left out, and the rest of the model decides; "
            "to use labels, give them in a column"
        )
    probabilities = classifier.predict_proba(graph, known)
    frame = prediction_frame(tables.ids, probabilities, classes, labeled, abstain=abstain, every_class=every_class)
    write_together(out.parent, {out.name: lambda path: write_predictions(path, frame)})
    answered, count = int(frame["label"].notna().sum()), graph.num_nodes
    if abstain is None:
        tell(f"{count} nodes are labeled in {out}")
    else:
        tell(f"{answered} of {count} nodes are labeled in {out}; {count - answered} are left blank, below {abstain:g}")


def _output(out: Path | None, parquet: bool) -> Path:
    from sharpen.files import check_output

    if out is None:
        out = Path("predictions.parquet" if parquet else "predictions.csv")
    elif parquet and out.suffix.lower() != ".parquet":
        raise InputError(f"--parquet is given, but --out is {out}; leave --parquet out, or end the name in .parquet")
    return check_output(out)


def _saved_columns(model: Path, extra: dict[str, Any]) -> dict[str, str | None]:
    """What the columns were called when the model was fitted."""
    saved = extra.get("columns")
    if not isinstance(saved, dict) or not all(value is None or isinstance(value, str) for value in saved.values()):
        raise InputError(f"{model}: does not say which columns it was fitted on; it is damaged, so fit again")
    return saved


def _check_edges(model: Path, extra: dict[str, Any], tables: Any) -> None:
    """Refuses to do without edges what was learnt with them, unless that is said."""
    count = extra.get("edges")
    if type(count) is not int or count < 0:
        raise InputError(f"{model}: does not say how many edges it was fitted with; it is damaged, so fit again")
    if count and not tables.edges_given:
        raise InputError(
            f"{model}: was fitted with {count} edge{'s' * (count != 1)}, but none are given; give the edges file after "
            f"{tables.name}, one with a header only if there are none"
        )


def _read(
    nodes: Path, edges: Path | None, named: dict[str, str | None], saved: dict[str, str | None], encoder: Any
) -> Any:
    """The tables, with columns named now, or as when the model was fitted; a graph to predict need not have labels."""
    from sharpen.files import Columns, read_nodes_and_edges

    columns: dict[str, Any] = {key: value or saved.get(key) for key, value in named.items()}
    columns |= {"decimal_commas": encoder.decimal_commas, "weight_comma": encoder.weight_comma}
    if named["label"] is None and columns["label"] is not None:
        try:
            return read_nodes_and_edges(nodes, edges, Columns(**columns))
        except InputError:  # most likely there is no such column; anything else is said again below
            columns["label"] = ""  # none, and none guessed: a feature column must not be taken for it
    return read_nodes_and_edges(nodes, edges, Columns(**columns))
