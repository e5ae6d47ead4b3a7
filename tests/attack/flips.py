"""Files of a store, and a saved model, with one bit flipped: what is read of them, and what is said."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from sharpen.errors import InputError
from sharpen.fitting.saved import load_fitted
from sharpen.store import Store
from sharpen.trial import Record, Trial


@dataclass
class Tally:
    """What came of flips.

    Args:
        flips: How many there were.
        named: How often the file was named as damaged, and nothing of it read.
        harmless: How often all values were the right ones all the same.
        wrong: How often a value was another.
        tracebacks: What was raised that is no sentence.
    """

    flips: int = 0
    named: int = 0
    harmless: int = 0
    wrong: int = 0
    tracebacks: list[str] = field(default_factory=list)


def small_records() -> list[Record]:
    """Three trials with what a record may hold."""
    trials = [Trial(dataset="toy", lam=lam, seed=seed).resolve("mine") for seed, lam in enumerate((0.0, 0.25, 0.5))]
    traces = {"loss": np.linspace(1, 0, 4, dtype=np.float32), "val": np.full(4, 0.5, dtype=np.float32)}
    first = [
        Record(trial, 0.5 + 0.1 * i, 0.25, i, "ok", 0.5, "cpu", "float32", {"torch": "2"}, traces, members=3)
        for i, trial in enumerate(trials)
    ]
    nan = float("nan")
    return [*first[:2], replace(first[2], val=nan, test=nan, best_epoch=-1, status="diverged")]


def small_store(folder: Path, *, checksums: bool) -> Path:
    """A store of one file of records and one of traces; without checksums in their names, as earlier versions wrote them."""
    Store(folder).add(small_records(), keep_traces=True)
    if not checksums:
        for path in folder.glob("*/*.parquet"):
            path.rename(path.with_name(re.sub("-sha[0-9a-f]{16}", "", path.name)))
    return folder


def content(store: Store) -> list[object]:
    """All that a store gives, in a form that can be compared."""
    runs = store.runs()
    traces = store.traces(store.ids())
    return [
        sorted(map(repr, runs.to_dict("records"))),
        {id_: {name: values.tolist() for name, values in own.items()} for id_, own in traces.items()},
    ]


def flip_store(folder: Path, part: str, bits: Iterable[int]) -> Tally:
    """Flips bits of the one file of a part, one after another; the file is whole again in the end."""
    tally = Tally()
    (path,) = (folder / part).glob("*.parquet")
    whole, expected = path.read_bytes(), content(Store(folder))
    ids = Store(folder).ids()
    # Without the file: no record and so no trace, or records without traces.
    left = (set(), set()) if part == "records" else (set(ids), set())
    for bit in bits:
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        tally.flips += 1
        try:
            store = Store(folder)
            problems = [problem.path for problem in store.problems()]
            if problems == [path] and (store.ids(), store.traced_ids()) == left:
                tally.named += 1
            elif content(store) == expected:
                tally.harmless += 1
            else:
                tally.wrong += 1
        except Exception:
            tally.tracebacks.append(f"bit {bit} of {part}: {traceback.format_exc()[-800:]}")
    path.write_bytes(whole)
    return tally


def flip_model(path: Path, bits: Iterable[int]) -> Tally:
    """Flips bits of a saved model, one after another; the file is whole again in the end."""
    tally, whole = Tally(), path.read_bytes()
    for bit in bits:
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        tally.flips += 1
        try:
            load_fitted(path)
            tally.wrong += 1
        except InputError as error:
            tally.named += str(path) in str(error)
        except Exception:
            tally.tracebacks.append(f"bit {bit}: {traceback.format_exc()[-800:]}")
    path.write_bytes(whole)
    return tally
