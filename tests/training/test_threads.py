"""Threads: one for small work, else by the cores that are free; in one place, and overridable."""

import os
import sys
from pathlib import Path

import pytest
import torch

from sharpen import machine
from sharpen.errors import InputError
from sharpen.training import threads
from sharpen.training.threads import WORTHWHILE, shared_by, suitable_threads, thread_count


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("SHARPEN_THREADS", raising=False)
    monkeypatch.setattr(machine, "cores", lambda root=None: 8)
    monkeypatch.setattr(machine, "_idle_cores", lambda root: 8.0)


@pytest.mark.parametrize(
    ("idle", "sharers", "expected"), [(8.0, 1, 8), (2.6, 1, 3), (0.1, 1, 1), (8.0, 3, 2), (8.0, 20, 1), (None, 2, 4)]
)
def test_threads_are_the_cores_that_nobody_else_uses(monkeypatch, idle, sharers, expected):
    monkeypatch.setattr(machine, "_idle_cores", lambda root: idle)
    with shared_by(sharers):
        assert thread_count(WORTHWHILE) == expected
        assert thread_count(WORTHWHILE - 1) == 1


def test_a_variable_overrides_what_is_found(monkeypatch):
    monkeypatch.setenv("SHARPEN_THREADS", "5")
    assert thread_count(WORTHWHILE) == thread_count(10) == 5
    for given in ("many", "-1", "100000", "9" * 30):
        monkeypatch.setenv("SHARPEN_THREADS", given)
        with pytest.raises(InputError, match="SHARPEN_THREADS is"):
            thread_count(10)
    monkeypatch.delenv("SHARPEN_THREADS")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert thread_count(WORTHWHILE) == torch.get_num_threads()
    assert thread_count(10) == 1


def test_inside_a_block_its_threads_stay_and_afterwards_those_of_before(monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.setattr(threads, "free_cores", lambda sharers: 2)
    with suitable_threads(num_nodes=34, hidden=64):
        with suitable_threads(num_nodes=10**6, hidden=64):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    with suitable_threads(num_nodes=10**6, hidden=64):
        assert torch.get_num_threads() == 2
    with suitable_threads(num_nodes=2000, hidden=64, members=50):
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == before


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


OLD = "sys/fs/cgroup/cpu/cpu.cfs_"


@pytest.mark.parametrize(
    ("files", "quotas"),
    [
        (
            {
                "proc/self/cgroup": "0::/a/b",
                "sys/fs/cgroup/a/cpu.max": "150000 100000",
                "sys/fs/cgroup/a/b/cpu.max": "max 100000",
            },
            [1.5],
        ),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "400000 100000"}, [4.0]),
        ({"proc/self/cgroup": "3:cpu,cpuacct:/", f"{OLD}quota_us": "200000", f"{OLD}period_us": "100000"}, [2.0]),
        ({"proc/self/cgroup": "3:cpu:/", f"{OLD}quota_us": "-1", f"{OLD}period_us": "100000"}, []),
        ({}, []),
    ],
)
def test_quotas_of_control_groups(tmp_path, files, quotas):
    assert machine._quotas(write(tmp_path, files)) == quotas


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="there is no affinity")
def test_a_quota_and_an_affinity_limit_the_cores(tmp_path, monkeypatch):
    monkeypatch.undo()
    own = write(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "120000 100000\n"})
    assert machine.cores(own) == 1
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda process: set(range(5)))
    assert machine.cores(tmp_path / "none") == 5
    assert machine.cores(own) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_idle_cores_are_told_by_what_the_system_counts(tmp_path, monkeypatch):
    monkeypatch.undo()
    looks = iter(["cpu  100 0 0 900 0 0 0 0\ncpu0 0\ncpu1 0\n", "cpu  175 0 0 925 0 0 0 0\ncpu0 0\ncpu1 0\n"])
    write(tmp_path, {"proc/stat": next(looks)})
    monkeypatch.setattr(machine.time, "sleep", lambda seconds: write(tmp_path, {"proc/stat": next(looks)}))
    assert machine._idle_cores(tmp_path) == 0.5  # a quarter of two cores' ticks
    assert machine._idle_cores(tmp_path) == 0.5  # which holds for a while: a third look would fail
    monkeypatch.undo()
    assert machine._idle_cores(tmp_path / "none") is None
