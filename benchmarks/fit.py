"""`fit` beside what is at hand without it, on the same labels: accuracy, macro-F1, ECE, CPU time and memory, paired.

    python benchmarks/fit.py --out fit.jsonl                                        # everything; a run that was stopped goes on
    python benchmarks/fit.py --graphs cora,citeseer --rates 5,20 --draws 5 --methods fit,s2gc --budget 2 --out fit.jsonl
    python benchmarks/fit.py --show docs/measurements/fit.jsonl                     # run nothing: the tables of what is there

A draw takes so many labels of each class at random (at most half of the class); all methods see these and no other, and all
other nodes score them. `fit` has its defaults but for the budget; the peers have the settings below, chosen once for all graphs.
More than 512 columns (bags of words) are scaled to unit length for linear models and reduced to 64 components for trees.

One line of JSON for each run, appended when it is done; what the file holds is not run again, and a line that was cut off by a
kill is. Draws are the outer loop: whatever the time allows is there for all graphs. Each graph and method has a process of its own,
whose peak is the memory; `seconds` is CPU time, preparation of the features included.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch
import typer
from scipy.special import softmax
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from torch_geometric.nn import LabelPropagation

from sharpen import Graph, NodeClassifier, Split, Trial, load_dataset, train
from sharpen.errors import InputError
from sharpen.evaluation import paired_difference
from sharpen.evaluation.calibration import ece
from sharpen.evaluation.classes import macro_f1
from sharpen.files import Columns, FeatureEncoder, class_order, read_nodes_and_edges, to_graph
from sharpen.fitting import search
from sharpen.fitting.spreading import features_of

GRAPHS = "cora,citeseer,pubmed,photo,cs,digits,us-counties,twitch-es,facebook-pages"
RATES = "1,3,5,10,20,100"
WIDE, COMPONENTS = 512, 64
HOPS, KEPT = 16, 0.05


@dataclass
class Bench:
    """One graph with what several methods make of it; a task gives it the labels of a draw."""

    graph: Graph
    budget: float

    @cached_property
    def x(self) -> Any:
        """Columns for a linear model: bags of words at unit length, else as the encoder scaled them."""
        x = features_of(self.graph)
        return normalize(x) if self.graph.num_features > WIDE else x

    @cached_property
    def columns(self) -> np.ndarray:
        """Columns for trees, as few as they can take."""
        if self.graph.num_features > WIDE:
            return np.asarray(TruncatedSVD(COMPONENTS, random_state=0).fit_transform(self.x))
        return self.x.toarray() if scipy.sparse.issparse(self.x) else np.asarray(self.x)

    @cached_property
    def step(self) -> Any:
        """The adjacency without loops, weights if there are any."""
        with_loops = scipy.sparse.csr_array(self.graph.adjacency.to_scipy()).astype(np.float64)
        return scipy.sparse.csr_array(with_loops - scipy.sparse.diags_array(with_loops.diagonal()))

    @cached_property
    def propagated(self) -> np.ndarray:
        """S²GC: the mean of 16 hops of the normalised adjacency with loops, beside 5 % of the node itself; rows at unit length."""
        adjacency = scipy.sparse.csr_array(self.graph.adjacency.to_scipy()).astype(np.float32)
        scale = scipy.sparse.diags_array(1 / np.sqrt(np.asarray(adjacency.sum(axis=1)).ravel()))
        hop = scipy.sparse.csr_array(scale @ adjacency @ scale)
        x = self.x.toarray() if scipy.sparse.issparse(self.x) else np.asarray(self.x)
        power = x.astype(np.float32)
        total = KEPT * power
        for _ in range(HOPS):
            power = hop @ power
            total += (1 - KEPT) / HOPS * power
        return np.asarray(normalize(total, copy=False))

    @cached_property
    def around(self) -> np.ndarray:
        """Columns beside their mean, maximum and minimum over neighbours (0 where there are none) and the number of these."""
        count = np.diff(self.step.indptr)
        parts = [self.columns, np.log1p(count)[:, None]]
        some = np.flatnonzero(count)
        for reduce in (np.add, np.maximum, np.minimum):
            part = np.zeros(self.columns.shape, dtype=np.float32)
            for block in np.array_split(some, max(1, self.step.nnz // 200_000)):
                for first in range(0, self.columns.shape[1], COMPONENTS):
                    where = slice(first, first + COMPONENTS)
                    rows = self.step[block]
                    part[block, where] = reduce.reduceat(self.columns[:, where][rows.indices], rows.indptr[:-1], axis=0)
            parts.append(part / np.maximum(1, count)[:, None] if reduce is np.add else part)
        return np.hstack(parts)

    def beside_labels(self, known: np.ndarray) -> np.ndarray:
        """The same, and which share of the neighbours is known to be of each class; never one's own label."""
        labels = np.zeros((len(known), self.graph.num_classes))
        labels[known >= 0, known[known >= 0]] = 1
        return np.hstack([self.around, self.step @ labels / np.maximum(1, np.diff(self.step.indptr))[:, None]])


def answered(model: Any, x: Any, known: np.ndarray, num_classes: int) -> np.ndarray:
    """Probabilities of all nodes by a scikit-learn classifier that learns from the known ones."""
    p = np.zeros((len(known), num_classes))
    labeled = np.flatnonzero(known >= 0)
    if len(np.unique(known[labeled])) == 1:
        p[:, known[labeled[0]]] = 1
        return p
    model.fit(x[labeled], known[labeled])
    p[:, model.classes_] = model.predict_proba(x)
    return p


def linear(x: Any, known: np.ndarray, classes: int, c: float) -> np.ndarray:
    """Logistic regression; dense columns are standardised unless they are at unit length already."""
    if not scipy.sparse.issparse(x) and c == 1:
        x = StandardScaler().fit_transform(x)
    return answered(LogisticRegression(C=c, max_iter=1000), x, known, classes)


def trees(x: np.ndarray, known: np.ndarray, classes: int) -> np.ndarray:
    """Boosted trees, with leaves small enough for few labels."""
    leaf = max(1, min(20, int((known >= 0).sum()) // (4 * classes)))
    return answered(HistGradientBoostingClassifier(min_samples_leaf=leaf, random_state=0), x, known, classes)


def propagation(bench: Bench, known: np.ndarray, draw: int) -> np.ndarray:
    """PyG's LabelPropagation; a node that no label reaches is of no class more than of another."""
    edges = torch.from_numpy(np.stack(bench.step.nonzero()[::-1])).long()
    labels = torch.from_numpy(known)
    out = LabelPropagation(num_layers=50, alpha=0.9)(labels.clamp(min=0), edges, mask=labels >= 0).numpy() + 1e-9
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def spread(bench: Bench, known: np.ndarray, draw: int) -> np.ndarray:
    """scikit-learn's LabelSpreading over the nearest neighbours of the features."""
    x = bench.x.toarray() if scipy.sparse.issparse(bench.x) else bench.x
    model = LabelSpreading(kernel="knn", n_neighbors=7).fit(x, known)
    p = np.full((len(known), bench.graph.num_classes), 1e-9)
    p[:, model.classes_] += np.nan_to_num(model.label_distributions_)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def train_oneself(bench: Bench, known: np.ndarray, draw: int) -> np.ndarray:
    """scikit-learn's self-training around logistic regression on the columns."""
    model = SelfTrainingClassifier(LogisticRegression(max_iter=1000), threshold=0.75).fit(bench.x, known)
    p = np.zeros((len(known), bench.graph.num_classes))
    p[:, model.classes_] = model.predict_proba(bench.x)
    return p


def network(bench: Bench, known: np.ndarray, draw: int, **settings: Any) -> np.ndarray:
    """One run of a model on all labels, its last epoch."""
    split = Split("drawn", train=np.flatnonzero(known >= 0), val=[], test=[])
    trial = Trial(split="drawn", seed=draw, **settings)
    record = train(bench.graph, [trial], splits=[split], device="cpu", progress=False, choose="last")[0]
    assert record.logits is not None
    return np.asarray(softmax(record.logits, axis=1))


def fit(bench: Bench, known: np.ndarray, draw: int) -> tuple[np.ndarray, dict[str, Any]]:
    """NodeClassifier with its defaults, and what it promised."""
    y = np.array([None if k < 0 else int(k) for k in known], dtype=object)
    classifier = NodeClassifier(budget=bench.budget, seed=draw, device="cpu").fit(bench.graph, y)
    p = np.zeros((len(known), bench.graph.num_classes))
    p[:, classifier.classes_.astype(int)] = classifier.predict_proba(bench.graph)
    expected, chosen = classifier.report_["expected"], classifier.report_["chosen"]
    said = {"expected": expected["accuracy"], "interval": expected["accuracy_interval"]}
    return p, said | {"chosen": [entry["name"] for entry in chosen], "budget": bench.budget}


_PLAIN = {"norm": "none", "residual": False, "input_linear": False, "layers": 2, "hidden": 64, "dropout": 0.5}
_GCN = {"model": "gcn", **_PLAIN, "lr": 0.01, "weight_decay": 5e-4, "epochs": 200}
_GRAND = {"model": "grand", "hidden": 32, "lr": 0.01, "weight_decay": 5e-4, "epochs": 200, "lam": 0.5, "balance": 0.5}

Answer = np.ndarray | tuple[np.ndarray, dict[str, Any]]
METHODS: dict[str, tuple[str, Callable[[Bench, np.ndarray, int], Answer]]] = {
    "s2gc": ("S²GC, regression", lambda b, known, draw: linear(b.propagated, known, b.graph.num_classes, 10)),
    "linear": (
        "regression, columns",
        lambda b, known, draw: linear(b.x, known, b.graph.num_classes, 10 if b.graph.num_features > WIDE else 1),
    ),
    "linear-around": (
        "regression, + neighbours",
        lambda b, known, draw: linear(b.beside_labels(known), known, b.graph.num_classes, 1),
    ),
    "trees": ("trees, columns", lambda b, known, draw: trees(b.columns, known, b.graph.num_classes)),
    "trees-around": (
        "trees, + neighbours",
        lambda b, known, draw: trees(b.beside_labels(known), known, b.graph.num_classes),
    ),
    "propagation": ("label propagation", propagation),
    "spreading": ("LabelSpreading", spread),
    "self-training": ("SelfTraining", train_oneself),
    "gcn": ("GCN", lambda b, known, draw: network(b, known, draw, **_GCN)),
    "grand": ("GRAND-like", lambda b, known, draw: network(b, known, draw, **_GRAND)),
    "fit": ("fit", fit),
}


def load(name: str) -> Graph:
    """A benchmark graph, or one of the folder ``tabular``, with all its labels."""
    folder = Path(os.environ.get("SHARPEN_DATA", "data")) / "tabular" / name
    if not folder.is_dir():
        return load_dataset(name).graph
    files = folder / "nodes.csv.gz", folder / "edges.csv.gz"
    tables = read_nodes_and_edges(*files, Columns(label=read_nodes_and_edges(*files).columns[-1]))
    return to_graph(tables, FeatureEncoder.fit(tables).transform(tables), class_order(tables.labels), name)


def drawn(y: np.ndarray, rate: int, draw: int) -> np.ndarray:
    """The class of nodes that are shown, −1 for all others.

    >>> (drawn(np.array([0, 0, 0, 0, 1, 1]), 2, 0) >= 0).sum()
    3
    """
    random, known = np.random.default_rng([draw, rate]), np.full(len(y), -1)
    for own in (np.flatnonzero(y == c) for c in range(y.max() + 1)):
        shown = random.permutation(own)[: min(rate, len(own) // 2)]
        known[shown] = y[shown]
    return known


def run(name: str, method: str, cells: list[tuple[int, int]], budget: float, out: Path) -> None:
    """One graph and one method, at rates and draws; a line for each."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    bench = Bench(load(name), budget)
    y, preparation = bench.graph.y.numpy(), 0.0
    for rate, draw in cells:
        known, start, prepared = drawn(y, rate, draw), time.process_time(), set(vars(bench))
        answer = METHODS[method][1](bench, known, draw)
        p, more = answer if isinstance(answer, tuple) else (answer, {})
        seconds, hidden = time.process_time() - start, known < 0
        first = bool(set(vars(bench)) - prepared)
        line = {"graph": name, "rate": rate, "draw": draw, "method": method, "labels": int((~hidden).sum()),
                **_scores(p, y, hidden),
                "seconds": round(seconds + (0 if first else preparation), 2),
                "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, **more}  # fmt: skip
        preparation = seconds if first else preparation
        with out.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _scores(p: np.ndarray, y: np.ndarray, hidden: np.ndarray) -> dict[str, float]:
    p, y = p[hidden], y[hidden]
    predicted = p.argmax(1)
    found = {"accuracy": (predicted == y).mean(), "macro_f1": macro_f1(predicted, y), "ece": ece(p, y)}
    return {key: round(float(value), 5) for key, value in found.items()}


def read(path: Path) -> pd.DataFrame:
    """The runs of a file; a line that a kill cut off is skipped."""
    lines = []
    for text in path.read_text().splitlines() if path.exists() else ():
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue
    return pd.DataFrame(lines, columns=None if lines else ["graph", "rate", "draw", "method"])


def main(
    graphs: Annotated[str, typer.Option(help="Names, comma-separated.")] = GRAPHS,
    rates: Annotated[str, typer.Option(help="Labels per class, comma-separated.")] = RATES,
    draws: Annotated[int, typer.Option(help="How many draws of each.")] = 20,
    first: Annotated[
        int, typer.Option(help="Number of the first draw; those from 100 on were used for nothing else.")
    ] = 0,
    methods: Annotated[str, typer.Option(help="Which, comma-separated.")] = ",".join(METHODS),
    budget: Annotated[float, typer.Option(help="Minutes for each fit.")] = 2.0,
    cpu_clock: Annotated[bool, typer.Option(help="Budget in CPU minutes: for a busy machine.")] = False,
    out: Annotated[Path, typer.Option(help="Where to append a line of JSON per run.")] = Path("fit.jsonl"),
    show: Annotated[Path | None, typer.Option(help="Run nothing: print the tables of this file.")] = None,
) -> None:
    """Score all methods on the same labels and print paired differences."""
    if show is not None:
        print("\n".join(tables(read(show))))
        return
    unknown = [name for name in methods.split(",") if name not in METHODS]
    if unknown:
        raise InputError(f"--methods has {unknown[0]!r}; choose from {', '.join(METHODS)}")
    if cpu_clock:
        search.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[assignment]
    if out.exists() and not out.read_text().endswith("\n"):
        out.write_text(out.read_text() + "\n")  # what was cut off stays a line of its own, which nobody reads
    done = {tuple(row) for row in read(out)[["graph", "method", "rate", "draw"]].itertuples(index=False)}
    fork = multiprocessing.get_context("fork")
    for draw in range(first, first + draws):
        for name, method in [(name, method) for name in graphs.split(",") for method in methods.split(",")]:
            cells = [(int(rate), draw) for rate in rates.split(",") if (name, method, int(rate), draw) not in done]
            if cells:
                process = fork.Process(target=run, args=(name, method, cells, budget, out))
                process.start()
                process.join()
    print("\n".join(tables(read(out))))


def tables(frame: pd.DataFrame) -> Iterator[str]:
    """Markdown: accuracies of each graph and rate, what `fit` gains on each peer, and scores and cost in the mean."""
    known = [method for method in METHODS if (frame["method"] == method).any()]
    frame = frame.drop_duplicates(["graph", "rate", "draw", "method"])
    order = [name for name in GRAPHS.split(",") if (frame["graph"] == name).any()]
    yield "| graph | labels per class | draws | " + " | ".join(METHODS[method][0] for method in known) + " |"
    yield "|" + "---|" * (3 + len(known))
    wide = frame.pivot(index=["graph", "rate", "draw"], columns="method", values="accuracy") * 100
    for name, rate in [(name, rate) for name in order for rate in sorted(frame["rate"].unique())]:
        if (name, rate) in wide.index:
            own = wide.loc[(name, rate)]
            cells = [_mean(own, method) for method in known]
            yield f"| {name} | {rate} | {len(own)} | " + " | ".join(cells) + " |"
    mean = wide[known].dropna().groupby(["graph", "rate"]).mean()  # the same draws for all
    yield ("| **mean over runs that all have** | | | " + " | ".join(f"{v:.1f}" for v in mean.mean()) + " |")
    yield ""
    if "fit" in known:
        yield from _gains(wide, order, [method for method in known if method != "fit"])
    yield "| method | accuracy | macro-F1 | ECE, median | CPU s, median | most memory, MB |"
    yield "|---|---|---|---|---|---|"
    everywhere = wide[known].dropna().index
    same = frame.set_index(["graph", "rate", "draw"]).loc[everywhere] if len(everywhere) else frame
    for method in known:
        own = same[same["method"] == method]
        yield (
            f"| {METHODS[method][0]} | {100 * own['accuracy'].mean():.1f} | {100 * own['macro_f1'].mean():.1f} | "
            f"{100 * own['ece'].median():.1f} | {own['seconds'].median():.1f} | {own['mb'].max():.0f} |"
        )


def _mean(own: pd.DataFrame, method: str) -> str:
    values = own[method].dropna()
    return "" if not len(values) else f"{values.mean():.1f}" + (f" ({len(values)})" if len(values) < len(own) else "")


def _gains(wide: pd.DataFrame, order: list[str], peers: list[str]) -> Iterator[str]:
    """What `fit` gains: by graph and rate, and over graphs, each graph and rate counting once."""
    yield "| what `fit` gains | labels per class | " + " | ".join(METHODS[peer][0] for peer in peers) + " |"
    yield "|" + "---|" * (2 + len(peers))
    means: dict[str, list[float]] = {peer: [] for peer in peers}
    for name, rate in [(name, rate) for name in order for rate in sorted(set(wide.index.get_level_values("rate")))]:
        if (name, rate) not in wide.index or wide.loc[(name, rate)]["fit"].isna().all():
            continue
        cells = []
        for peer in peers:
            both = wide.loc[(name, rate)][["fit", peer]].dropna()
            cells.append(_difference(both["fit"].to_numpy(), both[peer].to_numpy()))
            if len(both):
                means[peer].append(float((both["fit"] - both[peer]).mean()))
        yield f"| {name} | {rate} | " + " | ".join(cells) + " |"
    over = [_difference(np.array(means[peer]), np.zeros(len(means[peer]))) for peer in peers]
    yield "| **mean over graphs and rates** | | " + " | ".join(over) + " |"
    yield ""


def _difference(ours: np.ndarray, theirs: np.ndarray) -> str:
    """The mean of paired differences with its 95 % interval.

    >>> _difference(np.array([3.0, 5.0, 4.0]), np.array([1.0, 2.0, 3.0]))
    '+2.0 [-0.5, +4.5]'
    """
    if not len(ours):
        return ""
    d = paired_difference(ours, theirs)
    return f"{d.difference:+.1f}" + ("" if d.t_interval is None else " [{:+.1f}, {:+.1f}]".format(*d.t_interval))


if __name__ == "__main__":
    typer.run(main)
