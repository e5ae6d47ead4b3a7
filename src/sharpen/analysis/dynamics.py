"""How uncertain predictions are during training: labeled, unlabeled, and the gap between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sharpen.analysis.outcome import CellOutcome, Outcome
from sharpen.evaluation import PairedDifference, by_split, paired_difference

_Series = NDArray[np.float64]
Traces = Mapping[str, Mapping[str, NDArray[np.float32]]]
# What a record traces in each epoch, as :class:`Trajectories` takes it: by the measure. The objective's order is 2 in the study.
_TRACES = {"gini": ("entropy_labeled", "entropy_unlabeled"), "shannon": ("shannon_labeled", "shannon_unlabeled")}


@dataclass(frozen=True, eq=False)
class Trajectories:
    """The entropies of one variant's runs, [runs, epochs].

    >>> Trajectories("baseline", np.array([[0.5, 0.2]]), np.array([[0.6, 0.5]])).gap.round(1).tolist()
    [[-0.1, -0.3]]
    """

    name: str
    labeled: _Series
    unlabeled: _Series

    @property
    def gap(self) -> _Series:
        """H_L − H_U: the larger, the more of the confidence lies on unlabeled nodes."""
        return self.labeled - self.unlabeled


@dataclass(frozen=True, eq=False)
class Dynamics:
    """The entropies of a cell without sharpening and with it; see :func:`dynamics`.

    Args:
        dataset, model: which cell.
        measure: ``gini`` or ``shannon``.
        baseline, sharpened: runs in the same order, paired on (split, seed).
        gap: the mean gap over epochs, sharpened minus baseline, paired.
        above: in which share of the epochs the mean gap over runs is larger with sharpening.
    """

    dataset: str
    model: str
    measure: str
    baseline: Trajectories
    sharpened: Trajectories
    gap: PairedDifference
    above: float

    @property
    def epochs(self) -> int:
        """How many epochs were traced."""
        return self.baseline.labeled.shape[1]


def dynamics(outcome: Outcome, traces: Traces, measure: str = "gini") -> list[Dynamics]:
    """The trajectories of every cell that has traces (:meth:`sharpen.store.Store.traces`) of both sides of the first comparison.

    ``measure`` is that of the objective, ``gini``, or ``shannon``, which runs trace since they were asked for it.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> dynamics(outcome(load_study("entropy-dynamics"), "paper"), {})
    []
    """
    if not traces or not outcome.study.compare:
        return []
    found = (_cell_dynamics(cell, outcome, traces, measure) for cell in outcome.cells)
    return [cell for cell in found if cell is not None]


def _cell_dynamics(cell: CellOutcome, outcome: Outcome, traces: Traces, measure: str) -> Dynamics | None:
    names = _TRACES[measure]
    contrast = outcome.study.compare[0]
    sharpened, baseline = (
        {(run.split, run.seed): traces.get(run.id, {}) for run in cell.sides[name].runs if run.ok} for name in contrast
    )
    keys = [
        key
        for key in baseline
        if key in sharpened and all(name in side[key] for side in (baseline, sharpened) for name in names)
    ]
    if not keys:
        return None
    before, after = (
        Trajectories(
            f"λ = {trial.lam:g}" if (trial := cell.sides[name].trial) else name,
            *(np.array([of[key][trace] for key in keys], float) for trace in names),
        )
        for name, of in ((contrast.against, baseline), (contrast.variant, sharpened))
    )
    gap = paired_difference(*by_split([split for split, _ in keys], after.gap.mean(1), before.gap.mean(1)))
    above = float((after.gap.mean(0) > before.gap.mean(0)).mean())
    return Dynamics(cell.dataset, cell.model, measure, before, after, gap, above)
