"""Runners of one store that are killed with SIGKILL, at random moments or at every file event; and what is left of their records.

A script and not a test: it forks its runners from a process that has imported everything and computed nothing, so that a start
takes milliseconds. ``python kills.py FOLDER KILLS RUNNERS SEED [events]`` prints one JSON object.
"""

from __future__ import annotations

import builtins
import io
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet  # noqa: F401  # before the first fork, as all that takes long to import
import torch.fx.experimental.symbolic_shapes  # noqa: F401

from sharpen.datasets import load_dataset
from sharpen.store import Store
from sharpen.studies import load_study, runner

STUDY = """\
title: Killed again and again
datasets: [digits]
models: [gcn]
runs: 4
traces: true
trial: {hidden: 4, layers: 1, epochs: 2, dropout: 0.2}
variants:
  baseline: {lam: 0}
  ts-{lam}: {lam: [0.1, 0.2, 0.3, 0.4, 0.5]}
baseline: baseline
"""
SCORES = ["val", "test", "best_epoch", "status", "rerun"]


@dataclass
class Tally:
    """What came of a campaign.

    Args:
        kills: How many runners were killed before they were done.
        stores: How many studies were finished, each in a store of its own.
        lost: Records that were there and are not, or that never came.
        doubled: Trials with more than one record.
        different: Records or traces that are not those of an undisturbed runner.
        tracebacks: What runners that were not killed ended with.
        problems: Files that were not trusted.
        leftovers: What is neither a record nor a trace when all is done.
        events: By file event, how often a runner was killed at it.
    """

    kills: int = 0
    stores: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0
    tracebacks: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    events: dict[str, int] = field(default_factory=dict)


def run_study(study: Path, store: Path) -> None:
    """A runner, until its study is done; another runner's claims are waited for."""
    while True:
        summary = runner.run(load_study(study), Store(store), device="cpu", max_members=2)
        if not summary.elsewhere:
            return
        time.sleep(0.02)


def forked(study: Path, store: Path, log: Path, die: Callable[[], None] | None = None) -> int:
    """A runner in a process of its own."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        if die is not None:
            die()
        run_study(study, store)
        code = 0
    except BaseException:
        log.write_text(traceback.format_exc())
    os._exit(code)


def at_event(number: int, after: bool, note: Path) -> Callable[[], None]:
    """Kills its own process at one of its file events: a file opened to be written, synced, linked, renamed, removed or touched."""
    seen = 0

    def watched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def event(*args: Any, **options: Any) -> Any:
            nonlocal seen
            mode = args[1] if len(args) > 1 else options.get("mode", "r")
            if name == "open" and not (isinstance(mode, str) and set(mode) & set("wax+")):
                return real(*args, **options)
            mine = seen == number
            seen += 1
            if mine:
                handle = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                os.write(handle, f"{name}\n".encode())
                os.close(handle)
            if mine and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*args, **options)
            if mine:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return event

    def watch() -> None:
        for name in ("fsync", "link", "unlink", "replace", "rename", "utime", "mkdir"):
            setattr(os, name, watched(name, getattr(os, name)))
        builtins.open = io.open = watched("open", io.open)  # type: ignore[assignment]

    return watch


def content(store: Path) -> tuple[pd.DataFrame, dict[str, dict[str, np.ndarray]]]:
    """The records of a store by id, and the traces."""
    kept = Store(store)
    return kept.runs().set_index("id"), kept.traces(kept.ids())


def compare(tally: Tally, reference: Path, store: Path) -> None:
    """A finished store with one that nobody disturbed."""
    (expected, expected_traces), (found, traces) = content(reference), content(store)
    tally.lost += len(expected.index.difference(found.index)) + len(expected_traces.keys() - traces.keys())
    tally.doubled += int(found.index.duplicated().sum())
    once = found[~found.index.duplicated()].reindex(expected.index)
    tally.different += int((once[SCORES] != expected[SCORES]).any(axis=1).sum())
    for id_, own in expected_traces.items():
        other = traces.get(id_, {})
        tally.different += any(not np.array_equal(values, other.get(name)) for name, values in own.items())
    tally.problems += [problem.line for problem in Store(store).problems()]
    for path in store.rglob("*"):
        if path.is_file() and path.suffix != ".parquet" and path.parent.name in ("records", "traces"):
            tally.leftovers.append(path.name)
    tally.stores += 1


def campaign(folder: Path, kills: int, runners: int, seed: int, events: bool) -> Tally:
    """Studies that are begun, killed and resumed until so many runners have been killed."""
    folder.mkdir(parents=True, exist_ok=True)
    study = folder / "study.yaml"
    study.write_text(STUDY)
    digits = load_dataset("digits")
    runner.load_dataset = lambda name, root=None: digits  # type: ignore[assignment]
    chance, tally, start = random.Random(seed), Tally(), time.perf_counter()
    os.waitpid(forked(study, folder / "reference", folder / "reference.log"), 0)
    whole = time.perf_counter() - start
    turn = 0
    while tally.kills < kills:
        store, before = folder / f"store-{tally.stores}", 0
        flying: dict[int, tuple[float, float]] = {}
        done = False
        while not done or flying:
            while len(flying) < runners and not done:
                die = None
                if events and tally.kills < kills:
                    die = at_event(chance.randrange(120), chance.random() < 0.5, folder / "events.txt")
                log = folder / f"log-{turn}.txt"
                turn += 1
                begun = time.perf_counter()
                flying[forked(study, store, log, die)] = (begun, begun + chance.uniform(0.02, whole))
            for process, (begun, moment) in list(flying.items()):
                if not events and tally.kills < kills and time.perf_counter() >= moment:
                    os.kill(process, signal.SIGKILL)
                ended, status = os.waitpid(process, os.WNOHANG)
                if not ended:
                    continue
                del flying[process]
                if os.WIFSIGNALED(status):
                    tally.kills += 1
                    count = len(Store(store).ids())
                    tally.lost += max(0, before - count)
                    before = max(before, count)
                else:
                    # How long a study takes depends on what else the machine does; kills are to fall within it.
                    whole, done = 0.5 * whole + 0.5 * (time.perf_counter() - begun), True
            time.sleep(0.002)
        compare(tally, folder / "reference", store)
        (folder / "so-far.json").write_text(json.dumps(asdict(tally)))
    for log in folder.glob("log-*.txt"):
        tally.tracebacks.append(log.read_text()[-1500:])
    noted = folder / "events.txt"
    for name in noted.read_text().split() if noted.exists() else ():
        tally.events[name] = tally.events.get(name, 0) + 1
    return tally


if __name__ == "__main__":
    place, number, several, first = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    print(json.dumps(asdict(campaign(place, number, several, first, sys.argv[5:] == ["events"]))))
