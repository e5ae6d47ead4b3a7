"""The choice of candidates by held-out labels, and sentences that say how sure it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sharpen.errors import InputError
from sharpen.evaluation.paired import PairedDifference
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

    A candidate is as good as the better of the two. Of equals, the one that sharpens less is better,
    then the one that was tried first.
    """
    allowed = [candidate for candidate in evidence.sound if among(candidate)]
    if not allowed:
        raise InputError("every training run diverged; lower lr, or scale the features")
    best: dict[Candidate, float] = {}
    for candidate in allowed:
        score = round(evidence.score(candidate, keep, first_round=True), 9)
        best[candidate.rough] = max(score, best.get(candidate.rough, 0.0))
    first = sorted(best, key=lambda c: (-best[c], c.lam + c.balance))[:SHORTLIST]
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
    answer it better together than for each candidate alone. Few labels make equal scores; of equals, the candidate that is
    surprised least is better, then the one that sharpens less. Candidates that differ from the winner in whether they use the
    graph or sharpen at all do not join it, so that what is used is what is said.

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
    ranked = sorted(surprise, key=lambda c: (-round(score[c], 9), surprise[c], c.lam + c.balance))
    best = ranked[0]
    if not ensemble:
        return [best]
    labels = len(evidence.y) if keep is None else int(keep.sum())
    error = np.sqrt(score[best] * (1 - score[best]) / max(1, labels))
    alike = [c for c in ranked if c.uses_graph == best.uses_graph and c.sharpens == best.sharpens]
    return [c for c in alike[:MOST] if score[c] >= score[best] - error]


@dataclass(frozen=True)
class Verdict:
    """One question put to the held-out labels, and its answer.

    Args:
        question: ``graph`` or ``sharpening``.
        helps: Whether what is used has it.
        clear: Whether the 95 % interval of the difference excludes zero.
        text: The answer as a sentence.
        difference: The best candidate with it against the best without, in percentage points.
        folds: The same fold by fold, from :meth:`sharpen.fitting.evidence.Evidence.folds`.
    """

    question: str
    helps: bool
    clear: bool
    text: str
    difference: PairedDifference
    folds: list[dict[str, float]] = field(default_factory=list, repr=False)


def verdicts(evidence: Evidence, best: Candidate) -> list[Verdict]:
    """Whether the graph helps, and whether sharpening does, as far as candidates were tried that tell."""
    # Those that were trained as often as the best: one lucky round is no match for the mean of several.
    peers = [c for c in evidence.sound if len(evidence.members[c]) >= len(evidence.members[best])]

    def strongest(among: Callable[[Candidate], bool]) -> Candidate | None:
        pool = [c for c in peers if among(c)] or [c for c in evidence.sound if among(c)]
        return max(pool, key=lambda c: (round(evidence.score(c), 9), -c.lam - c.balance), default=None)

    answers = []
    other = strongest(lambda c: c.uses_graph != best.uses_graph)
    if other is not None:
        with_graph, without = (best, other) if best.uses_graph else (other, best)
        answers.append(_answer("graph", evidence, with_graph, without, helps=best.uses_graph))
    sharp = best if best.sharpens else strongest(lambda c: c.sharpens and c.model == best.model)
    if sharp is not None and best.plain in evidence.sound:
        answers.append(_answer("sharpening", evidence, sharp, best.plain, helps=best.sharpens))
    return answers


def _answer(question: str, evidence: Evidence, a: Candidate, b: Candidate, *, helps: bool) -> Verdict:
    difference = evidence.difference(a, b)
    winner, loser, gain = (a, b, difference.difference) if helps else (b, a, -difference.difference)
    subject = "The graph" if question == "graph" else "Sharpening"
    interval, clear = "", False
    if difference.t_interval is not None:
        low, high = difference.t_interval if helps else (-difference.t_interval[1], -difference.t_interval[0])
        clear = low > 0 or high < 0
        interval = f", 95 % CI [{low:+.1f}, {high:+.1f}]"
    if not helps:
        opening = f"{subject} does not help"
    elif clear and gain > 0:
        opening = f"{subject} helps"
    else:
        opening = f"{subject} is used, though these labels cannot tell whether it helps"
    gap = round(gain, 9)
    relation = (
        f"beats {loser.name} by"
        if gap > 0
        else f"is behind {loser.name} by"
        if gap
        else f"does as well as {loser.name}"
    )
    relation += f" {abs(gap):.1f} points" if gap else ""
    text = f"{opening}: {winner.name} {relation} on held-out labels ({difference.n} nodes{interval})."
    return Verdict(question, helps, clear, text, difference, evidence.folds(a, b))
