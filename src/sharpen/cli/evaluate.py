"""``sharpen evaluate``: predictions against labels that arrived later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sharpen.cli.options import JsonFlag
from sharpen.cli.printing import print_json
from sharpen.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def evaluate(
    predictions: Annotated[
        Path, typer.Argument(help="Predictions of `sharpen fit` or `sharpen predict`, .csv or .parquet.")
    ],
    labels: Annotated[Path, typer.Argument(help="Table with node IDs and labels, blank where unknown.")],
    *,
    id_column: Annotated[str | None, typer.Option("--id", help="Column of LABELS with node IDs.")] = None,
    label: Annotated[str | None, typer.Option(help="Column of LABELS with the labels.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Include training nodes, which inflate the scores.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Score predictions against labels that became known later.

    Training nodes are left out. A blank prediction counts as unanswered.
    """
    import pandas as pd

    from sharpen.files import Columns, comparable_ids, label_column, read_nodes_and_edges, read_predictions

    frame = read_predictions(predictions)
    for column in ("label", "probability", "labeled"):
        if column not in frame.columns:
            raise InputError(f"{predictions} has no column {column!r}; give predictions as sharpen writes them")
    known = comparable_ids(frame["id"])
    columns = Columns(id=id_column, label=label, features=())
    tables = read_nodes_and_edges(labels, None, columns, known_ids=known)
    others = [name for name in tables.columns if name != tables.id_column]
    if tables.label_column is None and len(others) == 1:
        tables = read_nodes_and_edges(labels, None, replace(columns, label=others[0]), known_ids=known)
    label_column(tables)
    if not as_json:
        for line in tables.guesses:
            if not line.startswith("edges:"):
                typer.echo(line, err=True)
    truth = pd.Series(tables.labels, index=pd.Index(comparable_ids(tables.ids)), dtype=object)
    scores = _score_predictions(frame.assign(id=known), truth, everything=everything)
    if as_json:
        print_json(scores)
        return
    for line in _evaluation_lines(scores):
        typer.echo(line)


def _score_predictions(frame: pd.DataFrame, truth: pd.Series, *, everything: bool = False) -> dict[str, Any]:
    """Scores of predictions against true labels, joined on ids as text.

    Args:
        frame: As :func:`sharpen.fitting.predictions.prediction_frame` makes it, or read back from CSV as text.
        everything: Whether to count nodes whose label was given to the fit.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"id": ["a", "b", "c"], "label": ["x", "y", None], "probability": [0.9, 0.6, 0.4], "labeled": False})
    >>> scores = _score_predictions(frame, pd.Series({"a": "x", "b": "x", "c": "x", "d": "x"}))
    >>> scores["nodes"], scores["answered"], scores["accuracy"]
    (3, 0.6666666666666666, 0.5)
    """
    import numpy as np

    from sharpen.evaluation.calibration import brier, calibration_gap, log_loss, reliability_of_confidence
    from sharpen.evaluation.classes import balanced_accuracy, macro_f1

    known = truth[truth.notna()]
    seen = frame["labeled"].astype(str).str.lower() == "true"
    joined = frame.assign(id=frame["id"].astype(str), truth=frame["id"].astype(str).map(known))
    counted = joined[joined["truth"].notna() & (everything | ~seen)]
    if counted.empty:
        none = "no predicted node that the fit had no label for has a label now"
        raise InputError(f"{none}; check that the ids are the same, or give --all")
    answered = counted[counted["label"].notna() & (counted["label"] != "")]
    scores: dict[str, Any] = {"nodes": len(counted), "answered": len(answered) / len(counted)}
    if answered.empty:
        return scores
    guess, true = answered["label"].astype(str).to_numpy(), answered["truth"].astype(str).to_numpy()
    hit = guess == true
    confidence = answered["probability"].astype(float).to_numpy()
    scores |= {
        "accuracy": float(hit.mean()),
        "balanced_accuracy": balanced_accuracy(guess, true),
        "macro_f1": macro_f1(guess, true),
        "ece": calibration_gap(reliability_of_confidence(confidence, hit)),
    }
    prefix = "probability of "
    columns = [name for name in frame.columns if name.startswith(prefix)]
    number = {name.removeprefix(prefix): i for i, name in enumerate(columns)}
    if columns and set(true) <= set(number):
        p = answered[columns].astype(float).to_numpy()
        y = np.array([number[value] for value in true])
        scores |= {"brier": brier(p, y), "log_loss": log_loss(p, y)}
    return scores


def _evaluation_lines(scores: dict[str, Any]) -> list[str]:
    """The scores in words.

    >>> _evaluation_lines({"nodes": 3, "answered": 0.0})
    ['3 nodes with a label now, none of them answered: every prediction is blank.']
    """
    nodes = f"{scores['nodes']} nodes with a label now"
    if "accuracy" not in scores:
        return [f"{nodes}, none of them answered: every prediction is blank."]
    percent = {name: f"{100 * score:.1f} %" for name, score in scores.items()}
    others = f"balanced accuracy {percent['balanced_accuracy']}, macro-F1 {percent['macro_f1']}"
    names = {"ece": "ECE", "brier": "Brier", "log_loss": "log-loss"}
    return [
        f"{nodes}, {percent['answered']} of them answered.",
        f"Of the answers, {percent['accuracy']} are right ({others}).",
        f"Confidence: {', '.join(f'{name} {scores[key]:.3f}' for key, name in names.items() if key in scores)}.",
    ]
