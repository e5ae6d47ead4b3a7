"""Whether the graph helps, and whether sharpening does: two searches, judged by labels that had no part in either."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sharpen.evaluation.paired import PairedDifference, paired_difference, widened
from sharpen.fitting.calibrated import HonestPredictions, cross_fit
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.evidence import Evidence

QUESTIONS: dict[str, Callable[[Candidate], bool]] = {
    "graph": lambda candidate: candidate.uses_graph,
    "sharpening": lambda candidate: candidate.sharpens,
}
# Like is held against like: only networks can be sharpened, so that they are what is asked about it.
_ASKED_OF: dict[str, Callable[[Candidate], bool]] = {
    "graph": lambda candidate: True,
    "sharpening": lambda candidate: candidate.is_network,
}
NAMES = {"graph": "the graph", "sharpening": "sharpening"}
_METRIC_NAMES = {"accuracy": "accuracy", "balanced-accuracy": "balanced accuracy"}


@dataclass(frozen=True)
class Verdict:
    """One question put to the held-out labels, and its answer.

    Args:
        question: ``graph`` or ``sharpening``.
        helps: Whether what is used has it.
        clear: Whether the 95 % interval of the difference in log-loss excludes zero.
        text: The answer as a sentence.
        log_loss: With it against without, per label: below zero where it helps.
        difference: The same in percentage points of the metric.
        groups: The same group by group of labels, from :meth:`sharpen.fitting.evidence.Evidence.by_group`.
    """

    question: str
    helps: bool
    clear: bool
    text: str
    log_loss: PairedDifference
    difference: PairedDifference
    groups: list[dict[str, float]] = field(default_factory=list, repr=False)


def sides(
    evidence: Evidence, groups: Sequence[np.ndarray], *, ensemble: bool = True, graph: bool = True
) -> dict[str, tuple[HonestPredictions, HonestPredictions]]:
    """For each question that the candidates can answer: what the best with it say, and the best without.

    Both are chosen, pooled and calibrated as what is used is, among the candidates that have it and among those that do not (of
    those that could: only networks are asked about sharpening); and on all groups but one, to predict that one. Where a short
    budget had one of them judged on fewer labels, both are held to these, so that a sentence and a table say the same of them.

    Args:
        evidence: Of all runs.
        groups: Rows of labeled nodes, each at most once.
        ensemble: As for :func:`sharpen.fitting.selection.choose`.
        graph: Whether there is a graph to ask about.
    """
    found = {}
    for question, has in QUESTIONS.items():
        asked = set(filter(_ASKED_OF[question], evidence.sound))
        having = set(filter(has, asked))
        if (graph or question != "graph") and having and having < asked:
            both = [
                cross_fit(evidence, groups, ensemble=ensemble, among=side.__contains__)
                for side in (having, asked - having)
            ]
            rows = np.intersect1d(both[0].rows, both[1].rows)
            if len(rows):
                found[question] = (both[0].of(rows), both[1].of(rows))
    return found


def verdict(
    question: str,
    evidence: Evidence,
    groups: Sequence[np.ndarray],
    sides: tuple[HonestPredictions, HonestPredictions],
    *,
    helps: bool,
    metric: str = "accuracy",
) -> Verdict:
    """The answer to one question.

    Log-loss decides: it hears of every probability, where accuracy hears only of answers that change, and so can tell with labels
    that are too few for accuracy to. Accuracy stands beside it. The choices for two groups share most of their labels, so that
    what they gain is not independent: where there is a choice, intervals are wider by the factor of Nadeau and Bengio (*Inference
    for the Generalization Error*, 2003), for five groups one and a half.

    Args:
        question: ``graph`` or ``sharpening``.
        evidence, groups: As for :func:`sides`.
        sides: With it, and without.
        helps: Whether what is used has it.
        metric: What candidates were chosen by.
    """
    both = [_by_row(side, evidence) for side in sides]
    (loss, hits), (other_loss, other_hits) = both
    known = ~np.isnan(loss) & ~np.isnan(other_loss)
    surprise = paired_difference(loss[known], other_loss[known], resamples=0)
    points = evidence.difference(hits, other_hits)
    asked = list(filter(_ASKED_OF[question], evidence.sound))
    if max(Counter(map(QUESTIONS[question], asked)).values()) > 1:
        factor = float(np.sqrt(1 + len(groups) / (len(groups) - 1)))
        surprise, points = widened(surprise, factor), widened(points, factor)
    if points.t_interval is not None:  # no difference of two shares is larger
        low, high = np.clip(points.t_interval, -100, 100).tolist()
        points = replace(points, t_interval=(low, high))
    scores = [
        100 * float(np.average(side[known], weights=evidence.weight[known])) for _, side in both
    ]  # the same labels, so that the three numbers fit together
    clear = surprise.t_interval is not None and (surprise.t_interval[0] > 0 or surprise.t_interval[1] < 0)
    text = _sentence(question, surprise, points, scores, _METRIC_NAMES[metric], clear=clear, helps=helps)
    if len(asked) < len(evidence.sound):
        text += " Networks are compared, which alone can be sharpened."
    return Verdict(question, helps, clear, text, surprise, points, evidence.by_group(hits, other_hits, groups))


def _by_row(side: HonestPredictions, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """The log-loss of each labeled node, and whether it was got right; NaN for those that were not judged."""
    loss, hits = np.full(len(evidence.y), np.nan), np.full(len(evidence.y), np.nan)
    y = evidence.y[side.rows]
    loss[side.rows] = -np.log(np.maximum(side.after[np.arange(len(y)), y], 1e-300))
    hits[side.rows] = side.after.argmax(1) == y
    return loss, hits


def _sentence(
    question: str,
    surprise: PairedDifference,
    points: PairedDifference,
    scores: Sequence[float],
    metric: str,
    *,
    clear: bool,
    helps: bool,
) -> str:
    name, gain = NAMES[question], surprise.difference < 0
    if clear:
        opening = f"{name} {'helps' if gain else 'does not help'}".capitalize()
    else:
        opening = f"Whether {name} helps, these labels cannot tell"
    closing = ""
    if not clear or helps != gain:
        closing = f" What is used {'has' if helps else 'does without'} it."
    return (
        f"{opening}: log-loss {surprise.mean_a:.3f} with it, {surprise.mean_b:.3f} without "
        f"({_signed(surprise.difference, 3)}{_interval(surprise, 3)}); {metric} {scores[0]:.1f} % with it, {scores[1]:.1f} % "
        f"without ({_signed(points.difference, 1)} points{_interval(points, 1)}); on {surprise.n} held-out labels that had no part "
        f"in choosing either.{closing}"
    )


def _interval(difference: PairedDifference, decimals: int) -> str:
    if difference.t_interval is None:
        return ""
    low, high = difference.t_interval
    return f", 95 % CI [{_signed(low, decimals)}, {_signed(high, decimals)}]"


def _signed(value: float, decimals: int) -> str:
    return f"{round(value, 9):+.{decimals}f}".replace("-", "−")
