"""A population beside a plain PyG loop, cell by cell, in one process: times, ratio, memory, share of the device's floor.

    python benchmarks/population.py                       # on a GPU if there is one: all graphs at hand
    python benchmarks/population.py --device cpu          # the small graphs, and CS with a GCN
    python benchmarks/population.py --datasets cora,citeseer --models gcn --precision tf32 --out timings.csv

The same as `sharpen bench`, which documents the options.
"""

import typer

from sharpen.cli.bench import bench

if __name__ == "__main__":
    typer.run(bench)
