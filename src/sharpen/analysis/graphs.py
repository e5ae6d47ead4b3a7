"""Comparisons by graph: the models of a graph averaged per draw of the split, then tested, and Holm over the graphs.

Three models on one graph share its nodes and its splits: they are not three pieces of evidence for a claim about graphs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from sharpen.analysis.outcome import Outcome
from sharpen.analysis.runs import Side, pairs_of_runs
from sharpen.evaluation import PairedDifference, by_split, detectable_difference, equivalence_p, holm, paired_difference


@dataclass(frozen=True)
class GraphEffect:
    """A paired difference on one graph, its models averaged on every split and seed.

    Args:
        dataset: the graph.
        models: those averaged.
        difference: over draws of the split, or over seeds where there is one split.
        runs: pairs per model; more than observations where splits have several runs each.
        splits: how many splits.
        published: the paper's mean over these models; None where it has none of them.
        corrected_p: after Holm's correction over the graphs of the comparison.
    """

    dataset: str
    models: tuple[str, ...]
    difference: PairedDifference
    runs: int
    splits: int
    published: float | None = None
    corrected_p: float = math.nan

    @property
    def sure(self) -> bool:
        """Whether it differs from zero after correction."""
        return self.corrected_p < 0.05

    @property
    def detectable(self) -> float | None:
        """The difference that this many draws with this spread would have shown with a chance of 80 %."""
        error = self.difference.standard_error
        return None if error is None else detectable_difference(error * math.sqrt(self.difference.n), self.difference.n)

    def within(self, margin: float) -> bool:
        """Whether it is equal to zero within ± so many points (two one-sided tests, 5 %, not corrected)."""
        return equivalence_p(self.difference, margin) < 0.05


def graph_effects(outcome: Outcome, name: str, models: Iterable[str] | None = None) -> list[GraphEffect]:
    """The effects of one comparison, graph by graph, over all models or some; a cell counts once all its pairs are there.

    >>> from sharpen.analysis.outcome import outcome
    >>> from sharpen.studies import load_study
    >>> graph_effects(outcome(load_study("universal"), "paired"), "ts-0.25 - baseline")
    []
    """
    variant, against = name.split(" - ")
    kept = set(outcome.study.models if models is None else models)
    cells: dict[str, dict[str, tuple[Side, Side]]] = {}
    said: dict[str, list[float]] = {}
    for cell, effect in outcome.effects(name):
        if cell.model in kept and effect.complete:
            cells.setdefault(cell.dataset, {})[cell.model] = cell.sides[variant], cell.sides[against]
            said.setdefault(cell.dataset, []).extend([] if effect.published is None else [effect.published])
    found = effects_of_sides(cells)
    return [replace(e, published=float(np.mean(said[e.dataset])) if said[e.dataset] else None) for e in found]


def effects_of_sides(cells: Mapping[str, Mapping[str, tuple[Side, Side]]]) -> list[GraphEffect]:
    """The same from pairs of sides, by graph and model: for comparisons across studies.

    >>> effects_of_sides({})
    []
    """
    found = []
    for dataset, sides in cells.items():
        by_model = [
            {(a.split, a.seed): (a.test or 0.0, b.test or 0.0) for a, b in pairs_of_runs(*both)[0]}
            for both in sides.values()
        ]
        keys = [key for key in by_model[0] if all(key in other for other in by_model)]
        means = np.array([[pairs[key] for pairs in by_model] for key in keys]).mean(axis=1)
        splits = [split for split, _ in keys]
        difference = paired_difference(*by_split(splits, means[:, 0], means[:, 1]), resamples=0)
        found.append(GraphEffect(dataset, tuple(sides), difference, len(keys), len(set(splits))))
    corrected = holm([effect.difference.family_p for effect in found])
    return [replace(effect, corrected_p=float(p)) for effect, p in zip(found, corrected, strict=True)]
