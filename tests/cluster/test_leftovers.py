"""What a cluster of our own leaves behind: ended with its driver, or by the next one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from sharpen.cluster import leftovers

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are told by /proc")

# An agent as Ray's are: it ignores that its parent is gone, and holds a file of the folder open, by name or not.
AGENT = """
import signal, sys, time
held = open(sys.argv[2] + "/log", "a")
print("ready", flush=True)
time.sleep(600)
"""
DRIVER = """
import subprocess, sys, time
from sharpen.cluster.leftovers import watched_folder
with watched_folder() as folder:
    agents = [
        subprocess.Popen([sys.executable, "-c", sys.argv[1], name, str(folder)], stdout=subprocess.PIPE, start_new_session=True)
        for name in ("ray::agent", "reader")
    ]
    for agent in agents:
        agent.stdout.readline()
    print(folder, *(agent.pid for agent in agents), flush=True)
    time.sleep(600)
"""


def started() -> tuple[subprocess.Popen[str], Path, int, int]:
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, AGENT], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    folder, agent, reader = driver.stdout.readline().split()
    return driver, Path(folder), int(agent), int(reader)


def started_with(*arguments: str) -> list[int]:
    """The processes that have these among their arguments."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # one that has just ended
            if set(map(os.fsencode, arguments)) <= set((place / "cmdline").read_bytes().split(b"\0")):
                found.append(int(place.name))
    return found


def eventually(true: Callable[[], bool]) -> bool:
    for _ in range(300):
        if true():
            return True
        time.sleep(0.1)
    return False


def gone(process: int) -> bool:
    return leftovers._signature(process).endswith("gone")


def test_a_driver_that_is_killed_takes_its_cluster_with_it() -> None:
    driver, folder, agent, reader = started()
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    try:
        assert eventually(lambda: not folder.exists() and gone(agent))
        assert not gone(reader)  # who is none of Ray's and only has a file open
    finally:
        os.kill(reader, signal.SIGKILL)


def test_should_the_watcher_be_killed_too_the_next_driver_ends_what_is_left() -> None:
    driver, folder, agent, reader = started()
    (watcher,) = started_with(str(Path(leftovers.__file__).resolve()), folder.name)
    for process in (watcher, driver.pid):
        os.kill(process, signal.SIGKILL)
    driver.wait()
    try:
        assert folder.exists()
        assert not gone(agent)
        leftovers.sweep(folder.parent)
        assert not folder.exists()
        assert eventually(lambda: gone(agent))
    finally:
        os.kill(reader, signal.SIGKILL)


def test_the_folder_of_a_driver_that_lives_is_left_alone() -> None:
    with leftovers.watched_folder() as folder:
        leftovers.sweep(folder.parent)
        assert folder.exists()
    assert not folder.exists()
