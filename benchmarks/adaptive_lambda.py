"""λ that adapts: to the epoch, to how sure a node is, to its neighbours, or learned; each beside a constant λ, on the same draws.

    python benchmarks/adaptive_lambda.py --out docs/measurements/adaptive-lambda-cpu.csv
    python benchmarks/adaptive_lambda.py --show docs/measurements/adaptive-lambda-cpu.csv     # what was written before

The network and the draws are those of the study label-rates-small, trained by `sharpen.train` with the objective's unlabeled term
changed. Weights of nodes are constants of the step and 1 in the mean over the unlabeled nodes, so that what differs is where it
sharpens. λ = 0.25; every way with a balance of 0.25 and without one. With --out, what is trained is appended at once, and what the
file holds is not trained again.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pandas as pd
import torch
import typer
from torch import Tensor
from wrong_prior import gain

from sharpen import load_dataset, train
from sharpen.entropy import tsallis_entropy
from sharpen.kernels.loss import population_loss
from sharpen.models.inputs import Inputs
from sharpen.report.names import dataset_title
from sharpen.studies import load_study
from sharpen.studies.protocol import runs
from sharpen.training import full_batch
from sharpen.training.population import Population

# Of the share of the epochs that is over: what λ is multiplied by.
SCHEDULES: dict[str, Callable[[float], float]] = {
    "grows over half of the epochs": lambda over: min(1.0, 2 * over),
    "falls to 0": lambda over: 2 * (1 - over),
}


def agreement(p: Tensor, inputs: Inputs) -> Tensor:
    """How probable it is that a node and one of its neighbours, itself among them, are of one class, [R, N]."""
    around = inputs.propagate(p.transpose(0, 1).contiguous(), "mean").transpose(0, 1)
    return (p * around).sum(2)


# Of the predictions of all members [R, N, C] and the graph: the weight of every node, up to a factor.
WEIGHTS: dict[str, Callable[[Tensor, Inputs], Tensor]] = {
    "by confidence": lambda p, inputs: p.amax(2),
    "by doubt": lambda p, inputs: 1 - p.amax(2),
    "by agreement with the neighbours": agreement,
}
LEARNED = "learned (lam_max = 1)"
WAYS = ("constant", *SCHEDULES, *WEIGHTS, LEARNED)


def adaptive(way: str) -> type[Population]:
    """A population whose λ adapts in this way."""

    class Adaptive(Population):
        def _train_step(self) -> list[Tensor]:
            logits = self.way.logits(self.parameters, self.statistics, self.leaves, True, self._moment())
            objective, lam = self.objective, torch.as_tensor(self.objective.lam)
            if way in SCHEDULES:
                lam = lam * SCHEDULES[way](int(self.epoch_number) / self.epochs)
                objective = replace(objective, lam=lam, lam_labeled=-lam)
            loss, parts = population_loss(logits, self.y, self.labeled, self.unlabeled, objective)
            if way in WEIGHTS:
                weight = WEIGHTS[way](logits.detach().softmax(2), self.inputs)
                weight = weight / (weight * self.unlabeled).sum(1, keepdim=True)
                loss = loss + lam * ((weight - 1) * self.unlabeled * tsallis_entropy(logits)).sum(1)
            self.adam.step(self.way.gradients(loss, self.parameters, self.leaves))
            return [loss.detach(), *parts]

    return Adaptive


def measure(name: str, labels: int, draws: int, way: str, balance: float) -> pd.DataFrame:
    """The test accuracy at the last epoch, one row for each draw."""
    variants = load_study("label-rates-small").variants
    if way == "plain":
        trial = variants["plain"].trial(name, "gcn")
    else:
        trial = replace(variants["ts-0.25"].trial(name, "gcn"), balance=balance)
    if way == LEARNED:
        trial = replace(trial, lam=0.0, lam_max=1.0)
    usual = full_batch._population_kind  # the one place that knows which population trains a trial
    if way in SCHEDULES or way in WEIGHTS:
        full_batch._population_kind = lambda _: adaptive(way)
    try:
        trials = [replace(trial, split=split, seed=seed) for split, seed in runs(name, f"few-{labels}", draws)]
        records = train(load_dataset(name), trials, device="cpu", progress=False)
    finally:
        full_batch._population_kind = usual
    rows = [{"dataset": name, "labels": labels, "way": way, "balance": balance, "draw": t.seed} for t in trials]
    return pd.DataFrame(rows).assign(test_last=[round(record.metrics["test_last"], 4) for record in records])


def table(frame: pd.DataFrame) -> str:
    """The paired gain of every way over plain training, and of that over a constant λ with the same balance, as Markdown."""
    cells = list(dict.fromkeys(zip(frame["dataset"], frame["labels"], strict=True)))
    scores = frame.set_index(["dataset", "labels", "way", "balance", "draw"])["test_last"].sort_index() * 100
    head = ["λ", "balance", *(f"{dataset_title(dataset)}, {labels}" for dataset, labels in cells)]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for balance in (0.25, 0.0):
        for way in WAYS:
            row = [way, f"{balance:g}"]
            for cell in cells:
                own, plain = (
                    scores.loc[cell].loc[key] if key in scores.loc[cell] else None
                    for key in ((way, balance), ("plain", 0.0))
                )
                row.append("" if own is None or plain is None else gain(own, plain))
                if way != "constant" and own is not None:
                    row[-1] += f" ({gain(own, scores.loc[cell].loc['constant', balance])})"
            if any(row[2:]):
                lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def main(
    datasets: Annotated[str, typer.Option(help="Names, as cora,citeseer.")] = "citeseer,cora",
    labels: Annotated[str, typer.Option(help="Labels for each class, as 5,20.")] = "5,20",
    draws: Annotated[int, typer.Option(help="How many draws of each.")] = 10,
    out: Annotated[Path | None, typer.Option(help="Where to append one row per run, as CSV.")] = None,
    show: Annotated[Path | None, typer.Option(help="Run nothing: print the table of this file.")] = None,
) -> None:
    """Train every way on the same draws and print the paired gains."""
    if show:
        print(table(pd.read_csv(show)))
        return
    done = pd.read_csv(out) if out is not None and out.exists() else pd.DataFrame()
    known = (
        set(done[["dataset", "labels", "way", "balance"]].itertuples(index=False, name=None)) if len(done) else set()
    )
    for name in datasets.split(","):
        for number in map(int, labels.split(",")):
            for way, balance in (("plain", 0.0), *((way, balance) for way in WAYS for balance in (0.25, 0.0))):
                if (name, number, way, balance) in known:
                    continue
                rows = measure(name, number, draws, way, balance)
                if out is not None:
                    rows.to_csv(out, mode="a", header=not out.exists(), index=False)
                done = pd.concat([done, rows]) if len(done) else rows
    print(table(done))


if __name__ == "__main__":
    typer.run(main)
