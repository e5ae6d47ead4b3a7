"""Where records come from and what they took: code, versions, dates, devices, seconds."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Cost:
    """What runs on one device took together.

    >>> Cost("NVIDIA H200", "tf32", 205, 36.0).seconds
    36.0
    """

    device: str
    precision: str
    runs: int
    seconds: float


@dataclass(frozen=True)
class Provenance:
    """Where records come from: code, versions, and when.

    Args:
        revisions, versions: every different one.
        first, last: when the first and the last record was made.
        runs: how many records each revision made, in the order of ``revisions``.

    >>> Provenance(("abc",), ("torch 2.11",), "2026-11-15", "2026-11-16").revisions
    ('abc',)
    """

    revisions: tuple[str, ...]
    versions: tuple[str, ...]
    first: str | None
    last: str | None
    runs: tuple[int, ...] = ()


def costs(frame: pd.DataFrame) -> tuple[Cost, ...]:
    """What runs took, by device and precision, the longest first; those that were made again for a trace count too.

    They are among the rows of :meth:`sharpen.store.Store.runs`, but not of its ``frame``.

    >>> costs(pd.DataFrame({"device": ["cpu"] * 2, "precision": "float32", "seconds": [1.5, 2.0]}))
    (Cost(device='cpu', precision='float32', runs=2, seconds=3.5),)
    """
    if frame.empty:
        return ()
    found = [
        Cost(str(device), str(precision), len(rows), float(rows["seconds"].sum()))
        for (device, precision), rows in frame.groupby(["device", "precision"])
    ]
    return tuple(sorted(found, key=lambda cost: -cost.seconds))


def provenance(frame: pd.DataFrame) -> Provenance:
    """The code, versions and dates of records."""

    def different(name: str) -> tuple[str, ...]:
        return tuple(sorted({str(value) for value in frame[name].dropna()})) if name in frame.columns else ()

    created, revisions = different("created"), different("revision")
    first, last = (created[0], created[-1]) if created else (None, None)
    runs = tuple(int((frame["revision"] == revision).sum()) for revision in revisions)
    return Provenance(revisions, different("versions"), first, last, runs)
