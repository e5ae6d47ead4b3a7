"""Who trains what right now: claims that several runners on one store respect, and that die with their runner.

A claim is a small file that names its trials, its process and its machine. It is made under a lock that the system releases with
the process, so that two runners never claim the same trial. On the machine of its process it counts as long as that lives, and no
longer. Elsewhere nobody can see the process: its owner touches the claim every few seconds, and it counts no more once it has not
been touched for two minutes, by the clock of the file system that both times come from. A time that is two minutes in the future
comes from a clock that was wrong, and does not count either.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

try:
    import fcntl
except ImportError:  # not on Windows: there claims alone must do, and they do unless two runners start in one instant
    fcntl = None  # type: ignore[assignment]

LEASE_SECONDS = 120.0
_MOST_BYTES = 64 * 2**20  # of a claim: a population of a million trials has less
_MOST_PID = 2**31 - 1
_HEARTBEAT_SECONDS = 10.0
_WRITTEN = ("host", "pid", "token", "process_start")


@dataclass(frozen=True)
class Claim:
    """Trials that a runner has taken on; as it lies there, when its process started and when it was last touched.

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
    process_start: str | None = None
    touched: float = 0.0

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keeps the claim alive for the time of the block, then gives it up."""
        over = threading.Event()

        def touch() -> None:
            while not over.wait(_HEARTBEAT_SECONDS):
                with suppress(OSError):  # the next touch may succeed, and a dozen may fail before the claim is lost
                    if not self._is_ours():
                        return
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
        with suppress(OSError), locked(self.path.parent):  # what cannot be removed ends with its process
            if self._is_ours():
                self.path.unlink(missing_ok=True)

    def _is_ours(self) -> bool:
        """Whether the claim still counts: while this machine slept, another runner may have taken the trials over."""
        found = _load(self.path)
        return isinstance(found, Claim) and found.token == self.token


def claim(folder: Path, key: str, ids: Collection[str]) -> Claim | None:
    """Claims trials for this process, or None if another runner has some of them; ``key`` names the same trials the same."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted, path = frozenset(ids), folder / f"{key}.json"
    mine = Claim(path, wanted, this_host(), os.getpid(), secrets.token_hex(8), _process_start(os.getpid()))
    content = {name: getattr(mine, name) for name in _WRITTEN} | {"ids": sorted(wanted)}
    with locked(folder):
        now = _file_system_time(folder)
        for other in folder.glob("*.json"):
            found = _load(other)
            if found is None:  # given up this moment
                continue
            if isinstance(found, Claim) and _counts(found, now):
                if found.ids & wanted:
                    return None
            else:
                other.unlink(missing_ok=True)
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
    loaded = [_load(path) for path in sorted(folder.glob("*.json"))]
    found = [each for each in loaded if isinstance(each, Claim)]
    now = _file_system_time(folder) if any(each.host != this_host() for each in found) else time.time()
    return [each for each in found if _counts(each, now)]


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


@cache
def this_host() -> str:
    """This machine since it was started, and the space in which its process numbers mean something.

    Two containers may share a name, and a machine that was restarted has new processes with old numbers.

    >>> this_host().startswith(socket.gethostname())
    True
    """
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _load(path: Path) -> Claim | Literal["no claim"] | None:
    """The claim in a file; None if it is gone. What cannot be read at the moment is an :class:`OSError`, and no doubt."""
    try:
        status = path.stat()
        if status.st_size > _MOST_BYTES:
            return "no claim"
        text, touched = path.read_text(encoding="utf-8"), status.st_mtime
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return "no claim"
    try:
        content = json.loads(text)
        ids, (host, pid, token, start) = content["ids"], (content[name] for name in _WRITTEN)
    except (ValueError, LookupError, TypeError, RecursionError):
        return "no claim"
    texts = isinstance(ids, list) and all(isinstance(value, str) for value in (*ids, host, token, start or ""))
    if not texts or type(pid) is not int or not 0 < pid <= _MOST_PID:
        return "no claim"
    return Claim(path, frozenset(ids), host, pid, token, start, touched)


def _counts(claim: Claim, now: float) -> bool:
    """Whether a claim still counts: here its process decides, elsewhere the time since it was touched."""
    if claim.host == this_host() and os.name == "posix":
        return _alive(claim.pid, claim.process_start)
    return abs(now - claim.touched) <= LEASE_SECONDS


def _file_system_time(folder: Path) -> float:
    """The time by the clock that stamps files here, which on a network is not this machine's."""
    probe = folder / f".now.{secrets.token_hex(4)}.tmp"
    try:
        probe.touch()
        return probe.stat().st_mtime
    except OSError:  # no permission to write: this machine's clock must do
        return time.time()
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)


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
