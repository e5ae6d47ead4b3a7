"""What studies want of a store, what of it is missing, and how that falls into populations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from sharpen.datasets import find_dataset
from sharpen.errors import InputError, as_given, called
from sharpen.store import Store
from sharpen.studies.cost import CAUTION, Costs
from sharpen.studies.plan import Cell, CellPlan, plan
from sharpen.studies.spec import Study
from sharpen.training.trials import shared
from sharpen.trial import Trial

MAX_MEMBERS = 205
# On a CPU members gain nothing from being many: a population is as large as may be lost without regret.
_CPU_SECONDS = 120.0
# Less than this is done sooner by one worker than it is shared out among several that have to start.
_WORTH_SHARING_SECONDS = 30.0


class Work:
    """The trials of one or several studies, each once.

    Args:
        studies, protocol, datasets, models, max_epochs: As :func:`sharpen.studies.plan` takes them.
        traces: Whether all of them are to be traced; else those of studies that say so.

    >>> from sharpen.studies import load_study
    >>> studies = [load_study("universal"), load_study("labeled-term")]  # they share λ = 0.25
    >>> len(Work(studies, "paper", ["cora"], ["gcn"]).trials)
    15
    """

    def __init__(
        self,
        studies: Iterable[Study],
        protocol: str,
        datasets: Sequence[str] | None = None,
        models: Sequence[str] | None = None,
        max_epochs: int | None = None,
        traces: bool = False,
    ) -> None:
        self.planned: list[CellPlan] = []
        self.trials: dict[str, Trial] = {}
        self.traced: set[str] = set()
        self.skipped: dict[Cell, str] = {}
        for study in studies:
            for planned in plan(study, protocol, datasets, models, max_epochs):
                self.planned.append(planned)
                if planned.reason is not None:
                    self.skipped[planned.cell] = f"{study.name} leaves it out: {planned.reason}"
                found = {trial.id: trial for trials in planned.trials.values() for trial in trials}
                self.trials |= found
                if study.traces or traces:
                    self.traced |= found.keys()
        self._closed: set[Cell] = set()

    @property
    def cells(self) -> list[Cell]:
        """The cells that have trials, in the order of the studies."""
        return list(dict.fromkeys(map(Cell.of, self.trials.values())))

    def skip(self, cells: Iterable[Cell], reason: str) -> None:
        """Leaves cells out from now on."""
        for cell in cells:
            self._closed.add(cell)
            self.skipped[cell] = reason

    def skip_without_data(self, store: Store, data: Path | None) -> None:
        """Leaves out the cells that miss trials and whose data is not on this machine."""
        for cell in dict.fromkeys(map(Cell.of, self.missing(store).values())):
            if (reason := why_no_data(cell.dataset, data)) is not None:
                self.skip([cell], reason)

    def missing(self, store: Store) -> dict[str, Trial]:
        """By id, the trials that are not recorded, or not traced though they should be; those of cells left out aside."""
        done = store.ids()
        untraced = self.traced - store.traced_ids() if self.traced else ()
        return {
            id_: trial
            for id_, trial in self.trials.items()
            if (id_ not in done or id_ in untraced) and Cell.of(trial) not in self._closed
        }

    def free(self, store: Store) -> list[Trial]:
        """The missing trials that no runner has taken on."""
        taken = {id_ for claim in store.claims() for id_ in claim.ids}
        return [trial for id_, trial in self.missing(store).items() if id_ not in taken]

    def populations(self, trials: Iterable[Trial], costs: Costs, sizes: Sizes, workers: int = 1) -> list[list[Trial]]:
        """Trials that can be trained together, in equal shares that are not too large; the cheapest first.

        Where there would be fewer of them than workers, the longest are shared out further.
        """
        groups: dict[tuple[object, ...], list[Trial]] = {}
        for trial in trials:
            groups.setdefault((trial.dataset, *shared(trial), trial.id in self.traced), []).append(trial)
        count = {key: -(-len(group) // sizes.most(group[0])) for key, group in groups.items()}

        def shares(key: tuple[object, ...]) -> list[list[Trial]]:
            group, size = groups[key], -(-len(groups[key]) // count[key])
            return [group[i : i + size] for i in range(0, len(group), size)]

        while sum(count.values()) < workers:
            seconds = {key: costs.seconds(first) for key in groups if len(first := shares(key)[0]) > 1}
            longest = max(seconds, key=seconds.__getitem__, default=None)
            if longest is None or seconds[longest] <= _WORTH_SHARING_SECONDS:
                break
            count[longest] += 1
        return sorted((share for key in groups for share in shares(key)), key=costs.seconds)


class Sizes:
    """How many trials to train at once.

    Args:
        costs: Estimates for the device.
        max_members: The most.
        time_limit: Seconds that a runner has.

    >>> trial = Trial(model="gcn", dataset="cora").resolve("balanced-20-500-1000-seed123")
    >>> Sizes(Costs("cuda", None, "tf32")).most(trial), Sizes(Costs("cpu", None, "float32")).most(trial)
    (205, 1)
    """

    def __init__(self, costs: Costs, max_members: int = MAX_MEMBERS, time_limit: float | None = None) -> None:
        self._costs, self._max_members = costs, max_members
        # By the formula alone: were it to depend on past records, a study that was interrupted would be divided differently.
        self._formula = Costs(costs.kind, costs.device, costs.precision)
        # One that took more than half of the time limit would often find too little time left; one that is cut too small would do
        # little beside what every population costs.
        self._seconds = math.inf if time_limit is None else max(8 * costs.once, time_limit / 2 / CAUTION)

    def most(self, trial: Trial) -> int:
        """The most trials like this one."""
        most = self._max_members
        if self._costs.kind == "cpu":
            most = min(most, self._formula.members_within(trial, _CPU_SECONDS))
        if self._seconds < math.inf:
            most = min(most, self._costs.members_within(trial, self._seconds))
        return most


def why_no_data(dataset: str, data: Path | None = None) -> str | None:
    """Why a dataset cannot be loaded without a download; None if it can.

    >>> why_no_data("digits") is None
    True
    """
    try:
        if find_dataset(dataset, data) is not None:
            return None
    except InputError as error:  # the data folder itself is not there
        return str(error)
    return f"its files are not on this machine; name their folder with {as_given('data')}, or give {called('download')}"
