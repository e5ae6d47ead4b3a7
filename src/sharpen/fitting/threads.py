"""How many threads a small graph is worth: one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Below so many activations in a layer, an operation takes so short that threads wait for each other more than they work; with
# something else running on the machine, many times longer.
_WORTHWHILE = 2**18


@contextmanager
def suitable_threads(num_nodes: int, hidden: int) -> Iterator[None]:
    """For the time of the block, one thread if the graph is small, else as many as before.

    By size and not by the clock, so that the same fit gives the same bits every time.

    >>> with suitable_threads(num_nodes=34, hidden=64):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    if num_nodes * hidden < _WORTHWHILE:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
