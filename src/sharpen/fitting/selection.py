"""The choice of candidates by held-out labels, and sentences that say how sure it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from sharpen.errors import InputError
from sharpen.evaluation.paired import PairedDifference, widened
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


@dataclass(frozen=True)
class Verdict:
    """One question put to the held-out labels, and its answer.

    Args:
        question: ``graph`` or ``sharpening``.
        helps: Whether what is used has it.
        clear: Whether the 95 % interval of the difference excludes zero.
        text: The answer as a sentence.
        difference: The best with it against the best without, in percentage points; see :func:`verdicts`.
        groups: The same group by group of labels, from :meth:`sharpen.fitting.evidence.Evidence.by_group`.
    """

    question: str
    helps: bool
    clear: bool
    text: str
    difference: PairedDifference
    groups: list[dict[str, float]] = field(default_factory=list, repr=False)


def verdicts(evidence: Evidence, best: Candidate, groups: Sequence[np.ndarray]) -> list[Verdict]:
    """Whether the graph helps, and whether sharpening does, as far as candidates were tried that tell.

    The best of many is the best by luck too, on the labels that made it so. Both sides are therefore chosen on all groups but
    one, the best with it and the best without, and compared on that one; for each group in turn. The choices for two groups
    share most of their labels, so that what they gain is not independent: where there is a choice, the interval is wider by the
    factor of Nadeau and Bengio (*Inference for the Generalization Error*, 2003), for five groups one and a half. Where nothing
    helps, that finds help in fewer than 5 of 100 searches, of a few variants or of 64.

    Args:
        evidence: Of all members.
        best: What is used.
        groups: Rows of labeled nodes, each at most once.
    """
    questions: dict[str, Callable[[Candidate], bool]] = {
        "graph": lambda candidate: candidate.uses_graph,
        "sharpening": lambda candidate: candidate.sharpens,
    }
    answers = []
    for question, has in questions.items():
        count = Counter(has(candidate) for candidate in evidence.sound)
        if len(count) == 2:
            a, b = (_judged_apart(evidence, groups, partial(_is, has, wanted)) for wanted in (True, False))
            difference = evidence.difference(a, b)
            if max(count.values()) > 1:
                difference = widened(difference, float(np.sqrt(1 + len(groups) / (len(groups) - 1))))
            answers.append(_answer(question, difference, evidence.by_group(a, b, groups), helps=has(best)))
    return answers


def _is(has: Callable[[Candidate], bool], wanted: bool, candidate: Candidate) -> bool:
    return has(candidate) == wanted


def _judged_apart(evidence: Evidence, groups: Sequence[np.ndarray], among: Callable[[Candidate], bool]) -> np.ndarray:
    """How often each labeled node was got right by the best of the candidates, as all groups but its own would choose it."""
    hits = np.full(len(evidence.y), np.nan)
    for group in groups:
        keep = np.ones(len(hits), dtype=bool)
        keep[group] = False
        (best,) = choose(evidence, ensemble=False, keep=keep, among=among)
        hits[group] = evidence.hits(best)[group]
    return hits


def _answer(question: str, difference: PairedDifference, groups: list[dict[str, float]], *, helps: bool) -> Verdict:
    subject, gain = ("the graph" if question == "graph" else "sharpening"), round(difference.difference, 9)
    interval, clear = "", False
    if difference.t_interval is not None:
        low, high = difference.t_interval
        clear = low > 0 or high < 0
        interval = f", 95 % CI [{_signed(low)}, {_signed(high)}]"
    closing = ""
    if clear:
        opening = f"{subject} {'helps' if gain > 0 else 'does not help'}".capitalize()
    else:
        opening = f"Whether {subject} helps, these labels cannot tell"
    if not clear or helps != (gain > 0):
        closing = f" What is used, the best by all labels, {'has' if helps else 'does without'} it."
    text = (
        f"{opening}: the best with it scores {_signed(gain)} points beside the best without{interval}, on {difference.n} held-out "
        f"labels that had no part in choosing the two.{closing}"
    )
    return Verdict(question, helps, clear, text, difference, groups)


def _signed(points: float) -> str:
    return f"{points:+.1f}".replace("-", "−")
