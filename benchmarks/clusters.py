"""Does training in clusters reach the accuracy of the full batch? Paired runs on real graphs, with and without sharpening.

    python benchmarks/clusters.py --store clusters-store                                   # PubMed and Physics, 10 pairs, GPU
    python benchmarks/clusters.py --store quick --datasets pubmed --pairs 3 --hidden 32 --epochs 40 --device cpu

A pair is the same split, the same seed and so the same first weights, once in full batches and once in clusters, with --steps times
as many steps of the optimiser; by default as many passes over the graph as the full batch has. Records go to a store after every
group: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from sharpen import Trial, load_dataset, train
from sharpen.batching import Batching
from sharpen.evaluation.paired import paired_difference
from sharpen.large.batches import make_batches
from sharpen.large.parted import arrange
from sharpen.studies.store import Store
from sharpen.training.trials import resolve


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
    given = options.parse_args()
    store = Store(given.store)
    for name in given.datasets.split(","):
        dataset = load_dataset(name, given.data)
        parted = arrange(dataset.graph, Batching.parse(given.batching).parts)
        batches = make_batches(Batching.parse(given.batching), parted, hops=1).per_epoch
        pairs = list(zip(dataset.splits.paired(given.pairs), range(given.pairs), strict=True))
        for lam in map(float, given.lam.split(",")):
            plain = Trial(model=given.model, lam=lam, hidden=given.hidden, epochs=given.epochs)
            full = [resolve(replace(plain, split=split, seed=seed), dataset) for split, seed in pairs]
            passes = max(1, round((given.steps or batches) * (full[0].epochs or 0) / batches))
            cut = [replace(trial, batching=given.batching, epochs=passes) for trial in full]
            for group in (full, cut):
                known = store.ids()
                missing = [trial for trial in group if trial.id not in known]
                for first in range(0, len(missing), 5):
                    some = missing[first : first + 5]
                    store.add(train(dataset, some, device=given.device, precision=given.precision))
            a, b = (store.frame(group) for group in (cut, full))
            d = paired_difference(a["test"], b["test"])
            low, high = d.t_interval or (float("nan"), float("nan"))
            print(
                f"{name:<10}{given.model:<6}λ = {lam:<6g}full {100 * d.mean_b:.2f} in {b['seconds'].mean():.1f} s, "
                f"{given.batching} {100 * d.mean_a:.2f} in {a['seconds'].mean():.1f} s ({passes} passes of {batches}); "
                f"difference {100 * d.difference:+.2f} [{100 * low:+.2f}, {100 * high:+.2f}], {d.n} pairs",
                flush=True,
            )


if __name__ == "__main__":
    main()
