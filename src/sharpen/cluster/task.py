"""What a process of the cluster does: train one population, and tell how far it is."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch

from sharpen.cluster.parcel import Parcel, unpack
from sharpen.errors import InputError
from sharpen.revision import PACKAGE, tree_hash
from sharpen.training import train
from sharpen.training.memory import memory_left
from sharpen.trial import Record, Trial

_REPORT_SECONDS = 0.5


@dataclass(frozen=True)
class Report:
    """How far a population is, in epochs of single members, and where: the machine in the cluster and the process on it."""

    number: int
    node: str
    pid: int
    attempt: int
    done: int
    total: int


class Board:
    """Where populations report: an actor, so that the driver can look at all of them at once. What it knows may be lost.

    >>> board = Board()
    >>> board.begin(Report(number=0, node="3fa2", pid=17, attempt=1, done=0, total=200))
    >>> board.advance(0, 1, 50)
    >>> [report.done for report in board.look()]
    [50]
    """

    def __init__(self) -> None:
        self._reports: dict[int, Report] = {}

    def begin(self, report: Report) -> None:
        """A process takes a population up."""
        self._reports[report.number] = report

    def advance(self, number: int, attempt: int, done: int) -> None:
        """So much of it is done now."""
        report = self._reports.get(number)
        if report is not None and report.attempt == attempt:  # not from one that was given up for lost
            self._reports[number] = replace(report, done=done)

    def end(self, number: int) -> None:
        """Forgets a population."""
        self._reports.pop(number, None)

    def look(self) -> list[Report]:
        """All that are under way, in the order in which they were taken up."""
        return list(self._reports.values())


_LAST: dict[str, Any] = {}


def _unpacked(parcel: Parcel) -> Any:
    """What is in a parcel; the same object as last time if the parcel is the same, so that a graph is cut and gathered once."""
    if parcel.name not in _LAST:
        _LAST.clear()  # one at a time: what was made for it may be large
        _LAST[parcel.name] = unpack(parcel)
    return _LAST[parcel.name]


@cache
def source() -> str:
    """A hash of the package's files: two machines with the same one run the same code.

    >>> len(source())
    40
    """
    return tree_hash(PACKAGE).hex()


class OtherCode(InputError):
    """The code on a machine of the cluster is not the driver's."""


def ready(kind: str) -> int:
    """Answers once this process has imported what it needs to train: the bytes that are free on its CPU or GPU.

    >>> ready("cpu") > 0
    True
    """
    return memory_left(torch.device(kind))


def train_population(
    parcel: Parcel,
    trials: Sequence[Trial],
    options: Mapping[str, Any],
    keep: Collection[str],
    number: int,
    board: Any,
    expected: str,
    attempt: int = 1,
) -> tuple[list[Record] | InputError, str]:
    """Trains in a process of the cluster; gives the records, or why there are none; then the machine's id.

    Args:
        parcel: The dataset or graph; Ray hands it over from its machine's shared memory.
        trials, options: For :func:`sharpen.train`.
        keep: Of ``traces``, ``logits`` and ``weights``, what is to travel back.
        number, board: What to report as, and where.
        expected: The driver's :func:`source`.
        attempt: Which worker this is to take it up, counted from 1.
    """
    import ray

    if source() != expected:
        # A record says which code made it, and the driver answers for that.
        raise OtherCode(
            f"{socket.gethostname()} has other code of sharpen than the machine that it works for; install the same on both"
        )
    node, total = ray.get_runtime_context().get_node_id(), sum(trial.epochs or 0 for trial in trials)
    # Nobody waits for an answer: without a board it is trained all the same.
    board.begin.remote(Report(number, node, os.getpid(), attempt, 0, total))
    done, told = 0, time.monotonic()

    def tell(member_epochs: int) -> None:
        nonlocal done, told
        done += member_epochs
        if time.monotonic() - told > _REPORT_SECONDS:
            told = time.monotonic()
            board.advance.remote(number, attempt, done)

    try:
        records = train(_unpacked(parcel), trials, **{**options, "progress": tell})
    except InputError as error:
        return InputError(str(error)), node
    empty: dict[str, Any] = {"traces": {}, "logits": None, "weights": {}}
    left = {name: empty[name] for name in empty.keys() - set(keep)}
    return [replace(record, **left) for record in records], node
