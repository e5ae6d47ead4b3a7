"""Nodes to label next: the rule of `--suggest` and others against random choice of as many, paired over draws.

    python benchmarks/suggest.py --graphs cora,citeseer --draws 20 --out suggest.jsonl     # a run that was stopped goes on
    python benchmarks/suggest.py --show docs/measurements/suggest.jsonl

From 3 labels of each class, drawn at random, a rule asks for more in batches until there are 10 for each class in the mean,
whatever classes they turn out to be of. After each batch, logistic regression on propagated features (S²GC, 16 hops, 256
components, C = 10) learns from all labels and is scored on the nodes without one; the same model says how unsure nodes are. With
`--batch 0` all are asked for at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from scipy.special import entr
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from sharpen import Graph, load_dataset
from sharpen.evaluation import paired_difference
from sharpen.fitting.propagated import Hops
from sharpen.fitting.spreading import features_of
from sharpen.fitting.suggestions import suggest
from sharpen.graph.matrices import propagation_matrix

FIRST, LAST, COMPONENTS, NEAR = 3, 10, 256, 64


class Pool:
    """A graph, features to learn from, and what rules make of its structure."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.y = graph, graph.y.numpy()
        x: Any = normalize(features_of(graph))
        wide = normalize(Hops(graph).average(x.toarray() if hasattr(x, "toarray") else x))
        components = min(COMPONENTS, wide.shape[1] - 1)
        self.z = TruncatedSVD(components, random_state=0).fit_transform(wide)
        step, self.rank = propagation_matrix(graph, "mean"), np.full(len(self.y), 1 / len(self.y))
        for _ in range(50):
            self.rank = 0.85 * (step.T @ self.rank) + 0.15 / len(self.y)

    def answers(self, known: np.ndarray) -> np.ndarray:
        """Probabilities of all nodes by what is known."""
        labeled = np.flatnonzero(known >= 0)
        model = LogisticRegression(C=10, max_iter=200).fit(self.z[labeled], known[labeled])
        p = np.zeros((len(known), self.graph.num_classes))
        p[:, model.classes_] = model.predict_proba(self.z)
        return p


def largest(score: np.ndarray, known: np.ndarray, n: int) -> np.ndarray:
    """The n unlabeled nodes with the largest scores."""
    return np.argsort(np.where(known < 0, -score, np.inf), kind="stable")[:n]


def central(pool: Pool, known: np.ndarray, n: int, weight: np.ndarray | None = None) -> np.ndarray:
    """FeatProp: the unlabeled nodes nearest to the centres of n clusters of propagated features."""
    free = np.flatnonzero(known < 0)
    near = KMeans(n, n_init=1, random_state=0)
    distance = near.fit(pool.z[free, :NEAR], sample_weight=None if weight is None else weight[free] + 1e-9).transform(
        pool.z[free, :NEAR]
    )
    chosen: list[int] = []
    for column in distance.T:
        chosen.append(next(int(i) for i in np.argsort(column) if i not in chosen))
    return free[chosen]


def ranked(score: np.ndarray) -> np.ndarray:
    """The share of nodes that score less."""
    return np.argsort(np.argsort(score, kind="stable")) / len(score)


def age(pool: Pool, known: np.ndarray, p: np.ndarray, n: int) -> np.ndarray:
    """AGE: ranks of entropy, PageRank and density, added up."""
    clusters = KMeans(pool.graph.num_classes, n_init=1, random_state=0).fit(pool.z[:, :NEAR])
    near = -np.linalg.norm(pool.z[:, :NEAR] - clusters.cluster_centers_[clusters.labels_], axis=1)
    return largest(0.4 * ranked(unsure(p)) + 0.3 * ranked(pool.rank) + 0.3 * ranked(near), known, n)


def unsure(p: np.ndarray) -> np.ndarray:
    """Entropy."""
    return np.asarray(entr(p).sum(axis=1))


def margin(p: np.ndarray) -> np.ndarray:
    """How near the second choice is to the first."""
    two = np.sort(p, axis=1)[:, -2:]
    return np.asarray(two[:, 0] - two[:, 1])


Rule = Callable[[Pool, np.ndarray, np.ndarray, int, np.random.Generator], np.ndarray]
RULES: dict[str, Rule] = {
    "random": lambda pool, known, p, n, random: random.permutation(np.flatnonzero(known < 0))[:n],
    "suggest": lambda pool, known, p, n, random: suggest(pool.graph, known, p, n).nodes,
    "entropy": lambda pool, known, p, n, random: largest(unsure(p), known, n),
    "margin": lambda pool, known, p, n, random: largest(margin(p), known, n),
    "pagerank": lambda pool, known, p, n, random: largest(pool.rank * unsure(p), known, n),
    "age": lambda pool, known, p, n, random: age(pool, known, p, n),
    "featprop": lambda pool, known, p, n, random: central(pool, known, n),
    "featprop-entropy": lambda pool, known, p, n, random: central(pool, known, n, unsure(p)),
}


def follow(pool: Pool, rule: str, draw: int, batch: int) -> list[float]:
    """Accuracy on the unlabeled nodes after each batch."""
    random, known = np.random.default_rng(draw), np.full(len(pool.y), -1)
    for c in range(pool.graph.num_classes):
        shown = random.choice(np.flatnonzero(pool.y == c), FIRST, replace=False)
        known[shown] = c
    left, found = (LAST - FIRST) * pool.graph.num_classes, list[float]()
    p = pool.answers(known)
    while left > 0:
        n = min(batch or left, left)
        new = RULES[rule](pool, known, p, n, random)
        known[new] = pool.y[new]
        left -= n
        p = pool.answers(known)
        hidden = known < 0
        found.append(round(float((p[hidden].argmax(1) == pool.y[hidden]).mean()), 5))
    return found


def main(
    graphs: Annotated[str, typer.Option(help="Names, comma-separated.")] = "cora,citeseer",
    rules: Annotated[str, typer.Option(help="Which, comma-separated; random among them.")] = ",".join(RULES),
    draws: Annotated[int, typer.Option(help="How many.")] = 20,
    first_draw: Annotated[int, typer.Option(help="The seed of the first draw.")] = 0,
    batch: Annotated[int, typer.Option(help="Nodes asked for at a time; 0: all at once.")] = 10,
    out: Annotated[Path, typer.Option(help="Where to append a line of JSON per run.")] = Path("suggest.jsonl"),
    show: Annotated[Path | None, typer.Option(help="Run nothing: print the table of this file.")] = None,
) -> None:
    """Follow each rule from 3 to 10 labels per class."""
    path = out if show is None else show
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(line["graph"], line["batch"], line["rule"], line["draw"]) for line in lines}
    for name in graphs.split(",") if show is None else ():
        pool = Pool(load_dataset(name).graph)
        for draw, rule in [(first_draw + i, rule) for i in range(draws) for rule in rules.split(",")]:
            if (name, batch, rule, draw) not in done:
                line = {"graph": name, "batch": batch, "rule": rule, "draw": draw}
                lines.append(line | {"accuracy": follow(pool, rule, draw, batch)})
                with out.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
    print("\n".join(table(pd.DataFrame(lines))))


def table(frame: pd.DataFrame) -> Iterator[str]:
    """Markdown: what each rule gains on random choice, on the way and at the end."""
    yield "| graph | asked for | rule | on the way, % | gain (95 % CI) | at 10 per class, % | gain (95 % CI) | draws |"
    yield "|" + "---|" * 8
    frame["way"], frame["end"] = frame["accuracy"].map(np.mean), frame["accuracy"].map(lambda path: path[-1])
    for (name, batch), cell in frame.groupby(["graph", "batch"], sort=False):
        base = cell[cell["rule"] == "random"].set_index("draw")
        for rule, own in cell.groupby("rule", sort=False):
            parts = []
            for key in ("way", "end"):
                both = own.set_index("draw")[key].to_frame("rule").join(base[key].rename("random"), how="inner")
                d = paired_difference(100 * both["rule"].to_numpy(), 100 * both["random"].to_numpy())
                within = "" if d.t_interval is None else " [{:+.1f}, {:+.1f}]".format(*d.t_interval)
                parts += [f"{100 * own[key].mean():.1f}", "" if rule == "random" else f"{d.difference:+.1f}{within}"]
            asked = "at once" if not batch else f"{batch} at a time"
            yield f"| {name} | {asked} | {rule} | {' | '.join(parts)} | {len(own)} |"


if __name__ == "__main__":
    typer.run(main)
