"""The page of ``sharpen fit``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sharpen.evaluation.calibration import Reliability
from sharpen.graph import Graph
from sharpen.models.registry import model_info
from sharpen.report.charts import axis, dots, dots_row, lines, matrix, rounded, series
from sharpen.report.fit import judged_labels, left_out
from sharpen.report.page.confidence import coverage_chart, reliability_chart
from sharpen.report.page.curves import Traces, training_charts
from sharpen.report.page.document import Page
from sharpen.report.page.nodes import nodes_section
from sharpen.report.page.sections import described, facts, section

_QUESTIONS = {"graph": "The graph", "sharpening": "Sharpening"}


def fit_page(
    summary: Mapping[str, Any],
    graph: Graph,
    ids: Sequence[str] | np.ndarray,
    probabilities: np.ndarray,
    *,
    name: str,
    curves: Mapping[str, Sequence[Traces]],
    versions: Mapping[str, str],
) -> Page:
    """Everything there is to see of a fit.

    Args:
        summary: What ``sharpen fit`` writes to ``summary.json``.
        graph: What was fitted, with the given labels.
        ids: What the user calls the nodes.
        probabilities: [N, C], of all nodes.
        name: What to call the graph.
        curves: Traces of the runs that were ``chosen``, and of the same model ``plain``.
        versions: Of what it was made with.

    >>> scores = dict.fromkeys(("accuracy", "balanced_accuracy", "macro_f1", "ece", "brier", "log_loss"), 0.75)
    >>> bins = {"nodes": [0, 4], "confidence": [None, 0.8], "accuracy": [None, 0.75]}
    >>> expected = {"nodes": 4, "accuracy_interval": [0.3, 0.95], "before": scores, "after": scores}
    >>> expected |= {"confusion": [[2, 0], [1, 1]], "reliability": {"before": bins, "after": bins}}
    >>> best = {"name": "plain GCN", "model": "gcn", "lam": 0.0, "balance": 0.0, "score": 0.75, "members": 5, "diverged": 0}
    >>> size = {"nodes": 3, "edges": 2, "features": 3, "labeled": 2, "fingerprint": "f0"}
    >>> summary = {"expected": expected, "chosen": [best], "candidates": [best], "verdicts": [], "notes": [], "abstain": None}
    >>> summary |= {"coverage": [{"threshold": 0.0, "coverage": 1.0, "accuracy": 0.75}], "graph": size, "labels": {"a": 1, "b": 1}}
    >>> summary |= {"unchecked": {}, "columns": [], "metric": "accuracy", "settings": {"q": 2.0}, "seed": 0, "rounds": 1, "runs": 5}
    >>> summary |= {"seconds": 1.0, "total_seconds": 1.0, "command": "sharpen fit nodes.csv"}
    >>> graph = Graph(x=np.eye(3), edge_index=[[0, 1], [1, 2]], y=[0, 1, -1], class_names=["a", "b"])
    >>> p = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> fit_page(summary, graph, ["x", "y", "z"], p, name="nodes.csv", curves={}, versions={}).headline
    'About 75 % of the predictions for nodes like the labeled ones should be right (95 % CI 30.0 to 95.0 %, from 4 ...'
    """
    best = summary["chosen"][0]
    held_out = "Held-out labels: used neither for training nor for model selection."
    sections = [part for part in (_helped(summary), _against_lam(summary), _training(summary, curves)) if part]
    expected = summary["expected"]
    before, after = (_table(expected["reliability"][when]) for when in ("before", "after"))
    coverage = [point for point in summary["coverage"] if point["accuracy"] is not None]
    threshold, share, right = (np.array([p[key] for p in coverage]) for key in ("threshold", "coverage", "accuracy"))
    sections += [
        section("Calibration", reliability_chart("", before, after), text=held_out, half=True),
        section(
            "Accuracy against coverage",
            coverage_chart(
                {"held-out labels": ("blue", threshold, share, right)}, "One point per probability threshold."
            ),
            text=_abstention(summary),
            half=True,
        ),
        section(
            "Confusion matrix",
            matrix("", list(graph.class_names), np.array(expected["confusion"])),
            text=f"{held_out} In % of each true class.",
            half=True,
        ),
        section(
            "Candidates",
            _candidates(summary),
            text="Models alone, and combined with label spreading. The best of the first round are rerun on more folds "
            "within the time budget, and the best of those is used.",
            half=True,
        ),
        nodes_section(
            graph,
            ids,
            probabilities,
            given=graph.y.numpy(),
            text=f"Calibrated probabilities of {best['name']}"
            + (" and those that vote with it" if len(summary["chosen"]) > 1 else "")
            + "; of nodes whose label was given, they say how well it fits in.",
        ),
        section("Settings and versions", facts(_facts(summary, versions))),
    ]
    low, high = expected["accuracy_interval"]
    return Page(
        kind=f"sharpen fit · {name}",
        headline=f"About {100 * expected['after']['accuracy']:.0f} % of the predictions for nodes like the labeled ones should be "
        f"right (95 % CI {100 * low:.1f} to {100 * high:.1f} %, from {judged_labels(summary)} that had no part in "
        f"them{left_out(summary)}).",
        below=[*(answer["text"] for answer in summary["verdicts"]), *(f"Note: {note}." for note in summary["notes"])],
        tiles=_tiles(summary),
        sections=sections,
        command=str(summary["command"]),
    )


def _tiles(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    expected, size = summary["expected"]["after"], summary["graph"]
    given, few = sum(count > 0 for count in summary["labels"].values()), len(summary["unchecked"])
    counted = f"{given - few} of {given} classes, which count" if few else "every class counts"
    return [
        (f"{100 * expected['accuracy']:.1f} %", "expected accuracy"),
        (f"{100 * expected['balanced_accuracy']:.1f} %", f"balanced: {counted} the same"),
        (f"{expected['ece']:.3f}", "calibration error"),
        (f"{size['labeled']:,} of {size['nodes']:,}", "nodes had a label"),
        (str(summary["runs"]), f"training runs, {summary['seconds']:.0f} s"),
        (str(summary["chosen"][0]["name"]), "selected by cross-validation"),
    ]


def _helped(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    rows = []
    for answer in summary["verdicts"]:
        d, groups = answer["difference"], answer["groups"]
        interval = d["t_interval"]
        within = "" if interval is None else " [{:+.1f}, {:+.1f}]".format(*interval)
        rows.append(
            dots_row(
                _QUESTIONS[answer["question"]],
                f"{d['difference']:+.1f}{within}, {d['n']} labels".replace("-", "−"),
                (group["a"] - group["b"] for group in groups),
                [
                    [
                        f"group of {group['nodes']} held-out labels",
                        f"without {group['b']:.1f} %, with {group['a']:.1f} %",
                    ]
                    for group in groups
                ],
                d["difference"],
                interval,
            )
        )
    if not rows:
        return None
    chart = dots("", rows, "points of held-out score", wide=True)
    text = (
        "Gain of the best model with it over the best without, both selected on other labels. Each dot is one group of labels; "
        "the diamond and its 95 % interval are over all."
    )
    return section("What helped", chart, text=text, half=True)


def _against_lam(summary: Mapping[str, Any]) -> dict[str, Any]:
    best: dict[tuple[str, float], Mapping[str, Any]] = {}
    for candidate in summary["candidates"]:
        key = (candidate["model"], candidate["lam"])
        if not candidate["diverged"] and (key not in best or candidate["score"] > best[key]["score"]):
            best[key] = candidate
    curves = []
    for model in dict.fromkeys(model for model, _ in best):
        own = sorted((lam, candidate) for (of, lam), candidate in best.items() if of == model)
        label, color = model_info(model).noun, model_info(model).color
        scores = [100 * candidate["score"] for _, candidate in own]
        notes = [f"{candidate['name']}, {candidate['members']} runs" for _, candidate in own]
        curves.append(series(label, color, [lam for lam, _ in own], scores, points=True, notes=notes))
    chosen = summary["chosen"][0]["lam"]
    chart = lines(
        "",
        axis("λ, the weight of sharpening", name="λ =", decimals=2),
        axis("held-out score, %", decimals=1, most=100),
        curves,
        marks=[{"x": chosen, "label": f"chosen: {chosen:g}"}],
        note="For each model and λ the best variant: with or without class balance, with or without label spreading. "
        "λ = 0 is plain training.",
        summary=f"The chosen λ is {chosen:g}.",
    )
    return section("Score against λ", chart, half=True)


def _training(summary: Mapping[str, Any], curves: Mapping[str, Sequence[Traces]]) -> dict[str, Any] | None:
    chosen, plain = curves.get("chosen", []), curves.get("plain", [])
    if not chosen:
        return None
    best = summary["chosen"][0]
    sharpens = best["lam"] != 0 or best["balance"] != 0
    charts = training_charts(
        plain if sharpens else [],
        chosen,
        f"λ = {best['lam']:g}" if sharpens else "plain",
        metric="accuracy",
        q=summary["settings"]["q"],
        plain_q=summary["settings"]["q"],
        chosen=None,
    )
    runs = f"The {len(chosen)} runs" if len(chosen) > 1 else "The one run"
    text = f"{runs} of {best['name']}: mean per epoch, with the interquartile range."
    if sharpens:
        text += " Sharpening makes predictions on unlabeled nodes more confident (H_U falls) and keeps labeled ones in check (H_L)."
    return section("Training", *charts, text=text)


def _candidates(summary: Mapping[str, Any]) -> dict[str, Any]:
    tried = summary["candidates"]
    chosen = {candidate["name"] for candidate in summary["chosen"]}
    return {
        "kind": "table",
        "title": "",
        "columns": [
            {"name": "candidate", "kind": "text", "values": [candidate["name"] for candidate in tried]},
            {"name": "score, %", "kind": "number", "values": rounded(100 * c["score"] for c in tried), "decimals": 1},
            {"name": "runs", "kind": "number", "values": [candidate["members"] for candidate in tried], "decimals": 0},
            {"name": "votes", "kind": "truth", "values": [candidate["name"] in chosen for candidate in tried]},
        ],
        "sort": 1,
        "down": True,
        "rows": 8,
        "things": "candidates",
        "search": "Search candidates",
        "wide": True,
    }


def _abstention(summary: Mapping[str, Any]) -> str:
    text = "Accuracy when only the most confident predictions are kept."
    if summary["abstain"] is not None:
        threshold, answered = summary["abstain"]["threshold"], summary["abstain"]["answered"]
        text += f" Here, below {threshold:g} the label is left blank: {100 * answered:.1f} % of the unlabeled nodes have one."
    return text


def _table(bins: Mapping[str, Any]) -> Reliability:
    count = len(bins["nodes"])
    values = (np.array(bins[key], dtype=np.float64) for key in ("confidence", "accuracy"))
    return Reliability(np.linspace(0, 1, count + 1), np.array(bins["nodes"]), *values)


def _facts(summary: Mapping[str, Any], versions: Mapping[str, str]) -> list[tuple[str, str]]:
    size = summary["graph"]
    labels = ", ".join(f"{name}: {count}" for name, count in summary["labels"].items())
    entries = [
        (
            "data",
            f"{size['nodes']:,} nodes, {size['edges']:,} edges, {size['features']:,} features, {size['labeled']:,} labels",
        ),
        ("fingerprint of the data", described(size["fingerprint"])),
        ("labels given", labels),
        ("columns", "\n".join(summary["columns"])),
        ("selection metric", str(summary["metric"])),
    ]
    entries += [(key, described(value)) for key, value in summary["settings"].items()]
    entries += [("seed", described(summary["seed"])), ("cross-validation rounds", described(summary["rounds"]))]
    entries += [("time", f"{summary['total_seconds']:.1f} s")]
    return entries + [(f"version of {name}", str(number)) for name, number in versions.items()]
