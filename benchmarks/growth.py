"""Time and memory as a population, a graph's nodes and its edges grow: a table, a CSV file and a plot.

    python benchmarks/growth.py --out growth          # writes growth.csv, growth.png and growth.svg

Synthetic graphs: uneven degrees (a few hubs), 64 features, 8 classes. A GCN of two layers and width 64.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
import torch

from sharpen import Dataset, Graph, Trial
from sharpen.bench.cells import time_population
from sharpen.models.inputs import Inputs
from sharpen.training.decision import decide
from sharpen.training.device import arithmetic, describe_device, resolve_device
from sharpen.training.trials import blueprint_of, resolve


def synthetic(nodes: int, edges: int) -> Dataset:
    """A random graph with about so many undirected edges; node i is an end with weight (i + 1)^-½."""
    rng = np.random.default_rng(0)
    ends = (nodes * rng.random((2, edges)) ** 2).astype(np.int64).clip(max=nodes - 1)
    x = rng.normal(size=(nodes, 64)).astype(np.float32)
    return Dataset("synthetic", Graph(x=x, edge_index=ends, y=np.arange(nodes) % 8, name="synthetic"))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--device", default="auto")
    options.add_argument("--precision", default="float32")
    options.add_argument("--largest", type=float, default=1e7, help="edges of the largest graph")
    options.add_argument("--seconds", type=float, default=0.5)
    options.add_argument("--out", type=Path, default=Path("growth"))
    given = options.parse_args()
    device = resolve_device(given.device)
    rows: list[dict[str, object]] = []

    def measure(grows: str, members: int, nodes: int, edges: int) -> None:
        dataset = synthetic(nodes, edges)
        trials = [resolve(Trial(model="gcn", lam=0.25, seed=r, epochs=10**4), dataset) for r in range(members)]
        blueprint = blueprint_of(dataset.graph.num_features, dataset.graph.num_classes, trials[0])
        way = decide(blueprint, Inputs(dataset.graph, device, dtype))
        seconds, memory, _ = time_population(way, dataset, trials, given.seconds)
        rows.append(
            {
                "grows": grows,
                "members": members,
                "nodes": nodes,
                "edges": edges,
                "ms": 1e3 * seconds,
                "gb": memory / 1e9,
            }
        )
        print(f"{grows:<8}{members:>8}{nodes:>10}{edges:>12}{1e3 * seconds:>12.2f}{memory / 1e9:>10.2f}", flush=True)
        # Every time, so that a run that is cut short leaves what it has measured.
        with given.out.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)

    print(f"{describe_device(device)}, torch {torch.__version__}, {given.precision}")
    print(f"{'grows':<8}{'members':>8}{'nodes':>10}{'edges':>12}{'ms/epoch':>12}{'GB':>10}")
    with arithmetic(given.precision, device) as dtype:
        for members in (1, 2, 4, 8, 16, 32, 64, 128, 205):
            measure("members", members, 10_000, 50_000)
        edges = 10**4
        while edges <= given.largest:
            measure("edges", 8, 100_000, edges)
            edges *= 10
        nodes = 10**3
        while nodes <= given.largest / 10:
            measure("nodes", 8, nodes, 5 * nodes)
            nodes *= 10

    plot(rows, given.out, f"{describe_device(device)}, {given.precision}")


def plot(rows: list[dict[str, object]], out: Path, title: str) -> None:
    """Three panels, double logarithmic, each with a line of slope one to compare with."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), constrained_layout=True)
    fixed = {
        "members": "10 thousand nodes, 50 thousand edges",
        "edges": "8 members, 100 thousand nodes",
        "nodes": "8 members, 5 edges per node",
    }
    for axis, (grows, held) in zip(axes, fixed.items(), strict=True):
        part = [row for row in rows if row["grows"] == grows]
        x = np.array([row[grows] for row in part], dtype=float)
        for column, color, label in (("ms", "#0072B2", "milliseconds per epoch"), ("gb", "#D55E00", "gigabytes")):
            y = np.array([row[column] for row in part], dtype=float)
            if (y > 0).all():
                axis.loglog(x, y, "o-", color=color, label=label)
                axis.loglog(x, y[-1] * x / x[-1], ":", color=color, linewidth=1)
        axis.set_xlabel(grows)
        axis.set_title(held, fontsize=9)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    axes[0].set_ylabel("whole population; dotted: linear")
    figure.suptitle(f"Growth of a GCN population ({title})", fontsize=11)
    for suffix in (".png", ".svg"):
        figure.savefig(out.with_suffix(suffix), dpi=150)


if __name__ == "__main__":
    main()
