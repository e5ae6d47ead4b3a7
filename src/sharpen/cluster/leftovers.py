"""What a cluster of our own leaves behind when its driver is killed: processes that wait for it, and a folder. Both are ended.

A small process watches over the driver: it reads from a pipe on which nothing is ever written, and which the system closes when the
driver ends, however it ends. Should the watcher be killed too, the next driver on the machine does its work.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "sharpen-ray-"
_OWNER = "owner"


@contextmanager
def watched_folder() -> Iterator[Path]:
    """A folder for a cluster, which only this user can open; it goes with this process, and so do the processes that work in it.

    >>> with watched_folder() as folder:
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """
    # A short path, because sockets lie below it, and their paths are limited to about a hundred characters.
    root = "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()
    sweep(Path(root))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
    (folder / _OWNER).write_text(_signature(os.getpid()), encoding="utf-8")
    watcher = _watch(folder)
    try:
        yield folder
    finally:
        if watcher is not None and watcher.stdin is not None:
            watcher.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                watcher.wait(30)
        _end(folder)


def sweep(root: Path) -> None:
    """Ends what clusters of this user have left whose drivers are gone.

    >>> sweep(Path("no/such/folder"))
    """
    for folder in root.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            owner = (folder / _OWNER).read_text(encoding="utf-8")
            if folder.stat().st_uid == os.getuid() and owner != _signature(int(owner.split()[0])):
                _end(folder)


def _end(folder: Path) -> None:
    """Kills the processes that work in the folder, and removes it."""
    for _ in range(50):
        found = _processes(folder)
        for process in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
        if not found and not folder.exists():
            return
        time.sleep(0.1)


def _watch(folder: Path) -> subprocess.Popen[bytes] | None:
    if not os.path.isdir("/proc/self"):  # no Linux: then the folder cannot tell its processes either
        return None
    command = [sys.executable, "-S", "-E", str(Path(__file__).resolve()), folder.name, str(folder.parent)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)


def _processes(folder: Path) -> list[int]:
    """The processes, this one aside, that have the folder among their arguments, or files of it open: some rename themselves."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            process = int(place.name)
            others = process not in (os.getpid(), os.getppid()) and place.stat().st_uid == os.getuid()
            if others and _is_in(place, str(folder)):
                found.append(process)
    return found


def _is_in(place: Path, folder: str) -> bool:
    """Whether a process is one of Ray's, and of the cluster in the folder; somebody who looks at its log is not."""
    arguments = (place / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    if not any("ray" in argument for argument in arguments if folder not in argument):
        return False
    if any(folder in argument for argument in arguments):
        return True
    for handle in (place / "fd").iterdir():
        with suppress(OSError):
            if os.readlink(handle).startswith(folder + "/"):
                return True
    return False


def _signature(process: int) -> str:
    """A process and when it was started, so that a number that is used again is told apart."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        return f"{process} gone" if state[0] in "ZX" else f"{process} {state[19]}"
    except (OSError, IndexError):
        return f"{process} gone"


if __name__ == "__main__":
    # The folder comes in two parts, so that this process does not take itself for one of those in it.
    sys.stdin.buffer.read()
    _end(Path(sys.argv[2]) / sys.argv[1])
