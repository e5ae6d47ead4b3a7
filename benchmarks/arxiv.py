"""A graph of ogbn-arxiv's size in full batches: a population of GCN, GraphSAGE and GAT beside a plain PyG loop, per epoch of a run.

    python benchmarks/arxiv.py --folder /tmp/graphs --out arxiv.csv                        # a GPU
    python benchmarks/arxiv.py --folder /tmp/graphs --scale 0.02 --members 2 --device cpu  # a look at a small one

The graph is generated with the published nodes, edges, features, classes and split (169,343 nodes, 1.16 M edges); the settings
are the paper's. As many members as fit are trained together, 205 at most.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import asdict, replace
from pathlib import Path

import torch
from synthetic import generate

from sharpen.bench.cells import time_cells
from sharpen.training.device import describe_device, resolve_device


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--folder", type=Path, required=True, help="where the graph is generated")
    options.add_argument("--scale", type=float, default=1.0, help="of nodes and edges alike")
    options.add_argument("--models", default="gcn,sage,gat")
    options.add_argument("--members", type=int, help="as many as fit by default, 205 at most")
    options.add_argument("--seconds", type=float, default=5.0, help="how long to time each side")
    options.add_argument("--device", default="auto")
    options.add_argument("--precision", default="tf32,float32")
    options.add_argument("--out", type=Path, default=Path("arxiv.csv"))
    given = options.parse_args()
    device = resolve_device(given.device)
    generated = generate("ogbn-arxiv", given.folder / f"arxiv-{given.scale:g}", given.scale)
    dataset = replace(generated, name="ogbn-arxiv")  # so that the paper's settings are meant
    graph = dataset.graph
    print(
        f"{describe_device(device)}, torch {torch.__version__}; {graph.num_nodes:,} nodes, {graph.num_edges // 2:,} edges"
    )
    rows = []
    for precision in given.precision.split(","):
        cells = ((dataset, model) for model in given.models.split(","))
        for t in time_cells(cells, device, precision, given.members, given.seconds):
            rows.append(asdict(t) | {"ratio": t.ratio, "floor_share": t.floor_share})
            print(
                f"{precision:<8} {t.model:<5} {t.members:>3} members: {1e3 * t.population:8.2f} ms a run's epoch, plain loop "
                f"{1e3 * t.plain:8.2f} ms, ratio {t.ratio:.2f}; {t.population_memory / 1e9:.1f} GB together, "
                f"plain {t.plain_memory / 1e9:.1f} GB",
                flush=True,
            )
            with given.out.open(
                "w", newline="", encoding="utf-8"
            ) as file:  # every time: a run cut short leaves something
                writer = csv.DictWriter(file, rows[0].keys())
                writer.writeheader()
                writer.writerows(rows)


if __name__ == "__main__":
    main()
