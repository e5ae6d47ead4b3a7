"""A study beside busy processes: with as many threads as there are cores, with one, and with as many as sharpen chooses.

python benchmarks/busy.py --busy 1 --repeats 3
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STUDY = """\
title: Beside a busy process
datasets: [digits]
models: [gcn]
runs: 5
trial: {hidden: 64, layers: 2, epochs: 5}
variants:
  baseline: {lam: 0}
  ts: {lam: 0.5}
baseline: baseline
"""
# What the environment says of threads; an empty one leaves it to sharpen.
WAYS = {"a thread per core": str(os.cpu_count()), "one thread": "1", "as sharpen chooses": ""}


def measure() -> None:
    """Runs the study once in this process, and prints the seconds that passed and those that the CPU spent."""
    from sharpen.datasets import load_dataset
    from sharpen.store import Store
    from sharpen.studies import load_study, runner

    digits = load_dataset("digits")
    runner.load_dataset = lambda name, root=None: digits  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.yaml"
        study.write_text(STUDY)
        start, spent = time.perf_counter(), time.process_time()
        summary = runner.run(load_study(study), Store(Path(folder) / "store"), device="cpu", max_members=2)
        assert summary.trained == 10
        print(json.dumps([time.perf_counter() - start, time.process_time() - spent]))


def main() -> None:
    """Prints a line for each way, the ways in turn, so that what else the machine does meets all of them alike."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, default=1, help="how many processes keep a core busy meanwhile")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure()
        return
    plain = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "SHARPEN_THREADS")}
    found: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    print(f"{os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}")
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.busy)]
    try:
        for _ in range(options.repeats):
            for way, threads in WAYS.items():
                environment = plain | ({"OMP_NUM_THREADS": threads, "SHARPEN_THREADS": threads} if threads else {})
                command = [sys.executable, __file__, "--measure"]
                done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
                found[way].append(json.loads(done.stdout.splitlines()[-1]))
    finally:
        for process in busy:
            process.kill()
    print("| threads | seconds, median | from | to | CPU seconds, median |")
    print("|---|--:|--:|--:|--:|")
    for way, own in found.items():
        seconds, spent = zip(*own, strict=True)
        middle = f"{statistics.median(seconds):.1f} | {min(seconds):.1f} | {max(seconds):.1f}"
        print(f"| {way} | {middle} | {statistics.median(spent):.1f} |")


if __name__ == "__main__":
    main()
