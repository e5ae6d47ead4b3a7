"""Several processes that train one population together, started by ``torchrun``: who this one is, and what they exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from sharpen.errors import InputError
from sharpen.machine import number_in_environment

_T = TypeVar("_T")
# METIS, or the reading of a graph, may take one process long while the others wait.
_PATIENCE = timedelta(hours=6)


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together. Where nobody joined, every exchange is nothing.

    >>> alone = Ranks()
    >>> alone.writes, alone.mine([10, 11, 12])
    (True, [10, 11, 12])
    >>> Ranks(rank=1, world=2).mine([10, 11, 12])
    [11]
    """

    rank: int = 0
    world: int = 1

    @property
    def writes(self) -> bool:
        """Whether this is the one process that writes files and prints."""
        return self.rank == 0

    def mine(self, work: Sequence[_T]) -> list[_T]:
        """This process's share of a list."""
        return list(work[self.rank :: self.world])

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Every tensor becomes, in place, the sum over all processes; one exchange for all of them."""
        if not dist.is_initialized() or not tensors:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        dist.all_reduce(flat)
        for tensor, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def share_runs(self, values: Tensor, runs: Sequence[slice]) -> None:
        """Completes a tensor [R, N, ...] of whose runs of nodes each process has made its own share."""
        if not dist.is_initialized():
            return
        for number, run in enumerate(runs):
            part = values[:, run].contiguous()
            dist.broadcast(part, src=number % self.world)
            values[:, run] = part

    def from_first(self, tensors: Mapping[str, Tensor]) -> None:
        """Every tensor becomes, in place, what the first process has."""
        if dist.is_initialized():
            for tensor in tensors.values():
                dist.broadcast(tensor, src=0)

    def decided(self, decide: Callable[[], _T]) -> _T:
        """What the first process decides; the others do not ask themselves, since they might see it otherwise.

        >>> Ranks().decided(lambda: 3)
        3
        """
        if not dist.is_initialized():
            return decide()
        said: list[Any] = [None]
        if self.writes:
            try:
                said = [decide()]
            except InputError as error:  # nobody is to wait for an answer that does not come
                said = [error]
        dist.broadcast_object_list(said, src=0)
        if isinstance(said[0], InputError):
            raise said[0]
        answer: _T = said[0]
        return answer


def current_ranks() -> Ranks:
    """Who this process is; alone unless :func:`joined` says otherwise.

    >>> current_ranks()
    Ranks(rank=0, world=1)
    """
    if not (dist.is_available() and dist.is_initialized()):
        return Ranks()
    return Ranks(dist.get_rank(), dist.get_world_size())


@contextmanager
def joined(device: str = "auto") -> Iterator[tuple[Ranks, str]]:
    """Joins the other processes that ``torchrun`` started; gives who this one is, and the device it is to use.

    NCCL between GPUs, one for each process of a machine; gloo between CPUs. Without ``torchrun`` nothing happens; with it, one
    process exchanges with itself, as a rehearsal.

    >>> with joined("cpu") as (ranks, device):
    ...     ranks.world, device
    (1, 'cpu')
    """
    started = dist.is_torchelastic_launched() or number_in_environment("WORLD_SIZE", 1) > 1
    if not started or dist.is_initialized():
        yield current_ranks(), device
        return
    on_gpu = device != "cpu" and torch.cuda.is_available()
    if on_gpu:
        device = f"cuda:{number_in_environment('LOCAL_RANK', 0) % torch.cuda.device_count()}"
        torch.cuda.set_device(device)
    own = torch.device(device) if on_gpu else None
    for name in ("RANK", "MASTER_PORT"):
        number_in_environment(name, 0)
    try:
        dist.init_process_group("nccl" if on_gpu else "gloo", timeout=_PATIENCE, device_id=own)
    except ValueError as error:  # variables that torchrun sets, and somebody else has not
        raise InputError(
            f"cannot join the other processes ({error}); start with torchrun, or unset WORLD_SIZE"
        ) from error
    try:
        yield current_ranks(), device if on_gpu else "cpu"
    finally:
        dist.destroy_process_group()
