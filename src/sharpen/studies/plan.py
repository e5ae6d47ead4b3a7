"""From a study to its trials: every cell, every variant, every run of the protocol, nothing left open."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sharpen.errors import InputError
from sharpen.models.registry import check_model
from sharpen.studies.own_graphs import known_as
from sharpen.studies.protocol import ALL, covers, known_protocol, runs
from sharpen.studies.spec import Study
from sharpen.trial import Trial


class Cell(NamedTuple):
    """One dataset with one model: a cell of a table.

    >>> str(Cell("cora", "gcn"))
    'cora gcn'
    """

    dataset: str
    model: str

    @classmethod
    def of(cls, trial: Trial) -> Cell:
        """The cell that a trial is in."""
        return cls(str(trial.dataset), trial.model)

    def __str__(self) -> str:
        return f"{self.dataset} {self.model}"


@dataclass(frozen=True)
class CellPlan:
    """The trials of one cell.

    Args:
        cell: The dataset and the model.
        trials: By variant, one trial for each run of the protocol, in the same order for every variant; fully resolved, so that
            their ids are final.
        reason: Why the study leaves this cell out; None if it does not.
    """

    cell: Cell
    trials: dict[str, list[Trial]] = field(default_factory=dict)
    reason: str | None = None


def plan(
    study: Study,
    protocol: str,
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    max_epochs: int | None = None,
) -> list[CellPlan]:
    """The trials of a study under a protocol, cell by cell; none for a study that only reads another's.

    Args:
        study: What to plan.
        protocol: One of :mod:`sharpen.studies.protocol`; ``all`` for all that the study has, one after the other.
        datasets, models: Those to keep; None: all of the study's.
        max_epochs: An upper limit to the epochs of every trial: for a quick look, not for results.

    >>> from sharpen.studies import load_study
    >>> cells = plan(load_study("universal"), "paper", ["cora"])
    >>> [str(cell.cell) for cell in cells], [len(trials) for trials in cells[0].trials.values()]
    (['cora gcn', 'cora sage', 'cora gat'], [5, 5])
    """
    if protocol == ALL:
        return [cell for each in study.protocols for cell in plan(study, each, datasets, models, max_epochs)]
    known_protocol(protocol)
    if protocol not in study.protocols:
        raise InputError(f"study {study.name!r} is not run under {protocol!r}; choose {' or '.join(study.protocols)}")
    datasets = None if datasets is None else [known_as(dataset) for dataset in datasets]
    for model in models or ():
        check_model(model)
    if max_epochs is not None and max_epochs < 1:
        raise InputError(f"is {max_epochs}; give a whole number of at least 1", field="max_epochs")
    if study.reads is not None:
        return []
    cells = [
        Cell(dataset, model)
        for dataset, model in itertools.product(study.datasets, study.models)
        if (datasets is None or dataset in datasets)
        and (models is None or model in models)
        and covers(protocol, dataset, model)
    ]
    return [_cell_plan(study, cell, protocol, max_epochs) for cell in cells]


def _cell_plan(study: Study, cell: Cell, protocol: str, max_epochs: int | None) -> CellPlan:
    if cell in study.skip:
        return CellPlan(cell, reason=study.skip[cell])
    trials, pairs = {}, runs(cell.dataset, protocol, study.runs.get(cell.dataset), cell.model)
    for name, variant in study.variants.items():
        open_ = variant.trial(*cell).resolve(pairs[0][0])
        if max_epochs is not None:
            open_ = replace(open_, epochs=min(open_.epochs or max_epochs, max_epochs))
        trials[name] = [replace(open_, split=split, seed=seed) for split, seed in pairs]
    return CellPlan(cell, trials)
