"""How far a study is: per cell what is done, running, missing, why not, and the time left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sharpen.store import Store
from sharpen.studies.cost import Costs
from sharpen.studies.plan import Cell
from sharpen.studies.spec import Study
from sharpen.studies.work import Sizes, Work, why_no_data


@dataclass(frozen=True)
class CellProgress:
    """How far one cell is, in trials.

    Args:
        cell: The dataset and the model.
        done, running, missing: How many trials are recorded, claimed by a runner, neither.
        seconds: The estimated time that those not done will take, one population after another.
        reason: Why trials that are missing cannot be run here, or why the study leaves the cell out; None if neither is so.

    >>> CellProgress(Cell("cora", "gcn"), done=5, running=0, missing=5, seconds=20.0).total
    10
    """

    cell: Cell
    done: int
    running: int
    missing: int
    seconds: float
    reason: str | None = None

    @property
    def total(self) -> int:
        """How many trials the cell has."""
        return self.done + self.running + self.missing


def progress(
    study: Study,
    protocol: str,
    store: Store,
    costs: Costs,
    *,
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    max_epochs: int | None = None,
    data: Path | None = None,
) -> list[CellProgress]:
    """Every cell of a study under a protocol. Looks only: it needs neither data nor permission to write.

    >>> import tempfile
    >>> from sharpen.studies import load_study
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     costs = Costs("cuda", None, "tf32")
    ...     (cora,) = progress(load_study("main"), "paper", Store(folder), costs, datasets=["cora"], models=["gcn"])
    >>> cora.done, cora.missing
    (0, 205)
    """
    work = Work([study], protocol, datasets, models, max_epochs)
    missing = work.missing(store)
    running = {id_ for claim in store.claims() for id_ in claim.ids} & missing.keys()
    sizes, cells = Sizes(costs), []
    for cell in dict.fromkeys(planned.cell for planned in work.planned):  # several protocols may have it
        own = [planned for planned in work.planned if planned.cell == cell]
        ids = {trial.id for planned in own for trials in planned.trials.values() for trial in trials}
        todo = [missing[id_] for id_ in ids & missing.keys()]
        done, busy, free = len(ids - missing.keys()), len(ids & running), len(ids & missing.keys() - running)
        reason = own[0].reason
        if reason is None and free:
            reason = why_no_data(cell.dataset, data)
        seconds = sum(map(costs.seconds, work.populations(todo, costs, sizes)))
        cells.append(CellProgress(cell, done, busy, free, seconds, reason))
    return cells
