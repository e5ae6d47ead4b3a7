"""Who trains what right now: claims that several runners on one store respect, and that die with their runner.

A claim is a small file that names its trials, its process and its machine. It is made under a lock that the system releases with
the process, so that two runners never claim the same trial. Its owner touches it every few seconds; it counts no more once its
process is gone (on this machine) or it has not been touched for two minutes (on any).
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows: there claims alone must do, and they do unless two runners start in one instant
    fcntl = None  # type: ignore[assignment]

LEASE_SECONDS = 120.0
HEARTBEAT_SECONDS = 10.0


@dataclass(frozen=True)
class Claim:
    """Trials that a runner has taken on.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, second = claim(Path(folder), "a", ["1", "2"]), claim(Path(folder), "b", ["2", "3"])
    ...     first.ids == {"1", "2"}, second is None
    (True, True)
    """

    path: Path
    ids: frozenset[str]
    host: str
    pid: int
    token: str

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keeps the claim alive for the time of the block, then gives it up."""
        over = threading.Event()

        def touch() -> None:
            while not over.wait(HEARTBEAT_SECONDS) and self._is_ours():
                os.utime(self.path)

        heart = threading.Thread(target=touch, daemon=True)
        heart.start()
        try:
            yield
        finally:
            over.set()
            heart.join()
            self.release()

    def release(self) -> None:
        """Gives the trials up."""
        with locked(self.path.parent):
            if self._is_ours():
                self.path.unlink(missing_ok=True)

    def _is_ours(self) -> bool:
        """Whether the claim still counts: while this machine slept, another runner may have taken the trials over."""
        found = _load(self.path)
        return found is not None and found[0].token == self.token


def claim(folder: Path, key: str, ids: Collection[str]) -> Claim | None:
    """Claims trials for this process, or None if another runner has some of them.

    Args:
        folder: Where the claims of a store are; made if need be.
        key: A name for these trials, the same for the same trials.
        ids: Of the trials.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted, path = frozenset(ids), folder / f"{key}.json"
    mine = Claim(path, wanted, socket.gethostname(), os.getpid(), secrets.token_hex(8))
    content = {
        "host": mine.host,
        "pid": mine.pid,
        "process_start": _process_start(mine.pid),
        "token": mine.token,
        "ids": sorted(wanted),
    }
    with locked(folder):
        for other in folder.glob("*.json"):
            found = _read(other)
            if found is None:
                other.unlink(missing_ok=True)
            elif found.ids & wanted:
                return None
        # Linked from a whole file: whoever reads the claim reads all of it.
        temporary = folder / f".{key}.{mine.token}.tmp"
        temporary.write_text(json.dumps(content), encoding="utf-8")
        try:
            make_visible(temporary, path)
        except FileExistsError:
            return None
    return mine


def claims(folder: Path) -> list[Claim]:
    """The claims that count now; looks only, so that it needs no permission to write.

    >>> claims(Path("no/such/folder"))
    []
    """
    return [found for path in sorted(folder.glob("*.json")) if (found := _read(path)) is not None]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Alone among all processes that lock this folder; a killed process holds no lock."""
    with open(folder / ".lock", "ab") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make_visible(temporary: Path, path: Path) -> None:
    """Gives a whole file its name, unless there is one of that name; the temporary name goes away."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(path) from None
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _load(path: Path) -> tuple[Claim, str | None] | None:
    """The claim in a file, and when its process started; None if there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = Claim(path, frozenset(content["ids"]), content["host"], int(content["pid"]), content["token"])
        return found, content["process_start"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read(path: Path) -> Claim | None:
    """The claim in a file, if it still counts."""
    found = _load(path)
    if found is None:
        return None
    claim_, start = found
    try:
        age = time.time() - path.stat().st_mtime
    except OSError:  # given up this moment
        return None
    here = claim_.host == socket.gethostname() and os.name == "posix"
    return claim_ if age <= LEASE_SECONDS and (not here or _alive(claim_.pid, start)) else None


def _alive(pid: int, start: str | None) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's process
        return True
    return start is None or _process_start(pid) in (None, start)


def _process_start(pid: int) -> str | None:
    """When a process started, in the system's own count, so that a number that is used again is told apart; None if unknown."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    rest = text.rsplit(")", 1)[1].split()  # the name, in parentheses, may hold anything
    # A process that is dead but not yet collected by its parent trains nothing.
    return "gone" if rest[0] in "ZX" else rest[19]
