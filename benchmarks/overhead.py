"""What does sharpening cost? CPU time of an epoch with λ = 0.25 beside one with plain cross-entropy.

Two ways. In a plain PyG loop what differs is the loss, from the logits forward and back: both losses are timed by themselves, and
their difference is told in percent of an epoch, training step and evaluation. In a population of this package every member has a λ,
and the operations are the same for all of them: there whole epochs are timed. The processor's time counts, not the clock's, and of
several measurements the least: other work on the machine hardly moves it.

    python benchmarks/overhead.py --datasets cora,chameleon,minesweeper --out docs/measurements/overhead-cpu.csv
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F

from sharpen import SharpeningLoss, Trial, load_dataset
from sharpen.bench.peer import PlainLoop
from sharpen.datasets import Dataset
from sharpen.models.inputs import Inputs
from sharpen.training.capture import Runner
from sharpen.training.decision import decide
from sharpen.training.population import Population
from sharpen.training.trials import blueprint_of, resolve

COLUMNS = ("dataset", "model", "way", "epoch_ms", "plain_ms", "sharpened_ms", "overhead_percent")


def least(*runs: Callable[[], object], times: int) -> list[float]:
    """The least CPU time of each, in milliseconds; they take turns."""
    found = [float("inf")] * len(runs)
    for _ in range(times):
        for i, run in enumerate(runs):
            started = time.process_time()
            run()
            found[i] = min(found[i], 1000 * (time.process_time() - started))
    return found


def in_a_loop(dataset: Dataset, trial: Trial, times: int) -> tuple[float, float, float]:
    """An epoch, and the two losses."""
    graph = dataset.graph
    split, blueprint = dataset.splits[str(trial.split)], blueprint_of(graph.num_features, graph.num_classes, trial)
    loop = PlainLoop(graph, split, trial, dataset.metric, torch.device("cpu"), blueprint)
    logits = loop.model(*loop.args, **loop.kwargs).detach().requires_grad_()
    sharpened = SharpeningLoss(lam=0.25)

    def plain() -> None:
        F.cross_entropy(logits[loop.train], loop.y[loop.train]).backward()

    def sharp() -> None:
        sharpened(logits, loop.y, labeled=loop.train).backward()

    (epoch,) = least(loop.epoch, times=times)
    return epoch, *least(plain, sharp, times=20 * times)


def in_a_population(dataset: Dataset, trial: Trial, times: int, members: int) -> tuple[float, float, float]:
    """An epoch of all members with λ = 0, and with λ = 0.25."""
    blueprint = blueprint_of(dataset.graph.num_features, dataset.graph.num_classes, trial)
    way = decide(blueprint, Inputs(dataset.graph, torch.device("cpu"), torch.float32))
    epochs = []
    for lam in (0.0, 0.25):
        trials = [replace(trial, lam=lam, lam_labeled=-lam, seed=seed) for seed in range(members)]
        splits = [dataset.splits[str(trial.split)]] * members
        epochs.append(Runner(Population(way, dataset.metric, trials, splits)).epoch)
    plain, sharp = least(*epochs, times=times)
    return plain, plain, sharp


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--datasets", default="cora,chameleon,minesweeper")
    options.add_argument("--models", default="gcn")
    options.add_argument("--times", type=int, default=12, help="how often an epoch is timed")
    options.add_argument("--members", type=int, default=2, help="of a population")
    options.add_argument("--out", type=Path, default=None)
    given = options.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in given.datasets.split(","):
        dataset = load_dataset(name)
        for model in given.models.split(","):
            trial = resolve(Trial(model=model, lam=0.25), dataset)
            for way in ("plain loop", "population"):
                if way == "plain loop":
                    epoch, plain, sharp = in_a_loop(dataset, trial, given.times)
                else:
                    epoch, plain, sharp = in_a_population(dataset, trial, given.times, given.members)
                times = (epoch, plain, sharp, 100 * (sharp - plain) / epoch)
                rows.append([name, model, way, *(f"{value:.4g}" for value in times)])
                print(*rows[-1], flush=True)
    if given.out is not None:
        with given.out.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])


if __name__ == "__main__":
    main()
