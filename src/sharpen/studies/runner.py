"""Trains what a study still misses, population by population, the cheapest first; every finished one is safe in the store.

A runner may be killed at any moment: what is in flight is lost, nothing else, and the next runner goes on where it stopped.
Several may work on one store: each claims what it trains. One that has a cluster train for it keeps the claims itself, and writes
what comes back itself, so that the cluster's machines need not see the store.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from sharpen.cluster.connection import HERE, check_place
from sharpen.cluster.pool import Pool, Result, pool_on
from sharpen.datasets import Dataset, load_dataset
from sharpen.errors import InputError
from sharpen.store import Store, StoreError
from sharpen.store.claims import this_host
from sharpen.store.store import add_or_rescue
from sharpen.studies.cost import CAUTION, Costs, duration
from sharpen.studies.plan import Cell
from sharpen.studies.spec import Study
from sharpen.studies.work import MAX_MEMBERS, Sizes, Work
from sharpen.training import train
from sharpen.training.device import arithmetic, describe_device, resolve_device
from sharpen.training.threads import shared_by
from sharpen.training.trials import inputs_kept
from sharpen.trial import Record, Trial

# Of a population that is recorded in parts, there is a line so often, and one at its end.
_NEWS_SECONDS = 10.0


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
        needed: If the time limit was too short for any population, the seconds that one must have; else None.

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
    needed: float | None = None


def run(
    studies: Study | Sequence[Study],
    store: Store,
    *,
    protocol: str = "paper",
    on: str = HERE,
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
        protocol: One of :mod:`sharpen.studies.protocol`, or ``all`` of each study's.
        on: ``here``, in this process; ``ray`` or ``ray://HOST:PORT``, on a cluster (:func:`sharpen.cluster.connection.connected`).
        device, precision: As :func:`sharpen.train` takes them.
        datasets, models: Those to keep; None: all.
        max_epochs: An upper limit to the epochs of every trial.
        max_members: The most trials to train at once, and so to lose at once.
        time_limit: Seconds; no population is started that is not expected to end within them.
        traces: Whether to keep what is traced per epoch, also for studies that do not ask for it.
        data: The folder of benchmark files; None: that of ``SHARPEN_DATA``.
        download: Whether to download data that is not on this machine; else its cells are skipped.
        stop: When it is set, the runner ends after what is in flight.
        say: Is given a line about every finished population, and about all else that happens.
        progress: Whether to draw a bar on a terminal, or one for every population that a cluster trains.

    >>> import tempfile
    >>> from sharpen.studies import load_study
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = run(load_study("universal"), Store(folder), datasets=["wikics"], data=Path(folder))
    >>> summary.trained, len(summary.skipped)
    (0, 3)
    """
    start, stop = time.monotonic(), stop or threading.Event()
    check_place(on)
    studies = [studies] if isinstance(studies, Study) else list(studies)
    work = Work(studies, protocol, datasets, models, max_epochs, traces)
    place: AbstractContextManager[_Here | Pool] = (
        nullcontext(_Here(store, device, precision, progress))
        if on == HERE
        else pool_on(on, device, precision, progress, say)
    )
    with place as workers, ExitStack() as claims, inputs_kept():
        for problem in store.set_aside():
            say(problem.line)
        costs = Costs(workers.kind, workers.device, precision, store.runs())
        sizes = Sizes(costs, max_members, None if time_limit is None else time_limit / workers.sharers)
        wanted = len(work.trials)
        summary = Summary(wanted=wanted, recorded=wanted - len(work.missing(store)), skipped=work.skipped)
        for other, count in store.frame(work.trials.values())["precision"].value_counts().items():
            if other != precision:
                kept = "count as they are; the report leaves pairs of two precisions out"
                say(f"{count} of the records are of {other} and {kept}.")
        if not download:
            work.skip_without_data(store, data)
        if again := len(work.missing(store).keys() & store.ids()):
            kept = "they are trained again, and their first scores stay"
            say(f"{again} of the trials are recorded without traces: {kept}.")
        flights = _Flights(work, store, workers, costs, data, claims, say)

        populations = work.populations(work.free(store), costs, sizes, workers.room)
        outlook = "no populations"
        if populations:
            some = "1 population" if len(populations) == 1 else f"{len(populations)} populations"
            outlook = f"{some}, about {_time(costs, populations, workers.slots)}"
        say(
            f"{', '.join(study.name for study in studies)} ({protocol}): {wanted} trials, {summary.recorded} recorded, "
            f"{sum(map(len, populations))} to train in {outlook} on {workers.name}"
        )
        if populations:
            store.check_writable()
        while populations or flights.flying:
            hold, ready = None, 0.0
            if stop.is_set():
                hold = "interrupted"
            elif populations and time_limit is not None:
                ready = time.monotonic() - start + CAUTION * costs.seconds(populations[0]) * workers.sharers
                hold = "time" if ready > time_limit else None
            if populations and hold is None and workers.room:
                flights.start(populations[0])
            elif flights.flying:
                summary.trained += flights.finish(populations)
            else:
                summary.ended = hold or summary.ended
                # Without a population trained, the same limit would be too short the next time too.
                summary.needed = ready if hold == "time" and not summary.trained else None
                break
            populations = work.populations(work.free(store), costs, sizes, workers.room)
        summary.left = sum(map(len, populations))
        summary.elsewhere = len(work.missing(store)) - summary.left
    return summary


class _Here:
    """This process as a :class:`sharpen.cluster.pool.Pool`: trains one population at a time, when its end is waited for."""

    slots = 1

    def __init__(self, store: Store, device: str, precision: str, progress: bool) -> None:
        where, self._store = resolve_device(device), store
        with arithmetic(precision, where):  # before anything that takes time: does this device know this precision?
            self.kind, self.device = where.type, describe_device(where)
        self.name = self.device
        self._asked, self._precision, self._progress = device, precision, progress
        self._next: tuple[Dataset, Sequence[Trial], bool] | None = None

    @property
    def room(self) -> int:
        """How many more can be started now."""
        return int(self._next is None)

    @property
    def sharers(self) -> int:
        """How many runners have the machine among them: what records say of time is a share of it."""
        return 1 + self._others()

    def start(self, data: Dataset, trials: Sequence[Trial], keep: Collection[str], *, shannon: bool) -> int:
        """Begins to train; gives a number to tell populations apart by."""
        self._next = (data, trials, shannon)
        return 0

    def finish(self, take: Callable[[int, Result], None]) -> int:
        """Waits until one is done; gives its number. What came of it is taken before, in one or several parts."""
        assert self._next is not None
        (data, trials, shannon), self._next = self._next, None
        others = self._others()

        def take_share(records: list[Record]) -> None:
            # What all runners here say together is then the time that the machine was used.
            beside = (others + self._others()) / 2
            take(0, Result([replace(record, seconds=record.seconds / (1 + beside)) for record in records]))

        try:
            with shared_by(1 + others):
                train(
                    data,
                    trials,
                    device=self._asked,
                    precision=self._precision,
                    progress=self._progress,
                    shannon=shannon,
                    # What memory or cache divides is kept part by part: no more is lost than what is in flight.
                    on_records=take_share,
                )
        except StoreError:  # no cell can be kept
            raise
        except InputError as error:
            take(0, Result(error))
        return 0

    def _others(self) -> int:
        """How many other runners of this store train on this machine now."""
        return len({claim.pid for claim in self._store.claims() if claim.host == this_host()} - {os.getpid()})


@dataclass
class _Flight:
    """A population in flight: what of it is left, and what is recorded but not told yet."""

    cell: Cell
    left: Sequence[Trial]
    claim: ExitStack
    told: float
    untold: list[Record] = field(default_factory=list)


@dataclass
class _Flights:
    """Populations from their claim to their records in the store."""

    work: Work
    store: Store
    workers: _Here | Pool
    costs: Costs
    data: Path | None
    claims: ExitStack
    say: Callable[[str], None]
    flying: dict[int, _Flight] = field(default_factory=dict)
    loaded: dict[str, Dataset] = field(default_factory=dict)

    def start(self, chosen: Sequence[Trial]) -> None:
        """Claims a population and has it trained, unless another runner was faster or its data cannot be loaded."""
        claim = self.store.claim(chosen)
        if claim is None:  # look again, but not in step with the other
            time.sleep(random.uniform(0.01, 0.1))
            return
        held = self.claims.enter_context(ExitStack())
        held.enter_context(claim.kept())
        dataset = self._dataset(str(chosen[0].dataset))
        missing = self.work.missing(self.store)  # another runner may have finished some before the claim
        trials = [trial for trial in chosen if trial.id in missing]
        if dataset is None or not trials:
            held.close()
            return
        keep = ("traces",) if trials[0].id in self.work.traced else ()
        number = self.workers.start(dataset, trials, keep, shannon=bool(keep))
        self.flying[number] = _Flight(Cell.of(trials[0]), trials, held, time.monotonic())

    def _dataset(self, name: str) -> Dataset | None:
        """It is loaded when it is first wanted; if it cannot be, its cells are left out."""
        if name not in self.loaded:
            try:
                self.loaded[name] = load_dataset(name, self.data)
            except InputError as error:
                self.work.skip([cell for cell in self.work.cells if cell.dataset == name], str(error))
                self.say(f"{name}: left out: {error}")
        return self.loaded.get(name)

    def finish(self, waiting: Sequence[Sequence[Trial]]) -> int:
        """Waits for one, records it, gives up its claim; gives how many trials were recorded."""
        recorded = 0

        def take(number: int, result: Result) -> None:
            nonlocal recorded
            flight = self.flying[number]
            if isinstance(result.outcome, InputError):  # this cell cannot be run, the others can
                self.work.skip([flight.cell], str(result.outcome))
                flight.left = []
                self._tell(flight, result, [own for own in waiting if Cell.of(own[0]) != flight.cell])
                self.say(f"{flight.cell}: left out: {result.outcome}")
                return
            records = result.outcome
            add_or_rescue(self.store, records, keep_traces=records[0].trial.id in self.work.traced)
            self.costs.learn(records)
            recorded += len(records)
            done = {record.trial.id for record in records}
            flight.left = [trial for trial in flight.left if trial.id not in done]
            flight.untold += records
            # Memory or cache may divide a population into hundreds of parts: not every one of them is news.
            if not flight.left or time.monotonic() - flight.told >= _NEWS_SECONDS:
                self._tell(flight, result, waiting)

        self.flying.pop(self.workers.finish(take)).claim.close()
        return recorded

    def _tell(self, flight: _Flight, result: Result, waiting: Sequence[Sequence[Trial]]) -> None:
        """A line about what is recorded of a population and was not told, and what is left of all."""
        if not flight.untold:
            return
        left, now = [*waiting, *(other.left for other in self.flying.values() if other.left)], time.monotonic()
        line = _line(result, flight.untold, now - flight.told)
        if left:
            line += f"; left: {_runs(sum(map(len, left)))}, about {_time(self.costs, left, self.workers.slots)}"
        self.say(line)
        flight.told, flight.untold = now, []


def _time(costs: Costs, populations: Sequence[Sequence[Trial]], workers: int) -> str:
    seconds = [costs.seconds(population) for population in populations]
    return duration(max(*seconds, sum(seconds) / workers))


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _line(result: Result, records: Sequence[Record], seconds: float) -> str:
    trial = records[0].trial
    alive = [record.val for record in records if record.status == "ok"]
    best = f"best validation {100 * max(alive):.2f}" if alive else "all diverged"
    lost = f", {len(records) - len(alive)} diverged" if 0 < len(alive) < len(records) else ""
    where = f" on {result.node}" if result.node else ""
    if result.attempts > 1:
        where += ", after a lost worker" if result.attempts == 2 else f", after {result.attempts - 1} lost workers"
    return f"{trial.dataset} {trial.model}: {_runs(len(records))} in {seconds:.1f} s{where}, {best}{lost}"
