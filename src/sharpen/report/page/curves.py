"""Training curves of several runs as one: their mean, and where the middle half of them lies."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sharpen.report.charts import Chart, axis, lines, series, thinned

Traces = Mapping[str, np.ndarray]

_UNCERTAINTY = {2.0: "Gini uncertainty", 1.0: "Shannon uncertainty, nats"}


def training_charts(
    plain: Sequence[Traces],
    sharp: Sequence[Traces],
    name: str,
    *,
    metric: str,
    q: float,
    plain_q: float,
    chosen: float | None,
) -> list[Chart]:
    """What happens in training, epoch by epoch, with and without sharpening: three charts.

    Args:
        plain, sharp: The traces of the runs, as :class:`sharpen.Record` holds them; may be empty.
        name: What to call the sharpened ones.
        metric: What ``train`` and ``val`` are.
        q, plain_q: The order of the entropies of the two: of different orders they cannot be compared.
        chosen: The epoch that validation chose, on average.

    >>> trace = {"entropy_unlabeled": np.array([0.5, 0.2]), "entropy_labeled": np.array([0.5, 0.1])}
    >>> trace |= {"train": np.array([0.5, 1.0]), "val": np.array([0.5, 0.8])}
    >>> charts = training_charts([trace], [trace], "λ = 0.5", metric="accuracy", q=2.0, plain_q=2.0, chosen=1)
    >>> [chart["title"] for chart in charts]
    ['Uncertainty of predictions', 'Their gap', 'Accuracy']
    >>> charts[1]["y"]["label"], charts[1]["series"][0]["y"]
    ('H_L − H_U', [0.0, -0.1])
    """
    alike = plain if q == plain_q else []
    unit = axis(_UNCERTAINTY.get(q, f"Tsallis uncertainty, q = {q:g}"), decimals=3)
    epoch = axis("epoch", decimals=0, air=0.01)
    marks = [] if chosen is None else [{"x": chosen, "label": "chosen"}]
    # Where the last epoch is kept whatever it scores, the others have no scores.
    scored = any(np.isfinite(run[key]).sum() > 1 for run in (*plain, *sharp) for key in ("train", "val"))
    charts = [
        lines(
            "Uncertainty of predictions",
            epoch,
            unit,
            [
                *_mean(f"H_U, unlabeled, {name}", "blue", sharp, "entropy_unlabeled"),
                *_mean(f"H_L, labeled, {name}", "vermilion", sharp, "entropy_labeled"),
                *_mean("H_U, plain", "sky", alike, "entropy_unlabeled", dash=True),
                *_mean("H_L, plain", "amber", alike, "entropy_labeled", dash=True),
            ],
            summary="Mean over runs; bands hold the middle half of them.",
        ),
        lines(
            "Their gap",
            epoch,
            axis("H_L − H_U", decimals=3),
            [*_mean(name, "green", sharp, "gap"), *_mean("plain", "grey", alike, "gap", dash=True)],
            summary="How much surer of unlabeled than of labeled nodes; below 0, less sure.",
        ),
        lines(
            metric if metric.isupper() or "-" in metric else metric.capitalize(),
            epoch,
            axis("%", decimals=1, most=100, min=_start([*sharp, *plain])),
            [
                *_mean(f"validation, {name}", "blue", sharp, "val", 100),
                *_mean("validation, plain", "sky", plain, "val", 100, dash=True),
                *_mean(f"training, {name}", "vermilion", sharp, "train", 100),
                *_mean("training, plain", "amber", plain, "train", 100, dash=True),
            ],
            marks=marks,
            summary="Scores of the evaluation after each epoch.",
        ),
    ]
    return charts[: 2 + scored]


def _start(runs: Sequence[Traces]) -> float:
    """Where the axis of scores begins: the first tenth of training, in which everything rises, may fall below it."""
    late = [np.nanmin(run[key][len(run[key]) // 10 :], initial=1.0) for run in runs for key in ("train", "val")]
    return max(0.0, 100 * float(min(late)) - 2)


def _mean(name: str, color: str, runs: Sequence[Traces], key: str, factor: float = 1, **options: Any) -> list[Chart]:
    """The mean of a trace over runs; nothing if no run has it, as training without validation nodes has no such score."""
    gap = key == "gap"
    traced = [run["entropy_labeled"] - run["entropy_unlabeled"] if gap else run[key] for run in runs]
    values = factor * np.array(traced, dtype=np.float64)
    if not np.isfinite(values).any():
        return []
    epochs = thinned(values.shape[1])
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # an epoch that no run reached alive has no mean
        mean = np.nanmean(values, axis=0)[epochs]
        low, high = np.nanquantile(values, [0.25, 0.75], axis=0)[:, epochs]
    if len(runs) > 1:
        options |= {"low": low, "high": high}
    return [series(name, color, epochs, mean, **options)]
