"""Are named reasons the ones that count? What is named is taken away, and the delivered ensemble asked again.

    python benchmarks/reasons.py --graphs cora,us-counties,twitch-es --draws 5 --out reasons.jsonl
    python benchmarks/reasons.py --show docs/measurements/reasons.jsonl

Of 200 unlabeled nodes that are explained, the edges to the neighbours that are named are cut, or as many others of the node at
random; or the node's own columns that are named are set to 0, or as many others that are not 0. How far the log-odds of the
answer over the second choice fall, in the mean, says how much each counted for the models that were chosen, and not for what
stands in for them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import fit as bench
import numpy as np
import pandas as pd
import torch
import typer

from sharpen import Graph, NodeClassifier
from sharpen.evaluation import paired_difference
from sharpen.fitting.explanations import Explainer, Explanation
from sharpen.fitting.reasons import delivered_scores
from sharpen.fitting.spreading import features_of

NODES, RATE = 200, 20


def cut(graph: Graph, pairs: set[tuple[int, int]]) -> Graph:
    """The graph without some edges, in either direction."""
    keep = [(a, b) not in pairs and (b, a) not in pairs for a, b in graph.edge_index.T.tolist()]
    weight = None if graph.edge_weight is None else graph.edge_weight[torch.tensor(keep)]
    return dataclasses.replace(graph, edge_index=graph.edge_index[:, torch.tensor(keep)], edge_weight=weight)


def blanked(graph: Graph, cells: list[tuple[int, int]]) -> Graph:
    """The graph with some features set to 0."""
    x = features_of(graph)
    x = x.toarray() if hasattr(x, "toarray") else x.copy()
    rows, columns = np.array(cells).T
    x[rows, columns] = 0
    return dataclasses.replace(graph, x=x)


def once(name: str, draw: int, settings: dict[str, Any]) -> dict[str, Any]:
    """One fit, and what its answers lose."""
    graph, random = bench.load(name), np.random.default_rng(draw)
    known = bench.drawn(graph.y.numpy(), RATE, draw)
    shown = dataclasses.replace(graph, y=torch.from_numpy(known))
    classifier = NodeClassifier(**settings, device="cpu", seed=draw).fit(shown)
    p = classifier.predict_proba(shown)
    order = np.argsort(-p, axis=1)[:, :2]
    scores, method = delivered_scores(classifier._fitted, shown, known, p)
    explainer = Explainer(shown, known, scores)
    agrees = explainer.scores().argmax(1) == order[:, 0]
    nodes = random.permutation(np.flatnonzero((known < 0) & agrees))[:NODES]
    reasons = explainer.explain(nodes, order[nodes, 0], order[nodes, 1])

    def fall(changed: Graph, which: list[int]) -> float:
        y = np.array([None if k < 0 else classifier.classes_[k] for k in known], dtype=object)
        now = classifier.predict_proba(changed, y)
        own = np.array(which)
        before, after = (np.log(np.maximum(q, 1e-6)) for q in (p, now))
        a, b = order[own].T
        return float(np.mean((before[own, a] - before[own, b]) - (after[own, a] - after[own, b])))

    edges, cells = taken(shown, reasons, random)
    line = {"graph": name, "draw": draw, "method": method, "agreement": round(float(agrees[known < 0].mean()), 4)}
    for what, (named, others, which) in {"neighbours": edges, "columns": cells}.items():
        change = (lambda part: cut(shown, set(part))) if what == "neighbours" else (lambda part: blanked(shown, part))
        if which:
            line[what] = {
                "nodes": len(which),
                "named": fall(change(named), which),
                "others": fall(change(others), which),
            }
    return line | {"chosen": [entry["name"] for entry in classifier.report_["chosen"]]}


Taken = tuple[list[tuple[int, int]], list[tuple[int, int]], list[int]]


def taken(graph: Graph, reasons: list[Explanation], random: np.random.Generator) -> tuple[Taken, Taken]:
    """What is named and as many others, of nodes that have as many: edges, and cells of the table."""
    adjacency, x = graph.adjacency.to_scipy(), features_of(graph)
    edges: Taken = ([], [], [])
    cells: Taken = ([], [], [])
    for why in reasons:
        v = why.node
        row = x[[v]]
        filled = np.flatnonzero(row.toarray() if hasattr(row, "toarray") else row).tolist()
        around = [int(u) for u in adjacency.indices[adjacency.indptr[v] : adjacency.indptr[v + 1]] if u != v]
        own = [reason.feature for reason in why.columns if not reason.around and reason.feature is not None]
        for found, said, there in ((edges, [u for u, _ in why.neighbors], around), (cells, own, filled)):
            others = [u for u in there if u not in said]
            if said and len(others) >= len(said):
                found[0].extend((v, u) for u in said)
                found[1].extend((v, int(u)) for u in random.permutation(others)[: len(said)])
                found[2].append(v)
    return edges, cells


def main(
    graphs: Annotated[str, typer.Option(help="Names, comma-separated.")] = "cora,us-counties,twitch-es",
    draws: Annotated[int, typer.Option(help="How many fits of each.")] = 5,
    model: Annotated[str, typer.Option(help="As for fit.")] = "auto",
    budget: Annotated[float, typer.Option(help="Minutes for each fit.")] = 0.5,
    out: Annotated[Path, typer.Option(help="Where to append a line of JSON per fit.")] = Path("reasons.jsonl"),
    show: Annotated[Path | None, typer.Option(help="Run nothing: print the table of this file.")] = None,
) -> None:
    """Take away what is named, and as much else."""
    path = out if show is None else show
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(line["graph"], line["draw"]) for line in lines}
    settings = {"model": model if "," not in model else model.split(","), "budget": budget}
    for name, draw in [(name, draw) for name in graphs.split(",") for draw in range(draws if show is None else 0)]:
        if (name, draw) not in done:
            lines.append(once(name, draw, settings))
            with out.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
    print("\n".join(table(pd.DataFrame(lines))))


def table(frame: pd.DataFrame) -> Iterator[str]:
    """Markdown: how far log-odds fall."""
    yield "| graph | fits | stand-in agrees, % | taken away | named: log-odds fall by | others | difference (95 % CI) |"
    yield "|" + "---|" * 7
    for name, own in frame.groupby("graph", sort=False):
        for what in ("neighbours", "columns"):
            found = [entry for entry in own[what].tolist() if isinstance(entry, dict)] if what in own else []
            if found:
                d = paired_difference([entry["named"] for entry in found], [entry["others"] for entry in found])
                within = "" if d.t_interval is None else " [{:+.2f}, {:+.2f}]".format(*d.t_interval)
                yield (
                    f"| {name} | {len(found)} | {100 * own['agreement'].mean():.0f} | {what} | {d.mean_a:.2f} | {d.mean_b:.2f} | "
                    f"{d.difference:+.2f}{within} |"
                )


if __name__ == "__main__":
    typer.run(main)
