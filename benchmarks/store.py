"""What a population costs the store as its files become many: claim, look what is missing, train nothing, add, look again.

python benchmarks/store.py --files 100 1000 10000
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from sharpen.store import Store
from sharpen.trial import Record, Trial


def records(first: int, count: int = 3) -> list[Record]:
    """Of trials that nobody trained."""
    trials = [Trial(dataset="toy", seed=seed).resolve("mine") for seed in range(first, first + count)]
    traces = {"loss": np.linspace(1, 0, 50, dtype=np.float32)}
    return [Record(trial, 0.8, 0.7, 12, "ok", 0.5, "cpu", "float32", {}, traces, members=count) for trial in trials]


def population(store: Store, first: int) -> None:
    """What a runner asks of its store for one population."""
    some = records(first)
    claim = store.claim([record.trial for record in some])
    assert claim is not None
    for _ in range(2):
        assert not store.ids() & {record.trial.id for record in some}
    store.claims()
    store.add(some)
    claim.release()


def main() -> None:
    """Prints a line for each number of files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--populations", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store, written = Store(folder), 0
        print("| files | populations per second | milliseconds of CPU each | CPU seconds to open |")
        print("|--:|--:|--:|--:|")
        for files in sorted(options.files):
            while written < files:
                store.add(records(10 * written))
                written += 1
            start, spent = time.perf_counter(), time.process_time()
            for _ in range(options.populations):
                population(store, 10 * written)
                written += 1
            rate = options.populations / (time.perf_counter() - start)
            each, spent = (time.process_time() - spent) / options.populations, time.process_time()
            assert len(Store(folder).ids()) == 3 * len(list(Path(folder, "records").glob("*.parquet")))
            print(f"| {files:,} | {rate:.1f} | {1000 * each:.1f} | {time.process_time() - spent:.1f} |", flush=True)


if __name__ == "__main__":
    main()
