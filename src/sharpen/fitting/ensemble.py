"""What predicts: the runs of the chosen candidates, how much each candidate contributes, and one temperature for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import softmax

from sharpen.evaluation.calibration import temperature_for_confidence
from sharpen.fitting.backbone import Backbone
from sharpen.fitting.calibrated import fit_mean_temperature, sharpen_by
from sharpen.fitting.candidates import FEW_LABELS, Candidate
from sharpen.fitting.evidence import Evidence
from sharpen.fitting.isolated import IsolatedNodes, isolated_nodes
from sharpen.fitting.proportions import reweighted
from sharpen.fitting.runs import Listener, Run
from sharpen.fitting.selection import Shares
from sharpen.fitting.spreading import CAUTION
from sharpen.graph import Graph

# What runs on all labels have of the share of their candidate; runs on folds learn from too few where labels are few.
_ON_ALL, _ON_ALL_OF_FEW = 0.5, 0.75


@dataclass(frozen=True)
class Part:
    """Runs of one candidate.

    Args:
        candidate: What they are.
        share: How much they contribute, together; the shares of an ensemble sum to 1.
        counts: How much each of their opinions counts.
        weights: What each has learnt.
    """

    candidate: Candidate
    share: float
    counts: list[float]
    weights: list[dict[str, np.ndarray]] = field(repr=False)


@dataclass(frozen=True)
class Ensemble:
    """Parts whose mean is what is predicted.

    Args:
        parts: By candidate, the largest share first.
        temperature: Of the mean of their probabilities.
        isolated: The same for nodes without an edge; None where it makes no difference.
        caution: Of spread labels (:mod:`sharpen.fitting.spreading`); 0 in models that were saved before there was any.
        factors: What probabilities of each class are multiplied by at last (:mod:`sharpen.fitting.proportions`).
    """

    parts: list[Part]
    temperature: float
    isolated: float | None = None
    caution: float = CAUTION
    factors: tuple[float, ...] | None = None

    @property
    def uses_labels(self) -> bool:
        """Whether it makes use of known labels of the graph it predicts."""
        return any(part.candidate.uses_labels for part in self.parts)

    def probabilities(self, graph: Graph, known: np.ndarray, num_classes: int, backbone: Backbone) -> np.ndarray:
        """Calibrated probabilities [N, C]."""
        mean = np.zeros((graph.num_nodes, num_classes))
        for part, _, said in self.said(graph, known, num_classes, backbone):
            mean += part.share / len(part.weights) * said
        probabilities = sharpen_by(mean, self.temperature)
        if self.isolated is not None:
            nodes = isolated_nodes(graph)
            probabilities[nodes] = sharpen_by(mean[nodes], self.isolated)
        return probabilities if self.factors is None else reweighted(probabilities, np.array(self.factors))

    def said(
        self, graph: Graph, known: np.ndarray, num_classes: int, backbone: Backbone
    ) -> Iterator[tuple[Part, int, np.ndarray]]:
        """What each run says of every node, its opinions weighed: its part, its place there, and probabilities [N, C]."""
        listener = Listener(graph)
        for part in self.parts:
            scores = backbone.logits(graph, part.candidate.model, num_classes, part.weights, known)
            for place, logits in enumerate(scores):
                opinions = listener.opinions(logits, part.candidate.spread, known, caution=self.caution)
                yield part, place, softmax(np.tensordot(part.counts, opinions, 1), axis=1)


def build_ensemble(
    evidence: Evidence,
    shares: Shares,
    graph: Graph,
    known: np.ndarray,
    backbone: Backbone,
    *,
    isolated: IsolatedNodes | None = None,
    on_all: Mapping[Candidate, Sequence[Run]] | None = None,
    final: Run | None = None,
) -> Ensemble:
    """The ensemble of all runs of the chosen candidates, or of the final one, and its temperature.

    Args:
        evidence: Of all runs.
        shares: Of the chosen candidates.
        graph: What they were fitted on.
        known: The labels that may be used where it predicts, −1 elsewhere.
        backbone: What they were trained with.
        isolated: What is known of nodes without an edge.
        on_all: Runs on all labels: they count as much as those on folds together, and three times as much with few labels.
        final: One run on all labels, in the place of all others.
    """
    parts, rounds = [], list[list[int | None]]()
    whole = _ON_ALL if np.median(np.bincount(evidence.y)) > FEW_LABELS else _ON_ALL_OF_FEW
    for candidate, share in shares.items():
        own, counts = [run for run in evidence.runs[candidate] if run.ok], evidence.weights(candidate).tolist()
        more = (on_all or {}).get(candidate, ())
        parts.append(Part(candidate, share * (1 - whole) if more else share, counts, [run.weights for run in own]))
        rounds.append([*_places_in_round([run.round_number for run in own])])
        if more:
            parts.append(Part(candidate, share * whole, counts, [run.weights for run in more]))
            rounds.append([None] * len(more))
    temperature = fit_mean_temperature(evidence, shares)
    ensemble = Ensemble(parts, temperature, None if isolated is None else isolated.temperature)
    if final is None and all(own == [0] * len(own) for own in rounds):
        return ensemble
    nodes = _some_unlabeled(graph)
    mean, confidence = _mean_and_confidence(ensemble, rounds, graph, known, nodes, backbone)
    if final is not None:
        ensemble = replace(ensemble, parts=[replace(parts[0], share=1.0, weights=[final.weights])])
        mean = next(ensemble.said(graph, known, graph.num_classes, backbone))[2][nodes]
    return replace(ensemble, temperature=temperature_for_confidence(mean, confidence))


def _mean_and_confidence(
    ensemble: Ensemble,
    rounds: Sequence[Sequence[int | None]],
    graph: Graph,
    known: np.ndarray,
    nodes: np.ndarray,
    backbone: Backbone,
) -> tuple[np.ndarray, float]:
    """The mean over all runs at some nodes, and how sure the mean over one fold of each round is, at the fitted temperature.

    A labeled node has no other runs that never met it, so that is what could be calibrated. The mean over all folds, or one run on
    all labels, has another confidence, and if anything is more often right: on nodes without a label it is made as sure as this.
    """
    place = {id(part): number for number, part in enumerate(ensemble.parts)}
    mean = np.zeros((len(nodes), graph.num_classes))
    folds: dict[int | None, np.ndarray] = {}
    for part, run, said in ensemble.said(graph, known, graph.num_classes, backbone):
        own = rounds[place[id(part)]]
        mean += part.share / len(own) * said[nodes]
        if own[run] is None:
            continue
        weight = part.share / own.count(own[run])
        folds[own[run]] = folds.get(own[run], 0.0) + weight * said[nodes]
    sure = [
        sharpen_by(fold / fold.sum(1, keepdims=True), ensemble.temperature).max(1).mean() for fold in folds.values()
    ]
    return mean, float(np.mean(sure))


def _places_in_round(rounds: Sequence[int]) -> list[int]:
    """The fold of each run: how many of its round came before it.

    >>> _places_in_round([0, 0, 1, 1])
    [0, 1, 0, 1]
    """
    return [list(rounds[:i]).count(number) for i, number in enumerate(rounds)]


def _some_unlabeled(graph: Graph, most: int = 5000) -> np.ndarray:
    unlabeled = np.flatnonzero(graph.y.numpy() < 0)
    nodes = unlabeled if len(unlabeled) else np.arange(graph.num_nodes)
    return np.random.default_rng(0).permutation(nodes)[:most]
