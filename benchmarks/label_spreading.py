"""`fit` beside what is at hand without it: LabelSpreading, SelfTrainingClassifier and LabelPropagation, on the same splits.

    python benchmarks/label_spreading.py                                    # Cora, CiteSeer and digits, 5 splits of each
    python benchmarks/label_spreading.py --datasets digits --first-split 10 --splits 10 --out digits-b.csv
    python benchmarks/label_spreading.py --show digits-a.csv --show digits-b.csv        # what was written before, together

With --out, the rows of a split are appended as soon as it is done, and splits that the file holds are not run again: a run that was
stopped goes on, and several can share the work, each with splits and a file of its own.

All see the same labels (those of the split's training nodes) and are scored on its test nodes; the split's validation labels
are given to nobody. `fit` draws its validation nodes from the training labels. Differences are paired on the splits. The peers
have the settings of their documentation, `fit` has its defaults but for the budget; beyond that, bags of words are scaled to unit
length for the peers that read features, and PyG's LabelPropagation is run with a second α that suits digits better.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch
import typer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from torch_geometric.nn import LabelPropagation

from sharpen import Graph, NodeClassifier, Split, load_dataset
from sharpen.evaluation import paired_difference
from sharpen.fitting import search


def dense(graph: Graph) -> np.ndarray:
    """Features as scikit-learn likes them; sparse ones are bags of words, in which length says little."""
    return normalize(graph.x.to_dense().numpy()) if graph.is_sparse else graph.x.numpy()


def spread_over_features(graph: Graph, y: np.ndarray, budget: float) -> tuple[np.ndarray, str]:
    """scikit-learn's LabelSpreading as it is meant: a nearest-neighbour graph of the features."""
    return LabelSpreading(kernel="knn", n_neighbors=7).fit(dense(graph), y).transduction_, ""


def spread_over_graph(graph: Graph, y: np.ndarray, budget: float) -> tuple[np.ndarray, str]:
    """The same algorithm on the graph itself."""
    adjacency = graph.adjacency.to_scipy()
    adjacency = scipy.sparse.csr_matrix(adjacency - scipy.sparse.eye_array(graph.num_nodes))
    adjacency.eliminate_zeros()
    nodes = np.arange(graph.num_nodes, dtype=float)[:, None]
    with np.errstate(invalid="ignore"):  # a node without neighbours gets no label from anybody
        return LabelSpreading(kernel=lambda a, b: adjacency).fit(nodes, y).transduction_, ""


def train_oneself(graph: Graph, y: np.ndarray, budget: float) -> tuple[np.ndarray, str]:
    """scikit-learn's self-training around logistic regression."""
    model = SelfTrainingClassifier(LogisticRegression(max_iter=1000), threshold=0.75)
    return model.fit(dense(graph), y).predict(dense(graph)), ""


def propagate(graph: Graph, y: np.ndarray, budget: float, alpha: float = 0.9) -> tuple[np.ndarray, str]:
    """PyG's LabelPropagation."""
    labels, adjacency = torch.from_numpy(y), graph.adjacency
    row = torch.repeat_interleave(torch.arange(graph.num_nodes), adjacency.degree().long())
    edge_index = torch.stack([adjacency.col.long(), row])
    out = LabelPropagation(num_layers=50, alpha=alpha)(labels.clamp(min=0), edge_index, mask=labels >= 0)
    return out.argmax(1).numpy(), ""


def fit(graph: Graph, y: np.ndarray, budget: float) -> tuple[np.ndarray, str]:
    """NodeClassifier with its defaults."""
    classifier = NodeClassifier(budget=budget)
    guess = np.asarray(classifier.fit(graph, y).predict(graph))
    return guess, " + ".join(chosen["name"] for chosen in classifier.report_["chosen"])


METHODS: dict[str, Callable[[Graph, np.ndarray, float], tuple[np.ndarray, str]]] = {
    "fit": fit,
    "LabelSpreading, features": spread_over_features,
    "LabelSpreading, graph": spread_over_graph,
    "SelfTrainingClassifier": train_oneself,
    "LabelPropagation (PyG)": propagate,
    "LabelPropagation, α = 0.95": partial(propagate, alpha=0.95),
}


def main(
    datasets: Annotated[str, typer.Option(help="Names, as cora,digits.")] = "cora,citeseer,digits",
    splits: Annotated[int, typer.Option(help="How many splits of each.")] = 5,
    first_split: Annotated[int, typer.Option(help="The seed of the first split.")] = 0,
    budget: Annotated[float, typer.Option(help="Minutes for each fit.")] = 0.5,
    cpu_clock: Annotated[bool, typer.Option(help="Budget in CPU minutes of one core: for a busy machine.")] = False,
    out: Annotated[Path | None, typer.Option(help="Where to append one row per run, as CSV.")] = None,
    show: Annotated[list[Path] | None, typer.Option(help="Run nothing: print the table of these files.")] = None,
) -> None:
    """Score all methods on the same splits and print the paired differences."""
    if show:
        print_table(pd.concat([pd.read_csv(path) for path in show]))
        return
    if cpu_clock:
        search.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[assignment]
    done = pd.read_csv(out) if out is not None and out.exists() else pd.DataFrame(columns=["dataset", "split"])
    for name in datasets.split(","):
        data = load_dataset(name)
        for split_name in data.splits.paired_names(first_split + splits)[first_split:]:
            if ((done["dataset"] == name) & (done["split"] == split_name)).any():
                continue
            rows = pd.DataFrame(score_methods(data.graph, data.splits[split_name], budget))
            rows.insert(0, "dataset", name)
            rows.insert(1, "split", split_name)
            if out is not None:
                rows.to_csv(out, mode="a", header=not out.exists(), index=False)
            done = pd.concat([done, rows]) if len(done) else rows
    print_table(done)


def score_methods(graph: Graph, split: Split, budget: float) -> list[dict[str, Any]]:
    """One row for each method on one split."""
    y, train, test = graph.y.numpy(), split.train.numpy(), split.test.numpy()
    known = np.full(len(y), -1)
    known[train] = y[train]
    rows = []
    for method, label in METHODS.items():
        wall, cpu = time.perf_counter(), time.process_time()
        guess, what = label(graph, known, budget)
        rows.append(
            {
                "method": method,
                "test": float((guess[test] == y[test]).mean()),
                "seconds": time.perf_counter() - wall,
                "cpu_seconds": time.process_time() - cpu,
                "what": what,
            }
        )
    return rows


def print_table(frame: pd.DataFrame) -> None:
    """Mean accuracies, and what fit gains on each method with its interval."""
    print(f"{'dataset':9s} {'method':27s} {'accuracy':>8s} {'CPU s':>8s}   fit gains (95 % CI, paired)")
    for (name, method), own in frame.groupby(["dataset", "method"], sort=False):
        line = f"{name:9s} {method:27s} {100 * own['test'].mean():8.2f} {own['cpu_seconds'].mean():8.1f}"
        if method != "fit":
            ours = frame[(frame["dataset"] == name) & (frame["method"] == "fit")]
            ours = ours.set_index("split").loc[own["split"]]
            d = paired_difference(100 * ours["test"].to_numpy(), 100 * own["test"].to_numpy())
            interval = "" if d.t_interval is None else f" [{d.t_interval[0]:+.2f}, {d.t_interval[1]:+.2f}]"
            line += f"   {d.difference:+.2f}{interval}, {d.wins} of {d.n} won"
        print(line)


if __name__ == "__main__":
    typer.run(main)
