"""``sharpen predict``: label the same, a grown, or another graph with a saved model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sharpen.cli.fit import EdgesFile, IdOption, LabelOption, NodesFile, SourceOption, TargetOption, WeightOption
from sharpen.errors import InputError


def predict(
    model: Annotated[Path, typer.Argument(help="model.safetensors, from `sharpen fit`.")],
    nodes: NodesFile,
    edges: EdgesFile = None,
    *,
    id_column: IdOption = None,
    label: LabelOption = None,
    source: SourceOption = None,
    target: TargetOption = None,
    weight: WeightOption = None,
    abstain: Annotated[
        float | None, typer.Option(help="Leave the label blank where its probability is lower than this.")
    ] = None,
    every_class: Annotated[
        bool, typer.Option("--every-class", help="Add a column with the probability of each class.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Where to write: .csv or .parquet.")] = Path("predictions.csv"),
    device: Annotated[str, typer.Option(help="auto (a GPU if there is one), cpu, cuda.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but mistakes.")] = False,
) -> None:
    """Label a graph with a model that `sharpen fit` saved: the same graph, a grown one, or another with the same columns."""
    from sharpen.estimator import NodeClassifier
    from sharpen.fitting.predictions import prediction_frame
    from sharpen.tables import FeatureEncoder, check_output, to_graph, write_predictions
    from sharpen.training.device import resolve_device

    def tell(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    resolve_device(device)
    check_output(out)
    if abstain is not None and not 0 <= abstain <= 1:
        raise InputError(f"--abstain is {abstain}; give a probability from 0 to 1")
    classifier = NodeClassifier.load(model, device=device)
    if "encoder" not in classifier.extra_:
        raise InputError(
            f"{model}: does not know how to make features from tables; give a model that sharpen fit has saved"
        )
    encoder = FeatureEncoder.from_json(classifier.extra_["encoder"])
    named = {"id": id_column, "label": label, "source": source, "target": target, "weight": weight}
    tables = _read(nodes, edges, named, classifier.extra_["columns"])
    notes: list[str] = []
    x = encoder.transform(tables, notes)
    for line in [*tables.guesses, *notes]:
        tell(line)
    classes = [str(name) for name in classifier.classes_]
    graph = to_graph(tables, x, classes)
    probabilities = classifier.predict_proba(graph)
    labeled = graph.y.numpy() >= 0
    write_predictions(
        out,
        prediction_frame(tables.ids, probabilities, classes, labeled, abstain=abstain, every_class=every_class),
    )
    tell(f"{graph.num_nodes} nodes are labeled in {out}")


def _read(nodes: Path, edges: Path | None, named: dict[str, str | None], saved: dict[str, str | None]) -> Any:
    """The tables, with columns named now, or as when the model was fitted; a graph to predict need not have labels."""
    from sharpen.tables import Columns, read_nodes_and_edges

    columns: dict[str, Any] = {key: value or saved.get(key) for key, value in named.items()}
    if named["label"] is None and columns["label"] is not None:
        try:
            return read_nodes_and_edges(nodes, edges, Columns(**columns))
        except InputError:  # most likely there is no such column; anything else is said again below
            columns["label"] = ""  # none, and none guessed: a feature column must not be taken for it
    return read_nodes_and_edges(nodes, edges, Columns(**columns))
