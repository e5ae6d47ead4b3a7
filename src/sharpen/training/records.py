"""From a trained population to records."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import torch

from sharpen.models.registry import model_info
from sharpen.training.members import Results
from sharpen.trial import Record, Trial


def make_records(
    trials: list[Trial],
    results: Results,
    with_logits: bool,
    seconds: float,
    way: str = "fused",
    digest: str | None = None,
) -> list[Record]:
    """The records of a population's trials; whoever asked for them says on what they ran."""
    return [
        Record(
            trial=trial,
            val=float(results.val[r]),
            test=float(results.test[r]),
            best_epoch=int(results.best_epoch[r]),
            status="ok" if results.alive[r] else "diverged",
            seconds=seconds / len(trials),
            device="",
            precision="",
            versions=versions(),
            traces={name: values[:, r].copy() for name, values in results.traces.items()},
            logits=results.logits[r] if with_logits else None,
            weights={name: weight[r].copy() for name, weight in results.weights.items()},
            way=way,
            model_digest=digest,
            metrics={name: float(values[r]) for name, values in results.metrics.items()},
        )
        for r, trial in enumerate(trials)
    ]


def way_note(record: Record) -> str:
    """What to say of a way of training that is not the fastest; empty where there is nothing to say.

    >>> way_note(Record(Trial(), 0.8, 0.7, 1, "ok", 0.5, "cpu", "float32", way="loop: it branches on a value"))
    'runs of GCN are trained one after another, not as one batch: it branches on a value'
    """
    name, _, why = record.way.partition(": ")
    if not why:
        return ""
    how = "one after another, not as one batch" if name == "loop" else "as one batch, but not captured as a CUDA graph"
    return f"runs of {model_info(record.trial.model).title} are trained {how}: {why}"


@cache
def versions() -> dict[str, str]:
    """Of this package and of what it stands on, by name.

    >>> versions()["torch"] == torch.__version__
    True
    """
    try:
        own = version("graph-sharpen")
    except PackageNotFoundError:  # run from a source tree
        own = "source"
    return {"sharpen": own, "torch": torch.__version__, "python": platform.python_version()}
