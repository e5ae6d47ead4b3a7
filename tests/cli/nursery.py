"""Runs ``sharpen study run`` in processes that are forked from this one, kills and interrupts them, and prints what came of it.

A script and not a test, because forking is safe only in a process that has computed nothing; and one script for all, because torch
takes seconds to import. ``python nursery.py FOLDER`` prints one JSON object.
"""

import contextlib
import functools
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet  # noqa: F401  # before the first fork, as all that takes long to import
import sklearn.datasets  # noqa: F401

from sharpen.cli import main
from sharpen.store import claims, part, store
from sharpen.studies import runner

STUDY = """\
title: Nursery
datasets: [digits]
models: [mlp, gcn]
runs: 10
trial: {hidden: 4, layers: 2, epochs: 3, dropout: 0.2}
variants:
  baseline: {lam: 0}
  ts-{lam}: {lam: [0.25, 0.5]}
baseline: baseline
"""

folder = Path(sys.argv[-1])
study = folder / "nursery.yaml"


def start(name: str, *options: str, before: Callable[[], None] = lambda: None) -> int:
    """A runner on the store of that name, its output in a file beside it."""
    pid = os.fork()
    if pid:
        return pid
    with open(folder / f"{name}.txt", "ab", buffering=0) as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell has its background processes ignore
    sys.argv = ["sharpen", "study", "run", str(study), "--device", "cpu", "--store", str(folder / name), *options]
    before()
    code = 1
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


def end(pid: int) -> int:
    """How a runner ended: its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def output(name: str) -> str:
    path = folder / f"{name}.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not what() and time.monotonic() < deadline:
        time.sleep(0.001)


def finished(name: str) -> int:
    """How many populations a store holds."""
    return len(list((folder / name / "records").glob("*.parquet")))


def kill_ten_times(name: str) -> list[int]:
    """At moments that neither this process nor the runner can foresee, some before anything is done."""
    codes = []
    for _ in range(10):
        more, before = random.randrange(4), finished(name)
        pid = start(name, "--max-members", "1")
        wait_for(lambda: finished(name) >= before + more)  # noqa: B023  # called at once
        time.sleep(random.uniform(0, 0.05 if more else 0.3))
        os.kill(pid, signal.SIGKILL)
        codes.append(end(pid))
    return codes


def die(*arguments: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_at_the_worst_points(name: str) -> list[int]:
    """While a file is written, before and after it gets its name, between traces and records, before the claim is given up."""

    def instead(owner: Any, name: str, do: Callable[..., Any]) -> Callable[[], None]:
        assert hasattr(owner, name), name  # else nothing would be killed
        return lambda: setattr(owner, name, do)

    write = store.Store._write

    def only_traces(self: store.Store, where: part.Part, *rest: Any) -> None:
        if where.folder.name == "records":
            die()
        write(self, where, *rest)

    points = (
        instead(part.os, "fsync", die),
        instead(part, "make_visible", die),
        instead(part, "_sync_folder", die),
        instead(store.Store, "_write", only_traces),
        instead(claims.Claim, "release", die),
    )
    return [end(start(name, "--max-members", "7", "--traces", before=point)) for point in points]


def interrupt(name: str, times: int) -> int:
    pid = start(name, "--max-members", "1")
    wait_for(lambda: " run in " in output(name))
    os.kill(pid, signal.SIGINT)
    if times > 1:
        wait_for(lambda: "Ending after" in output(name))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
    return end(pid)


def everything() -> dict[str, object]:
    study.write_text(STUDY, encoding="utf-8")
    random.seed(7)
    runner.load_dataset = functools.cache(runner.load_dataset)
    runner.load_dataset("digits", None)
    results: dict[str, object] = {}
    results["undisturbed"] = end(start("undisturbed", "--max-members", "1"))
    results["kills"] = kill_ten_times("killed")
    results["done when the killing ended"] = finished("killed")
    results["after the kills"] = end(start("killed", "--max-members", "1"))
    results["points"] = kill_at_the_worst_points("points")
    results["after the points"] = end(start("points", "--max-members", "7", "--traces"))
    both = [start("two", "--max-members", "2"), start("two", "--max-members", "3")]
    results["two"] = [end(pid) for pid in both]
    results["interrupted"] = interrupt("interrupted", 1)
    results["twice"] = interrupt("twice", 2)
    return results


if __name__ == "__main__":
    print(json.dumps(everything()))
