"""The paper's settings as data.

``hyperparameters.csv`` holds one row per (dataset, model) of its convolutional cells; weight decay, metric, ``input_linear`` and
the retuned values are not in the paper but in its authors' scripts. ``elsewhere.csv`` has ogbn-arxiv, a study of its own there;
the setting that the paper gives every MLP; and one for where it has none: small enough for a laptop, strong enough to be a fair
baseline.
``published.csv`` holds the numbers of its tables, in percent.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from sharpen.models.registry import REGISTRY
from sharpen.models.zoo.settings import settings_of

# What stands in the columns of hyperparameters.csv.
_KINDS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("layers", "hidden", "epochs"), int),
    **dict.fromkeys(("dropout", "lr", "weight_decay"), float),
    **dict.fromkeys(("residual", "input_linear"), "true".__eq__),
    "norm": str,
}


@cache
def _rows(name: str) -> list[dict[str, str]]:
    with files(__package__).joinpath(name).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


@cache
def _cells() -> dict[tuple[str, str], dict[str, str]]:
    return {(row["dataset"], row["model"]): row for row in _rows("hyperparameters.csv")}


@cache
def _settings() -> dict[tuple[str, str], dict[str, Any]]:
    rows = [*_cells().values(), *_rows("elsewhere.csv")]
    return {(row["dataset"], row["model"]): {name: kind(row[name]) for name, kind in _KINDS.items()} for row in rows}


def setting(dataset: str | None, model: str) -> dict[str, Any]:
    """The paper's hyper-parameters for a cell; for a method of the field, those that its authors published;
    for a dataset that is neither's, a small general setting.

    >>> setting("cora", "gcn")["dropout"], setting("digits", "gcn")["hidden"]
    (0.7, 64)
    """
    table, cell = _settings(), (dataset or "", model)
    if cell in table and dataset is not None:
        return dict(table[cell])
    if model == "mlp" and dataset in {name for name, _ in table}:
        return dict(table["", "mlp"])
    known = settings_of(model) if model in REGISTRY and REGISTRY[model].of_the_field else None
    return table["", ""] | ({} if known is None else known.of(dataset))


def lambda_star(dataset: str, model: str) -> float | None:
    """λ*, which the paper's authors chose on validation for a cell; None where the paper gives none.

    >>> lambda_star("cora", "gcn"), lambda_star("cora", "mlp")
    (1.35, None)
    """
    row = _cells().get((dataset, model))
    return None if row is None else float(row["lambda_star"])


def retuned(dataset: str, model: str) -> tuple[float, float] | None:
    """Learning rate and dropout that the paper's authors chose once sharpening was on; None where they give none.

    >>> retuned("cora", "gcn"), retuned("cora", "mlp")
    ((0.001, 0.65), None)
    """
    row = _cells().get((dataset, model))
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


def published_tables() -> tuple[str, ...]:
    """The names of the tables that :func:`published` knows.

    >>> published_tables()[0]
    'main'
    """
    return tuple(dict.fromkeys(row["table"] for row in _rows("published.csv")))


@cache
def published(table: str) -> dict[tuple[str, str, str], Published]:
    """The numbers of one of the paper's tables by dataset, model and variant; what it left blank is not there.

    >>> published("main")["cora", "gcn", "baseline"].mean
    84.54
    """
    found = {}
    for row in _rows("published.csv"):
        key = row["dataset"], row["model"], row["variant"]
        if row["table"] == table and (row["mean"] or row["delta"]):
            found[key] = Published(table, *key, *(float(row[n]) if row[n] else None for n in ("mean", "std", "delta")))
    return found
