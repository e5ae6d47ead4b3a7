"""The page of ``sharpen compare``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from sharpen.datasets import Dataset
from sharpen.evaluation.calibration import fit_temperature, reliability_of_confidence
from sharpen.evaluation.comparison import Comparison, LamComparison
from sharpen.evaluation.paired import pair
from sharpen.models.registry import model_info
from sharpen.report.charts import Chart, axis, dots, lines, matrix, paired_row, series
from sharpen.report.headline import headline
from sharpen.report.names import metric_title
from sharpen.report.page.confidence import coverage_chart, coverage_of, reliability_chart
from sharpen.report.page.curves import training_charts
from sharpen.report.page.document import Page
from sharpen.report.page.nodes import nodes_section
from sharpen.report.page.sections import choice, described, facts, section
from sharpen.trial import Record, to_frame

# More validation nodes than these do not make a better temperature.
_ENOUGH = 2000


class _HeldOut(NamedTuple):
    """What the runs of one variant say of nodes that were neither trained on nor chose the epoch.

    How sure they are before and after calibration, and whether they are right.
    """

    before: np.ndarray
    after: np.ndarray
    hit: np.ndarray
    confusion: np.ndarray
    probabilities: np.ndarray
    runs: np.ndarray


def comparison_page(
    comparison: Comparison,
    dataset: Dataset,
    plain: Sequence[Record],
    sharp: Mapping[float, Sequence[Record]],
    *,
    result: Mapping[str, Any],
) -> Page:
    """Everything there is to see of a comparison.

    Args:
        comparison: Of the records below.
        dataset: What they were trained on.
        plain: The runs of the baseline, with traces and logits.
        sharp: The runs of each λ.
        result: What ``sharpen compare`` writes to ``comparison.json``.

    >>> from sharpen import Graph, Split, Trial, train
    >>> from sharpen.datasets import Splits
    >>> from sharpen.evaluation import compare_lams
    >>> ring = Graph(x=np.eye(6), edge_index=[[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]], y=[0, 0, 0, 1, 1, 1])
    >>> dataset = Dataset("ring", ring, splits=Splits([Split("halves", [0, 3], [1, 4], [2, 5])]))
    >>> runs = [train(dataset, [Trial(hidden=4, epochs=3, lam=lam)], device="cpu") for lam in (0.0, 0.5)]
    >>> result = {"notes": [], "settings": {}, "pairs": [], "split_ids": {}, "fingerprint": ring.fingerprint, "device": "cpu"}
    >>> result |= {"precision": "float32", "seconds": 0.1, "versions": {}, "command": "sharpen compare ring"}
    >>> compared = compare_lams(to_frame(runs[0]), {0.5: to_frame(runs[1])})
    >>> page = comparison_page(compared, dataset, runs[0], {0.5: runs[1]}, result=result)
    >>> page.kind, len(page.sections)
    ('sharpen compare · ring · GCN', 8)
    """
    subject = comparison.subject or max(comparison.variants, key=lambda v: -np.inf if v.val is None else v.val)
    name = f"λ = {subject.lam:g}"
    before, after = _held_out(dataset, plain), _held_out(dataset, sharp[subject.lam])
    sections = [_gains(comparison, plain, sharp), _against_lam(comparison)]
    if training := _training(comparison, plain, sharp, list(sharp).index(subject.lam)):
        sections.append(training)
    if after is not None:
        sections += _quality(name, before, after, dataset)
        sections.append(
            nodes_section(
                dataset.graph,
                np.arange(dataset.graph.num_nodes),
                after.probabilities,
                truth=dataset.graph.y.numpy(),
                runs=after.runs,
                text=f"What the runs with {name} say of each node: the mean of their calibrated probabilities, of those runs "
                "in which the node's label was neither learnt from nor used to choose the epoch.",
            )
        )
    sections.append(section("Settings and versions", facts(_facts(dataset, result))))
    model = model_info(comparison.model).noun
    return Page(
        kind=f"sharpen compare · {comparison.dataset} · {model}",
        headline=headline(comparison),
        below=[
            "Each sharpened run is compared with the plain run on the same split with the same initial weights, so that the effect "
            "of the split cancels out.",
            *result["notes"],
        ],
        tiles=_tiles(comparison, subject, result),
        sections=sections,
        command=str(result["command"]),
    )


def _tiles(comparison: Comparison, subject: LamComparison, result: Mapping[str, Any]) -> list[tuple[str, str]]:
    metric, d = metric_title(comparison.metric), subject.difference
    runs = comparison.pairs * (len(comparison.variants) + 1)
    tiles = [(f"{runs}", f"training runs, {result['seconds']:.0f} s on {result['device']}")]
    if d is None:
        return ([] if comparison.test is None else [(f"{comparison.test:.2f} %", f"test {metric}, plain")]) + tiles
    within = "" if d.t_interval is None else "{:+.2f} to {:+.2f}".format(*d.t_interval).replace("-", "−")
    return [
        (f"{d.difference:+.2f} points".replace("-", "−"), f"paired gain of λ = {subject.lam:g}"),
        *([(within, "95 % confidence interval")] if within else []),
        (f"{d.mean_b:.2f} → {d.mean_a:.2f} %", f"test {metric}, plain → sharpened"),
        (f"{d.wins} / {d.ties} / {d.losses}", "pairs won / tied / lost"),
        *tiles,
    ]


def _gains(comparison: Comparison, plain: Sequence[Record], sharp: Mapping[float, Sequence[Record]]) -> Chart:
    rows, baseline = [], to_frame(plain)
    for variant in comparison.variants:
        pairs = pair(to_frame(sharp[variant.lam]), baseline)
        d = variant.difference
        text = "every pair has a run that diverged"
        if d is not None:
            within = "" if d.t_interval is None else " [{:+.2f}, {:+.2f}]".format(*d.t_interval)
            text = f"{d.difference:+.2f}{within}, {d.wins} won, {d.ties} tied, {d.losses} lost"
        scores = zip(pairs.keys["split"], pairs.keys["seed"], 100 * pairs.b, 100 * pairs.a, strict=True)
        rows.append(paired_row(f"λ = {variant.lam:g}", text.replace("-", "−"), scores, d))
    text = "Each dot is one pair of runs; the diamond is the mean, the bar its 95 % confidence interval."
    chart = dots("", rows, "points of test score", wide=True)
    return section("The gain of each pair", chart, text=text, half=len(rows) == 1)


def _against_lam(comparison: Comparison) -> Chart:
    rows: list[tuple[float | None, ...]] = []
    if all(variant.lam != 0 for variant in comparison.variants):
        rows.append((0.0, comparison.val, comparison.test, None, None))
    for variant in comparison.variants:
        d = variant.difference
        mean = None if d is None else d.mean_a
        low, high = (None, None) if d is None or d.t_interval is None else (d.mean_b + end for end in d.t_interval)
        rows.append((variant.lam, variant.val, mean, low, high))
    x, val, test, lows, highs = np.array(sorted(rows, key=lambda row: row[0] or 0.0), dtype=np.float64).T
    metric = metric_title(comparison.metric)
    marks = [] if comparison.chosen is None else [{"x": comparison.chosen, "label": f"chosen: {comparison.chosen:g}"}]
    chart = lines(
        "",
        axis("λ, the weight of sharpening", name="λ =", decimals=2),
        axis(f"{metric}, %", decimals=2, most=100),
        [
            series("test", "blue", x, test, low=lows, high=highs, points=True),
            series("validation", "amber", x, val, points=True, dash=True),
        ],
        marks=marks,
        summary="; ".join(f"λ = {row[0]:g}: test {row[2]:.2f} %" for row in rows if row[2] is not None),
        note="Means over all pairs; λ = 0 is plain training. Whiskers: the 95 % interval of the paired gain, above the plain mean.",
    )
    return section(f"{metric[0].upper()}{metric[1:]} against λ", chart, half=True)


def _training(
    comparison: Comparison, plain: Sequence[Record], sharp: Mapping[float, Sequence[Record]], shown: int
) -> Chart | None:
    alive = [record.traces for record in plain if record.status == "ok" and record.traces]
    views = {}
    for lam, records in sharp.items():
        finished = [record for record in records if record.status == "ok" and record.traces]
        if finished:
            views[f"λ = {lam:g}"] = training_charts(
                alive,
                [record.traces for record in finished],
                f"λ = {lam:g}",
                metric=metric_title(comparison.metric),
                q=finished[0].trial.q,
                plain_q=plain[0].trial.q,
                chosen=float(np.median([record.best_epoch for record in finished])),
            )
    if not views:
        return None
    return choice(
        "Training",
        views,
        shown=min(shown, len(views) - 1),
        text="Mean over runs per epoch, with the interquartile range. Sharpening makes predictions on unlabeled nodes more "
        "confident (H_U falls) and keeps those on labeled nodes from becoming overconfident (H_L).",
    )


def _held_out(dataset: Dataset, records: Sequence[Record]) -> _HeldOut | None:
    """Predictions for test nodes, run by run, each calibrated on its own validation nodes."""
    y, (n, classes) = dataset.graph.y.numpy(), (dataset.graph.num_nodes, dataset.graph.num_classes)
    confusion = np.zeros((classes, classes), dtype=np.int64)
    inside, outside = np.zeros((n, classes)), np.zeros((n, classes))
    count = np.zeros(n, dtype=np.int64)
    befores, afters, hits = [], [], []
    finished = [(record, record.logits) for record in records if record.status == "ok" and record.logits is not None]
    if not finished:
        return None
    for record, raw in finished:
        split, logits = dataset.splits[str(record.trial.split)], raw.astype(np.float64)
        val, test = np.random.default_rng(0).permutation(split.val.numpy())[:_ENOUGH], split.test.numpy()
        temperature = fit_temperature(logits[val], y[val], smoothing=1 / (len(val) + 2))
        calm = softmax(logits / temperature, axis=1)
        guess = logits[test].argmax(1)
        np.add.at(confusion, (y[test], guess), 1)
        befores.append(softmax(logits[test], axis=1).max(1).astype(np.float32))
        afters.append(calm[test].max(1).astype(np.float32))
        hits.append(guess == y[test])
        unmet = np.ones(n, dtype=bool)
        unmet[split.train.numpy()] = unmet[split.val.numpy()] = False
        outside[unmet] += calm[unmet]
        inside += calm
        count += unmet
    met, total = count == 0, len(finished)
    probabilities = np.where(met[:, None], inside / total, outside / np.maximum(count, 1)[:, None])
    before, after, hit = (np.concatenate(own) for own in (befores, afters, hits))
    return _HeldOut(before, after, hit, confusion, probabilities, np.where(met, total, count))


def _quality(name: str, before: _HeldOut | None, after: _HeldOut, dataset: Dataset) -> list[Chart]:
    variants = {name: after} | ({"plain": before} if before is not None else {})
    colors = {name: "blue", "plain": "grey"}
    reliabilities = {
        key: [reliability_chart(*(reliability_of_confidence(sure, held.hit) for sure in (held.before, held.after)))]
        for key, held in variants.items()
    }
    curves = {key: (colors[key], *coverage_of(held.after, held.hit)) for key, held in variants.items()}
    names = list(dataset.graph.class_names)
    return [
        choice(
            "Calibration",
            reliabilities,
            half=True,
            text="Test nodes of all runs. Calibration is one temperature for each run, fitted on its validation nodes.",
        ),
        section(
            "Accuracy against coverage",
            coverage_chart(curves, "Nodes in order of calibrated confidence; test nodes of all runs."),
            text="Accuracy when only the most confident predictions are kept.",
            half=True,
        ),
        section(
            "Confusion matrix",
            *(matrix(key, names, held.confusion) for key, held in variants.items()),
            text="Test nodes of all runs, in % of the nodes of each true class.",
        ),
    ]


def _facts(dataset: Dataset, result: Mapping[str, Any]) -> list[tuple[str, str]]:
    graph, settings = dataset.graph, dict(result["settings"])
    settings["lam_labeled"] = "−λ" if settings.get("lam_labeled") is None else settings["lam_labeled"]
    size = f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {graph.num_features:,} features"
    return [
        ("data", f"{dataset.name}: {size}, {graph.num_classes} classes"),
        ("fingerprint of the graph", str(result["fingerprint"])),
        ("splits", ", ".join(f"{name} ({key[:8]})" for name, key in result["split_ids"].items())),
        ("seeds", ", ".join(dict.fromkeys(str(entry["seed"]) for entry in result["pairs"]))),
        *((key, described(value)) for key, value in settings.items() if key != "dataset"),
        ("device", f"{result['device']}, {result['precision']}"),
        ("time", f"{result['seconds']:.1f} s"),
        *((f"version of {name}", str(number)) for name, number in result["versions"].items()),
    ]
