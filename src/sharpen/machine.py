"""What this process may use of its machine: the memory that is left, within the limits set for it."""

from __future__ import annotations

import os
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
    for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, kinds, own = line.split(":", 2)
        if kinds == "":  # version 2: one tree for all
            mount, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in kinds.split(","):
            mount = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        # In a container the path may be the host's, and what is mounted the group itself: then only the last of these is there.
        group = mount / own.lstrip("/")
        for place in (group, *(above for above in group.parents if above.is_relative_to(mount))):
            limit, used = _number(place / names[0]), _number(place / names[1])
            if limit is not None and used is not None:
                left.append(max(0, limit - used + _forgettable(place / "memory.stat", names[2])))
    return left


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such limit
        return None


def _forgettable(path: Path, name: str) -> int:
    try:
        counts = dict(line.split() for line in path.read_text(encoding="ascii").splitlines())
        return int(counts[name])
    except (OSError, ValueError, KeyError):
        return 0


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
