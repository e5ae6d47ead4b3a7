"""What the held-out labels say about each candidate: scores to choose by, and predictions to judge by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from scipy.special import softmax

from sharpen.errors import InputError
from sharpen.evaluation.calibration import fit_pool
from sharpen.evaluation.paired import PairedDifference, paired_difference
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.runs import Run

# What averages over many neighbours, and by how many standard errors it must be better than guessing to be trusted.
_SMOOTH, _DOUBT = ("logistic", "grand"), 1.64
# Fewer labels than these tell nothing from guessing, neither where averages say something nor where they do not.
_FEWEST_TO_DOUBT = 30
METRICS = ("accuracy", "balanced-accuracy")
# Into so many groups labels are put where each is to be judged by what the others say.
_GROUPS = 5
# So many held-out predictions are enough to weigh a few opinions by.
_MOST = 5000
# Weight 0 costs half of this in units of log-likelihood over all labels: to be silenced, a candidate must have been five nats worse
# than one that knows nothing. On a dozen labels that it happens to get wrong it would otherwise be dropped, and others that are no
# better kept.
_CAUTION = 10.0


def check_metric(metric: str) -> None:
    """Refuses what is no metric to choose by.

    >>> check_metric("f1")
    Traceback (most recent call last):
    sharpen.errors.InputError: metric is 'f1'; choose one of accuracy, balanced-accuracy
    """
    if metric not in METRICS:
        raise InputError(f"is {metric!r}; choose one of {', '.join(METRICS)}", field="metric")


class Evidence:
    """Held-out predictions of all runs, by candidate and labeled node.

    Args:
        runs: All that were trained.
        y: Classes of all nodes, −1 for unknown.
        metric: ``accuracy``, or ``balanced-accuracy``, in which every class counts the same.
        trust: How much each candidate is worth on graphs of this kind (:func:`sharpen.fitting.candidates.trust_in`).
    """

    def __init__(
        self, runs: Sequence[Run], y: np.ndarray, metric: str = "accuracy",
        trust: Callable[[Candidate, bool], float] = lambda candidate, smooth: 1.0,
    ) -> None:  # fmt: skip
        self._trust, self.metric = trust, metric
        self.nodes = np.flatnonzero(y >= 0)
        self.y = y[self.nodes]
        self.num_classes = runs[0].opinions.shape[2]
        self.weight = np.ones(len(self.y)) if metric == "accuracy" else 1 / np.bincount(self.y)[self.y]
        self.runs: dict[Candidate, list[Run]] = {}
        for run in runs:
            self.runs.setdefault(run.candidate, []).append(run)
        self._weights: dict[tuple[Candidate, bytes], np.ndarray] = {}
        self._hits = {candidate: self._mean_hits(own) for candidate, own in self.runs.items()}
        self._first_hits = dict(self._hits)
        for candidate, own in self.runs.items():
            if any(run.round_number for run in own):
                self._first_hits[candidate] = self._mean_hits([m for m in own if m.round_number == 0])

    def trust(self, candidate: Candidate) -> float:
        """How much a candidate is worth before any label chooses."""
        return self._trust(candidate, self._smooth)

    @cached_property
    def _smooth(self) -> bool:
        """Whether a model of averages over neighbours is better than guessing, beyond doubt; yes where nothing can tell."""
        if len(self.y) < _FEWEST_TO_DOUBT:
            return True
        models = [c for c in self.sound if c.model in _SMOOTH and not c.spread]
        share, rows = np.log(np.bincount(self.y) / len(self.y))[self.y], np.arange(len(self.y))
        gains = [np.log(np.maximum(self.probabilities(c)[rows, self.y], 1e-12)) - share for c in models]
        gains = [gain[~np.isnan(gain)] for gain in gains]
        return not models or any(gain.mean() > _DOUBT * gain.std() / np.sqrt(len(gain)) for gain in gains)

    @property
    def sound(self) -> list[Candidate]:
        """The candidates of which no run diverged."""
        return [c for c, runs in self.runs.items() if all(run.ok for run in runs)]

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """The rows, among labeled nodes, of nodes of the graph."""
        return np.searchsorted(self.nodes, nodes)

    def _mean_hits(self, runs: Sequence[Run]) -> np.ndarray:
        """How often each labeled node was got right while held out; NaN for nodes that never were."""
        sound = [run for run in runs if run.ok]
        hits = np.bincount(self._said(sound)[0], self._judge(sound), len(self.y)) if sound else np.zeros(len(self.y))
        count = np.zeros(len(self.y))
        for run in runs:  # those that diverged have no hit
            count[self.rows(run.test)] += 1
        with np.errstate(invalid="ignore"):
            return hits / count

    def _judge(self, runs: Sequence[Run]) -> np.ndarray:
        """Whether each prediction for a node that its run never met is right.

        Where several opinions are weighed, those of one group of labels are weighed by what the other groups say: a label has no
        part in the weights by which it is judged.
        """
        rows, opinions = self._said(runs)
        scores = opinions[0].copy()
        for g in range(_GROUPS if len(opinions) > 1 else 0):
            own = rows % _GROUPS == g
            scores[own] = np.tensordot(self._pool(rows[~own], opinions[:, ~own]), opinions[:, own], 1)
        return np.asarray(scores.argmax(1) == self.y[rows])

    def _said(self, runs: Sequence[Run]) -> tuple[np.ndarray, np.ndarray]:
        """Rows and opinions [K, n, C] of every prediction for a node that its run never met."""
        rows = np.concatenate([self.rows(run.test) for run in runs])
        return rows, np.concatenate([run.opinions for run in runs], axis=1)

    def _pool(self, rows: np.ndarray, opinions: np.ndarray) -> np.ndarray:
        if not len(rows):
            return np.ones(len(opinions))
        some = slice(None, None, -(-len(rows) // _MOST))
        labels, caution = len(rows[some]), _CAUTION / len(np.unique(rows))
        return fit_pool(opinions[:, some], self.y[rows[some]], smoothing=1 / (labels + 2), caution=caution)

    def score(self, candidate: Candidate, keep: np.ndarray | None = None, *, first_round: bool = False) -> float:
        """The mean held-out score, over all labeled nodes or those to keep; of all rounds or the first."""
        hits = self._first_hits[candidate] if first_round else self._hits[candidate]
        counted = ~np.isnan(hits) if keep is None else ~np.isnan(hits) & keep
        return float(np.average(hits[counted], weights=self.weight[counted])) if counted.any() else 0.0

    def hits(self, candidate: Candidate) -> np.ndarray:
        """How often a candidate got each labeled node right while it was held out; NaN for nodes that never were."""
        return self._hits[candidate]

    def difference(self, a: np.ndarray, b: np.ndarray) -> PairedDifference:
        """Hits a against b in percentage points, paired on the labeled nodes that both are known of."""
        both = ~np.isnan(a) & ~np.isnan(b)
        # Weights that average to one keep the mean difference the difference of the two scores.
        weight = 100 * self.weight[both] / self.weight[both].mean()
        return paired_difference(weight * a[both], weight * b[both], resamples=0)

    def by_group(self, a: np.ndarray, b: np.ndarray, groups: Sequence[np.ndarray]) -> list[dict[str, float]]:
        """The same group by group: how many labels, and the share in percent that was got right."""
        both, found = ~np.isnan(a) & ~np.isnan(b), []
        for rows in (group[both[group]] for group in groups):
            if len(rows):
                one, other = (100 * float(np.average(hits[rows], weights=self.weight[rows])) for hits in (a, b))
                found.append({"nodes": len(rows), "a": one, "b": other})
        return found

    def weights(self, candidate: Candidate, keep: np.ndarray | None = None) -> np.ndarray:
        """How much its opinions count: of least log-loss on held-out labels, all of them or those to keep, plus caution.

        The same for all its runs, which were trained alike: the slice of one would be too few nodes to say. They make scores
        of the right confidence too; a candidate with one opinion is brought to its
        temperature, or with few labels, if it is too sure, some of the way.
        """
        key = (candidate, b"" if keep is None else keep.tobytes())
        if key not in self._weights:  # the same is asked for by every choice that this candidate may be part of
            rows, opinions = self._said([run for run in self.runs[candidate] if run.ok])
            counted = np.ones(len(rows), dtype=bool) if keep is None else keep[rows]
            self._weights[key] = self._pool(rows[counted], opinions[:, counted])
        return self._weights[key]

    def probabilities(
        self, candidate: Candidate, keep: np.ndarray | None = None, *, calibrated: bool = True
    ) -> np.ndarray:
        """What its runs say together of each labeled node they never met, [n, C]; NaN rows for all others.

        Args:
            candidate: Of which at least one run is sound.
            keep: The labeled nodes to fit the weights of its opinions on; None: all.
            calibrated: Whether opinions are weighed; otherwise each counts 1.
        """
        rows, scores = self._test_scores(candidate, self.weights(candidate, keep) if calibrated else None)
        total, count = np.zeros((len(self.y), self.num_classes)), np.zeros((len(self.y), 1))
        np.add.at(total, rows, softmax(scores, axis=1))
        np.add.at(count, rows, 1)
        with np.errstate(invalid="ignore"):
            return total / count

    def _test_scores(self, candidate: Candidate, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Rows and class scores [n, C] of every prediction for a node that its run never met; None: all opinions count 1."""
        rows, opinions = self._said([run for run in self.runs[candidate] if run.ok])
        return rows, np.tensordot(np.ones(len(opinions)) if weights is None else weights, opinions, 1)
