"""How long a large graph takes to read, and how much memory: rows per second and bytes per row, size by size.

    python benchmarks/readers.py                     # 100,000, 1,000,000 and 4,000,000 edges
    python benchmarks/readers.py --edges 1000000

Each size is read in a process of its own. Linear means that seconds and bytes per row stay as they are while rows grow.
Beside ours stands pandas' `read_csv` of the edges alone, which does not check or number the ends.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

READ = """
import sys, time
import numpy, pandas, pyarrow.csv, pyarrow.parquet, scipy.sparse, torch
from sharpen.files import FeatureEncoder, read_nodes_and_edges, to_graph, class_order
def peak():  # of this process: what getrusage says begins with the peak of the parent
    return 1024 * int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
before = peak()
start = time.perf_counter()
if sys.argv[1] == "pandas":
    pandas.read_csv(sys.argv[3])
else:
    tables = read_nodes_and_edges(sys.argv[2], sys.argv[3])
    if sys.argv[1] == "graph":
        to_graph(tables, FeatureEncoder.fit(tables).transform(tables), class_order(tables.labels))
seconds = time.perf_counter() - start
print(seconds, peak() - before)
"""


def write_graph(folder: Path, edges: int) -> tuple[Path, Path]:
    """A random graph with ten edges per node, ids of text, two feature columns; as CSV and Parquet."""
    random = np.random.default_rng(0)
    count = max(edges // 10, 2)
    ids = np.array([f"user-{i}" for i in range(count)], dtype=object)
    labels = np.where(random.random(count) < 0.1, random.choice(["a", "b", "c"], count), "")
    ages, cities = random.normal(40, 9, count).round(2), random.integers(0, 20, count)
    nodes = pd.DataFrame({"id": ids, "label": labels, "age": ages, "city": cities})
    ends = pd.DataFrame(
        {"source": ids[random.integers(0, count, edges)], "target": ids[random.integers(0, count, edges)]}
    )
    nodes.to_csv(folder / "nodes.csv", index=False)
    ends.to_csv(folder / "edges.csv", index=False)
    ends.to_csv(folder / "edges.csv.gz", index=False)
    ends.to_parquet(folder / "edges.parquet")
    ends.to_json(folder / "edges.jsonl", orient="records", lines=True)
    return folder / "nodes.csv", folder / "edges.csv"


def measure(what: str, nodes: Path, edges: Path) -> tuple[float, float]:
    """Seconds and additional bytes of one reading, in a process of its own."""
    command = [sys.executable, "-c", READ, what, str(nodes), str(edges)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(out[0]), float(out[1])


def main() -> None:
    """Print one line per size and format."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, nargs="*", default=[100_000, 1_000_000, 4_000_000])
    sizes = parser.parse_args().edges
    print(f"{'edges':>10} {'what':22} {'seconds':>8} {'µs/edge':>8} {'MB':>7} {'bytes/edge':>10}")
    for count in sizes:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            nodes, edges = write_graph(Path(folder), count)
            wrote = time.perf_counter() - start
            rows = [
                ("read, CSV", "read", edges),
                ("read, CSV packed", "read", edges.with_suffix(".csv.gz")),
                ("read, Parquet", "read", edges.with_suffix(".parquet")),
                ("read, JSON lines", "read", edges.with_suffix(".jsonl")),
                ("read and encode, CSV", "graph", edges),
                ("pandas, edges only", "pandas", edges),
            ]
            for name, what, path in rows:
                seconds, size = measure(what, nodes, path)
                print(
                    f"{count:>10} {name:22} {seconds:>8.2f} {seconds / count * 1e6:>8.2f} {size / 1e6:>7.0f} "
                    f"{size / count:>10.0f}"
                )
            print(f"{'':>10} (written in {wrote:.1f} s)")


if __name__ == "__main__":
    main()
