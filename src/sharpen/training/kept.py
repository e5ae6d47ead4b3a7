"""Finished runs of a command that is not finished: one file for each population, so that the same command goes on after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sharpen.errors import InputError
from sharpen.training.checkpoint import checkpoint_path, read_checkpoint, write_checkpoint
from sharpen.trial import Record, Trial

_SCALARS = (
    "val", "test", "best_epoch", "status", "seconds", "device", "precision", "versions", "members", "way", "metrics",
)  # fmt: skip
_ENDING = ".finished.safetensors"


def keep_records(folder: Path, records: Sequence[Record], about: Mapping[str, Any]) -> None:
    """Writes the records of a population, with class scores and traces; whole or not at all.

    Args:
        folder: Where to.
        records: They share an architecture, so that their arrays can be stacked.
        about: What the runs depend on beside their trials.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> keep_records(folder, [Record(Trial(seed=3), 0.8, 0.7, 1, "ok", 0.5, "cpu", "float32")], {"graph": "a"})
    >>> [record.test for record in kept_records(folder, {"graph": "a"}).values()], kept_records(folder, {"graph": "b"})
    ([0.7], {})
    """
    arrays: dict[str, Any] = {
        f"traces.{name}": np.stack([record.traces[name] for record in records]) for name in records[0].traces
    }
    if all(record.logits is not None for record in records):
        arrays["logits"] = np.stack([record.logits for record in records if record.logits is not None])
    scalars = [
        {name: getattr(record, name) for name in _SCALARS}
        | {"trial": asdict(record.trial), "model_digest": record.model_digest}
        for record in records
    ]
    path = checkpoint_path(folder, [record.trial for record in records]).with_suffix(_ENDING)
    state = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in arrays.items()}
    write_checkpoint(path, state, {**about, "records": scalars})


def kept_records(folder: Path, about: Mapping[str, Any]) -> dict[str, Record]:
    """The records that were kept for the same thing, by the ids of their trials; what cannot be read is as if it were not there."""
    found: dict[str, Record] = {}
    for path in sorted(folder.glob(f"*{_ENDING}")):
        try:
            arrays, written = read_checkpoint(path, about)
            records = [
                Record(
                    **{name: each[name] for name in (*_SCALARS, "model_digest")},
                    trial=Trial(**each["trial"]),
                    traces={name[7:]: value[r].numpy() for name, value in arrays.items() if name.startswith("traces.")},
                    logits=arrays["logits"][r].numpy() if "logits" in arrays else None,
                )
                for r, each in enumerate(written["records"])
            ]
        except (InputError, KeyError, TypeError, ValueError, IndexError):
            continue
        found |= {record.trial.id: record for record in records}
    return found
