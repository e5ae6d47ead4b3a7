"""Studies and searches on a Ray cluster: the same records as here, whatever is lost on the way; and who else can reach it."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

import sharpen
from sharpen.cluster.connection import connected
from sharpen.errors import InputError
from sharpen.store import Store
from sharpen.studies import load_study
from sharpen.studies.runner import run

# Two nodes of a real cluster


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Ten trials: here; begun here and continued by a cluster that loses a worker and a machine; and the reverse."""
    if find_spec("ray") is None:
        pytest.skip("the package ray is not installed")
    if not Path("/proc/net/tcp").exists():
        pytest.skip("only on Linux can this test see processes and sockets")
    folder = tmp_path_factory.mktemp("two")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {"PYTHONPATH": str(Path(sharpen.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    script = Path(__file__).with_name("two_nodes.py")
    process = subprocess.Popen(
        [sys.executable, str(script), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=500)
    finally:  # whatever comes in between, what it has forked ends too, and with that Ray's processes
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, errors
    return folder, json.loads(output)


def text(folder: Path, name: str) -> str:
    return (folder / f"{name}.txt").read_text(encoding="utf-8")


def records(folder: Path) -> pd.DataFrame:
    """All that a store says of its trials but how long they took; and the check that it holds nothing else."""
    store = Store(folder)
    assert store.problems() == []
    assert store.claims() == []
    assert sum(pq.read_metadata(path).num_rows for path in (folder / "records").glob("*.parquet")) == 10
    return store.frame().sort_values("id", ignore_index=True).drop(columns=["seconds", "created"])


def traces(folder: Path) -> dict[str, dict[str, list[float]]]:
    found = Store(folder).traces(Store(folder).ids())
    return {id_: {name: values.tolist() for name, values in each.items()} for id_, each in found.items()}


def test_a_lost_worker_and_a_lost_machine_leave_exactly_the_records_of_a_run_here(two_nodes):
    folder, codes = two_nodes
    assert codes["here"] == codes["drive"] == 0, text(folder, "drive")
    assert codes["begun populations"] == 1  # what was begun here is continued there
    assert json.loads((folder / "drive.json").read_text())["killed"] == [True, True]
    lost = re.findall(r"after (a|\d) lost worker", text(folder, "drive"))
    assert sum(1 if number == "a" else int(number) for number in lost) >= 2, text(folder, "drive")
    pd.testing.assert_frame_equal(records(folder / "ray"), records(folder / "here"))
    assert traces(folder / "ray") == traces(folder / "here")


def test_after_a_lost_driver_a_run_here_goes_on(two_nodes):
    folder, codes = two_nodes
    assert codes["driver"] == -9
    assert codes["resumed"] == 0, text(folder, "resumed")
    assert codes["its workers end"]
    assert codes["driver populations"] == 1
    assert "10 trials, 2 recorded, 8 to train" in text(folder, "resumed")
    pd.testing.assert_frame_equal(records(folder / "lost"), records(folder / "here"))
    assert traces(folder / "lost") == traces(folder / "here")


def test_both_nodes_train_and_are_told_apart(two_nodes):
    folder, _ = two_nodes
    nodes = {line.split(" on ")[1].split(":")[0] for line in text(folder, "drive").splitlines() if "attempt" in line}
    assert len(nodes) == 2


def test_a_graph_is_sent_once_and_nobody_writes_to_it(two_nodes):
    folder, codes = two_nodes
    found = json.loads((folder / "drive.json").read_text())
    assert (found["sent"], found["fit_sent"]) == (1, 1)
    assert found["unchanged"]
    assert not found["writeable"]
    assert codes["read only"] == 0, text(folder, "read-only")


def test_a_search_on_a_cluster_finds_what_it_finds_here(two_nodes):
    found = json.loads((two_nodes[0] / "drive.json").read_text())
    assert found["runs"][0] == found["runs"][1] > 1
    assert found["fit"] < 1e-3  # the order of sums differs, as populations do


def test_a_cluster_of_ones_own_is_for_nobody_else(two_nodes):
    folder, codes = two_nodes
    assert codes["own"] == 0, text(folder, "own")
    found = json.loads((folder / "own.json").read_text())
    assert found["answer"] == 42
    assert set(found["listening"]) <= {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1, in IPv4 and as IPv6
    assert found["listening"]
    assert found["token"] == ["token", 64]
    assert Path(found["folder"]).name.startswith("sharpen-ray-")
    assert found["mode"] == "0o700"
    assert found["stranger"] != 0
    assert "token is missing or incorrect" in text(folder, "own")
    assert not found["written home"]


def test_nothing_is_left_behind(two_nodes):
    folder, codes = two_nodes
    found = json.loads((folder / "own.json").read_text())
    assert codes["left over"] == []
    assert codes["cluster"] == 0, text(folder, "cluster")
    assert not found["folder left"]
    assert found["variables left"] == []


# Without a cluster


def test_without_the_package_the_extra_is_named(tmp_path, tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r'on needs the package ray .*; pip install "graph-sharpen\[ray\]"'):
        run(load_study(tiny), Store(tmp_path / "store"), on="ray")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("on", ["Ray", "ray:/head:10001", "ray://", "ray://head", "10.0.0.1:6379"])
def test_a_place_that_is_none_is_named(tmp_path, tiny, on):
    with pytest.raises(InputError, match="give here"):
        run(load_study(tiny), Store(tmp_path / "store"), on=on)
    with pytest.raises(InputError, match="give here"), connected(on):
        pass


def test_a_module_of_ones_own_stays_here():
    module = torch.nn.Linear(2, 2)
    with pytest.raises(InputError, match="is trained in this process"):
        sharpen.NodeClassifier(module, on="ray").fit((np.eye(6), np.eye(6)), [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("on", ["ray", "ray://127.0.0.1:{port}"])
def test_where_nobody_listens_is_named_at_once(tmp_path, tiny, monkeypatch, on):
    if find_spec("ray") is None:
        pytest.skip("the package ray is not installed")
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # else no later test could start a cluster of its own
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
    with pytest.raises(InputError, match=f"cannot connect to the Ray cluster at (ray://)?127.0.0.1:{port}"):
        run(load_study(tiny), Store(tmp_path / "store"), on=on.format(port=port))
