"""A finished fit: the members that vote, how much their opinions count, and the account of how well they do."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import softmax

from sharpen.errors import InputError
from sharpen.evaluation.calibration import temperature_for_confidence
from sharpen.fitting.account import account, beside_guessing, expected, surest, what_abstaining_buys
from sharpen.fitting.backbone import Backbone
from sharpen.fitting.calibrated import cross_fit, fit_mean_temperature, sharpen_by
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.evidence import Evidence
from sharpen.fitting.folds import all_labels, deal, unchecked_classes
from sharpen.fitting.isolated import IsolatedNodes, isolated_nodes, judge_isolated
from sharpen.fitting.members import Job, Listener, Member
from sharpen.fitting.search import Found
from sharpen.fitting.selection import choose
from sharpen.fitting.spreading import CAUTION, features_of
from sharpen.fitting.verdicts import NAMES, QUESTIONS, sides, verdict
from sharpen.graph import Graph

_ROWS = 4096


@dataclass(frozen=True)
class Voters:
    """The members of one candidate.

    Args:
        candidate: What they are.
        counts: How much each of their opinions counts.
        weights: The parameters of each.
    """

    candidate: Candidate
    counts: list[float]
    weights: list[dict[str, np.ndarray]] = field(repr=False)


@dataclass(frozen=True)
class Jury:
    """Voters whose mean is what is predicted.

    Args:
        voters: By candidate, the best first.
        temperature: Of the mean of their probabilities.
        lonely: The same for nodes without an edge; None where it makes no difference.
        caution: Of spread labels (:mod:`sharpen.fitting.spreading`); 0 in models that were saved before there was any.
    """

    voters: list[Voters]
    temperature: float
    lonely: float | None = None
    caution: float = CAUTION

    @property
    def spreads(self) -> bool:
        """Whether it makes use of known labels."""
        return any(group.candidate.spread for group in self.voters)

    def probabilities(self, graph: Graph, known: np.ndarray, num_classes: int, backbone: Backbone) -> np.ndarray:
        """Calibrated probabilities [N, C]."""
        total, count = np.zeros((graph.num_nodes, num_classes)), 0
        for vote in _votes(self.voters, graph, known, num_classes, backbone, self.caution):
            total += vote
            count += 1
        probabilities = sharpen_by(total / count, self.temperature)
        if self.lonely is not None:
            nodes = isolated_nodes(graph)
            probabilities[nodes] = sharpen_by(total[nodes] / count, self.lonely)
        return probabilities


@dataclass(frozen=True)
class Fitted:
    """What is needed to predict, and what is known about the predictions.

    Args:
        jury: Who votes.
        without_labels: Who votes on a graph of which no label is known, if that is not the same.
        known: The class of each node of the graph it was fitted on, −1 for unknown.
        graph_id: What that graph is recognised by.
        num_features, num_classes: What it takes and gives.
        report: Scores, verdicts and notes, ready for JSON.
        cuts: How the graph was taken in batches for each model (:class:`sharpen.fitting.backbone.PopulationBackbone`).
        curves: Traces of the members of the best candidate (``chosen``) and of its plain twin (``plain``); not saved.
    """

    jury: Jury
    without_labels: Jury | None
    known: np.ndarray = field(repr=False)
    graph_id: str
    num_features: int
    num_classes: int
    report: dict[str, Any] = field(repr=False)
    cuts: dict[str, str | None] = field(default_factory=dict, repr=False)
    curves: dict[str, list[Mapping[str, np.ndarray]]] = field(default_factory=dict, repr=False)

    def probabilities(self, graph: Graph, backbone: Backbone, known: np.ndarray | None = None) -> np.ndarray:
        """Calibrated probabilities [N, C] for every node of a graph with the same features.

        Args:
            graph: To label; its own labels are not looked at.
            backbone: What the members were trained with.
            known: The classes that may be spread, −1 for unknown. None: those it was fitted on, if it is that graph; else none.
        """
        if graph.num_features != self.num_features:
            raise InputError(
                f"the graph has {graph.num_features} features, but the model was fitted on {self.num_features}; "
                "give the same ones in the same order"
            )
        known = self.known_of(graph) if known is None else known
        jury = self.jury if (known >= 0).any() or self.without_labels is None else self.without_labels
        return jury.probabilities(graph, known, self.num_classes, backbone)

    def known_of(self, graph: Graph) -> np.ndarray:
        """The labels to spread that it remembers: on the graph it was fitted on, those of the fit; on any other, none.

        The same graph is the same features and edges, node by node in the same order. Ids do not count: another graph may number
        its nodes alike, and labels of the wrong nodes are worse than none.
        """
        if not self.jury.spreads or identify(graph) != self.graph_id:
            return np.full(graph.num_nodes, -1)
        if len(self.known) != graph.num_nodes:
            raise InputError(
                f"the model knows labels of {len(self.known)} nodes, but the graph it was fitted on, which is this one, has "
                f"{graph.num_nodes}; it is damaged, so fit again"
            )
        return self.known


def identify(graph: Graph) -> str:
    """What stands for a graph apart from its labels: its features, and the pattern along which messages travel.

    >>> graph = Graph(x=np.eye(2), edge_index=[[0], [1]], y=[0, 1])
    >>> identify(graph) == identify(Graph(x=np.eye(2), edge_index=[[0], [1]]))
    True
    """
    adjacency, x = graph.adjacency, features_of(graph)
    digest = hashlib.sha256()

    def add(values: np.ndarray, dtype: str) -> None:
        contiguous: Any = np.ascontiguousarray(values, dtype=dtype)  # one byte order; no copy where it is that already
        digest.update(contiguous)

    add(np.array([graph.num_nodes, graph.num_features, adjacency.nnz]), "<i8")
    for start in range(0, graph.num_nodes, _ROWS):  # in blocks, so that a large graph is not held twice
        block = scipy.sparse.csr_array(x[start : start + _ROWS])  # the same for dense and sparse features
        add(block.indptr, "<i8")
        add(block.indices, "<i8")
        add(block.data, "<f4")
    add(adjacency.rowptr.numpy(), "<i4")
    add(adjacency.col.numpy(), "<i4")
    if adjacency.weight is not None:
        add(adjacency.weight.numpy(), "<f8")
    return digest.hexdigest()


def _votes(
    voters: Sequence[Voters],
    graph: Graph,
    known: np.ndarray,
    num_classes: int,
    backbone: Backbone,
    caution: float = CAUTION,
) -> Iterator[np.ndarray]:
    """What each member says of every node, its opinions weighed: probabilities [N, C], one after the other."""
    listener = Listener(graph)
    for group in voters:
        for logits in backbone.logits(graph, group.candidate.model, num_classes, group.weights):
            said = listener.opinions(logits, group.candidate.spread, known, caution=caution)
            yield softmax(np.tensordot(group.counts, said, 1), axis=1)


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
    if graph.edge_weight is not None and any(candidate.model == "gat" for candidate in chosen):
        notes = [*notes, "GAT, which is used, learns weights of its own and does not read those of the edges"]
    notes, votes_of = [*notes, *found.notes], {candidate: len(evidence.members[candidate]) for candidate in chosen}
    final = None
    if not ensemble:
        # One run on every label takes the place of five on four fifths of them.
        final = backbone.train(graph, [Job(chosen[0].rough, all_labels(y), 1000 * seed)])[0]
        if final.ok:
            votes_of[chosen[0]] = 1
        else:
            final = None
            notes.append("the one run on all labels diverged, so the runs on four fifths of them vote together")
    lonely = judge_isolated(evidence, chosen, graph, backbone) if graph.num_edges and chosen[0].uses_graph else None
    jury = _jury(evidence, chosen, final, graph, y, backbone, lonely)
    alone_account = _account_of_isolated(graph, lonely)
    delivered = jury.probabilities(graph, y if jury.spreads else np.full_like(y, -1), graph.num_classes, backbone)
    report = _report(evidence, chosen, votes_of, found, graph, delivered, ensemble=ensemble, seed=seed, metric=metric)
    notes += [*_note_of_isolated(alone_account), *backbone.collapses(chosen)]
    if report["surest"]["warning"]:
        notes.append(report["surest"]["warning"])
    report |= {"metric": metric, "settings": dict(settings), "seed": seed, "notes": notes}
    report |= {"temperature": jury.temperature, "lonely": alone_account}
    without_labels = None
    if jury.spreads:
        alone = [candidate.rough for candidate in chosen]
        lonely = None if lonely is None else judge_isolated(evidence, alone, graph, backbone)
        without_labels = _jury(evidence, alone, final, graph, np.full_like(y, -1), backbone, lonely)
    known, name = (y, identify(graph)) if jury.spreads else (np.empty(0, dtype=np.int64), "")
    curves = {
        which: [own.traces for own in evidence.members.get(candidate.rough, []) if own.ok and own.traces]
        for which, candidate in (("chosen", chosen[0]), ("plain", chosen[0].plain))
    }
    return Fitted(
        jury, without_labels, known, name, graph.num_features, graph.num_classes, report, dict(backbone.cuts), curves
    )


def _jury(
    evidence: Evidence,
    chosen: Sequence[Candidate],
    final: Member | None,
    graph: Graph,
    known: np.ndarray,
    backbone: Backbone,
    lonely: IsolatedNodes | None,
) -> Jury:
    """The voters of the chosen candidates: all members of theirs, or the final one."""
    alone_at = None if lonely is None else lonely.temperature
    folds = [Voters(c, evidence.weights(c).tolist(), [own.weights for own in evidence.members[c]]) for c in chosen]
    places = [place for c in chosen for place in _places_in_round([own.round_number for own in evidence.members[c]])]
    temperature = fit_mean_temperature(evidence, chosen)
    if final is None and max(places) == 0:
        return Jury(folds, temperature, alone_at)
    nodes = _some_unlabeled(graph)
    said = [vote[nodes] for vote in _votes(folds, graph, known, graph.num_classes, backbone)]
    confidence = _confidence_of_folds(said, places, temperature)
    if final is None:
        return Jury(folds, temperature_for_confidence(np.mean(said, axis=0), confidence), alone_at)
    alone = [Voters(chosen[0], folds[0].counts, [final.weights])]
    vote = next(_votes(alone, graph, known, graph.num_classes, backbone))
    return Jury(alone, temperature_for_confidence(vote[nodes], confidence), alone_at)


def _places_in_round(rounds: Sequence[int]) -> list[int]:
    """The fold of each member: how many of its round came before it.

    >>> _places_in_round([0, 0, 1, 1])
    [0, 1, 0, 1]
    """
    return [list(rounds[:i]).count(number) for i, number in enumerate(rounds)]


def _some_unlabeled(graph: Graph, most: int = 5000) -> np.ndarray:
    unlabeled = np.flatnonzero(graph.y.numpy() < 0)
    nodes = unlabeled if len(unlabeled) else np.arange(graph.num_nodes)
    return np.random.default_rng(0).permutation(nodes)[:most]


def _confidence_of_folds(said: Sequence[np.ndarray], places: Sequence[int], temperature: float) -> float:
    """How sure the mean over one fold of each round is, at the temperature that was fitted for it.

    A labeled node has no other members that never met it, so that is what could be calibrated. The mean over all folds, or one
    run on all labels, has another confidence, and if anything is more often right: on nodes without a label it is made as sure
    as this.
    """
    by_fold: dict[int, list[np.ndarray]] = {}
    for place, vote in zip(places, said, strict=True):
        by_fold.setdefault(place, []).append(vote)
    return float(np.mean([sharpen_by(np.mean(own, axis=0), temperature).max(1).mean() for own in by_fold.values()]))


def _report(
    evidence: Evidence,
    chosen: list[Candidate],
    votes_of: Mapping[Candidate, int],
    found: Found,
    graph: Graph,
    delivered: np.ndarray,
    *,
    ensemble: bool,
    seed: int,
    metric: str,
) -> dict[str, Any]:
    y = graph.y.numpy()
    groups = [evidence.rows(part) for part in deal(y, 1000 * seed + 999)]
    used = cross_fit(evidence, groups, ensemble=ensemble)
    asked = sides(evidence, groups, ensemble=ensemble, graph=graph.num_edges > 0)
    answers = [
        verdict(question, evidence, groups, both, helps=QUESTIONS[question](chosen[0]), metric=metric)
        for question, both in asked.items()
    ]
    baselines = {
        f"{word} {NAMES[question]}": account(side, evidence)
        for question, both in asked.items()
        for word, side in zip(("with", "without"), both, strict=True)
    }
    unlabeled = y < 0
    predicted = np.bincount(delivered[unlabeled].argmax(1), minlength=graph.num_classes)
    count = np.bincount(evidence.y, minlength=graph.num_classes).tolist()
    return {
        "chosen": [asdict(c) | {"name": c.name, "score": evidence.score(c), "members": votes_of[c]} for c in chosen],
        "guessing": beside_guessing(used, evidence, graph.class_names, metric),
        "predicted": dict(zip(graph.class_names, predicted.tolist(), strict=True)),
        "verdicts": [asdict(answer) for answer in answers],
        "expected": expected(used, evidence, predicted),
        "baselines": baselines,
        "coverage": what_abstaining_buys(used, evidence),
        "surest": surest(used, evidence, delivered[unlabeled].max(1)),
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
        "unchecked": unchecked_classes(count, graph.class_names),
        "runs": sum(not member.candidate.spread for member in found.members),
        "rounds": found.rounds,
        "seconds": round(found.seconds, 2),
    }


def _account_of_isolated(graph: Graph, lonely: IsolatedNodes | None) -> dict[str, Any] | None:
    """How many nodes have no edge, and how well they should be predicted; None where the edges are not used."""
    if lonely is None:
        return None
    nodes, labeled = isolated_nodes(graph), graph.y.numpy() >= 0
    return {"unlabeled": int((nodes & ~labeled).sum()), "labeled": int((nodes & labeled).sum()), **asdict(lonely)}


def _note_of_isolated(account: dict[str, Any] | None) -> list[str]:
    # Where no labeled node has an edge either, the accuracy is theirs.
    if account is None or not account["unlabeled"] or account["labeled"] == account["labels"]:
        return []
    many = account["unlabeled"] > 1
    return [
        f"{account['unlabeled']:,} unlabeled node{'s have' if many else ' has'} no edge, and the accuracy above is not "
        f"{'theirs' if many else 'its own'}: of labeled nodes whose edges were taken away "
        f"{100 * account['accuracy']:.1f} % are got right, and probabilities are made as modest as that"
    ]
