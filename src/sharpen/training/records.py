"""From a trained population to records."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sharpen.models.registry import model_info
from sharpen.training.device import describe_device
from sharpen.training.members import Call, Members
from sharpen.trial import Record, Trial


def make_records(
    call: Call,
    population: Members,
    trials: Sequence[Trial],
    start: float,
    with_logits: bool = True,
    way: str = "fused",
    digest: str | None = None,
) -> list[Record]:
    """The records of a population whose training began at ``start``, by the clock of performance."""
    test, metrics = population.results()
    seconds = time.perf_counter() - start
    alive = population.alive.cpu().numpy()

    def known(values: Tensor, otherwise: float = math.nan) -> list[Any]:
        """Of every run; of those that diverged, something else."""
        return np.where(alive, values.cpu().numpy(), otherwise).tolist()

    val, tested, best_epoch = known(population.best_val), known(test), known(population.best_epoch, -1)
    measured = {name: known(values) for name, values in metrics.items()}
    names = population.STEP + population.SCORES
    traces = dict(zip(names, population.traces.cpu().numpy(), strict=True))
    logits = population.best_logits.cpu().numpy()
    weights = {name: weight.cpu().numpy() for name, weight in population.best_weights.items()}
    return [
        Record(
            trial=trial,
            val=val[r],
            test=tested[r],
            best_epoch=best_epoch[r],
            status="ok" if alive[r] else "diverged",
            seconds=seconds / len(trials),
            device=describe_device(call.device),
            precision=call.precision,
            versions=versions(),
            traces={name: values[:, r].copy() for name, values in traces.items()},
            logits=logits[r] if with_logits else None,
            weights={name: weight[r].copy() for name, weight in weights.items()},
            members=len(trials),
            way=way,
            model_digest=digest,
            metrics={name: values[r] for name, values in measured.items()},
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
