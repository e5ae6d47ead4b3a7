"""A finished fit: the ensemble that predicts, and the account of how well it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from sharpen.errors import InputError
from sharpen.fitting.account import above_chance, account, beside_guessing, expected, surest, what_abstaining_buys
from sharpen.fitting.backbone import Backbone
from sharpen.fitting.calibrated import HonestPredictions, cross_fit
from sharpen.fitting.candidates import Candidate, trust_in
from sharpen.fitting.ensemble import Ensemble, build_ensemble
from sharpen.fitting.evidence import Evidence
from sharpen.fitting.folds import all_labels, deal, unchecked_classes
from sharpen.fitting.identity import identify
from sharpen.fitting.isolated import IsolatedNodes, isolated_nodes, judge_isolated
from sharpen.fitting.proportions import Proportions, drawn_evenly, find_proportions, reweighted, shifted
from sharpen.fitting.report import FitReport, Report, size_of
from sharpen.fitting.runs import Run
from sharpen.fitting.search import Found
from sharpen.fitting.selection import Shares, choose
from sharpen.fitting.verdicts import NAMES, QUESTIONS, sides, verdict
from sharpen.graph import Graph


@dataclass(frozen=True)
class Fitted:
    """What is needed to predict, and what is known about the predictions.

    Args:
        ensemble: What predicts.
        without_labels: What predicts on a graph of which no label is known, if that is not the same.
        known: The class of each node of the graph it was fitted on, −1 for unknown.
        graph_id: What that graph is recognised by.
        num_features, num_classes: What it takes and gives.
        report: Scores, verdicts and notes, ready for JSON.
        cuts: How the graph was taken in batches for each model (:class:`sharpen.fitting.backbone.Backbone`).
        curves: Traces of the runs of the best candidate (``chosen``) and of its plain twin (``plain``); not saved.
    """

    ensemble: Ensemble
    without_labels: Ensemble | None
    known: np.ndarray = field(repr=False)
    graph_id: str
    num_features: int
    num_classes: int
    report: Report = field(repr=False)
    cuts: dict[str, str | None] = field(default_factory=dict, repr=False)
    curves: dict[str, list[Mapping[str, np.ndarray]]] = field(default_factory=dict, repr=False)

    def probabilities(self, graph: Graph, backbone: Backbone, known: np.ndarray | None = None) -> np.ndarray:
        """Calibrated probabilities [N, C] for every node of a graph with the same features.

        Args:
            graph: To label; its own labels are not looked at.
            backbone: What the runs were trained with.
            known: The classes that may be spread, −1 for unknown. None: those it was fitted on, if it is that graph; else none.
        """
        if graph.num_features != self.num_features:
            raise InputError(
                f"the graph has {graph.num_features} features, but the model was fitted on {self.num_features}; "
                "give the same ones in the same order"
            )
        known = self.known_of(graph) if known is None else known
        usable = (known >= 0).any() or self.without_labels is None
        ensemble = self.ensemble if usable or self.without_labels is None else self.without_labels
        return ensemble.probabilities(graph, known, self.num_classes, backbone)

    def known_of(self, graph: Graph) -> np.ndarray:
        """The labels to spread that it remembers: on the graph it was fitted on, those of the fit; on any other, none.

        The same graph is the same features and edges, node by node in the same order. Ids do not count: another graph may number
        its nodes alike, and labels of the wrong nodes are worse than none.
        """
        if not self.ensemble.uses_labels or identify(graph) != self.graph_id:
            return np.full(graph.num_nodes, -1)
        if len(self.known) != graph.num_nodes:
            raise InputError(
                f"the model knows labels of {len(self.known)} nodes, but the graph it was fitted on, which is this one, has "
                f"{graph.num_nodes}; it is damaged, so fit again"
            )
        return self.known


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
    columns: Sequence[str] = (),
) -> Fitted:
    """Chooses among what a search found, calibrates the choice, and writes the account of it.

    Args:
        found: What was trained.
        graph: On what.
        backbone: By what.
        metric, ensemble, seed, settings: As they were asked for.
        notes, columns: For the report: what is known already.
    """
    y = graph.y.numpy()
    evidence = Evidence(found.runs, y, metric, trust_in(graph))
    shares = choose(evidence, ensemble=ensemble)
    best = next(iter(shares))
    if graph.edge_weight is not None and any(candidate.model == "gat" for candidate in shares):
        notes = [*notes, "GAT, which is used, learns weights of its own and does not read those of the edges"]
    notes = [*notes, *found.notes]
    runs_of = {candidate: len(evidence.runs[candidate]) + len(found.on_all.get(candidate, ())) for candidate in shares}
    final = None
    if not ensemble:
        # One run on every label takes the place of five on four fifths of them.
        final = next(iter(found.on_all.get(best.rough, ())), None)
        final = final or backbone.train(graph, [Run(best.rough, all_labels(y), 1000 * seed)])[0]
        if final.ok:
            runs_of[best] = 1
        else:
            final = None
            notes.append("the one run on all labels diverged, so those on four fifths of them are averaged")
    at = partial(_temperature_of_isolated, evidence, graph=graph, backbone=backbone)
    isolated = at(shares)
    used = build_ensemble(evidence, shares, graph, y, backbone, isolated=isolated, on_all=found.on_all, final=final)
    known = y if used.uses_labels else np.full_like(y, -1)
    delivered = used.probabilities(graph, known, graph.num_classes, backbone)
    groups = [evidence.rows(part) for part in deal(y, 1000 * seed + 999)]
    honest = cross_fit(evidence, groups, ensemble=ensemble)
    proportions = _proportions(delivered, honest, evidence, backbone)
    if proportions is not None:
        used = replace(used, factors=tuple(proportions.factors.tolist()))
        delivered = reweighted(delivered, proportions.factors)
        notes = [*notes, _note_of_shares(proportions, evidence, graph.class_names)]
    about_isolated = _account_of_isolated(graph, isolated)
    told = evidence, shares, runs_of, found, graph, delivered, proportions, groups, honest
    parts = _report(*told, ensemble=ensemble)
    warning = parts["surest"]["warning"]
    report = FitReport(
        **parts,
        metric=metric,
        settings=dict(settings),
        seed=seed,
        notes=[
            *notes,
            *_note_of_isolated(about_isolated),
            *backbone.collapses(shares),
            *([warning] if warning else []),
        ],
        temperature=used.temperature,
        isolated=about_isolated,
        graph=size_of(graph),
        columns=list(columns),
    ).to_dict()
    without_labels = None
    if used.uses_labels:
        alone = _without_labels(shares)
        without_labels = build_ensemble(
            evidence, alone, graph, np.full_like(y, -1), backbone, isolated=at(alone), on_all=found.on_all, final=final
        )
        without_labels = replace(without_labels, factors=used.factors)
    known, name = (y, identify(graph)) if used.uses_labels else (np.empty(0, dtype=np.int64), "")
    sizes = graph.num_features, graph.num_classes
    return Fitted(used, without_labels, known, name, *sizes, report, dict(backbone.cuts), _curves(evidence, best))


def _temperature_of_isolated(
    evidence: Evidence, shares: Shares, *, graph: Graph, backbone: Backbone
) -> IsolatedNodes | None:
    if not graph.num_edges or not any(candidate.uses_graph for candidate in shares):
        return None
    return judge_isolated(evidence, shares, graph, backbone)


def _curves(evidence: Evidence, best: Candidate) -> dict[str, list[Mapping[str, np.ndarray]]]:
    return {
        which: [own.traces for own in evidence.runs.get(candidate.rough, []) if own.ok and own.traces]
        for which, candidate in (("chosen", best), ("plain", best.plain))
    }


def _proportions(
    delivered: np.ndarray, honest: HonestPredictions, evidence: Evidence, backbone: Backbone
) -> Proportions | None:
    """How common classes are; None where labels or somebody else say it, rare ones count like others, or nothing can tell."""
    count = np.bincount(evidence.y, minlength=evidence.num_classes)
    asked = backbone.prior is not None or backbone.balanced or evidence.metric != "accuracy"
    unlabeled = np.delete(delivered, evidence.nodes, axis=0)
    if asked or not drawn_evenly(count) or not len(unlabeled) or not above_chance(honest, evidence):
        return None
    return find_proportions(unlabeled, honest.after, count)


def _note_of_shares(found: Proportions, evidence: Evidence, class_names: Sequence[str]) -> str:
    shares = found.ratios * np.bincount(evidence.y, minlength=len(class_names)) / len(evidence.y)
    said = ", ".join(f"{class_names[c]!r} {100 * shares[c]:.0f} %" for c in np.argsort(-shares, kind="stable")[:6])
    return (
        "most classes have the same number of labels, which does not say how common they are; by what is predicted the commonest "
        f"are taken to be {said}; whoever knows better can give the class proportions"
    )


def _without_labels(shares: Shares) -> Shares:
    """The same where no label can be spread: a candidate alone has the share that it had alone and beside spread labels."""
    alone: Shares = {}
    for candidate, share in shares.items():
        alone[candidate.rough] = alone.get(candidate.rough, 0.0) + share
    return alone


def _report(
    evidence: Evidence,
    shares: Shares,
    runs_of: Mapping[Candidate, int],
    found: Found,
    graph: Graph,
    delivered: np.ndarray,
    proportions: Proportions | None,
    groups: Sequence[np.ndarray],
    used: HonestPredictions,
    *,
    ensemble: bool,
) -> dict[str, Any]:
    asked = sides(evidence, groups, ensemble=ensemble, graph=graph.num_edges > 0)
    answers = [
        verdict(question, evidence, groups, both, helps=_mostly(QUESTIONS[question], shares), metric=evidence.metric)
        for question, both in asked.items()
    ]
    baselines = {
        f"{word} {NAMES[question]}": account(side, evidence)
        for question, both in asked.items()
        for word, side in zip(("with", "without"), both, strict=True)
    }
    unlabeled = graph.y.numpy() < 0
    predicted = np.bincount(delivered[unlabeled].argmax(1), minlength=graph.num_classes)
    count = np.bincount(evidence.y, minlength=graph.num_classes).tolist()
    given = shifted(used, proportions)  # what a threshold on delivered probabilities is about
    return {
        "chosen": [
            asdict(c) | {"name": c.name, "score": evidence.score(c), "members": runs_of[c], "share": round(share, 4)}
            for c, share in shares.items()
        ],
        "guessing": beside_guessing(used, evidence, graph.class_names, evidence.metric),
        "predicted": dict(zip(graph.class_names, predicted.tolist(), strict=True)),
        "verdicts": [asdict(answer) for answer in answers],
        "expected": expected(used, evidence, predicted, proportions),
        "baselines": baselines,
        "coverage": what_abstaining_buys(given, evidence),
        "surest": surest(given, evidence, delivered[unlabeled].max(1)),
        "candidates": [
            asdict(c)
            | {
                "name": c.name,
                "score": evidence.score(c),
                "members": len(own),
                "diverged": sum(not run.ok for run in own),
            }
            for c, own in evidence.runs.items()
        ],
        "labels": dict(zip(graph.class_names, count, strict=True)),
        "unchecked": unchecked_classes(count, graph.class_names),
        "runs": sum(not run.candidate.spread for run in found.runs),
        "rounds": found.rounds,
        "seconds": round(found.seconds, 2),
    }


def _mostly(has: Callable[[Candidate], bool], shares: Shares) -> bool:
    """Whether most of an ensemble has something."""
    return sum(share for candidate, share in shares.items() if has(candidate)) > 0.5


def _account_of_isolated(graph: Graph, isolated: IsolatedNodes | None) -> dict[str, Any] | None:
    """How many nodes have no edge, and how well they should be predicted; None where the edges are not used."""
    if isolated is None:
        return None
    nodes, labeled = isolated_nodes(graph), graph.y.numpy() >= 0
    return {"unlabeled": int((nodes & ~labeled).sum()), "labeled": int((nodes & labeled).sum()), **asdict(isolated)}


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
