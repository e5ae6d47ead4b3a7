"""What a fit promises beside what is true: expected accuracy, balanced accuracy and AUC, verdicts, and the surest answers.

Graphs of the folder ``tabular`` (``nodes.csv.gz`` with an id first and the label, known for every node, last; ``edges.csv.gz``) are
fitted with a few labels drawn at random, again and again, with and without ``--class-weight balanced``; the labels that were hidden
say what is true. Beside it stand always answering the commonest class, and logistic regression on features that were averaged over
two steps along the edges. One line of JSON for each fit; a run that was stopped goes on. ::

    python benchmarks/expectations.py $SHARPEN_DATA/tabular --draws 20 --out expectations.jsonl
    python benchmarks/expectations.py --summary expectations.jsonl
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from sharpen import Graph, NodeClassifier
from sharpen.evaluation.classes import balanced_accuracy
from sharpen.files import Columns, FeatureEncoder, class_order, read_nodes_and_edges, to_graph
from sharpen.fitting.spreading import features_of

# Small enough for one core and a minute; the question is whether promises are kept, not how good a model can be.
SMALL: dict[str, Any] = {
    "model": ["logistic", "linear", "trees", "gcn", "mlp"],
    "lam": 0.25,
    "balance": 0.0,
    "hidden": 16,
    "epochs": 40,
    "budget": 2.0,
}


def load(folder: Path) -> Graph:
    """The graph in a folder, with all its labels."""
    nodes = folder / "nodes.csv.gz"
    last = read_nodes_and_edges(nodes, folder / "edges.csv.gz").columns[-1]
    tables = read_nodes_and_edges(nodes, folder / "edges.csv.gz", Columns(label=last))
    return to_graph(tables, FeatureEncoder.fit(tables).transform(tables), class_order(tables.labels), folder.name)


def regression(graph: Graph, known: np.ndarray) -> np.ndarray:
    """Probabilities of logistic regression on features, beside their means over one and two steps along the edges."""
    adjacency = graph.adjacency.to_scipy().astype(np.float64)
    step = scipy.sparse.diags_array(1 / np.maximum(1, np.asarray(adjacency.sum(axis=1)).ravel())) @ adjacency
    x = scipy.sparse.csr_array(features_of(graph))
    x = scipy.sparse.csr_array(scipy.sparse.hstack([x, step @ x, step @ (step @ x)]))
    labeled = known >= 0
    model = LogisticRegression(max_iter=2000).fit(x[labeled], known[labeled])
    p = np.zeros((graph.num_nodes, graph.num_classes))
    p[:, model.classes_] = model.predict_proba(x)
    return p


def scores(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """What is true of some answers."""
    predicted = p.argmax(1)
    found = {"accuracy": float((predicted == y).mean()), "balanced_accuracy": balanced_accuracy(predicted, y)}
    if p.shape[1] == 2:
        rarer = int(np.bincount(y).argmin())
        found["auc"] = float(roc_auc_score(y == rarer, p[:, rarer]))
    return found


def fit_once(graph: Graph, draw: int, share: float, class_weight: str | None) -> dict[str, Any]:
    """One fit with labels drawn at random, and what the hidden ones say of it."""
    y = graph.y.numpy()
    shown = np.random.default_rng(draw).permutation(len(y))[: round(share * len(y))]
    known = np.full(len(y), -1)
    known[shown] = y[shown]
    hidden, start = known < 0, time.perf_counter()
    part = dataclasses.replace(graph, y=torch.tensor(known))
    models = [name for name in SMALL["model"] if name != "trees" or graph.num_features <= 512]  # as model="auto" would
    classifier = NodeClassifier(**SMALL | {"model": models}, class_weight=class_weight, device="cpu").fit(part)
    p, report = classifier.predict_proba(part), classifier.report_
    expected, surest = report["expected"], report["surest"]
    hit, sure = p[hidden].argmax(1) == y[hidden], p[hidden].max(1) >= surest["threshold"]
    return {
        "graph": graph.name, "draw": draw, "class_weight": class_weight, "labels": len(shown),
        "seconds": round(time.perf_counter() - start, 1), "chosen": [c["name"] for c in report["chosen"]],
        "expected": {key: expected[key] for key in ("accuracy", "accuracy_interval", "balanced_accuracy",
                                                    "balanced_accuracy_interval")} | {"auc": expected["after"].get("auc")},
        "held_out_accuracy": expected["after"]["accuracy"], "guessing": report["guessing"], "predicted": report["predicted"],
        "verdicts": {v["question"]: {key: v[key] for key in ("clear", "log_loss", "difference")} for v in report["verdicts"]},
        "true": scores(p[hidden], y[hidden]), "true_commonest": float(np.bincount(y[hidden]).max() / hidden.sum()),
        "regression": scores(regression(graph, known)[hidden], y[hidden]),
        "surest": {key: surest[key] for key in ("threshold", "nodes", "labels", "right", "warning")}
        | {"true": float(hit[sure].mean()), "rest": float(hit[~sure].mean())},
    }  # fmt: skip


def summarised(lines: list[dict[str, Any]]) -> list[str]:
    """A Markdown table: a row for each graph and way of training."""
    rows = [
        "| graph | class weight | fits | true accuracy | expected | inside | balanced inside | commonest | regression | AUC: true "
        "(expected) | surest 5 % (rest) | worse, not warned | graph helps by log-loss (accuracy) | sharpening helps, hurts | "
        "not clearly better than guessing | answered with the commonest |",
        "|" + "---|" * 16,
    ]
    for graph, weight in dict.fromkeys((line["graph"], line["class_weight"]) for line in lines):
        own = [line for line in lines if (line["graph"], line["class_weight"]) == (graph, weight)]

        def mean(*path: str, own: list[dict[str, Any]] = own) -> float:
            values: list[Any] = own
            for key in path:
                values = [value[key] for value in values]
            return float(np.mean(values))

        def inside(score: str, own: list[dict[str, Any]] = own) -> str:
            kept = [e[f"{score}_interval"][0] <= line["true"][score] <= e[f"{score}_interval"][1]
                    for line in own for e in [line["expected"]]]  # fmt: skip
            return f"{sum(kept)} of {len(kept)}"

        def helps(by: str, better: int, own: list[dict[str, Any]] = own) -> int:
            ends = [line["verdicts"]["graph"][by]["t_interval"] for line in own if "graph" in line["verdicts"]]
            return sum(bool(end and (end[1] < 0 if better < 0 else end[0] > 0)) for end in ends)

        def clear(question: str, sign: int, own: list[dict[str, Any]] = own) -> int:
            asked = [line["verdicts"][question] for line in own if question in line["verdicts"]]
            return sum(answer["clear"] and sign * answer["log_loss"]["difference"] > 0 for answer in asked)

        answered = [line["predicted"][line["guessing"]["class"]] / sum(line["predicted"].values()) for line in own]
        auc = f"{mean('true', 'auc'):.3f} ({mean('expected', 'auc'):.3f})" if "auc" in own[0]["true"] else "–"
        worse = sum(line["surest"]["true"] < line["surest"]["rest"] and not line["surest"]["warning"] for line in own)
        rows.append(
            f"| {graph} | {weight or 'none'} | {len(own)} | {100 * mean('true', 'accuracy'):.1f} | "
            f"{100 * mean('expected', 'accuracy'):.1f} | {inside('accuracy')} | {inside('balanced_accuracy')} | "
            f"{100 * mean('true_commonest'):.1f} | {100 * mean('regression', 'accuracy'):.1f} | {auc} | "
            f"{100 * mean('surest', 'true'):.1f} ({100 * mean('surest', 'rest'):.1f}) | {worse} | "
            f"{helps('log_loss', -1)} ({helps('difference', 1)}) | {clear('sharpening', -1)}, {clear('sharpening', 1)} | "
            f"{sum(not line['guessing']['better'] for line in own)} | {100 * np.mean(answered):.1f} |"
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="The folder tabular.")
    parser.add_argument("--graphs", default="us-counties,twitch-es,facebook-pages")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--share", type=float, default=0.05, help="Of nodes whose label is shown.")
    parser.add_argument("--out", type=Path, default=Path("expectations.jsonl"))
    parser.add_argument("--summary", type=Path, help="Print the table of a file that was written, and fit nothing.")
    options = parser.parse_args()
    if options.summary is None:
        torch.set_num_threads(1)
        done = set()
        if options.out.exists():
            before = map(json.loads, options.out.read_text(encoding="utf-8").splitlines())
            done = {(line["graph"], line["draw"], line["class_weight"]) for line in before}
        for name in options.graphs.split(","):
            graph = load(options.folder / name)
            for draw in range(options.draws):
                for weight in (None, "balanced"):
                    if (name, draw, weight) not in done:
                        line = json.dumps(fit_once(graph, draw, options.share, weight), ensure_ascii=False)
                        with options.out.open("a", encoding="utf-8") as file:
                            file.write(line + "\n")
    path = options.summary or options.out
    print("\n".join(summarised([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])))


if __name__ == "__main__":
    main()
