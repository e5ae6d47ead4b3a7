"""The attack at length: runners killed, bits flipped, readers fed with what they do not expect; a table, and a JSON file.

    python benchmarks/attack.py --out docs/measurements/attack.json                       # half an hour on one core
    python benchmarks/attack.py --only flips,crafted --out attack.json                    # parts of it
    python benchmarks/attack.py --share 1/2 --out attack.json                             # every second unit of work

The work is done in units, and the file is written after each of them: those that are in it are not done again, unless the code has
changed since. Several processes, each with its share, may write to one file. The short version is ``tests/attack``.
"""

from __future__ import annotations

import argparse
import fcntl
import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from sharpen.revision import revision  # noqa: E402
from tests.attack import crafted, flips, fuzz, harmful, kills  # noqa: E402

MOST = {"seconds": 30.0, "megabytes": 2000}
CHUNK = 5000
# Kills, runners on one store, and whether at file events rather than at random moments.
CAMPAIGNS = ((400, 1, False), (300, 3, False), (200, 1, True), (100, 3, True))
KILLS, DAMAGED, FURTHER = 50, 100_000, 20_000

Unit = Callable[[Path], dict[str, Any]]


def killed(scale: float) -> Iterator[tuple[str, Unit]]:
    """Campaigns of SIGKILL."""
    for number, (count, runners, at_events) in enumerate(CAMPAIGNS):
        many = max(1, round(scale * count))
        for first in range(0, many, KILLS):
            arguments = [
                str(min(KILLS, many - first)),
                str(runners),
                str(1000 * number + first),
                *["events"] * at_events,
            ]
            name = f"kills, {runners} runners, {'file events' if at_events else 'random moments'}, from {first}"
            yield name, partial(_campaign, arguments)


def _campaign(arguments: list[str], folder: Path) -> dict[str, Any]:
    command = [sys.executable, kills.__file__, str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=one_thread())
    found = json.loads(done.stdout.splitlines()[-1])
    for text in found["tracebacks"][:3]:
        print(text, file=sys.stderr)
    lists = ("tracebacks", "problems", "leftovers")
    return found | {name: len(found[name]) for name in lists}


def flipped(scale: float) -> Iterator[tuple[str, Unit]]:
    """Every bit of the files of a small store and of a saved model; and some of a store of before checksums."""
    for checksums, part in itertools.product((True, False), ("records", "traces")):
        yield (
            f"flips, {part}, {'with' if checksums else 'of before'} checksums",
            partial(_flips_of_store, checksums, part, scale),
        )
    yield "flips, a saved model", partial(_flips_of_model, scale)


def _flips_of_store(checksums: bool, part: str, scale: float, folder: Path) -> dict[str, Any]:
    store = flips.small_store(folder, checksums=checksums)
    (path,) = (store / part).glob("*.parquet")
    # Of files of before checksums, which are read again for every flip, a tenth.
    bits = range(0, 8 * path.stat().st_size, max(1, round((1 if checksums else 10) / scale)))
    return _flips(flips.flip_store(store, part, bits))


def _flips_of_model(scale: float, folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True)
    path = folder / "model.safetensors"
    small_model(path)
    return _flips(flips.flip_model(path, range(0, 8 * path.stat().st_size, max(1, round(1 / scale)))))


def _flips(tally: flips.Tally) -> dict[str, int]:
    for text in tally.tracebacks[:3]:
        print(text, file=sys.stderr)
    return asdict(tally) | {"tracebacks": len(tally.tracebacks)}


def small_model(path: Path) -> None:
    """A classifier of two triangles, saved."""
    import torch

    from sharpen import Graph, NodeClassifier

    triangles = Graph(x=torch.eye(8), edge_index=[[0, 1, 2, 4, 5, 6], [1, 2, 0, 5, 6, 4]], y=[0, 0, 0, -1, 1, 1, 1, -1])
    settings = {"model": "gcn", "lam": 0.25, "balance": 0, "hidden": 2, "layers": 1, "epochs": 2, "budget": 0.01}
    NodeClassifier(**settings, ensemble=False, device="cpu").fit(triangles).save(path)


def one_thread() -> dict[str, str]:
    """This process's environment, with one thread for each process that is started in it."""
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


def read_all(folder: Path, files: Iterable[tuple[str, bytes]], group: int = 1) -> dict[str, Any]:
    """What comes of reading files, so many of them in each process that is forked for them."""
    total: dict[str, Any] = {
        "cases": 0,
        "read": 0,
        "refused": 0,
        "tracebacks": 0,
        "unnamed": 0,
        "seconds": 0.0,
        "megabytes": 0,
    }
    paths = []
    for number, (name, data) in enumerate(files):
        place = folder / str(number)
        place.mkdir(parents=True)
        (place / "nodes.csv").write_bytes(harmful.NODES)
        (place / name).write_bytes(data)
        paths.append(str(place / name))
    command = [sys.executable, str(ROOT / "tests" / "attack" / "child.py"), str(group), *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=one_thread())
    for line in map(json.loads, done.stdout.splitlines()):
        outcome = line["outcome"]
        total["cases"] += 1
        what = "tracebacks" if outcome.startswith("traceback") else "read" if outcome == "read" else "refused"
        total[what] += 1
        total["unnamed"] += what == "refused" and str(folder) not in outcome
        for name in MOST:
            total[name] = max(total[name], line[name])
        if what == "tracebacks" or any(line[name] > most for name, most in MOST.items()):
            keep = Path(tempfile.mkdtemp(prefix="attack-")) / Path(line["path"]).name
            shutil.copy(line["path"], keep)
            print(f"{keep}: {line}\n{done.stderr[-2000:]}", file=sys.stderr)
    return total


def fuzzed(scale: float) -> Iterator[tuple[str, Unit]]:
    """A hundred thousand damaged files, and more of other kinds; each unit has its own seed."""
    for kind, make, count in (("", fuzz.cases, DAMAGED), (" further", fuzz.further_cases, FURTHER)):
        for first in range(0, round(count * scale), CHUNK):
            many = min(CHUNK, round(count * scale) - first)
            yield f"readers,{kind} from {first}", partial(_fuzzed, make, first, many)


def _fuzzed(
    make: Callable[[int, int], Iterable[tuple[str, bytes]]], seed: int, count: int, folder: Path
) -> dict[str, Any]:
    return read_all(folder, make(seed, count), group=500)


def crafted_inputs(scale: float) -> Iterator[tuple[str, Unit]]:
    """Well-formed files that cannot be meant, and those that were made to eat all memory."""
    yield "crafted, well-formed", lambda folder: read_all(folder, ((name, data) for _, name, data in crafted.inputs()))
    bombs = harmful.crafted(large=scale >= 1)
    yield "crafted, harmful", lambda folder: read_all(folder, ((case.file, case.make()) for case in bombs))


PARTS = {"flips": flipped, "crafted": crafted_inputs, "kills": killed, "readers": fuzzed}


def table(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """What was found, as Markdown."""
    yield "| attack | cases | lost, doubled or wrong | tracebacks | refused without a name | most CPU seconds | most MB |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for runners in (1, 3):
        for when in ("random moments", "file events"):
            if own := _added(found, f"kills, {runners} runners, {when}"):
                wrong = f"{own['lost']} / {own['doubled']} / {own['different']}"
                who = "one runner" if runners == 1 else "three runners"
                yield f"| SIGKILL, {who}, at {when} | {own['kills']:,} | {wrong} | {own['tracebacks']} | | | |"
    for name in found:
        if name.startswith("flips, "):
            own = found[name]
            silent = own["flips"] - own["named"] - own["harmless"] - own["wrong"] - own["tracebacks"]
            what = f"{name[7:]} | {own['flips']:,} | {own['wrong']}"
            yield f"| one bit of {what} | {own['tracebacks']} | {silent} | | |"
    kinds = {
        "damaged files": "readers, from",
        "damaged splits, studies and archives": "readers, further",
        "well-formed files": "crafted, well-formed",
        "harmful files": "crafted, harmful",
    }
    for name, units in kinds.items():
        if own := _added(found, units):
            most = f"{own['seconds']:.1f} | {own['megabytes']:,}"
            yield f"| {name} | {own['cases']:,} | | {own['tracebacks']} | {own['unnamed']} | {most} |"


def _added(found: dict[str, dict[str, Any]], units: str) -> dict[str, Any]:
    """The numbers of all units whose names begin so: added up, but the most of what is limited."""
    total: dict[str, Any] = {}
    for name, own in found.items():
        for key, value in own.items() if name.startswith(units) else ():
            if isinstance(value, int | float):
                total[key] = max(total.get(key, 0), value) if key in MOST else total.get(key, 0) + value
    return total


def _kept(path: Path, name: str = "", found: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """What the file holds, after a unit is added to it."""
    with open(path.with_name(f".{path.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = json.loads(path.read_text()) if path.exists() else {}
        if found is not None:
            kept[name] = found
            path.with_name(f".{path.name}.tmp").write_text(json.dumps(kept, indent=2) + "\n")
            path.with_name(f".{path.name}.tmp").replace(path)
    return kept


def main() -> None:
    """Does the units that are asked for and not yet in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="some of " + ", ".join(PARTS))
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the cases, such as 0.01")
    parser.add_argument("--share", default="1/1", help="which of how many shares of the units, such as 1/2")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file; what it holds of other units is kept")
    options = parser.parse_args()
    share, shares = map(int, options.share.split("/"))
    units = [unit for name in options.only.split(",") for unit in PARTS[name](options.scale)]
    about = {"revision": revision(), "machine": f"{platform.machine()}, {os.cpu_count()} cores", "scale": options.scale}
    for name, work in units[share - 1 :: shares]:
        done = _kept(options.out).get(name, {})
        if all(done.get(key) == value for key, value in about.items()):
            continue
        start = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="attack-") as folder:
            found = work(Path(folder) / "work")
        _kept(options.out, name, found | about | {"took": round(time.perf_counter() - start)})
        print(f"{name}: {found}", file=sys.stderr, flush=True)
    print("\n".join(table(_kept(options.out))))


if __name__ == "__main__":
    main()
