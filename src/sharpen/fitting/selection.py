r"""The choice of candidates by held-out labels: an ensemble by greedy selection.

Starting with nobody, the candidate is added, again and again and with replacement, with which the mean of the probabilities has the
least log-loss on held-out labels; how often each was added is its share (Caruana et al., *Ensemble Selection from Libraries of
Models*, 2004). Few labels make that a game of chance, so three things hold it back: it is done many times, each on labels drawn
with replacement, and averaged; what spread labels gain is less by the 1/n that one fitted weight more gains by itself (Akaike's
correction); and the shares go part of the way to those of a prior among the candidates that the labels cannot tell from the best,

.. math:: w = \frac{n \, w_\text{greedy} + n_0 \, w_\text{prior}}{n + n_0}

for n labels, with :math:`n_0` = _PRIOR_LABELS. The prior is what experience says of graphs of this kind
(:func:`sharpen.fitting.candidates.trust_in`). What is used is never worse than the best candidate alone by more than one and a
half standard errors, paired on the labels that both were chosen by: by so much the luckiest of a dozen that are alike is ahead.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sharpen.errors import InputError
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.evidence import Evidence

# So many trained candidates go on after the first round, and so many at most are in the ensemble.
SHORTLIST, MOST = 6, 6
# So many of the trusted ones go on, whatever the score of their first round.
_TRUSTED = 2
_PRIOR_LABELS = 240
# A candidate has its part of the prior unless it is worse than the best by more than so many standard errors.
_DOUBT, _DOUBT_OF_TRUSTED = 1.5, 2.0
_BAGS, _STEPS = 24, 12
_SMALLEST = 0.03

Shares = dict[Candidate, float]
"""How much each candidate of an ensemble contributes, the most first; they sum to 1."""


def shortlist(
    evidence: Evidence, *, keep: np.ndarray | None = None, among: Callable[[Candidate], bool] = lambda candidate: True
) -> list[Candidate]:
    """The best trained candidates by their first round, in which all met the same folds; alone and with spread labels.

    A candidate is as good as the better of the two. The best of those that are trusted more than others are always among them:
    of dozens of candidates some look better by luck. Of equals, one that uses the graph is better, since whoever gives a
    graph thinks that it matters; then the one that sharpens less, then the one that was tried first.
    """
    allowed = [candidate for candidate in evidence.sound if among(candidate)]
    if not allowed:
        raise InputError("every training run diverged; lower lr, or scale the features")
    best: dict[Candidate, float] = {}
    for candidate in allowed:
        score = round(evidence.score(candidate, keep, first_round=True), 9)
        best[candidate.rough] = max(score, best.get(candidate.rough, 0.0))
    ranked = sorted(best, key=lambda c: (-best[c], not c.uses_graph, c.lam + c.balance))
    trusted = [candidate for candidate in ranked if evidence.trust(candidate) > 1][:_TRUSTED]
    first = sorted([*trusted, *(c for c in ranked if c not in trusted)][:SHORTLIST], key=ranked.index)
    return [candidate for rough in first for candidate in allowed if candidate.rough == rough]


def choose(
    evidence: Evidence,
    *,
    ensemble: bool = True,
    keep: np.ndarray | None = None,
    among: Callable[[Candidate], bool] = lambda candidate: True,
) -> Shares:
    """The ensemble of least log-loss among the shortlist; without ``ensemble``, the one candidate of the best score.

    Few labels make equal scores; of equals, a candidate that uses the graph is better, then the one that is surprised least, then
    the one that sharpens less.

    Args:
        evidence: Of all runs.
        ensemble: Whether several may share.
        keep: The labeled nodes to choose by; None: all.
        among: Which candidates may be chosen.
    """
    listed = shortlist(evidence, keep=keep, among=among)
    if not ensemble:
        return {_best(evidence, listed, keep): 1.0}
    right = _of_true_class(evidence, listed, keep)
    counted = ~np.isnan(right).any(axis=0)
    counted &= True if keep is None else keep
    if not counted.any():  # they met different folds; the first of the list is the best by its own
        return {listed[0]: 1.0}
    right, weight = right[:, counted], evidence.weight[counted]
    n = len(weight)
    right = right * np.exp([[-candidate.spread / n] for candidate in listed])
    best = int(_loss(right, weight).argmin())
    prior = np.array([evidence.trust(candidate) for candidate in listed])
    doubt = np.where(prior > 1, _DOUBT_OF_TRUSTED, _DOUBT)
    prior *= [not _clearly_worse(own, right[best], weight, errors) for own, errors in zip(right, doubt, strict=True)]
    shares = (n * _greedy(right, weight) + _PRIOR_LABELS * prior / prior.sum()) / (n + _PRIOR_LABELS)
    order = np.argsort(-shares, kind="stable")[:MOST]
    order = order[shares[order] >= _SMALLEST]
    shares = shares[order] / shares[order].sum()
    if _clearly_worse(shares @ right[order], right[best], weight, _DOUBT):
        return {listed[best]: 1.0}
    return {listed[m]: float(share) for m, share in zip(order, shares, strict=True)}


def _best(evidence: Evidence, listed: list[Candidate], keep: np.ndarray | None) -> Candidate:
    score = {candidate: round(evidence.score(candidate, keep), 9) for candidate in listed}
    best = max((value, candidate.uses_graph) for candidate, value in score.items())
    equals = [candidate for candidate, value in score.items() if (value, candidate.uses_graph) == best]
    if len(equals) == 1:
        return equals[0]
    right = _of_true_class(evidence, equals, keep)
    counted = ~np.isnan(right) if keep is None else ~np.isnan(right) & keep
    surprise = [
        round(float(_loss(own[some], evidence.weight[some])), 3) if some.any() else 0.0
        for own, some in zip(right, counted, strict=True)
    ]
    order = sorted(range(len(equals)), key=lambda m: (surprise[m], equals[m].lam + equals[m].balance))
    return equals[order[0]]


def _of_true_class(evidence: Evidence, listed: list[Candidate], keep: np.ndarray | None) -> np.ndarray:
    """The probability that each candidate gives each labeled node's class, [M, n]."""
    rows = np.arange(len(evidence.y))
    return np.stack([evidence.probabilities(candidate, keep)[rows, evidence.y] for candidate in listed])


def _loss(right: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Log-loss of the last axis.

    >>> _loss(np.array([[1.0, 0.5], [0.5, 0.5]]), np.ones(2)).round(3).tolist()
    [0.347, 0.693]
    """
    return np.asarray(-(np.log(np.maximum(right, 1e-12)) * weight).sum(-1) / weight.sum())


def _greedy(right: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Shares of greedy selection, averaged over bags of labels; the same every time."""
    rng, (models, labels) = np.random.default_rng(0), right.shape
    shares = np.zeros(models)
    for _ in range(_BAGS):
        drawn = np.bincount(rng.integers(labels, size=labels), minlength=labels) * weight
        total, count = np.zeros(labels), np.zeros(models)
        for step in range(1, _STEPS + 1):
            best = int(_loss((total + right) / step, drawn).argmin())
            total, count[best] = total + right[best], count[best] + 1
        shares += count / _STEPS / _BAGS
    return shares


def _clearly_worse(one: np.ndarray, other: np.ndarray, weight: np.ndarray, errors: float) -> bool:
    """Whether the first has a larger log-loss by more than so many standard errors, paired label by label, and a label's worth
    more: of a dozen labels that all are got right candidates differ in little but how sure they are of them.

    >>> _clearly_worse(np.array([0.5, 0.5, 0.6]), np.array([0.9, 0.9, 0.8]), np.ones(3), 1.0)
    True
    >>> _clearly_worse(np.array([0.5, 0.9, 0.8]), np.array([0.9, 0.5, 0.9]), np.ones(3), 1.0)
    False
    """
    gap = np.log(np.maximum(other, 1e-12) / np.maximum(one, 1e-12)) * weight / weight.mean()
    return bool(gap.mean() > errors * (gap.std() / np.sqrt(len(gap)) + 1 / len(gap)))
