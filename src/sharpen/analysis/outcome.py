"""What the records of a study say: scores, paired differences, published numbers beside them, and reasons where there are none.

A pure function of the study, the protocol and the records. What a table, a figure or a page shows is in the result, in percent and
percentage points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import pandas as pd

from sharpen.analysis.provenance import Cost, Provenance, costs, provenance
from sharpen.analysis.published import published_effect, published_runs, published_side
from sharpen.analysis.runs import Run, Side, glass_of_pairs, pairs_of_runs, scores_of_pairs
from sharpen.datasets.catalog import CATALOG
from sharpen.evaluation import (
    Consistency,
    PairedDifference,
    choose_by_validation,
    consistent_with,
    holm,
    paired_difference,
)
from sharpen.paper import published
from sharpen.studies.plan import CellPlan, plan
from sharpen.studies.protocol import runs
from sharpen.studies.spec import Contrast, Study
from sharpen.trial import Trial

NOT_RUN = "not run yet"
NO_DATA = "data not at hand"
# A study that compares more variants than this in a cell draws a curve: t intervals for each, and no bootstrap.
_MOST_BOOTSTRAPPED = 12


@dataclass(frozen=True)
class Effect:
    """One comparison in one cell: the first side minus the second, paired on (split, seed).

    Args:
        contrast: which two.
        difference: None where there is not one pair. Where several splits have several runs each, its n are the splits: runs on
            one split are not independent (:func:`sharpen.evaluation.by_split`).
        corrected_p: of the paired t-test, after Holm's correction over the study's complete cells; a cell in which all differences
            are zero counts with p = 1.
        glass: the difference in standard deviations of the second side.
        published: what the paper says the difference is.
        published_sd: the spread that the paper gives it: of both sides together, as if they were independent.
        consistency: our differences against the published one.
        planned, finished: how many pairs of runs the protocol asks for, and how many are finished, diverged ones included.
        n: how many pairs of runs the difference rests on.
        splits: on how many splits they are.
        mixed: how many of them are of two precisions, and so say more than what was compared.
        reason: why there is no difference, or why it rests on fewer pairs than planned.

    >>> Effect(Contrast("ts-0.25", "baseline"), planned=5, reason="not run yet").verdict
    'unknown'
    """

    contrast: Contrast
    difference: PairedDifference | None = None
    corrected_p: float | None = None
    glass: float | None = None
    published: float | None = None
    published_sd: float | None = None
    consistency: Consistency | None = None
    planned: int = 0
    finished: int = 0
    n: int = 0
    splits: int = 0
    mixed: int = 0
    reason: str | None = None

    @property
    def diverged(self) -> int:
        """How many pairs are left out because a run diverged."""
        return self.finished - self.n

    @property
    def complete(self) -> bool:
        """Whether all planned pairs are there, none diverged and none of two precisions, so that it counts among cells."""
        return self.difference is not None and self.n == self.planned and not self.mixed

    @property
    def partial(self) -> bool:
        """Whether there are pairs, and fewer than planned: more of them will change what they say."""
        return self.difference is not None and self.finished < self.planned

    @property
    def verdict(self) -> str:
        """``gain`` or ``loss`` where the 95 % t interval excludes zero, else ``unclear``; ``unknown`` without two pairs.

        Differences that are all the same have no interval: they are a gain or a loss, or ``unclear`` where all are zero (the same
        runs on both sides). What diverged might have been the losses: survivors alone are ``unclear``, and so are pairs of two
        precisions.
        """
        if self.difference is None or self.difference.n < 2:
            return "unknown"
        if self.diverged or self.mixed:
            return "unclear"
        low, high = self.difference.t_interval or (self.difference.difference, self.difference.difference)
        return "unclear" if low <= 0 <= high else "gain" if low > 0 else "loss"


@dataclass(frozen=True)
class CellOutcome:
    """What is known about one dataset with one model.

    Args:
        dataset, model, metric: which, and what its scores are.
        planned: runs per variant.
        splits: on how many splits they are.
        sides: by name: every variant, then every choice.
        effects: one per comparison of the study, in its order.
        reason: why the cell has no records at all.
    """

    dataset: str
    model: str
    metric: str
    planned: int
    splits: int
    sides: Mapping[str, Side] = field(default_factory=dict)
    effects: tuple[Effect, ...] = ()
    reason: str | None = None

    def effect(self, name: str) -> Effect:
        """One of the comparisons, by the name ``a - b``."""
        return next(effect for effect in self.effects if effect.contrast.name == name)


@dataclass(frozen=True)
class Outcome:
    """What a study's records say under one protocol; see :func:`outcome`.

    Args:
        study, protocol: what was asked.
        cells: in the study's order.
        planned, finished: how many different runs it consists of, and how many of them there are.
        costs: what they took, by device and precision. A run that serves several studies counts in each.
        provenance: where they come from.
        max_epochs: the limit that the runs were given, if they were.
    """

    study: Study
    protocol: str
    cells: tuple[CellOutcome, ...]
    planned: int
    finished: int
    costs: tuple[Cost, ...]
    provenance: Provenance
    max_epochs: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every variant, then every choice: the sides of every cell."""
        return (*self.study.variants, *self.study.choose)

    @property
    def complete(self) -> int:
        """How many cells have all their comparisons on all the pairs that were planned."""
        return sum(bool(cell.effects) and all(effect.complete for effect in cell.effects) for cell in self.cells)

    def cell(self, dataset: str, model: str) -> CellOutcome:
        """One of the cells."""
        return next(cell for cell in self.cells if (cell.dataset, cell.model) == (dataset, model))

    def effects(self, name: str) -> list[tuple[CellOutcome, Effect]]:
        """One comparison, by the name ``a - b``, in all cells."""
        return [(cell, effect) for cell in self.cells for effect in cell.effects if effect.contrast.name == name]


def outcome(
    study: Study,
    protocol: str,
    frame: pd.DataFrame | None = None,
    *,
    unavailable: Mapping[str, str] | None = None,
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    max_epochs: int | None = None,
    score: str = "test",
    plans: Sequence[CellPlan] | None = None,
) -> Outcome:
    """Everything that the records at hand say about a study under a protocol.

    Records are found by the identity of their trial: those of other settings, or of other studies, have no part in it. λ (or what
    else the study chooses) is picked on validation scores only, and only once all its candidates are finished.

    Args:
        study: what was declared.
        protocol: one of :mod:`sharpen.studies.protocol`.
        frame: records as :meth:`sharpen.store.Store.frame` gives them, or ``runs``: ``id``, ``val``, ``test`` and what they
            took. Of several of one trial the first counts; the time of all does. None: nothing was run yet.
        unavailable: by dataset, why its cells cannot be run here.
        datasets, models: those to keep; None: all.
        max_epochs: the limit that the runs were given, if they were.
        score: the column that is compared: ``test``, or another of :data:`sharpen.trial.METRICS` and :data:`sharpen.trial.LAST`. A
            run of before it was kept counts as one without a score.
        plans: what :func:`sharpen.studies.plan` makes of the study, where it is known already; else None.

    >>> from sharpen.studies import load_study
    >>> empty = outcome(load_study("universal"), "paper", unavailable={"wikics": NO_DATA})
    >>> empty.cell("cora", "gcn").reason, empty.cell("wikics", "gcn").reason, empty.cell("cora", "gcn").effects[0].published
    ('not run yet', 'data not at hand', 0.62)
    """
    frame = pd.DataFrame() if frame is None else frame
    plans = plan(study, protocol, datasets, models, max_epochs) if plans is None else plans
    ids = {trial.id for cell in plans for trials in cell.trials.values() for trial in trials}
    every = frame[frame["id"].isin(ids)] if len(frame) else frame
    found = _finished(every, score)
    # Only what a study is about is bootstrapped, and not where it draws a curve.
    often = score == "test" and len(study.compare) <= _MOST_BOOTSTRAPPED
    absent = {cell.cell.dataset: (unavailable or {}).get(cell.cell.dataset, NOT_RUN) for cell in plans}
    cells = [_cell(study, protocol, cell, found, absent[cell.cell.dataset], often) for cell in plans]
    own = every.drop_duplicates("id") if len(frame) else frame
    told = tuple(_corrected(cells))
    return Outcome(study, protocol, told, len(ids), len(own), costs(every), provenance(own), max_epochs)


def _finished(frame: pd.DataFrame, score: str) -> dict[str, Run]:
    """Every record by its trial's identity; of two, the first."""
    if frame.empty:
        return {}
    rows = frame.drop_duplicates("id")
    seconds = frame.groupby("id")["seconds"].sum().to_dict()
    if "class_use_last" not in rows:
        rows = rows.assign(class_use_last=math.nan)
    columns = [rows[name].tolist() for name in ("id", "split", "seed", "val", score, "precision", "class_use_last")]
    return {
        id: Run(id, split, int(seed), _percent(val), _percent(test), precision, float(seconds[id]), float(used))
        for id, split, seed, val, test, precision, used in zip(*columns, strict=True)
    }


def _cell(
    study: Study, protocol: str, planned: CellPlan, found: Mapping[str, Run], absent: str, bootstrap: bool
) -> CellOutcome:
    dataset, model = planned.cell
    pairs = runs(dataset, protocol, study.runs.get(dataset), model)
    size, metric = len(pairs), CATALOG[dataset].metric if dataset in CATALOG else "accuracy"
    sides: dict[str, Side] = {}
    for name in study.variants:
        trials = planned.trials.get(name, [])
        finished = tuple(found[trial.id] for trial in trials if trial.id in found)
        side = Side(name, name, trials[0] if trials else None, size, finished)
        sides[name] = replace(side, reason=planned.reason or _shortfall(side, absent))
    for name, candidates in study.choose.items():
        sides[name] = _chosen(name, [sides[c] for c in candidates], sides.get(study.baseline or ""), planned, absent)
    none = all(not side.runs for side in sides.values())
    sides = {name: _beside_published(study, protocol, planned, side) for name, side in sides.items()}
    effects = tuple(_effect(study, planned, contrast, sides, bootstrap) for contrast in study.compare)
    splits, reason = len({split for split, _ in pairs}), (planned.reason or absent) if none else None
    return CellOutcome(dataset, model, metric, size, splits, sides, effects, reason)


def _shortfall(side: Side, absent: str) -> str | None:
    """Why a variant has no scores, or fewer than planned."""
    if not side.runs:
        return absent
    return _lacking(side.diverged, len(side.runs), side.planned)


def _lacking(diverged: int, finished: int, planned: int) -> str | None:
    parts = [f"diverged: {diverged} of {planned}"] if diverged else []
    parts += [f"{planned - finished} of {planned} {NOT_RUN}"] if finished < planned else []
    return ", ".join(parts) or None


def _chosen(name: str, candidates: list[Side], baseline: Side | None, planned: CellPlan, absent: str) -> Side:
    """The candidate with the best mean validation score, once all are finished."""
    size = candidates[0].planned
    wanted, there = size * len(candidates), sum(len(side.runs) for side in candidates)
    if there < wanted:
        some = f"{wanted - there:,} of {wanted:,} runs {NOT_RUN}" if there else absent
        return Side(name, None, None, size, reason=planned.reason or some)
    unchanged, sides = baseline.trial if baseline is not None else None, {side.name: side for side in candidates}

    def change(candidate: str) -> tuple[bool, float]:
        """What changes nothing comes first, then what changes λ least."""
        trial = sides[candidate].trial
        apart = 0.0 if trial is None or unchanged is None else abs(trial.lam - unchanged.lam)
        return trial != unchanged, round(apart, 9)

    runs = {name: pd.DataFrame({"val": [run.val for run in side.runs]}, dtype=float) for name, side in sides.items()}
    return replace(sides[choose_by_validation(runs, change)], name=name)


def _beside_published(study: Study, protocol: str, planned: CellPlan, side: Side) -> Side:
    """The side with what the paper says of it; comparable under its own protocol only, and once all runs are there."""
    said = published_side(study, planned, side.name)
    if said is None or said.mean is None:
        return side
    consistency = None
    if protocol == "paper" and side.complete and side.n:
        own = said == published(study.published or "").get((*planned.cell, side.name))  # else it is of the main table
        count = published_runs(study, planned.cell) if own else len(runs(planned.cell.dataset, "paper"))
        consistency = consistent_with(said.mean, said.sd, count, side.tests)
    return replace(side, published=said, consistency=consistency)


def _effect(study: Study, planned: CellPlan, contrast: Contrast, sides: Mapping[str, Side], bootstrap: bool) -> Effect:
    side, against = sides[contrast.variant], sides[contrast.against]
    delta, sd = published_effect(study, planned.cell, side, against)
    empty = Effect(contrast, published=delta, published_sd=sd, planned=side.planned)
    if not side.runs or not against.runs:
        return replace(empty, reason=side.reason if not side.runs else against.reason)
    pairs, finished = pairs_of_runs(side, against)
    if not pairs:
        why = "no pair without a diverged run" if finished else f"no common runs of {contrast.name} yet"
        return replace(empty, finished=finished, reason=side.reason or against.reason or why)
    a, b = scores_of_pairs(pairs)
    consistency = None
    if delta is not None and sd is not None:
        consistency = consistent_with(delta, sd, published_runs(study, planned.cell), a - b)
    mixed = sum(one.precision != other.precision for one, other in pairs)
    return replace(
        empty,
        difference=paired_difference(a, b, resamples=9999 if bootstrap else 0),
        glass=glass_of_pairs(pairs),
        consistency=consistency,
        finished=finished,
        n=len(pairs),
        splits=len({run.split for run, _ in pairs}),
        mixed=mixed,
        reason=_why_not_counted(side, against, finished, len(pairs), mixed),
    )


def same_but(a: Trial, b: Trial, *names: str) -> bool:
    """Whether two trials differ in nothing but these fields.

    >>> same_but(Trial(lam=0.25), Trial(lam=0.5), "lam"), same_but(Trial(lam=0.25, q=1), Trial(lam=0.5), "lam")
    (True, False)
    """
    return all(getattr(a, f.name) == getattr(b, f.name) for f in fields(Trial) if f.name not in names)


def _why_not_counted(side: Side, against: Side, finished: int, used: int, mixed: int) -> str | None:
    if mixed:
        return f"{mixed} of {side.planned} pairs of different precision"
    if side.variant == against.variant and side.name != against.name:
        return f"validation chooses {against.name} itself"
    return _lacking(finished - used, finished, side.planned)


def _corrected(cells: list[CellOutcome]) -> list[CellOutcome]:
    """Every comparison's p-values after Holm's correction over the cells that are complete, those without a difference too."""
    columns = []
    for effects in zip(*(cell.effects for cell in cells), strict=True):
        own = [effect.difference if effect.complete else None for effect in effects]
        corrected = holm([math.nan if d is None else d.family_p for d in own])
        found = (None if math.isnan(p) else float(p) for p in corrected)
        columns.append([replace(effect, corrected_p=p) for effect, p in zip(effects, found, strict=True)])
    rows = zip(*columns, strict=True) if columns else [()] * len(cells)
    return [replace(cell, effects=tuple(row)) for cell, row in zip(cells, rows, strict=True)]


def _percent(fraction: float) -> float | None:
    return None if fraction is None or math.isnan(fraction) else 100 * float(fraction)
