"""The choice of candidates by held-out labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sharpen.errors import InputError
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.evidence import Evidence

# So many trained candidates go on after the first round, and so many at most share the final vote.
SHORTLIST, MOST = 6, 3


def shortlist(
    evidence: Evidence,
    *,
    keep: np.ndarray | None = None,
    among: Callable[[Candidate], bool] = lambda candidate: True,
) -> list[Candidate]:
    """The best trained candidates by their first round, in which all met the same folds; alone and with spread labels.

    A candidate is as good as the better of the two. Of equals, one that uses the graph is better, since whoever gives a graph
    thinks that it matters; then the one that sharpens less, then the one that was tried first.
    """
    allowed = [candidate for candidate in evidence.sound if among(candidate)]
    if not allowed:
        raise InputError("every training run diverged; lower lr, or scale the features")
    best: dict[Candidate, float] = {}
    for candidate in allowed:
        score = round(evidence.score(candidate, keep, first_round=True), 9)
        best[candidate.rough] = max(score, best.get(candidate.rough, 0.0))
    first = sorted(best, key=lambda c: (-best[c], not c.uses_graph, c.lam + c.balance))[:SHORTLIST]
    return [candidate for rough in first for candidate in allowed if candidate.rough == rough]


def choose(
    evidence: Evidence,
    *,
    ensemble: bool = True,
    keep: np.ndarray | None = None,
    among: Callable[[Candidate], bool] = lambda candidate: True,
) -> list[Candidate]:
    """The best of the shortlist by its held-out score in all rounds; with ``ensemble``, also those within a standard error.

    Whether spread labels are listened to is chosen first, by the mean over the shortlist: it is one question, and few labels
    answer it better together than for each candidate alone. Few labels make equal scores; of equals, a candidate that uses the
    graph is better, then the one that is surprised least, then the one that sharpens less. Candidates that differ from the
    winner in whether they use the graph or sharpen at all do not join it, so that what is used is what is said.

    Args:
        evidence: Of all members.
        ensemble: Whether others may join the winner.
        keep: The labeled nodes to choose by; None: all.
        among: Which candidates may be chosen.
    """
    score = {candidate: evidence.score(candidate, keep) for candidate in shortlist(evidence, keep=keep, among=among)}
    alone, spread = ([score[c] for c in score if c.spread == asked] for asked in (False, True))
    asked = bool(spread) and (not alone or round(float(np.mean(spread) - np.mean(alone)), 9) > 0)
    surprise = {c: round(evidence.log_loss(c, keep), 3) for c in score if c.spread == asked}
    ranked = sorted(surprise, key=lambda c: (-round(score[c], 9), not c.uses_graph, surprise[c], c.lam + c.balance))
    best = ranked[0]
    if not ensemble:
        return [best]
    labels = len(evidence.y) if keep is None else int(keep.sum())
    error = np.sqrt(score[best] * (1 - score[best]) / max(1, labels))
    alike = [c for c in ranked if c.uses_graph == best.uses_graph and c.sharpens == best.sharpens]
    return [c for c in alike[:MOST] if score[c] >= score[best] - error]
