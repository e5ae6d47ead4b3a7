"""`fit` beside what is at hand without it, on the same labels: accuracy, macro-F1, ECE, CPU time and memory, paired.

    python benchmarks/fit.py --out fit.jsonl                                        # everything; a run that was stopped goes on
    python benchmarks/fit.py --graphs cora,citeseer --rates 5,20 --draws 5 --methods fit,s2gc --budget 2 --out fit.jsonl
    python benchmarks/fit.py --jobs 6 --threads 2 --time-limit 6.5 --out fit.jsonl  # six at once, nothing new after 6.5 minutes
    python benchmarks/fit.py --show docs/measurements/fit.jsonl                     # run nothing: the tables of what is there

A draw takes so many labels of each class at random (at most half of the class); all methods see these and no other, and all
other nodes score them. `--rates public` is the public split of Cora, CiteSeer and PubMed with its 500 validation labels given
as labels too, scored on its 1,000 test nodes; a draw is then a seed. `fit` has its defaults but for the budget; the peers have
the settings of `peers.py`, chosen once for all graphs.
More than 512 columns (bags of words) are scaled to unit length for linear models and reduced to 64 components for trees.

One line of JSON for each run, appended when it is done; what the file holds is not run again, and a line that was cut off by a
kill is. Draws are the outer loop: whatever the time allows is there for all graphs. Each draw of a graph and a method has a
process of its own, whose peak is the memory; with `--threads` it is held to so many cores that no other one has. `seconds` is
CPU time, preparation of the features included; `wall` is the time that passed.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from peers import PEERS, Bench

from sharpen import Graph, NodeClassifier, load_dataset
from sharpen.errors import InputError
from sharpen.evaluation import paired_difference
from sharpen.evaluation.calibration import ece
from sharpen.evaluation.classes import macro_f1
from sharpen.files import Columns, FeatureEncoder, class_order, read_nodes_and_edges, to_graph
from sharpen.fitting import search

GRAPHS = "cora,citeseer,pubmed,photo,cs,digits,us-counties,twitch-es,facebook-pages"
RATES = "1,3,5,10,20,100"
# In place of a number of labels per class: the public split, its validation labels given too.
PUBLIC = 0
_WITH_PUBLIC_SPLIT = ("cora", "citeseer", "pubmed")


def fit(bench: Bench, known: np.ndarray, draw: int) -> tuple[np.ndarray, dict[str, Any]]:
    """NodeClassifier with its defaults, and what it promised."""
    y = np.array([None if k < 0 else int(k) for k in known], dtype=object)
    classifier = NodeClassifier(budget=bench.budget, seed=draw, device="cpu").fit(bench.graph, y)
    p = np.zeros((len(known), bench.graph.num_classes))
    p[:, classifier.classes_.astype(int)] = classifier.predict_proba(bench.graph)
    expected, chosen = classifier.report_["expected"], classifier.report_["chosen"]
    said = {"expected": expected["accuracy"], "interval": expected["accuracy_interval"]}
    return p, said | {"chosen": [entry["name"] for entry in chosen], "budget": bench.budget}


Answer = np.ndarray | tuple[np.ndarray, dict[str, Any]]
METHODS: dict[str, tuple[str, Callable[[Bench, np.ndarray, int], Answer]]] = {**PEERS, "fit": ("fit", fit)}


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


def shown(name: str, y: np.ndarray, rate: int, draw: int) -> tuple[np.ndarray, np.ndarray]:
    """The class of nodes that are shown, −1 for all others; and which nodes score."""
    if rate != PUBLIC:
        known = drawn(y, rate, draw)
        return known, known < 0
    split, known, scored = load_dataset(name).splits["public"], np.full(len(y), -1), np.zeros(len(y), dtype=bool)
    given = np.concatenate([split.train.numpy(), split.val.numpy()])
    known[given], scored[split.test.numpy()] = y[given], True
    return known, scored


@dataclass(frozen=True)
class Task:
    """One draw of a graph with one method, at several rates; what stays alike is the same for all."""

    name: str
    method: str
    draw: int
    rates: list[int]


def run(task: Task, budget: float, out: Path, stop: float, cores: frozenset[int]) -> None:
    """A line for each rate, as long as the clock has not come to the stop; on these cores, if any are named."""
    if cores:
        os.sched_setaffinity(0, cores)
    torch.set_num_threads(len(cores) or int(os.environ.get("OMP_NUM_THREADS", 1)))
    bench = Bench(load(task.name), budget)
    y, preparation = bench.graph.y.numpy(), 0.0
    for rate in task.rates:
        if time.time() > stop:
            return
        known, scored = shown(task.name, y, rate, task.draw)
        start, begun, prepared = time.process_time(), time.time(), set(vars(bench))
        answer = METHODS[task.method][1](bench, known, task.draw)
        p, more = answer if isinstance(answer, tuple) else (answer, {})
        seconds = time.process_time() - start
        first = bool(set(vars(bench)) - prepared)
        line = {"graph": task.name, "rate": rate, "draw": task.draw, "method": task.method, "labels": int((known >= 0).sum()),
                **_scores(p, y, scored),
                "seconds": round(seconds + (0 if first else preparation), 2), "wall": round(time.time() - begun, 2),
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
    rates: Annotated[str, typer.Option(help="Labels per class, comma-separated; or public.")] = RATES,
    draws: Annotated[int, typer.Option(help="How many draws of each.")] = 20,
    first: Annotated[
        int, typer.Option(help="Number of the first draw; those from 100 on were used for nothing else.")
    ] = 0,
    methods: Annotated[str, typer.Option(help="Which, comma-separated.")] = ",".join(METHODS),
    budget: Annotated[float, typer.Option(help="Minutes for each fit.")] = 2.0,
    jobs: Annotated[int, typer.Option(help="How many processes at once.")] = 1,
    threads: Annotated[
        int, typer.Option(help="Cores for each process, which no other has; 0: as the machine does.")
    ] = 0,
    time_limit: Annotated[float, typer.Option(help="Nothing is started after so many minutes.")] = float("inf"),
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
    wanted = [PUBLIC if rate == "public" else int(rate) for rate in rates.split(",")]
    tasks = [
        Task(name, method, draw, [rate for rate in _rates_of(name, wanted) if (name, method, rate, draw) not in done])
        for draw in range(first, first + draws)
        for name in graphs.split(",")
        for method in methods.split(",")
    ]
    _side_by_side([task for task in tasks if task.rates], jobs, threads, budget, out, time.time() + 60 * time_limit)
    print("\n".join(tables(read(out))))


def _rates_of(name: str, wanted: list[int]) -> list[int]:
    """The rates that a graph has: a public split is that of three.

    >>> _rates_of("cora", [20, PUBLIC]), _rates_of("digits", [20, PUBLIC])
    ([20, 0], [20])
    """
    return wanted if name in _WITH_PUBLIC_SPLIT else [rate for rate in wanted if rate != PUBLIC]


def _side_by_side(tasks: list[Task], jobs: int, threads: int, budget: float, out: Path, stop: float) -> None:
    """Each task in a process of its own, so many at once."""
    fork, machine = multiprocessing.get_context("fork"), sorted(os.sched_getaffinity(0))
    if jobs * threads > len(machine):
        raise InputError(f"--jobs and --threads need {jobs * threads} cores, and there are {len(machine)}")
    places = [frozenset(machine[k * threads : (k + 1) * threads]) for k in range(jobs)]
    busy: dict[int, Any] = {}

    def free() -> int | None:
        return next((k for k in range(jobs) if k not in busy or not busy[k].is_alive()), None)

    for task in tasks:
        while (place := free()) is None:
            time.sleep(0.05)
        if time.time() > stop:
            break
        busy[place] = fork.Process(target=run, args=(task, budget, out, stop, places[place]))
        busy[place].start()
    for process in busy.values():
        process.join()


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
            yield f"| {name} | {rate or 'public'} | {len(own)} | " + " | ".join(cells) + " |"
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
        yield f"| {name} | {rate or 'public'} | " + " | ".join(cells) + " |"
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
