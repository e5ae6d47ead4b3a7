"""The attack at length: runners killed, bits flipped, readers fed with what they do not expect; a table, and a JSON file.

    python benchmarks/attack.py --out docs/measurements/attack.json            # an hour or two on one core
    python benchmarks/attack.py --only flips,crafted --out attack.json         # parts of it; others in the file are kept

The short version, of the same code, is ``tests/attack``.
"""

from __future__ import annotations

import argparse
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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from sharpen.revision import revision  # noqa: E402
from tests.attack import crafted, flips, fuzz, harmful, kills  # noqa: E402

MOST_SECONDS, MOST_MEGABYTES, CHUNK = 30.0, 2000, 5000
# Kills, runners on one store, and whether at file events rather than at random moments.
CAMPAIGNS = ((400, 1, False), (300, 3, False), (200, 1, True), (100, 3, True))


def killed(folder: Path, scale: float) -> dict[str, Any]:
    """Campaigns of SIGKILL, added up."""
    total: dict[str, Any] = {
        "kills": 0,
        "studies": 0,
        "lost": 0,
        "doubled": 0,
        "different": 0,
        "tracebacks": 0,
        "untrusted": 0,
    }
    events: dict[str, int] = {}
    for number, (count, runners, at_events) in enumerate(CAMPAIGNS):
        place = folder / f"campaign-{number}"
        command = [
            sys.executable,
            kills.__file__,
            str(place),
            str(max(1, round(scale * count))),
            str(runners),
            str(number),
        ]
        done = subprocess.run(
            [*command, *["events"] * at_events], capture_output=True, text=True, check=True, env=one_thread()
        )
        found = json.loads(done.stdout.splitlines()[-1])
        for name in ("kills", "lost", "doubled", "different"):
            total[name] += found[name]
        total["studies"] += found["stores"]
        total["tracebacks"] += len(found["tracebacks"])
        total["untrusted"] += len(found["problems"])
        for name, times in found["events"].items():
            events[name] = events.get(name, 0) + times
        for text in found["tracebacks"][:3]:
            print(text, file=sys.stderr)
        print(
            f"{runners} runners, {'file events' if at_events else 'random moments'}: {found['kills']} kills",
            file=sys.stderr,
        )
        shutil.rmtree(place)
    return total | {"events": events}


def flipped(folder: Path, scale: float) -> dict[str, Any]:
    """Every bit of the files of a small store and of a saved model; and some of a store of before checksums."""
    total = {}
    for checksums in (True, False):
        store = flips.small_store(folder / f"store-{checksums}", checksums=checksums)
        for part in ("records", "traces"):
            (path,) = (store / part).glob("*.parquet")
            # Of files of before checksums, which are read again for every flip, a tenth.
            bits = range(0, 8 * path.stat().st_size, max(1, round((1 if checksums else 10) / scale)))
            name = f"{part}, {'with' if checksums else 'of before'} checksums"
            total[name] = _flips(flips.flip_store(store, part, bits))
            print(name, total[name], file=sys.stderr)
    path = folder / "model.safetensors"
    small_model(path)
    bits = range(0, 8 * path.stat().st_size, max(1, round(1 / scale)))
    total["a saved model"] = _flips(flips.flip_model(path, bits))
    return total


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
    for chunk in _chunks(files):
        paths = []
        for number, (name, data) in enumerate(chunk):
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
            total["seconds"], total["megabytes"] = (
                max(total["seconds"], line["seconds"]),
                max(total["megabytes"], line["megabytes"]),
            )
            if what == "tracebacks" or line["seconds"] > MOST_SECONDS or line["megabytes"] > MOST_MEGABYTES:
                keep = Path(tempfile.mkdtemp(prefix="attack-")) / Path(line["path"]).name
                shutil.copy(line["path"], keep)
                print(f"{keep}: {line}\n{done.stderr[-2000:]}", file=sys.stderr)
        shutil.rmtree(folder)
    return total


def _chunks(files: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    chunk: list[tuple[str, bytes]] = []
    for file in files:
        chunk.append(file)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def fuzzed(folder: Path, scale: float) -> dict[str, Any]:
    """A hundred thousand damaged files."""
    return read_all(folder, fuzz.cases(seed=0, count=round(100_000 * scale)), group=50)


def crafted_inputs(folder: Path, scale: float) -> dict[str, Any]:
    """Well-formed files that cannot be meant, and those that were made to eat all memory."""
    made = ((name, data) for _, name, data in crafted.inputs())
    bombs = ((case.file, case.make()) for case in harmful.crafted(large=scale >= 1))
    found = read_all(folder, made)
    return {"well-formed": found, "harmful": read_all(folder, bombs)}


PARTS: dict[str, Callable[[Path, float], dict[str, Any]]] = {
    "flips": flipped, "crafted": crafted_inputs, "kills": killed, "readers": fuzzed
}  # fmt: skip


def table(found: dict[str, Any]) -> Iterator[str]:
    """What was found, as Markdown."""
    yield "| attack | cases | lost, doubled or wrong | tracebacks | most seconds | most MB |"
    yield "|---|--:|--:|--:|--:|--:|"
    if "kills" in found:
        own = found["kills"]
        wrong = f"{own['lost']} / {own['doubled']} / {own['different']}"
        yield f"| SIGKILL, one and three runners | {own['kills']:,} | {wrong} | {own['tracebacks']} | | |"
    for name, own in found.get("flips", {}).items():
        if isinstance(own, dict):
            yield f"| one bit of {name} | {own['flips']:,} | {own['wrong']} | {own['tracebacks']} | | |"
    rows = {"damaged files": found.get("readers")} | {f"{k} files": v for k, v in found.get("crafted", {}).items()}
    for name, own in rows.items():
        if isinstance(own, dict):
            yield f"| {name} | {own['cases']:,} | | {own['tracebacks']} | {own['seconds']:.1f} | {own['megabytes']:,} |"


def main() -> None:
    """Runs the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="some of " + ", ".join(PARTS))
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the cases, such as 0.01")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file; what it holds of other parts is kept")
    options = parser.parse_args()
    found = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in options.only.split(","):
        start = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="attack-") as folder:
            found[name] = PARTS[name](Path(folder) / "work", options.scale)
        found["took"] = found.get("took", {}) | {name: round(time.perf_counter() - start)}
        found |= {"revision": revision(), "machine": f"{platform.machine()}, {os.cpu_count()} cores"}
        options.out.write_text(json.dumps(found, indent=2) + "\n")
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
