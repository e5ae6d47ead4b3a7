"""Trains on two machines of a Ray cluster, both of them this one; kills a worker, a machine and a driver; prints what came of it.

A script and not a test: forking is safe only in a process that has computed nothing, Ray's settings must be in the environment
before it is imported, and torch takes seconds to import. ``python two_nodes.py FOLDER`` prints one JSON object.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet  # noqa: F401  # before the first fork, as all that takes long to import
import sklearn.datasets  # noqa: F401

from sharpen import NodeClassifier, Trial, load_dataset, train
from sharpen.cli import main
from sharpen.cluster import pool
from sharpen.cluster.connection import connected
from sharpen.cluster.parcel import Parcel, pack, unpack
from sharpen.cluster.task import Report
from sharpen.store import Store
from sharpen.studies import load_study, runner

STUDY = """\
title: Two nodes
datasets: [digits]
models: [gcn]
runs: 5
traces: true
trial: {hidden: 4, layers: 2, epochs: 12, dropout: 0.2}
variants:
  baseline: {lam: 0}
  ts: {lam: 0.5}
baseline: baseline
"""

folder = Path(sys.argv[-1])
study = folder / "two.yaml"
session = Path()  # where Ray keeps its files; made when the script runs, not when somebody imports it


def start(name: str, do: Callable[[], object]) -> int:
    """A process that is forked from this one, its output in a file of that name."""
    pid = os.fork()
    if pid:
        return pid
    with open(folder / f"{name}.txt", "ab", buffering=0) as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    code = 1
    try:
        do()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def end(pid: int) -> int:
    """How a process ended: its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def command(store: str, *options: str) -> Callable[[], None]:
    def do() -> None:
        sys.argv = ["sharpen", "study", "run", str(study), "--device", "cpu", "--store", str(folder / store)]
        sys.argv += ["--max-members", "2", *options]
        main()

    return do


def wait_for(what: Callable[[], object], seconds: float = 180) -> bool:
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def finished(name: str, part: str = "records") -> int:
    """How many populations a store holds, or the traces of how many."""
    return len(list((folder / name / part).glob("*.parquet")))


def command_lines(pids: Iterable[int]) -> list[str]:
    """What these processes were started as, or call themselves."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def descendants(pid: int) -> set[int]:
    """A process and all that it has started, and these in turn."""
    parent = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent[int(path.parent.name)] = int(path.read_text().rsplit(")", 1)[1].split()[1])
    found, more = set(), {pid}
    while more:
        found |= more
        more = {child for child, its in parent.items() if its in found} - found
    return found


def listening() -> set[str]:
    """The addresses on which this process and its descendants listen, as the system writes them."""
    sockets = set()
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            sockets |= {os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [row.split() for table in ("tcp", "tcp6") for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


def hold_cluster(until: int) -> None:
    """Two nodes, until the other end of a pipe is closed."""
    os.environ["RAY_TMPDIR"] = str(session)
    from ray.cluster_utils import Cluster

    size = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "node_ip_address": "127.0.0.1"}
    cluster = Cluster(initialize_head=True, head_node_args=size | {"include_dashboard": False})
    second = cluster.add_node(**size)
    content = {
        "address": cluster.address,
        "second": second.node_id,
        "raylet": second.all_processes["raylet"][0].process.pid,
    }
    temporary = folder / "cluster.tmp"
    temporary.write_text(json.dumps(content))
    temporary.rename(folder / "cluster.json")
    os.read(until, 1)
    cluster.shutdown()


def held_up(may_go_on: Callable[[], bool]) -> Callable[..., object]:
    """What takes the place of the task that trains: the same, but that half-way it waits until it may go on.

    So that a population is killed in the middle of it however fast or slow the machine is. It is defined in this script, and so
    travels to the workers as it is.
    """

    def train_half_way_and_wait(*arguments: object) -> object:
        from sharpen.cluster import task
        from sharpen.training.population import Population

        task._REPORT_SECONDS = 0.0
        begun, epoch = 0, Population.epoch

        def held(self: Population) -> None:
            nonlocal begun
            begun += 1
            while begun > self.epochs // 2 and not may_go_on():
                time.sleep(0.05)
            epoch(self)

        Population.epoch = held
        try:
            return task.train_population(*arguments)
        finally:
            Population.epoch = epoch

    return train_half_way_and_wait


class Killer:
    """Takes the place of the view of workers: kills one in mid-population, and then, in another, the second machine."""

    visible = True

    def __init__(self, cluster: dict) -> None:
        self._cluster = cluster
        self.worker = self.machine = 0

    def rest(self) -> None:
        pass

    def update(self, under_way: Mapping[int, tuple[str, str, Report]]) -> None:
        for node, what, report in under_way.values():
            print(f"{what} on {node}: {report.done} of {report.total}, attempt {report.attempt}", flush=True)
            if self.machine or not 0 < report.done < report.total or report.pid == self.worker:
                continue
            if not self.worker:
                self.worker = report.pid
                os.kill(self.worker, signal.SIGKILL)
            elif report.node == self._cluster["second"]:
                self.machine = self._cluster["raylet"]
                for part in (self.machine, report.pid):  # all of a lost machine is lost, at once
                    os.kill(part, signal.SIGKILL)
                (folder / "killed").touch()


def begin() -> None:
    """One population here."""
    stop = threading.Event()

    def say(line: str) -> None:
        if " runs in " in line:
            stop.set()

    runner.run(load_study(study), Store(folder / "ray"), device="cpu", max_members=2, stop=stop, say=say)


def lose_driver() -> None:
    """Never comes beyond the first population."""
    pool.train_population = held_up(lambda: not finished("lost"))
    command("lost", "--on", "ray")()


def drive() -> None:
    """A study whose workers are killed, then a search, over one connection."""
    import ray

    cluster = json.loads((folder / "cluster.json").read_text())
    ray.init(address=cluster["address"], log_to_driver=False)
    sent, put, view, killer = [], ray.put, pool.WorkersView, Killer(cluster)

    def counted(content: object) -> object:
        sent.append(put(content))
        return sent[-1]

    ray.put = counted
    pool.train_population = held_up((folder / "killed").exists)
    pool.WorkersView = lambda show: killer
    runner.run(
        load_study(study), Store(folder / "ray"), on="ray", device="cpu", max_members=2, progress=True, say=print
    )
    pool.WorkersView = view
    own = pack(load_dataset("digits").graph)
    parcel = ray.get(sent[0])
    found = {
        "killed": [bool(killer.worker), bool(killer.machine)],
        "sent": len(sent),
        "unchanged": all(any(np.array_equal(a, b) for b in parcel.arrays) for a in own.arrays),
        "writeable": ray.get(ray.remote(writeable).remote(sent[0])),
    }
    digits = load_dataset("digits").graph
    y = np.where(np.arange(digits.num_nodes) < 60, digits.y.numpy(), -1)
    here, there = (
        NodeClassifier("gcn", 0.25, balance=0, hidden=8, epochs=10, device="cpu", on=on).fit(digits, y)
        for on in ("here", "ray")
    )
    found["fit"] = float(np.abs(here.predict_proba(digits) - there.predict_proba(digits)).max())
    found["runs"] = [len(each.report_["candidates"]) for each in (here, there)]
    found["fit_sent"] = len(sent) - found["sent"]
    (folder / "drive.json").write_text(json.dumps(found))


def writeable(parcel: Parcel) -> bool:
    return any(array.flags.writeable for array in parcel.arrays)


def train_read_only() -> None:
    """In memory that cannot be written to: whoever tries is killed by the system."""
    parcel, arrays = pack(load_dataset("digits")), []
    for number, array in enumerate(parcel.arrays):
        np.save(folder / f"{number}.npy", array)
        arrays.append(np.load(folder / f"{number}.npy", mmap_mode="r"))
    trials = [Trial(model=model, hidden=4, epochs=2, lam=0.5) for model in ("mlp", "gcn", "sage", "gat")]
    trials += [
        Trial(model="gcn", hidden=4, epochs=2, lam_max=1.0),
        Trial(model="gcn", hidden=4, epochs=2, norm="batch"),
    ]
    train(unpack(replace(parcel, arrays=arrays)), trials, device="cpu", progress=False)


def look_at_a_cluster_of_ones_own() -> None:
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        del os.environ[name]
    os.environ["HOME"] = str(folder / "home")
    with connected("ray"):
        import ray

        mine = Path(ray.get_runtime_context().get_temp_dir()).parent
        found = {
            "folder": str(mine),
            "mode": oct(mine.stat().st_mode & 0o777),
            "listening": sorted(listening()),
            "token": [os.environ["RAY_AUTH_MODE"], len(os.environ["RAY_AUTH_TOKEN"])],
            "answer": ray.get(ray.remote(lambda: 6 * 7).remote()),
        }
        stranger = os.environ | {"RAY_AUTH_TOKEN": "0" * 64, "RAY_NUM_REDIS_GET_RETRIES": "1"}
        program = f"import ray; ray.init('{ray.get_runtime_context().gcs_address}'); print(ray.nodes())"
        found["stranger"] = os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-c", program], stranger)
    found["folder left"] = mine.exists()
    found["variables left"] = [
        name for name in os.environ if name.startswith("RAY_AUTH") or name.startswith("RAY_ENABLE")
    ]
    found["written home"] = (folder / "home").exists()
    (folder / "own.json").write_text(json.dumps(found))


def everything() -> dict[str, object]:
    os.environ |= {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # loopback only
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "ab" * 32,
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    results: dict[str, object] = {}
    reading, writing = os.pipe()

    def hold() -> None:
        os.close(writing)
        hold_cluster(reading)

    holder = start("cluster", hold)
    study.write_text(STUDY, encoding="utf-8")
    results["read only"] = end(start("read-only", train_read_only))
    results["here"] = end(start("here", command("here")))

    # Begun here, continued by a cluster that loses a worker and a machine.
    results["begun"] = end(start("begun", begin))
    results["begun populations"] = finished("ray")
    wait_for((folder / "cluster.json").exists)
    address = json.loads((folder / "cluster.json").read_text())["address"]
    results["drive"] = end(start("drive", drive))

    # Begun by a cluster, continued here after the driver was lost.
    os.environ["RAY_ADDRESS"] = address
    pid = start("driver", lose_driver)
    # Traces come after records, and a population without them is trained again.
    wait_for(lambda: finished("lost", "traces"))
    os.kill(pid, signal.SIGKILL)
    results["driver"] = end(pid)
    results["driver populations"] = finished("lost")
    results["its workers end"] = wait_for(
        lambda: not any("ray::digits gcn" in line for line in command_lines(descendants(holder))), 60
    )
    del os.environ["RAY_ADDRESS"]
    results["resumed"] = end(start("resumed", command("lost")))

    os.close(writing)
    results["cluster"] = end(holder)
    results["own"] = end(start("own", look_at_a_cluster_of_ones_own))
    own = json.loads((folder / "own.json").read_text())["folder"]
    everybody = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    results["left over"] = [line for line in command_lines(everybody) if str(session) in line or own in line]
    shutil.rmtree(session)
    return results


if __name__ == "__main__":
    # Sockets lie below it, whose paths may not be long.
    session = Path(tempfile.mkdtemp(prefix="sharpen-test-", dir="/tmp"))
    print(json.dumps(everything()))
