"""Trains what a study still misses, population by population, the cheapest first; every finished one is safe in the store.

A runner may be killed at any moment: the population in flight is lost, nothing else, and the next runner goes on where it stopped.
Several may work on one store: each claims what it trains.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sharpen.datasets import Dataset, load_dataset
from sharpen.errors import InputError
from sharpen.studies.cost import CAUTION, Costs, duration, total_seconds
from sharpen.studies.plan import Cell
from sharpen.studies.spec import Study
from sharpen.studies.store import Store, StoreError
from sharpen.studies.work import MAX_MEMBERS, Sizes, Work
from sharpen.training import train
from sharpen.training.device import arithmetic, describe_device, resolve_device
from sharpen.trial import Record, Trial


@dataclass
class Summary:
    """What a call of :func:`run` came to.

    Args:
        wanted: How many trials the studies have.
        recorded: How many of them were recorded before.
        trained: How many were trained now.
        elsewhere: How many other runners are training.
        left: How many are left to train: after an interruption, or at the end of the time limit.
        skipped: Cells that were left out, and why.
        ended: ``done``, ``interrupted`` or ``time``.

    >>> Summary(wanted=10, recorded=4).ended
    'done'
    """

    wanted: int = 0
    recorded: int = 0
    trained: int = 0
    elsewhere: int = 0
    left: int = 0
    skipped: dict[Cell, str] = field(default_factory=dict)
    ended: str = "done"


def run(
    studies: Study | Sequence[Study],
    store: Store,
    *,
    protocol: str = "paper",
    device: str = "auto",
    precision: str = "float32",
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    max_epochs: int | None = None,
    max_members: int = MAX_MEMBERS,
    time_limit: float | None = None,
    traces: bool = False,
    data: Path | None = None,
    download: bool = False,
    stop: threading.Event | None = None,
    say: Callable[[str], None] = lambda line: None,
    progress: bool = False,
) -> Summary:
    """Trains every trial of the studies that is not in the store.

    Args:
        studies: One, or several; a trial that they share is trained once.
        store: Where records are, and go.
        protocol: ``paper``, ``paired`` or ``ablation``.
        device, precision: As :func:`sharpen.train` takes them.
        datasets, models: Those to keep; None: all.
        max_epochs: An upper limit to the epochs of every trial.
        max_members: The most trials to train at once, and so to lose at once.
        time_limit: Seconds; no population is started that is not expected to end within them.
        traces: Whether to keep what is traced per epoch, also for studies that do not ask for it.
        data: The folder of benchmark files; None: that of ``SHARPEN_DATA``.
        download: Whether to download data that is not on this machine; else its cells are skipped.
        stop: When it is set, the runner ends after the population in flight.
        say: Is given a line about every finished population, and about all else that happens.
        progress: Whether to draw a bar on a terminal.

    >>> import tempfile
    >>> from sharpen.studies import load_study
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = run(load_study("universal"), Store(folder), datasets=["wikics"], data=Path(folder))
    >>> summary.trained, len(summary.skipped)
    (0, 3)
    """
    start, stop = time.monotonic(), stop or threading.Event()
    where = resolve_device(device)
    with arithmetic(precision, where):  # before anything that takes time: does this device know this precision?
        name = describe_device(where)
    studies = [studies] if isinstance(studies, Study) else list(studies)
    work = Work(studies, protocol, datasets, models, max_epochs, traces)
    for problem in store.set_aside():
        say(problem.line)
    costs = Costs(where.type, name, precision, store.frame())
    sizes = Sizes(costs, max_members, time_limit)
    wanted = len(work.trials)
    summary = Summary(wanted=wanted, recorded=wanted - len(work.missing(store)), skipped=work.skipped)
    for other, count in _other_precisions(store, work, precision).items():
        say(
            f"{count} of the records are of {other} and count as they are; the report leaves pairs of two precisions out."
        )
    if not download:
        work.skip_without_data(store, data)
    trainer = _Trainer(work, data, device, precision, progress)

    populations = work.populations(work.free(store), costs, sizes)
    say(
        f"{', '.join(study.name for study in studies)} ({protocol}): {wanted} trials, {summary.recorded} recorded, "
        f"{sum(map(len, populations))} to train in {_outlook(costs, populations)} on {name}"
    )
    if populations:
        store.check_writable()
    while populations:
        chosen = populations[0]
        if stop.is_set():
            summary.ended = "interrupted"
            break
        if time_limit is not None and time.monotonic() - start + CAUTION * costs.seconds(chosen) > time_limit:
            summary.ended = "time"
            break
        claim = store.claim(chosen)
        if claim is None:  # another runner was faster: look again, and not in step with it
            time.sleep(random.uniform(0.01, 0.1))
        else:
            last = time.monotonic()

            def keep(records: list[Record]) -> None:
                """What memory or cache divides is kept part by part: no more is lost than what is in flight."""
                nonlocal last
                store.add(records, keep_traces=chosen[0].id in work.traced)  # noqa: B023  # used within this turn
                costs.learn(records)
                summary.trained += len(records)
                left = f"; left: {_outlook(costs, populations[1:])}" if populations[1:] else ""  # noqa: B023
                say(_line(records, time.monotonic() - last) + left)
                last = time.monotonic()

            with claim.kept():
                missing = work.missing(store)  # another runner may have finished some before the claim
                trainer.train([trial for trial in chosen if trial.id in missing], say, keep)
        populations = work.populations(work.free(store), costs, sizes)
    summary.left = sum(map(len, populations))
    summary.elsewhere = len(work.missing(store)) - summary.left
    return summary


class _Trainer:
    """Trains populations, and leaves out cells for which that cannot be done."""

    def __init__(self, work: Work, data: Path | None, device: str, precision: str, progress: bool) -> None:
        self._work, self._data = work, data
        self._device, self._precision, self._progress = device, precision, progress
        self._loaded: dict[str, Dataset] = {}

    def train(self, trials: Sequence[Trial], say: Callable[[str], None], keep: Callable[[list[Record]], None]) -> None:
        if not trials:
            return
        cell = Cell(str(trials[0].dataset), trials[0].model)
        same_data = [other for other in self._work.cells if other.dataset == cell.dataset]
        try:
            if cell.dataset not in self._loaded:
                self._loaded[cell.dataset] = load_dataset(cell.dataset, self._data)
            train(
                self._loaded[cell.dataset],
                trials,
                device=self._device,
                precision=self._precision,
                progress=self._progress,
                on_records=keep,
            )
        except StoreError:  # no cell can be kept
            raise
        except InputError as error:  # this cell cannot be run, the others can
            self._work.skip([cell] if cell.dataset in self._loaded else same_data, str(error))
            say(f"{cell}: left out: {error}")


def _other_precisions(store: Store, work: Work, precision: str) -> dict[str, int]:
    """How many records of the work there are in other precisions than the one asked for."""
    found = store.frame(work.trials.values())["precision"].value_counts()
    return {str(name): int(count) for name, count in found.items() if name != precision}


def _outlook(costs: Costs, populations: Sequence[Sequence[Trial]]) -> str:
    if not populations:
        return "no populations"
    some = "1 population" if len(populations) == 1 else f"{len(populations)} populations"
    return f"{some}, about {duration(total_seconds(costs, populations))}"


def _line(records: Sequence[Record], seconds: float) -> str:
    trial = records[0].trial
    alive = [record.val for record in records if record.status == "ok"]
    best = f"best validation {100 * max(alive):.2f}" if alive else "all diverged"
    lost = f", {len(records) - len(alive)} diverged" if 0 < len(alive) < len(records) else ""
    runs = "1 run" if len(records) == 1 else f"{len(records)} runs"
    return f"{trial.dataset} {trial.model}: {runs} in {seconds:.1f} s, {best}{lost}"
