"""A population beside a plain PyG loop, cell by cell, in one process: times, ratio, memory, share of the device's floor.

    python benchmarks/population.py                       # all graphs at hand, on the GPU if there is one
    python benchmarks/population.py --datasets cora,citeseer --models gcn --precision tf32 --out timings.csv

The same as `sharpen bench`, which documents the options.
"""

from sharpen.cli.bench import script

if __name__ == "__main__":
    script()
