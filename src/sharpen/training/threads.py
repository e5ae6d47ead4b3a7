"""How many threads to compute with on a CPU: one for small work, else as many as there are cores that are really free.

A thread more than there are free cores costs far more than it brings: every operation waits for the last of its threads, and that
one waits for its turn. Beside one busy process on two cores, a study of small graphs is many times slower with two threads than
with one (``docs/reliability.md``). So what counts are the cores that this process may use (its affinity, the quota of its control
group), less those that others keep busy, shared with the other runners of a store.

``SHARPEN_THREADS`` overrides all of that, ``OMP_NUM_THREADS`` what is chosen for larger work. With several threads sums are taken
in another order, so that the last bits of a result depend on their number: set one of the two where they matter.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

from sharpen.errors import InputError
from sharpen.machine import free_cores, number_in_environment
from sharpen.training.memory import CPU_ACTIVATION_BYTES

# Below so many activations in a layer, an operation takes so short that threads wait for each other more than they work.
WORTHWHILE = 2**18
_MOST_THREADS = 1024
_CACHED = CPU_ACTIVATION_BYTES // 4
_decided: ContextVar[bool] = ContextVar("decided", default=False)
_sharers: ContextVar[int] = ContextVar("sharers", default=1)


@contextmanager
def shared_by(processes: int) -> Iterator[None]:
    """For the time of the block, cores are shared with other processes that compute as this one does.

    >>> with shared_by(10**6):
    ...     thread_count(WORTHWHILE)
    1
    """
    before = _sharers.set(max(1, processes))
    try:
        yield
    finally:
        _sharers.reset(before)


def thread_count(activations: int) -> int:
    """How many threads suit operations on so many numbers.

    >>> thread_count(100)
    1
    """
    if chosen := number_in_environment("SHARPEN_THREADS", 0):
        if chosen > _MOST_THREADS:
            raise InputError(f"the environment variable SHARPEN_THREADS is {chosen}; give at most {_MOST_THREADS}")
        return chosen
    if activations < WORTHWHILE:
        return 1
    if os.environ.get("OMP_NUM_THREADS"):  # which torch has followed
        return torch.get_num_threads()
    return free_cores(_sharers.get())


@contextmanager
def suitable_threads(num_nodes: int, hidden: int, members: int = 1) -> Iterator[None]:
    """For the time of the block, as many threads as suit a population; inside another such block, that one's.

    >>> with suitable_threads(num_nodes=34, hidden=64):
    ...     torch.get_num_threads()
    1
    """
    if _decided.get():
        yield
        return
    own = num_nodes * hidden
    before, inside = torch.get_num_threads(), _decided.set(True)
    torch.set_num_threads(thread_count(max(own, min(own * members, _CACHED))))
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _decided.reset(inside)
