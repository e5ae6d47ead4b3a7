"""``sharpen fit``: two files in; labels, their confidence, and a model out."""

import json
import shlex
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sharpen.cli.compare import parse_lams
from sharpen.cli.completion import METRICS, offer
from sharpen.cli.options import (
    Abstain,
    Batching,
    Device,
    EdgesFile,
    EveryClass,
    IdColumn,
    LabelColumn,
    NodesFile,
    On,
    SourceColumn,
    TargetColumn,
    WeightColumn,
    check_abstain,
    of_columns,
)
from sharpen.errors import InputError
from sharpen.models.registry import MODELS
from sharpen.trial import NORMS

_of_model = partial(typer.Option, rich_help_panel="Model and optimiser")


def fit(
    nodes: NodesFile,
    edges: EdgesFile = None,
    *,
    id_column: IdColumn = None,
    label: LabelColumn = None,
    source: SourceColumn = None,
    target: TargetColumn = None,
    weight: WeightColumn = None,
    features: Annotated[
        str | None, of_columns(help="Columns to learn from, as a,b,c.", show_default="all others")
    ] = None,
    ignore: Annotated[str | None, of_columns(help="Columns to leave out, as a,b,c.", show_default="none")] = None,
    model: Annotated[
        str,
        typer.Option(
            help=f"auto; {', '.join(MODELS)}; or several, as gcn,sage.", autocompletion=offer("auto", *MODELS)
        ),
    ] = "auto",
    lam: Annotated[str, typer.Option(help="λ: auto; a number; or several to choose from, as 0.1,0.25.")] = "auto",
    balance: Annotated[str, typer.Option(help="auto (none, and as much as λ); a number; or several.")] = "auto",
    budget: Annotated[float, typer.Option(help="Minutes that the search may take.")] = 2.0,
    metric: Annotated[
        str,
        typer.Option(
            help="What to choose by: accuracy, or balanced-accuracy, in which rare classes count alike.",
            autocompletion=offer(*METRICS),
        ),
    ] = "accuracy",
    ensemble: Annotated[
        bool, typer.Option("--ensemble/--no-ensemble", help="Whether the best runs vote together, or one decides.")
    ] = True,
    class_weight: Annotated[
        str | None, typer.Option(help="balanced: rare classes weigh as much as others in training.")
    ] = None,
    abstain: Abstain = None,
    every_class: EveryClass = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Write predictions.parquet in place of .csv.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results.", show_default="sharpen-out/fit-NODES")
    ] = None,
    layers: Annotated[int, _of_model(help="Number of layers.")] = 2,
    hidden: Annotated[int, _of_model(help="Width of the layers.")] = 64,
    dropout: Annotated[float, _of_model(help="Share of activations set to zero.")] = 0.5,
    norm: Annotated[str, _of_model(help=", ".join(NORMS) + ".", autocompletion=offer(*NORMS))] = "none",
    lr: Annotated[float, _of_model(help="Learning rate of Adam.")] = 0.01,
    weight_decay: Annotated[float, _of_model(help="Weight decay of Adam.")] = 0.0005,
    epochs: Annotated[int, _of_model(help="Number of epochs.")] = 100,
    on: On = "here",
    device: Device = "auto",
    batching: Batching = "auto",
    seed: Annotated[int, typer.Option(help="Of folds, first weights and dropout.")] = 0,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Whether to make page.html, to look at.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result, and not how it comes about.")] = False,
) -> None:
    """Label the unlabeled nodes of a graph of your own.

    Learns from the labels in NODES, chooses model and λ by labels held out in turn, and writes predictions.csv (or .parquet),
    model.safetensors (for `sharpen predict`), summary.json and page.html (everything to look at, in one file) into the output
    folder.
    """
    from sharpen.cli.outputs import output_folder, text_bytes, write_together
    from sharpen.cluster.connection import HERE, check_place
    from sharpen.estimator import NodeClassifier
    from sharpen.files import (
        Columns,
        FeatureEncoder,
        check_labels,
        class_order,
        read_nodes_and_edges,
        to_graph,
        write_predictions,
    )
    from sharpen.fitting.predictions import prediction_frame
    from sharpen.machine import number_in_environment
    from sharpen.report.fit import expectation, print_fit
    from sharpen.report.page import fit_page, write_page
    from sharpen.training.device import resolve_device
    from sharpen.training.records import versions

    def tell(text: str) -> None:
        if not (quiet or as_json):
            typer.echo(text, err=True)

    if number_in_environment("WORLD_SIZE", 1) > 1:
        raise InputError("fit searches in one process; start it without torchrun, which compare and recipes can use")
    check_place(on)
    if on == HERE:
        resolve_device(device)
    check_abstain(abstain)
    classifier = NodeClassifier(
        model=model if "," not in model else [name.strip() for name in model.split(",")],
        lam=_auto_or_numbers(lam),
        balance=_auto_or_numbers(balance),
        budget=budget,
        metric=metric,
        ensemble=ensemble,
        class_weight=class_weight,
        layers=layers,
        hidden=hidden,
        dropout=dropout,
        norm=norm,
        lr=lr,
        weight_decay=weight_decay,
        epochs=epochs,
        on=on,
        device=device,
        batching=batching,
        seed=seed,
        progress=None if quiet or as_json else tell,
    )
    _check_options(classifier)
    start = time.perf_counter()
    columns = Columns(id_column, label, source, target, weight, _names(features), _names(ignore) or ())
    tables = read_nodes_and_edges(nodes, edges, columns)
    for line in tables.guesses:
        tell(line)
    notes = check_labels(tables)
    classes = class_order(tables.labels)
    encoder = FeatureEncoder.fit(tables)
    for line in encoder.describe():
        tell(line)
    graph = to_graph(tables, encoder.transform(tables), classes, unit=encoder.unit)
    folder = out or Path("sharpen-out") / f"fit-{nodes.name.split('.')[0]}"
    before = (folder / "summary.json").exists()
    name = "predictions.parquet" if parquet else "predictions.csv"
    with output_folder(folder, [name, "model.safetensors", "summary.json", *["page.html"] * page]):
        classifier.fit(graph)
        probabilities = classifier.predict_proba(graph)
        labeled = graph.y.numpy() >= 0
        frame = prediction_frame(tables.ids, probabilities, classes, labeled, abstain=abstain, every_class=every_class)
        summary: dict[str, Any] = {
            "expectation": expectation(classifier.report_),
            **classifier.report_,
            "notes": [*notes, *classifier.report_["notes"]],
            "graph": {
                "nodes": graph.num_nodes,
                "edges": graph.num_edges,
                "features": graph.num_features,
                "labeled": int(labeled.sum()),
                "fingerprint": tables.fingerprint,
            },
            "columns": [*tables.guesses, *encoder.describe()],
            "abstain": _abstention(abstain, frame),
            "total_seconds": round(time.perf_counter() - start, 2),
            "command": shlex.join(["sharpen", *sys.argv[1:]]),
        }
        text = json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False)
        extra = {
            "encoder": encoder.to_json(),
            "columns": _saved_columns(columns, tables.label_column),
            "edges": graph.num_edges,
        }
        files: dict[str, Callable[[Path], object]] = {
            name: lambda path: write_predictions(path, frame),
            "model.safetensors": lambda path: classifier.save(path, extra),
            "summary.json": lambda path: path.write_bytes(text_bytes(text)),
        }
        if page:
            look = partial(fit_page, name=nodes.name, curves=classifier.curves_, versions=versions())
            files["page.html"] = lambda path: write_page(look(summary, graph, tables.ids, probabilities), path)
        write_together(folder, files)
    if as_json:
        typer.echo(text)
        return
    print_fit(summary, Console(highlight=False))
    typer.echo(f"{name}, model.safetensors and summary.json are in {folder}{', in place of earlier ones' * before}")
    if page:
        typer.echo(f"To look at it, open {folder / 'page.html'}")


def _check_options(classifier: Any) -> None:
    """Refuses what cannot be before a file is read, by the name that it has on the command line."""
    try:
        classifier.check_parameters()
    except InputError as error:
        name, is_, rest = str(error).partition(" is ")
        if name not in classifier.get_params():
            raise
        raise InputError(f"--{name.replace('_', '-')}{is_}{rest}") from None


def _auto_or_numbers(text: str) -> str | list[float]:
    return parse_lams(text)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _saved_columns(columns: Any, label: str | None) -> dict[str, str | None]:
    return {
        "id": columns.id,
        "label": label,
        "source": columns.source,
        "target": columns.target,
        "weight": columns.weight,
    }


def _abstention(threshold: float | None, frame: Any) -> dict[str, float] | None:
    """How many of the unlabeled nodes got an answer."""
    if threshold is None:
        return None
    unlabeled = frame.loc[~frame["labeled"], "label"]
    return {"threshold": threshold, "answered": float(unlabeled.notna().mean()) if len(unlabeled) else 1.0}
