"""A finished fit: the members that vote, their temperatures, and the account of how well they do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import softmax

from sharpen.errors import InputError
from sharpen.evaluation.calibration import reliability, temperature_for_confidence
from sharpen.fitting.calibrated import (
    HonestPredictions,
    coverage,
    cross_fit,
    fit_mean_temperature,
    quality,
    sharpen_by,
)
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.evidence import Evidence
from sharpen.fitting.folds import deal
from sharpen.fitting.members import Backbone
from sharpen.fitting.search import Found
from sharpen.fitting.selection import choose, verdicts
from sharpen.fitting.smoothing import smoothed
from sharpen.graph import Graph


@dataclass(frozen=True)
class Voters:
    """The members of one candidate: their weights, and the temperature of each one's scores."""

    candidate: Candidate
    temperatures: list[float]
    weights: list[dict[str, np.ndarray]] = field(repr=False)


@dataclass(frozen=True)
class Fitted:
    """What is needed to predict, and what is known about the predictions.

    Args:
        voters: By candidate, the best first.
        temperature: Of the mean of their probabilities.
        num_features, num_classes: What it takes and gives.
        report: Scores, verdicts and notes, ready for JSON.
        curves: Traces of the members of the best candidate (``chosen``) and of its plain twin (``plain``); not saved.
    """

    voters: list[Voters]
    temperature: float
    num_features: int
    num_classes: int
    report: dict[str, Any] = field(repr=False)
    curves: dict[str, list[Mapping[str, np.ndarray]]] = field(default_factory=dict, repr=False)

    def probabilities(self, graph: Graph, backbone: Backbone) -> np.ndarray:
        """Calibrated probabilities [N, C] for every node of a graph with the same features."""
        if graph.num_features != self.num_features:
            raise InputError(
                f"the graph has {graph.num_features} features, but the model was fitted on {self.num_features}; "
                "give the same ones in the same order"
            )
        total, count = np.zeros((graph.num_nodes, self.num_classes)), 0
        for vote in votes(self.voters, graph, self.num_classes, backbone):
            total += vote
            count += 1
        return sharpen_by(total / count, self.temperature)


def votes(voters: Sequence[Voters], graph: Graph, num_classes: int, backbone: Backbone) -> Iterator[np.ndarray]:
    """What each member says of every node, at its own temperature: probabilities [N, C], one after the other."""
    for group in voters:
        scores = backbone.logits(graph, group.candidate.model, num_classes, group.weights)
        for logits, temperature in zip(scores, group.temperatures, strict=True):
            final = smoothed(graph, logits) if group.candidate.smooth else logits.astype(np.float64)
            yield softmax(final / temperature, axis=1)


def conclude(
    found: Found,
    graph: Graph,
    backbone: Backbone,
    *,
    metric: str,
    ensemble: bool,
    seed: int,
    settings: Mapping[str, Any],
    notes: Sequence[str] = (),
) -> Fitted:
    """Chooses among what a search found, calibrates the choice, and writes the account of it."""
    y = graph.y.numpy()
    evidence = Evidence(found.members, y, metric)
    chosen = choose(evidence, ensemble=ensemble)
    report = _report(evidence, chosen, found, graph, ensemble, seed)
    report |= {"metric": metric, "settings": dict(settings), "seed": seed, "notes": [*notes, *found.notes]}
    voters, places = [], []
    for candidate in chosen:
        members = evidence.members[candidate]
        if not ensemble:
            members = [max(members, key=lambda own: (own.val_logits.argmax(1) == y[own.val]).mean())]
        own_temperatures = [evidence.temperature(own) for own in members]
        voters.append(Voters(candidate, own_temperatures, [own.weights for own in members]))
        places += _places_in_round([own.round_number for own in members])
    temperature = _ensemble_temperature(voters, places, fit_mean_temperature(evidence, chosen), graph, backbone)
    report["temperature"] = temperature
    curves = {
        name: [own.traces for own in evidence.members.get(candidate.rough, []) if own.ok and own.traces]
        for name, candidate in (("chosen", chosen[0]), ("plain", chosen[0].plain))
    }
    return Fitted(voters, temperature, graph.num_features, graph.num_classes, report, curves)


def _places_in_round(rounds: Sequence[int]) -> list[int]:
    """The fold of each member: how many of its round came before it.

    >>> _places_in_round([0, 0, 1, 1])
    [0, 1, 0, 1]
    """
    return [list(rounds[:i]).count(number) for i, number in enumerate(rounds)]


def _ensemble_temperature(
    voters: Sequence[Voters], places: Sequence[int], temperature: float, graph: Graph, backbone: Backbone
) -> float:
    """The temperature of the mean of all votes.

    It was fitted for the mean over one fold of each round, since a labeled node has no other members that never met it. The mean
    over all folds is flatter, and if anything more often right. So on nodes without a label it is made as sure as the means of
    single folds are there.
    """
    if max(places) == 0:
        return temperature
    unlabeled = np.flatnonzero(graph.y.numpy() < 0)
    nodes = unlabeled if len(unlabeled) else np.arange(graph.num_nodes)
    nodes = np.random.default_rng(0).permutation(nodes)[:5000]
    by_fold: dict[int, list[np.ndarray]] = {}
    for place, vote in zip(places, votes(voters, graph, graph.num_classes, backbone), strict=True):
        by_fold.setdefault(place, []).append(vote[nodes])
    single = [sharpen_by(np.mean(own, axis=0), temperature).max(1).mean() for own in by_fold.values()]
    together = np.mean([vote for own in by_fold.values() for vote in own], axis=0)
    return temperature_for_confidence(together, float(np.mean(single)))


def _report(
    evidence: Evidence,
    chosen: list[Candidate],
    found: Found,
    graph: Graph,
    ensemble: bool,
    seed: int,
) -> dict[str, Any]:
    groups = [evidence.rows(part) for part in deal(graph.y.numpy(), 1000 * seed + 999)]
    used = cross_fit(evidence, groups, ensemble=ensemble)
    baselines = {}
    if any(c.sharpens for c in evidence.sound) and any(not c.sharpens for c in evidence.sound):
        plain = cross_fit(evidence, groups, ensemble=ensemble, among=lambda c: not c.sharpens)
        baselines["without sharpening"] = _account(plain, evidence)
    if any(c.uses_graph for c in evidence.sound) and any(not c.uses_graph for c in evidence.sound):
        without = cross_fit(evidence, groups, ensemble=ensemble, among=lambda c: not c.uses_graph)
        baselines["without the graph"] = _account(without, evidence)
    count = np.bincount(evidence.y, minlength=graph.num_classes).tolist()
    answers = verdicts(evidence, chosen[0])
    return {
        "chosen": [
            asdict(c)
            | {
                "name": c.name,
                "score": evidence.score(c),
                "members": len(evidence.members[c]),
            }
            for c in chosen
        ],
        "verdicts": [asdict(answer) for answer in answers],
        "expected": _account(used, evidence) | _detail(used, evidence),
        "baselines": baselines,
        "coverage": coverage(used.after, evidence.y[used.rows]),
        "candidates": [
            asdict(c)
            | {
                "name": c.name,
                "score": evidence.score(c),
                "members": len(own),
                "diverged": sum(not member.ok for member in own),
            }
            for c, own in evidence.members.items()
        ],
        "labels": dict(zip(graph.class_names, count, strict=True)),
        "runs": len(found.members),
        "rounds": found.rounds,
        "seconds": round(found.seconds, 2),
    }


def _account(honest: HonestPredictions, evidence: Evidence) -> dict[str, Any]:
    """Scores before and after calibration, and how far the accuracy may be off with so few nodes (Wilson's interval)."""
    y = evidence.y[honest.rows]
    hits = int((honest.after.argmax(1) == y).sum())
    interval = stats.binomtest(hits, len(y)).proportion_ci(0.95, method="wilson")
    return {
        "nodes": len(y),
        "accuracy_interval": [float(interval.low), float(interval.high)],
        "before": quality(honest.before, y),
        "after": quality(honest.after, y),
    }


def _detail(honest: HonestPredictions, evidence: Evidence) -> dict[str, Any]:
    """Which class is taken for which, and bin by bin how far confidence can be believed."""
    y = evidence.y[honest.rows]
    confusion = np.zeros((evidence.num_classes, evidence.num_classes), dtype=np.int64)
    np.add.at(confusion, (y, honest.after.argmax(1)), 1)
    bins = {}
    for name, probabilities in (("before", honest.before), ("after", honest.after)):
        table = reliability(probabilities, y)
        bins[name] = {
            "nodes": table.nodes.tolist(),
            "confidence": [None if np.isnan(value) else float(value) for value in table.confidence],
            "accuracy": [None if np.isnan(value) else float(value) for value in table.accuracy],
        }
    return {"confusion": confusion.tolist(), "reliability": bins}
