"""The page of ``sharpen fit``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sharpen.evaluation.calibration import Reliability
from sharpen.graph import Graph
from sharpen.models.registry import model_info
from sharpen.report.charts import Chart, axis, dots, dots_row, lines, matrix, numbers, rounded, series, table, texts
from sharpen.report.fit import accounts, is_checked, judged_labels, left_out, metric_of, used
from sharpen.report.names import shortened
from sharpen.report.page.answers import predicted_sections, suggested_sections
from sharpen.report.page.confidence import coverage_chart, reliability_chart
from sharpen.report.page.curves import Traces, training_charts
from sharpen.report.page.document import Page
from sharpen.report.page.sections import choice, described, facts, section, words

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
    because: pd.DataFrame | None = None,
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
        because: ``because_neighbors`` and ``because_columns`` of each node, if there are reasons.

    >>> scores = dict.fromkeys(("accuracy", "balanced_accuracy", "macro_f1", "ece", "brier", "log_loss"), 0.75)
    >>> bins = {"nodes": [0, 4], "confidence": [None, 0.8], "accuracy": [None, 0.75]}
    >>> expected = {"nodes": 4, "accuracy": 0.75, "accuracy_interval": [0.3, 0.95], "before": scores, "after": scores}
    >>> expected |= {"balanced_accuracy": 0.75, "balanced_accuracy_interval": [0.3, 0.95]}
    >>> expected |= {"confusion": [[2, 0], [1, 1]], "reliability": {"before": bins, "after": bins}}
    >>> best = {"name": "plain GCN", "model": "gcn", "lam": 0.0, "balance": 0.0, "score": 0.75, "members": 5, "share": 1.0}
    >>> best |= {"diverged": 0}
    >>> size = {"nodes": 3, "edges": 2, "features": 3, "labeled": 2, "fingerprint": "f0"}
    >>> summary = {"expected": expected, "chosen": [best], "candidates": [best], "verdicts": [], "notes": [], "abstain": None}
    >>> point = {"threshold": 0.0, "coverage": 1.0, "accuracy": 0.75, "nodes": 4, "right": 3, "interval": [0.3, 0.95]}
    >>> summary |= {"coverage": [point], "surest": {"threshold": 0.9, "labels": 0, "right": 0, "interval": None}}
    >>> summary |= {"graph": size, "labels": {"a": 1, "b": 1}, "predicted": {"a": 1, "b": 0}}
    >>> summary |= {"guessing": {"class": "a", "accuracy": 0.5, "balanced_accuracy": 0.5, "log_loss": 0.7, "better": False}}
    >>> summary |= {"unchecked": {}, "columns": [], "metric": "accuracy", "settings": {"q": 2.0}, "seed": 0, "rounds": 1, "runs": 5}
    >>> summary |= {"seconds": 1.0, "total_seconds": 1.0, "command": "sharpen fit nodes.csv"}
    >>> graph = Graph(x=np.eye(3), edge_index=[[0, 1], [1, 2]], y=[0, 1, -1], class_names=["a", "b"])
    >>> p = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> fit_page(summary, graph, ["x", "y", "z"], p, name="nodes.csv", curves={}, versions={}).headline
    'About 75 % of the predictions for nodes like the labeled ones should be right, between 30 and 95 %; always answering a ...'
    """
    checked = is_checked(summary)
    return Page(
        kind=f"sharpen fit · {name}",
        headline=_headline(summary),
        below=[f"Note: {note}." for note in summary["notes"]],
        tiles=_tiles(summary),
        sections=[
            *(_beside_guessing(summary, graph) if checked else []),
            *predicted_sections(summary, graph, ids, probabilities, because),
            *suggested_sections(summary),
            *([*_confidence(summary), *_what_helped(summary)] if checked else []),
            _made(summary, curves, versions),
        ],
        command=str(summary["command"]),
    )


def _headline(summary: Mapping[str, Any]) -> str:
    """How good, beside guessing."""
    if not is_checked(summary):
        return str(summary["expectation"])
    key, name = metric_of(summary)
    expected, guess = summary["expected"], summary["guessing"]
    low, high = (f"{100 * end:.0f}" for end in expected[f"{key}_interval"])
    found = f"The {name} on nodes like the labeled ones should be about {100 * expected[key]:.0f} %"
    if key == "accuracy":
        found = f"About {100 * expected[key]:.0f} % of the predictions for nodes like the labeled ones should be right"
    beside = f"always answering {shortened(guess['class'])} would have {100 * guess[key]:.0f} %"
    verdict = "" if guess["better"] else ", and the difference is not clear"
    return f"{found}, between {low} and {high} %; {beside}{verdict}."


def _tiles(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    expected, guess, size = summary["expected"], summary["guessing"], summary["graph"]
    labels = (f"{size['labeled']:,} of {size['nodes']:,}", "nodes had a label")
    if not is_checked(summary):
        return [labels]
    after, balanced = expected["after"], f"balanced accuracy; guessing {100 * guess['balanced_accuracy']:.0f} %"
    return [
        (f"{100 * expected['accuracy']:.1f} %", "expected accuracy"),
        (f"{100 * guess['accuracy']:.1f} %", "by always answering the commonest class"),
        (f"{100 * expected['balanced_accuracy']:.1f} %", balanced),
        *([(f"{after['auc']:.3f}", "AUC; guessing 0.5")] if "auc" in after else []),
        labels,
        (f"{after['ece']:.3f}", "calibration error"),
    ]


def _beside_guessing(summary: Mapping[str, Any], graph: Graph) -> list[Chart]:
    expected, guess = summary["expected"], summary["guessing"]
    after, rows = expected["after"], []
    for key in ("accuracy", "balanced_accuracy"):
        low, high = expected[f"{key}_interval"]
        own = f"{100 * expected[key]:.1f} %, 95 % CI {100 * low:.1f} to {100 * high:.1f}"
        rows.append((key.replace("_", " "), own, f"{100 * guess[key]:.1f} %"))
    rows.append(("macro-F1", f"{100 * after['macro_f1']:.1f} %", ""))
    if "auc" in after:
        rows.append(("AUC", f"{after['auc']:.3f}", "0.500"))
        rows.append(("average precision", f"{after['average_precision']:.3f}", f"{1 - guess['accuracy']:.3f}"))
    rows.append(("log-loss, smaller is better", f"{after['log_loss']:.3f}", f"{guess['log_loss']:.3f}"))
    text = (
        f"From {judged_labels(summary)} that had no part in the predictions: not in training, nor in any choice"
        f"{left_out(summary)}. Guessing is always answering {shortened(guess['class'])}, and for log-loss saying the shares of the "
        "classes."
    )
    chart = table(list(map(texts, ("score", "this fit", "guessing"), zip(*rows, strict=True))), plain=True)
    confusion = matrix("", list(graph.class_names), np.array(expected["confusion"]))
    return [
        section("How good is it beside guessing?", chart, text=text, half=True),
        section("What is taken for what", confusion, text="The same labels, in % of each true class.", half=True),
    ]


def _confidence(summary: Mapping[str, Any]) -> list[Chart]:
    before, after = (_table(summary["expected"]["reliability"][when]) for when in ("before", "after"))
    points = [point for point in summary["coverage"] if point["accuracy"] is not None]
    threshold, share, right = (np.array([p[key] for p in points]) for key in ("threshold", "coverage", "accuracy"))
    low, high = (np.array([p["interval"][end] for p in points]) for end in (0, 1))
    notes = [f"{p['right']} of {p['nodes']} held-out labels" for p in points]
    surest = summary["surest"]
    known = "no held-out label was answered as surely"
    if surest["interval"] is not None:
        known = f"{surest['right']} of {surest['labels']} held-out labels answered as surely are right, 95 % CI "
        known += "{:.0f} to {:.0f} %".format(*(100 * end for end in surest["interval"]))
    return [
        section(
            "Can the confidence be believed?",
            reliability_chart(before, after),
            text="Held-out labels again: what share is right among answers of a certain confidence.",
            half=True,
        ),
        section(
            "What abstaining buys",
            coverage_chart(
                {"held-out labels": ("blue", threshold, share, right)},
                "A point per threshold on the probability, with its 95 % interval.",
                interval=(low, high, notes),
            ),
            text=f"How often answers are right if only sure ones are given. Of the surest 5 %, with a probability of "
            f"{surest['threshold']:.2f} or more: {known}.",
            half=True,
        ),
    ]


def _what_helped(summary: Mapping[str, Any]) -> list[Chart]:
    """The verdicts, the rows that they compare, and the same group by group."""
    if not summary["verdicts"]:
        return []
    scores = (
        ("log-loss", "log_loss", 1, 3),
        ("accuracy, %", "accuracy", 100, 1),
        ("Brier", "brier", 1, 3),
        ("ECE", "ece", 1, 3),
    )
    columns = [
        numbers(name, rounded(factor * account["after"][key] for account in accounts(summary).values()), decimals)
        for name, key, factor, decimals in scores
    ]
    columns.insert(2, numbers("labels", [account["nodes"] for account in accounts(summary).values()]))
    text = (
        "Each row was chosen, pooled and calibrated without the labels that score it; the sentences compare these rows."
    )
    verdicts = words([verdict["text"] for verdict in summary["verdicts"]])
    compared = table([texts("best of the candidates", accounts(summary)), *columns], plain=True)
    surely = (
        "Gain of the best model with it over the best without, both selected on other labels. Each dot is one group of labels; "
        "the diamond and its 95 % interval are over all."
    )
    chart = dots("", [_helped(answer) for answer in summary["verdicts"]], "points of held-out score", wide=True)
    return [
        section("What helped", verdicts, compared, text=text, half=True),
        section("How surely: group by group", chart, text=surely, half=True),
    ]


def _helped(answer: Mapping[str, Any]) -> Chart:
    d, groups = answer["difference"], answer["groups"]
    within = "" if d["t_interval"] is None else " [{:+.1f}, {:+.1f}]".format(*d["t_interval"])
    return dots_row(
        _QUESTIONS[answer["question"]],
        f"{d['difference']:+.1f}{within}, {d['n']} labels".replace("-", "−"),
        (group["a"] - group["b"] for group in groups),
        [
            [f"group of {group['nodes']} held-out labels", f"without {group['b']:.1f} %, with {group['a']:.1f} %"]
            for group in groups
        ],
        d["difference"],
        d["t_interval"],
    )


def _made(summary: Mapping[str, Any], curves: Mapping[str, Sequence[Traces]], versions: Mapping[str, str]) -> Chart:
    """How it was trained, for those who ask."""
    views = {"settings and data": [facts(_facts(summary, versions))]}
    how = "Without labels to hold out nothing was compared."
    if is_checked(summary):
        views |= {"what was tried": [_candidates(summary)], "score against λ": [_against_lam(summary)]}
        how = (
            f"{summary['runs']} runs were trained in {summary['seconds']:.0f} s; each candidate was judged alone and beside labels "
            "that spread over the graph, the best of the first round on more folds. Shares were selected by held-out labels."
        )
    if training := _training(summary, curves):
        views["training"] = training
    return choice("How it was trained", views, text=f"{used(summary)} {how}") | {"folded": True}


def _against_lam(summary: Mapping[str, Any]) -> Chart:
    best: dict[str, dict[float, Mapping[str, Any]]] = {}
    for candidate in sorted(summary["candidates"], key=lambda candidate: -candidate["score"]):
        if not candidate["diverged"]:
            best.setdefault(candidate["model"], {}).setdefault(candidate["lam"], candidate)
    curves = []
    for model in dict.fromkeys(candidate["model"] for candidate in summary["candidates"] if not candidate["diverged"]):
        own = sorted(best[model].items())
        scores = [100 * candidate["score"] for _, candidate in own]
        notes = [f"{candidate['name']}, {candidate['members']} runs" for _, candidate in own]
        of = model_info(model)
        curves.append(series(of.noun, of.color, [lam for lam, _ in own], scores, points=True, notes=notes))
    chosen = summary["chosen"][0]["lam"]
    return lines(
        "",
        axis("λ, the weight of sharpening", name="λ =", decimals=2),
        axis("held-out score, %", decimals=1, most=100),
        curves,
        marks=[{"x": chosen, "label": f"chosen: {chosen:g}"}],
        note="For each model and λ the best of its variants: with balance or without, with spread labels or alone. "
        "λ = 0 is plain training.",
        summary=f"The chosen λ is {chosen:g}.",
    )


def _training(summary: Mapping[str, Any], curves: Mapping[str, Sequence[Traces]]) -> list[Chart]:
    chosen, plain = curves.get("chosen", []), curves.get("plain", [])
    if not chosen:
        return []
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
    text = f"{runs} of {best['name']}, epoch by epoch; the band holds the middle half of them."
    if sharpens:
        text += (
            " Sharpening makes predictions of unlabeled nodes surer (H_U falls) and keeps labeled ones in check (H_L)."
        )
    return [words([text]), *charts]


def _candidates(summary: Mapping[str, Any]) -> Chart:
    tried = summary["candidates"]
    shares = {candidate["name"]: candidate.get("share", 1 / len(summary["chosen"])) for candidate in summary["chosen"]}
    return table(
        [
            texts("candidate", (candidate["name"] for candidate in tried)),
            numbers("alone, % right", rounded(100 * candidate["score"] for candidate in tried), 1),
            numbers("runs", (candidate["members"] for candidate in tried)),
            numbers("share, %", rounded(100 * shares.get(candidate["name"], 0.0) for candidate in tried)),
        ],
        sort=1,
        down=True,
        rows=8,
        things="candidates",
    )


def _table(bins: Mapping[str, Any]) -> Reliability:
    count = len(bins["nodes"])
    values = (np.array(bins[key], dtype=np.float64) for key in ("confidence", "accuracy"))
    return Reliability(np.linspace(0, 1, count + 1), np.array(bins["nodes"]), *values)


def _facts(summary: Mapping[str, Any], versions: Mapping[str, str]) -> list[tuple[str, str]]:
    size = summary["graph"]
    return [
        ("data", "{nodes:,} nodes, {edges:,} edges, {features:,} features, {labeled:,} labels".format(**size)),
        ("identity of the data", described(size["fingerprint"])),
        ("labels given", ", ".join(f"{name}: {count}" for name, count in summary["labels"].items())),
        ("columns", "\n".join(summary["columns"])),
        ("chosen by", str(summary["metric"])),
        *((key, described(value)) for key, value in summary["settings"].items()),
        ("seed", described(summary["seed"])),
        ("rounds of folds", described(summary["rounds"])),
        ("time", f"{summary['total_seconds']:.1f} s"),
        *((f"version of {name}", str(number)) for name, number in versions.items()),
    ]
