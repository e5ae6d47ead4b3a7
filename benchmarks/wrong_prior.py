"""What a wrong prior costs: the share of one class doubled or halved, beside the true proportions and none, on the same draws.

    python benchmarks/wrong_prior.py --out docs/measurements/wrong-prior-cpu.csv         # Cora, CiteSeer and PubMed
    python benchmarks/wrong_prior.py --show docs/measurements/wrong-prior-cpu.csv        # what was written before

The network and the draws are those of the study label-rates-small. Draw i is wrong about class i modulo the number of classes; the
other shares are scaled so that all sum to 1. With --out, the rows of some draws are appended as soon as they are trained, and what
the file holds is not trained again.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from sharpen import Trial, load_dataset, train
from sharpen.evaluation import paired_difference
from sharpen.prior import proportions
from sharpen.report.names import dataset_title
from sharpen.studies import load_study
from sharpen.studies.protocol import runs

FACTORS = {"one class doubled": 2.0, "one class halved": 0.5}
STEP = 10


def wrong(shares: list[float], place: int, factor: float) -> str:
    """The proportions with one class off by a factor, the others scaled.

    >>> wrong([0.2, 0.3, 0.5], 0, 2.0)
    '0.4,0.225,0.375'
    """
    share = min(factor * shares[place], 0.9)
    rest = (1 - share) / (1 - shares[place])
    return ",".join(f"{share if c == place else rest * own:.12g}" for c, own in enumerate(shares))


def variants(name: str, true: list[float], place: int, strong: bool) -> dict[str, Trial]:
    """Every way to train a draw that is wrong about one class."""
    small = load_study("label-rates-small").variants
    known = small["true-prior-strong" if strong else "true-prior"].trial(name, "gcn")
    told = {label: replace(known, prior=wrong(true, place, factor)) for label, factor in FACTORS.items()}
    return {
        "plain": small["plain"].trial(name, "gcn"),
        "balance": small["balance-0.25"].trial(name, "gcn"),
        "true prior": known,
        **told,
    }


def measure(name: str, labels: int, first: int, draws: int, strong: bool) -> pd.DataFrame:
    """The test accuracy of every variant at the last epoch, one row for each run."""
    data = load_dataset(name)
    true = proportions("oracle", data.graph.num_classes, [], data.graph.y.numpy())
    rows, trials = [], []
    for split, seed in runs(name, f"few-{labels}", first + draws)[first:]:
        for label, trial in variants(name, true, seed % len(true), strong).items():
            rows.append({"dataset": name, "labels": labels, "draw": seed, "variant": label})
            trials.append(replace(trial, split=split, seed=seed))
    records = train(data, trials, device="cpu", progress=False)
    return pd.DataFrame(rows).assign(test_last=[round(record.metrics["test_last"], 4) for record in records])


def table(frame: pd.DataFrame) -> str:
    """As Markdown: plain training, what balance and true prior gain over it, and what a wrong prior loses against the true one."""
    head = [
        "graph, labels per class",
        "draws",
        "plain",
        "balance",
        "true prior",
        *(f"{name}: loss" for name in FACTORS),
    ]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for (dataset, labels), own in frame.groupby(["dataset", "labels"], sort=False):
        wide = own.pivot(index="draw", columns="variant", values="test_last").dropna() * 100
        row = [f"{dataset_title(dataset)}, {labels}", str(len(wide)), f"{wide['plain'].mean():.1f}"]
        row += [gain(wide[name], wide["plain"]) for name in ("balance", "true prior")]
        row += [gain(wide[name], wide["true prior"]) for name in FACTORS]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def gain(own: pd.Series, other: pd.Series) -> str:
    """A paired difference with half of its 95 % t interval.

    >>> gain(pd.Series([3.0, 4.0]), pd.Series([1.0, 1.0]))
    '+2.5 ± 6.4'
    """
    found = paired_difference(own.to_numpy(), other.loc[own.index].to_numpy(), resamples=0)
    low, high = found.t_interval or (found.difference, found.difference)
    return f"{found.difference:+.1f} ± {(high - low) / 2:.1f}".replace("-", "−")


def main(
    datasets: Annotated[str, typer.Option(help="Names, as cora,citeseer.")] = "cora,citeseer,pubmed",
    labels: Annotated[str, typer.Option(help="Labels for each class, as 5,20.")] = "5,20",
    draws: Annotated[int, typer.Option(help="How many draws of each.")] = 20,
    strong: Annotated[bool, typer.Option(help="λ = 0.5 and balance 3 in place of 0.25 and 0.25.")] = False,
    out: Annotated[Path | None, typer.Option(help="Where to append one row per run, as CSV.")] = None,
    show: Annotated[list[Path] | None, typer.Option(help="Run nothing: print the table of these files.")] = None,
) -> None:
    """Train every variant on the same draws and print the paired gains."""
    if show:
        print(table(pd.concat([pd.read_csv(path) for path in show])))
        return
    columns = ["dataset", "labels", "draw"]
    done = pd.read_csv(out) if out is not None and out.exists() else pd.DataFrame(columns=columns)
    for first in range(0, draws, STEP):
        for name in datasets.split(","):
            for number in map(int, labels.split(",")):
                if ((done[columns] == [name, number, first]).all(axis=1)).any():
                    continue
                rows = measure(name, number, first, min(STEP, draws - first), strong)
                if out is not None:
                    rows.to_csv(out, mode="a", header=not out.exists(), index=False)
                done = pd.concat([done, rows]) if len(done) else rows
    print(table(done))


if __name__ == "__main__":
    typer.run(main)
