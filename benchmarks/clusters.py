"""Does training in clusters reach the accuracy of the full batch? Paired runs on real graphs, with and without sharpening.

    python benchmarks/clusters.py --store clusters-store                                   # PubMed and Physics, 10 pairs, GPU
    python benchmarks/clusters.py --store clusters-store --datasets physics --epochs 300 --precision tf32 --batching clusters-16-4
    python benchmarks/clusters.py --store quick --datasets pubmed --pairs 3 --hidden 32 --epochs 40 --device cpu

A pair is the same split, the same seed and so the same first weights, once in full batches and once in clusters, with --steps times
as many steps of the optimiser; by default as many passes over the graph as the full batch has. Records go to a store after every
population: the same command goes on where it was stopped. With --out every run of the pairs is added to a table.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pandas as pd

from sharpen import Trial, load_dataset, train
from sharpen.batching import Batching
from sharpen.evaluation.paired import paired_difference
from sharpen.large.batches import make_batches
from sharpen.large.parted import arrange
from sharpen.store import Store
from sharpen.training.trials import resolve

COLUMNS = [
    "dataset",
    "model",
    "lam",
    "batching",
    "epochs",
    "split",
    "seed",
    "val",
    "test",
    "seconds",
    "device",
    "precision",
]


def append(path: Path, runs: pd.DataFrame) -> None:
    """Adds runs to a table; one that it holds is not written twice."""
    table = runs[COLUMNS].fillna({"batching": "full"})
    if path.exists():
        table = pd.concat([pd.read_csv(path), table.round(6)])
    key = [name for name in COLUMNS if name not in ("val", "test", "seconds", "device")]
    table.round(6).drop_duplicates(key).to_csv(path, index=False)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--store", type=Path, required=True, help="folder of records")
    options.add_argument("--datasets", default="pubmed,physics")
    options.add_argument("--model", default="gcn")
    options.add_argument("--lam", default="0,0.25")
    options.add_argument("--pairs", type=int, default=10)
    options.add_argument("--batching", default="clusters-32-4")
    options.add_argument(
        "--steps", type=float, help="steps in clusters, for each full batch; a pass over the graph by default"
    )
    options.add_argument("--hidden", type=int, help="the paper's by default")
    options.add_argument("--epochs", type=int, help="of the full batch; the paper's by default")
    options.add_argument("--device", default="auto")
    options.add_argument("--precision", default="float32")
    options.add_argument("--data", type=Path)
    options.add_argument("--out", type=Path, help="CSV of the runs")
    given = options.parse_args()
    store = Store(given.store)
    for name in given.datasets.split(","):
        dataset = load_dataset(name, given.data)
        parted = arrange(dataset.graph, Batching.parse(given.batching).parts)
        batches = make_batches(Batching.parse(given.batching), parted, hops=1).per_epoch
        pairs = list(zip(dataset.splits.paired_names(given.pairs), range(given.pairs), strict=True))
        lams = [float(lam) for lam in given.lam.split(",")]
        plain = Trial(model=given.model, hidden=given.hidden, epochs=given.epochs)
        full = {
            lam: [resolve(replace(plain, lam=lam, split=split, seed=seed), dataset) for split, seed in pairs]
            for lam in lams
        }
        passes = max(1, round((given.steps or batches) * (full[lams[0]][0].epochs or 0) / batches))
        cut = {
            lam: [replace(t, batching=given.batching, epochs=passes) for t in trials] for lam, trials in full.items()
        }
        known = store.ids()
        for groups in (full, cut):
            missing = [trial for trials in groups.values() for trial in trials if trial.id not in known]
            train(dataset, missing, device=given.device, precision=given.precision, on_records=store.add)
        for lam in lams:
            a, b = (store.frame(groups[lam]) for groups in (cut, full))
            d = paired_difference(a["test"], b["test"])
            low, high = d.t_interval or (float("nan"), float("nan"))
            print(
                f"{name:<10}{given.model:<6}λ = {lam:<6g}full {100 * d.mean_b:.2f} in {b['seconds'].mean():.1f} s a run, "
                f"{given.batching} {100 * d.mean_a:.2f} in {a['seconds'].mean():.1f} s ({passes} passes of {batches}); "
                f"difference {100 * d.difference:+.2f} [{100 * low:+.2f}, {100 * high:+.2f}], {d.n} pairs",
                flush=True,
            )
            if given.out is not None:
                append(given.out, pd.concat([b, a]))


if __name__ == "__main__":
    main()
