"""What this process may use of its machine: memory and cores that are left, within the limits set for it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sharpen.errors import InputError


def memory_at_hand() -> int:
    """Bytes that can be allocated now on this machine, within the limits set for this process.

    >>> memory_at_hand() > 0
    True
    """
    left = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")] if hasattr(os, "sysconf") else []
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            left = [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")]
        left += cgroup_left()
    except OSError:
        pass  # no Linux: what the system says is free
    return max(0, min(left)) if left else 2**33


def cgroup_left(root: Path = Path("/")) -> list[int]:
    """What the limits on this process's control group, and on those above it, leave to be allocated; nothing where there is none.

    Pages of files that were read and may be forgotten count as used there, but make room when it is needed.

    >>> all(left >= 0 for left in cgroup_left())
    True
    """
    left = []
    for unified, place in _groups("memory", root):
        names = ("max", "current") if unified else ("limit_in_bytes", "usage_in_bytes")
        try:
            limit, used = (int((place / f"memory.{name}").read_text(encoding="ascii")) for name in names)
        except (OSError, ValueError):  # no such limit
            continue
        files = _forgettable(place / "memory.stat", "inactive_file" if unified else "total_inactive_file")
        left.append(max(0, limit - used + files))
    return left


def _groups(kind: str, root: Path) -> Iterator[tuple[bool, Path]]:
    """The control groups that limit this process in something, its own first, each with whether it is of version 2."""
    for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, kinds, own = line.split(":", 2)
        if kinds and kind not in kinds.split(","):
            continue
        mount = root / "sys/fs/cgroup" / (kind if kinds else "")
        # In a container the path may be the host's, and what is mounted the group itself: then only the last of these is there.
        group = mount / own.lstrip("/")
        yield from ((not kinds, place) for place in (group, *group.parents) if place.is_relative_to(mount))


def _forgettable(path: Path, name: str) -> int:
    try:
        counts = dict(line.split() for line in path.read_text(encoding="ascii").splitlines())
        return int(counts[name])
    except (OSError, ValueError, KeyError):
        return 0


def free_cores(sharers: int = 1, root: Path = Path("/")) -> int:
    """How many cores this process, one of several ``sharers``, can compute on now without waiting for others; at least one.

    >>> 1 <= free_cores() <= cores()
    True
    """
    idle = _idle_cores(root)
    own = cores(root)
    return max(1, min(own // max(1, sharers), own if idle is None else round(idle)))


def cores(root: Path = Path("/")) -> int:
    """How many cores this process may use, by its affinity and the quota of its control groups.

    >>> cores() >= 1
    True
    """
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([own, *(math.floor(quota + 0.5) for quota in _quotas(root))]))


def _quotas(root: Path) -> list[float]:
    """How many cores' time the control group of this process, and those above it, may use."""
    quotas = []
    with suppress(OSError):  # no Linux
        for unified, place in _groups("cpu", root):
            names = ("cpu.max",) if unified else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            with suppress(OSError, ValueError, ZeroDivisionError):  # no such limit
                quota, period = " ".join((place / name).read_text(encoding="ascii") for name in names).split()
                if quota not in ("max", "-1"):
                    quotas.append(int(quota) / int(period))
    return quotas


_LOOK_SECONDS, _LOOK_AGAIN_SECONDS = 0.1, 30.0
_looked: dict[Path, tuple[float, float | None]] = {}


def _idle_cores(root: Path) -> float | None:
    """How many of the machine's cores have nothing to do, by a look of a tenth of a second, which holds for half a minute."""
    if root in _looked and time.monotonic() - _looked[root][0] < _LOOK_AGAIN_SECONDS:
        return _looked[root][1]
    before = _idle_ticks(root)
    time.sleep(_LOOK_SECONDS)
    after = _idle_ticks(root)
    idle = None
    if before is not None and after is not None and after[1] > before[1]:
        idle = (after[0] - before[0]) / (after[1] - before[1]) * after[2]
    _looked[root] = time.monotonic(), idle
    return idle


def _idle_ticks(root: Path) -> tuple[int, int, int] | None:
    """Since the machine was started: ticks without work, ticks of all cores, and how many cores there are."""
    try:
        lines = (root / "proc/stat").read_text(encoding="ascii").splitlines()
        ticks = [int(number) for number in lines[0].split()[1:9]]
        return ticks[3] + ticks[4], sum(ticks), sum(line.startswith("cpu") for line in lines) - 1
    except (OSError, ValueError, IndexError):  # no Linux
        return None


def number_in_environment(name: str, default: int) -> int:
    """A whole number that an environment variable holds, such as the ``WORLD_SIZE`` of ``torchrun``.

    >>> number_in_environment("NO_SUCH_VARIABLE", 1)
    1
    """
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InputError(f"the environment variable {name} is {text[:40]!r}; give a whole number, or unset it")
    return int(text)
