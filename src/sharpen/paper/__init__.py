"""The paper's settings as data.

``hyperparameters.csv`` holds one row per (dataset, model) of its convolutional cells; weight decay, metric, ``input_linear`` and
the retuned values are not in the paper but in its authors' scripts. ``published.csv`` holds the numbers of its tables, in percent.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from sharpen.models.registry import REGISTRY
from sharpen.models.zoo.settings import settings_of

# Where the paper has no setting: small enough for a laptop, strong enough to be a fair baseline.
_ELSEWHERE: dict[str, Any] = {
    "layers": 2,
    "hidden": 64,
    "dropout": 0.5,
    "norm": "none",
    "residual": False,
    "input_linear": False,
    "lr": 0.01,
    "weight_decay": 0.0005,
    "epochs": 200,
}

# The paper gives every MLP the same setting.
_MLP = _ELSEWHERE | {"layers": 3, "hidden": 512, "lr": 0.001, "epochs": 1000}

# ogbn-arxiv is a study of its own in the paper.
_ARXIV: dict[str, Any] = {
    "dropout": 0.5,
    "norm": "batch",
    "residual": True,
    "input_linear": False,
    "lr": 0.0005,
    "weight_decay": 5e-5,
    "epochs": 2000,
}
_ARXIV_SIZE = {"gcn": (5, 512), "sage": (4, 256), "gat": (5, 256)}

# What stands in the columns of hyperparameters.csv.
_KINDS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("layers", "hidden", "epochs"), int),
    **dict.fromkeys(("dropout", "lr", "weight_decay"), float),
    **dict.fromkeys(("residual", "input_linear"), "true".__eq__),
    "norm": str,
}


@cache
def _rows() -> dict[tuple[str, str], dict[str, str]]:
    with files(__package__).joinpath("hyperparameters.csv").open(encoding="utf-8") as lines:
        return {(row["dataset"], row["model"]): row for row in csv.DictReader(lines)}


@cache
def _table() -> dict[tuple[str, str], dict[str, Any]]:
    return {cell: {name: kind(row[name]) for name, kind in _KINDS.items()} for cell, row in _rows().items()}


def setting(dataset: str | None, model: str) -> dict[str, Any]:
    """The paper's hyper-parameters for a cell; for a method of the field, those that its authors published;
    for a dataset that is neither's, a small general setting.

    >>> setting("cora", "gcn")["dropout"], setting("digits", "gcn")["hidden"]
    (0.7, 64)
    """
    if (dataset, model) in _table():
        return dict(_table()[str(dataset), model])
    if model == "mlp" and dataset in {name for name, _ in _table()} | {"ogbn-arxiv"}:
        return dict(_MLP)
    if dataset == "ogbn-arxiv" and model in _ARXIV_SIZE:
        layers, hidden = _ARXIV_SIZE[model]
        return {"layers": layers, "hidden": hidden, **_ARXIV}
    if model in REGISTRY and REGISTRY[model].of_the_field and (known := settings_of(model)) is not None:
        return _ELSEWHERE | known.of(dataset)
    return dict(_ELSEWHERE)


def lambda_star(dataset: str, model: str) -> float | None:
    """λ*, which the paper's authors chose on validation for a cell; None where the paper gives none.

    >>> lambda_star("cora", "gcn"), lambda_star("cora", "mlp")
    (1.35, None)
    """
    row = _rows().get((dataset, model))
    return None if row is None else float(row["lambda_star"])


def retuned(dataset: str, model: str) -> tuple[float, float] | None:
    """Learning rate and dropout that the paper's authors chose once sharpening was on; None where they give none.

    >>> retuned("cora", "gcn"), retuned("cora", "mlp")
    ((0.001, 0.65), None)
    """
    row = _rows().get((dataset, model))
    if row is None or not row["retuned_lr"] or not row["retuned_dropout"]:
        return None
    return float(row["retuned_lr"]), float(row["retuned_dropout"])


class Published(NamedTuple):
    """One number of the paper's tables, in percent or in points.

    Args:
        table, dataset, model: where it stands.
        variant: what it is the score of, or ``a - b`` for the difference of two.
        mean: the score; None where only a difference is given.
        sd: standard deviation over runs; of a difference, that of both sides together, as if they were independent.
        delta: the difference to the baseline, or of the two sides.

    >>> published("universal")["cora", "gcn", "ts-0.25"].delta
    0.62
    """

    table: str
    dataset: str
    model: str
    variant: str
    mean: float | None
    sd: float | None
    delta: float | None


@cache
def published_tables() -> tuple[str, ...]:
    """The names of the tables that :func:`published` knows.

    >>> published_tables()[0]
    'main'
    """
    with files(__package__).joinpath("published.csv").open(encoding="utf-8") as lines:
        return tuple(dict.fromkeys(row["table"] for row in csv.DictReader(lines)))


@cache
def published(table: str) -> dict[tuple[str, str, str], Published]:
    """The numbers of one of the paper's tables by dataset, model and variant; what it left blank is not there.

    >>> published("main")["cora", "gcn", "baseline"].mean
    84.54
    """
    with files(__package__).joinpath("published.csv").open(encoding="utf-8") as lines:
        rows = [
            Published(
                row["table"],
                row["dataset"],
                row["model"],
                row["variant"],
                *(float(row[name]) if row[name] else None for name in ("mean", "std", "delta")),
            )
            for row in csv.DictReader(lines)
            if row["table"] == table and (row["mean"] or row["delta"])
        ]
    return {(row.dataset, row.model, row.variant): row for row in rows}
