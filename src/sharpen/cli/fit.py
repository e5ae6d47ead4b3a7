"""``sharpen fit``: two files in; labels, their confidence, and a model out."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from sharpen.cli import fit_options, options
from sharpen.cli.compare import parse_lams
from sharpen.cli.outputs import output_folder, write_together
from sharpen.cli.printing import print_json, teller
from sharpen.cli.trial_options import trial_options
from sharpen.errors import InputError
from sharpen.whole import json_bytes

if TYPE_CHECKING:
    from sharpen.estimator import NodeClassifier
    from sharpen.files.dataset import GraphInput


# What a fit begins with where a comparison takes the paper's settings.
_SETTINGS = {
    "layers": 2, "hidden": 64, "dropout": 0.5, "norm": "none", "lr": 0.01, "weight_decay": 0.0005, "epochs": 100
}  # fmt: skip


@partial(trial_options, defaults=_SETTINGS)
def fit(
    nodes: options.NodesFile,
    edges: options.EdgesFile = None,
    *,
    id_column: options.IdColumn = None,
    label: options.LabelColumn = None,
    source: options.SourceColumn = None,
    target: options.TargetColumn = None,
    weight: options.WeightColumn = None,
    features: fit_options.Features = None,
    ignore: fit_options.Ignore = None,
    unknown_label: options.UnknownLabel = None,
    strict: options.Strict = False,
    model: fit_options.ModelNames = "auto",
    lam: fit_options.Lam = "auto",
    balance: fit_options.Balance = "auto",
    class_prior: fit_options.ClassPrior = None,
    budget: fit_options.Budget = 2.0,
    metric: fit_options.Metric = "accuracy",
    ensemble: fit_options.Ensemble = True,
    class_weight: fit_options.ClassWeight = None,
    abstain: options.Abstain = None,
    every_class: options.EveryClass = False,
    suggest: fit_options.Suggest = None,
    explain: fit_options.Explain = 10_000,
    parquet: options.Parquet = False,
    out: fit_options.OutFolder = None,
    on: options.On = "here",
    device: options.Device = "auto",
    batching: options.Batching = "auto",
    seed: fit_options.Seed = 0,
    page: options.PageOption = True,
    as_json: fit_options.AsJson = False,
    quiet: fit_options.Quiet = False,
    **settings: Any,
) -> None:
    """Label the unlabeled nodes of a graph of your own.

    Trains on the labels in NODES, chooses model and λ by cross-validation, and
    writes predictions.csv (or .parquet), model.safetensors (for `sharpen predict`),
    summary.json and page.html (a self-contained report) to the output folder.
    """
    from sharpen.estimator import NodeClassifier
    from sharpen.files import Columns
    from sharpen.files.dataset import read_graph
    from sharpen.report.fit import print_fit

    tell = teller(quiet or as_json)
    _check_where(on, device)
    options.check_abstain(abstain)
    _check_counts(suggest, explain)
    settings |= {"budget": budget, "metric": metric, "ensemble": ensemble, "class_weight": class_weight, "seed": seed}
    settings |= {"class_prior": class_prior, "on": on, "device": device, "batching": batching}
    classifier = NodeClassifier(
        model=model if "," not in model else [name.strip() for name in model.split(",")],
        lam=parse_lams(lam),
        balance=parse_lams(balance, "balance"),
        progress=None if quiet or as_json else tell,
        **settings,
    )
    classifier.check_parameters()  # before a file is read
    start, unknown = time.perf_counter(), options.split_names(unknown_label)
    of_nodes = options.split_names(features), options.split_names(ignore) or ()
    columns = Columns(id_column, label, source, target, weight, *of_nodes, unknown_labels=unknown, strict=strict)
    read = read_graph(nodes, edges, columns, tell)
    folder = out or Path("sharpen-out") / f"fit-{nodes.name.split('.')[0]}"
    name = "predictions.parquet" if parquet else "predictions.csv"
    before = (folder / "summary.json").exists()
    files = [name, "model.safetensors", "summary.json", *["page.html"] * page]
    with output_folder(folder, [*files, *["suggestions.csv"] * (suggest is not None)]):
        classifier.fit(read.graph)
        asked: dict[str, Any] = {"abstain": abstain, "every_class": every_class, "suggest": suggest, "explain": explain}
        summary, written = _results(classifier, read, name, nodes.name if page else None, **asked)
        summary["total_seconds"] = round(time.perf_counter() - start, 2)
        write_together(folder, written)
    if as_json:
        print_json(summary)
        return
    print_fit(summary, Console(highlight=False))
    names = name + ", suggestions.csv" * (suggest is not None)
    typer.echo(f"{names}, model.safetensors and summary.json are in {folder}{', in place of earlier ones' * before}")
    if page:
        typer.echo(f"Report: {folder / 'page.html'}")


def _check_where(on: str, device: str) -> None:
    from sharpen.cluster.connection import HERE, check_place
    from sharpen.machine import number_in_environment
    from sharpen.training.device import resolve_device

    if number_in_environment("WORLD_SIZE", 1) > 1:
        raise InputError("fit searches in one process; start it without torchrun, which compare and recipes can use")
    check_place(on)
    if on == HERE:
        resolve_device(device)


def _results(
    classifier: NodeClassifier,
    read: GraphInput,
    name: str,
    page: str | None,
    *,
    abstain: float | None,
    every_class: bool,
    suggest: int | None,
    explain: int,
) -> tuple[dict[str, Any], dict[str, Callable[[Path], object]]]:
    """What summary.json holds of a fit, and what writes each of its files."""
    from sharpen.files import write_predictions
    from sharpen.files.feature_names import feature_names
    from sharpen.fitting.predictions import prediction_frame
    from sharpen.fitting.reasons import delivered_scores, find_reasons, suggestion_frame
    from sharpen.report.page import fit_page, write_page
    from sharpen.training.records import versions

    graph, ids, report = read.graph, read.tables.ids, classifier.report_
    p, known = classifier.predict_proba(graph), graph.y.numpy()
    reasons = because = suggested = None
    if explain:
        names = feature_names(read.encoder, read.tables)
        scores, method = delivered_scores(classifier._fitted, graph, known, p)
        reasons = find_reasons(graph, known, p, scores, method, ids=ids, names=names, most=explain)
        because = reasons.frame(graph.num_nodes)
    frame = prediction_frame(
        ids, p, read.classes, known >= 0, abstain=abstain, every_class=every_class, because=because
    )
    named = {key: getattr(read.columns, key) for key in ("id", "source", "target", "weight")}
    columns = named | {"label": read.tables.label_column}
    extra = {"encoder": read.encoder.to_json(), "columns": columns, "edges": graph.num_edges}
    files: dict[str, Callable[[Path], object]] = {
        name: lambda path: write_predictions(path, frame),
        "model.safetensors": lambda path: classifier.save(path, extra),
        "summary.json": lambda path: path.write_bytes(json_bytes(summary)),
    }
    if suggest is not None:
        suggested = suggestion_frame(graph, known, p, read.classes, ids, suggest)
        files["suggestions.csv"] = lambda path: write_predictions(path, suggested)
    if page is not None:
        look = partial(fit_page, graph=graph, ids=ids, probabilities=p, because=because, name=page)
        curves = classifier.curves_
        files["page.html"] = lambda path: write_page(look(summary, curves=curves, versions=versions()), path)
    summary = {
        **report,
        "notes": [*read.notes, *report["notes"]],
        "graph": {**report["graph"], "fingerprint": read.tables.fingerprint},
        "columns": [*read.tables.guesses, *read.encoder.describe()],
        "abstain": _abstention(abstain, frame),
        "reasons": None if reasons is None else reasons.summary(),
        "suggestions": None if suggested is None else suggested.to_dict("records"),
        "command": shlex.join(["sharpen", *sys.argv[1:]]),
        "predictions": name,
    }
    return summary, files


def _check_counts(suggest: int | None, explain: int) -> None:
    from sharpen.fitting.suggestions import check_suggest

    if suggest is not None:
        try:
            check_suggest(suggest)
        except InputError as error:
            raise InputError(f"--{error}") from None
    if explain < 0:
        raise InputError(f"--explain is {explain}; give how many nodes to explain, or 0 for none")


def _abstention(threshold: float | None, frame: Any) -> dict[str, float] | None:
    """How many of the unlabeled nodes got an answer."""
    if threshold is None:
        return None
    unlabeled = frame.loc[~frame["labeled"], "label"]
    return {"threshold": threshold, "answered": float(unlabeled.notna().mean()) if len(unlabeled) else 1.0}
