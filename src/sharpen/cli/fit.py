"""``sharpen fit``: two files in; labels, their confidence, and a model out."""

from __future__ import annotations

import json
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
from sharpen.cli.printing import print_json, teller
from sharpen.errors import InputError

if TYPE_CHECKING:
    from sharpen.estimator import NodeClassifier
    from sharpen.files.dataset import GraphInput


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
    layers: fit_options.Layers = 2,
    hidden: fit_options.Hidden = 64,
    dropout: fit_options.Dropout = 0.5,
    norm: fit_options.Norm = "none",
    lr: fit_options.Lr = 0.01,
    weight_decay: fit_options.WeightDecay = 0.0005,
    epochs: fit_options.Epochs = 100,
    on: options.On = "here",
    device: options.Device = "auto",
    batching: options.Batching = "auto",
    seed: fit_options.Seed = 0,
    page: fit_options.PageOption = True,
    as_json: fit_options.AsJson = False,
    quiet: fit_options.Quiet = False,
) -> None:
    """Label the unlabeled nodes of a graph of your own.

    Trains on the labels in NODES, chooses model and λ by cross-validation, and
    writes predictions.csv (or .parquet), model.safetensors (for `sharpen predict`),
    summary.json and page.html (a self-contained report) to the output folder.
    """
    from sharpen.cli.outputs import output_folder
    from sharpen.estimator import NodeClassifier
    from sharpen.files import Columns
    from sharpen.files.dataset import read_graph

    tell = teller(quiet or as_json)
    _check_where(on, device)
    options.check_abstain(abstain)
    _check_counts(suggest, explain)
    search: dict[str, Any] = {"budget": budget, "metric": metric, "ensemble": ensemble}
    search |= {"class_weight": class_weight, "class_prior": class_prior}
    layout: dict[str, Any] = {"layers": layers, "hidden": hidden, "dropout": dropout, "norm": norm}
    training: dict[str, Any] = {"lr": lr, "weight_decay": weight_decay, "epochs": epochs, "seed": seed}
    classifier = NodeClassifier(
        model=model if "," not in model else [name.strip() for name in model.split(",")],
        lam=parse_lams(lam),
        balance=parse_lams(balance, "balance"),
        **(search | layout | training | {"on": on, "device": device, "batching": batching}),
        progress=None if quiet or as_json else tell,
    )
    classifier.check_parameters()  # before a file is read
    start, unknown = time.perf_counter(), options.split_names(unknown_label)
    of_nodes: dict[str, Any] = {"features": options.split_names(features), "ignore": options.split_names(ignore) or ()}
    columns = Columns(id_column, label, source, target, weight, unknown_labels=unknown, strict=strict, **of_nodes)
    read = read_graph(nodes, edges, columns, tell)
    folder = out or Path("sharpen-out") / f"fit-{nodes.name.split('.')[0]}"
    name = "predictions.parquet" if parquet else "predictions.csv"
    before = (folder / "summary.json").exists()
    files = [name, "model.safetensors", "summary.json", *["page.html"] * page]
    with output_folder(folder, [*files, *["suggestions.csv"] * (suggest is not None)]):
        classifier.fit(read.graph)
        fitted = _Fitted(classifier, read, abstain, every_class, suggest, explain)
        summary = fitted.summary(start) | {"predictions": name}
        fitted.write(folder, name, summary, page=nodes.name if page else None)
    if as_json:
        print_json(summary)
        return
    _print(summary, folder, before, page)


def _print(summary: dict[str, Any], folder: Path, before: bool, page: bool) -> None:
    """The result, and where it is."""
    from sharpen.report.fit import print_fit

    print_fit(summary, Console(highlight=False))
    names = summary["predictions"] + ", suggestions.csv" * (summary["suggestions"] is not None)
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


class _Fitted:
    """A fitted classifier with what it was fitted on and what it predicts there."""

    def __init__(
        self,
        classifier: NodeClassifier,
        read: GraphInput,
        abstain: float | None,
        every_class: bool,
        suggest: int | None,
        explain: int,
    ) -> None:
        from sharpen.files.feature_names import feature_names
        from sharpen.fitting.predictions import prediction_frame
        from sharpen.fitting.reasons import delivered_scores, find_reasons, suggestion_frame

        graph, ids = read.graph, read.tables.ids
        self.classifier, self.read, self.abstain = classifier, read, abstain
        self.probabilities, known = classifier.predict_proba(graph), graph.y.numpy()
        self.reasons = self.suggested = because = None
        if explain:
            names = feature_names(read.encoder, read.tables)
            scores, method = delivered_scores(classifier._fitted, graph, known, self.probabilities)
            self.reasons = find_reasons(
                graph, known, self.probabilities, scores, method, ids=ids, names=names, most=explain
            )
            because = self.reasons.frame(graph.num_nodes)
        if suggest is not None:
            self.suggested = suggestion_frame(graph, known, self.probabilities, read.classes, ids, suggest)
        self.frame = prediction_frame(
            ids, self.probabilities, read.classes, known >= 0, abstain=abstain, every_class=every_class, because=because
        )

    def summary(self, start: float) -> dict[str, Any]:
        """What summary.json holds."""
        report = self.classifier.report_
        return {
            **report,
            "notes": [*self.read.notes, *report["notes"]],
            "graph": {**report["graph"], "fingerprint": self.read.tables.fingerprint},
            "columns": [*self.read.tables.guesses, *self.read.encoder.describe()],
            "abstain": _abstention(self.abstain, self.frame),
            "reasons": None if self.reasons is None else self.reasons.summary(),
            "suggestions": None if self.suggested is None else self.suggested.to_dict("records"),
            "total_seconds": round(time.perf_counter() - start, 2),
            "command": shlex.join(["sharpen", *sys.argv[1:]]),
        }

    def write(self, folder: Path, name: str, summary: dict[str, Any], page: str | None) -> None:
        """All files of the fit, together; ``page`` is what the report calls the graph, None for no report."""
        from sharpen.cli.outputs import text_bytes, write_together
        from sharpen.files import write_predictions
        from sharpen.report.page import fit_page, write_page
        from sharpen.training.records import versions

        read, curves = self.read, self.classifier.curves_
        extra = {
            "encoder": read.encoder.to_json(),
            "columns": {name: getattr(read.columns, name) for name in ("id", "source", "target", "weight")}
            | {"label": read.tables.label_column},
            "edges": read.graph.num_edges,
        }
        files: dict[str, Callable[[Path], object]] = {
            name: lambda path: write_predictions(path, self.frame),
            "model.safetensors": lambda path: self.classifier.save(path, extra),
            "summary.json": lambda path: path.write_bytes(text_bytes(_json(summary))),
        }
        suggested = self.suggested
        if suggested is not None:
            files["suggestions.csv"] = lambda path: write_predictions(path, suggested)
        if page is not None:
            because = None if self.reasons is None else self.reasons.frame(read.graph.num_nodes)
            look = partial(fit_page, summary, read.graph, read.tables.ids, self.probabilities, because=because)
            files["page.html"] = lambda path: write_page(look(name=page, curves=curves, versions=versions()), path)
        write_together(folder, files)


def _json(summary: dict[str, Any]) -> str:
    return json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False)


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
