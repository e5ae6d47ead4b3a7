"""From a store to the reports of studies: what its records say, worked out once and shown in several ways."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from sharpen.analysis.dynamics import Traces
from sharpen.analysis.outcome import NO_DATA, Outcome, outcome
from sharpen.errors import called
from sharpen.report.blocks import Report
from sharpen.report.leaderboard import field_report
from sharpen.report.names import span
from sharpen.report.rates import EPOCHS, QUALITY, rates_report
from sharpen.report.shares import run_seconds
from sharpen.report.study import ranking_report, study_report
from sharpen.store import Store
from sharpen.studies import Study, load_study
from sharpen.studies.plan import CellPlan, plan
from sharpen.studies.protocol import ALL, rate_of
from sharpen.studies.tuning import CHOSEN
from sharpen.studies.work import why_no_data


class Reader:
    """Outcomes and reports of one store, each outcome worked out once.

    Args:
        store: the records.
        unavailable: by dataset, why its cells cannot be run here.
        max_epochs: the limit that the runs were given, if they were.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Reader(Store(folder), {}).protocols(load_study("comparison"))
    ['paper']
    """

    def __init__(self, store: Store, unavailable: dict[str, str], max_epochs: int | None = None) -> None:
        self.store, self.unavailable, self.max_epochs = store, unavailable, max_epochs
        # With what was run again for a trace: its scores do not count, its time does.
        self.frame = store.runs()
        self._found: dict[tuple[str, str, str], Outcome] = {}
        self._plans: dict[tuple[str, str], tuple[Study, list[CellPlan]]] = {}

    def outcome(self, study: Study, protocol: str, score: str = "test") -> Outcome:
        """What the records say about a study under a protocol, by their score or by another of their columns."""
        known = self._found.get((study.name, protocol, score))
        if known is None or known.study != study:
            missing, limit = self.unavailable, self.max_epochs
            plans = self._planned(study, protocol)
            known = outcome(
                study, protocol, self.frame, unavailable=missing, max_epochs=limit, score=score, plans=plans
            )
            self._found[study.name, protocol, score] = known
        return known

    def _planned(self, study: Study, protocol: str) -> list[CellPlan]:
        """The trials of a study: one plan for all scores."""
        known = self._plans.get((study.name, protocol))
        if known is None or known[0] != study:
            known = self._plans[study.name, protocol] = study, plan(study, protocol, max_epochs=self.max_epochs)
        return known[1]

    def protocols(self, study: Study) -> list[str]:
        """The protocols under which a study has a finished comparison, or any record; else the first of its own."""
        source = _source(study)
        offered = [protocol for protocol in study.protocols if protocol in source.protocols]
        # Runs that another study shares with this one do not make it a study that was run.
        done = [p for p in offered if self.outcome(source, p).complete]
        if study.traces:
            done = [p for p in done if self._traced(self.outcome(source, p))]
        if any(rate_of(protocol) for protocol in offered):
            return [ALL, *done]
        return done or [p for p in offered if self.outcome(source, p).finished][:1] or offered[:1]

    def has_runs(self, study: Study, protocol: str | None) -> bool:
        """Whether there is any run of a study, or of the study that it reads, under a protocol; None or all: under any."""
        source = _source(study)
        asked = [each for each in source.protocols if protocol in (None, ALL, each)]
        return any(self.outcome(source, each).finished for each in asked)

    def traces(self, outcome: Outcome) -> Traces:
        """What the runs of an outcome traced."""
        return self.store.traces(run_seconds(outcome))

    def _traced(self, outcome: Outcome) -> bool:
        """Whether the runs of complete cells were traced."""
        traces = self.traces(outcome)
        complete = [cell for cell in outcome.cells if all(effect.complete for effect in cell.effects)]
        return all(run.id in traces for cell in complete for side in cell.sides.values() for run in side.runs)

    def report(self, study: Study, protocol: str) -> Report:
        """The report of a study under a protocol."""
        if study.reads is not None:
            return ranking_report(study, self.outcome(_source(study), protocol))
        if protocol == ALL:
            scores = (*EPOCHS.values(), *QUALITY)
            told = {score: [self.outcome(study, each, score) for each in study.protocols] for score in scores}
            return rates_report(told)
        found = self.outcome(study, protocol)
        if any(variant.fields.get("configuration") == CHOSEN for variant in study.variants.values()):
            return field_report(found)
        return study_report(found, self.traces(found) if study.traces else None)

    def shown(self, reports: Iterable[Report]) -> pd.DataFrame:
        """The runs that reports show, each once."""
        return self.frame[self.frame["id"].isin({id for report in reports for id in run_seconds(report.outcome)})]

    def hint(self) -> str:
        """What to say when a store has records, and none of them belongs to what was asked."""
        epochs = span(self.frame["epochs"].astype(int).tolist())
        return (
            f"None of the {len(self.frame):,} records belongs to these studies under what was asked; look at "
            f"{called('protocol')} and {called('max_epochs')} (there are runs of {epochs} epochs)."
        )


def unavailable(studies: Sequence[Study], data: Path | None) -> dict[str, str]:
    """By dataset, why it cannot be run here: its files are not on this machine.

    >>> unavailable([], None)
    {}
    """
    datasets = dict.fromkeys(dataset for study in studies for dataset in study.datasets)
    return {dataset: NO_DATA for dataset in datasets if why_no_data(dataset, data) is not None}


def _source(study: Study) -> Study:
    """Whose records a study shows: its own, or those of the study that it reads."""
    return study if study.reads is None else load_study(study.reads)
