"""What the held-out labels say about each candidate: scores to choose by, and predictions to judge by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import log_softmax

from sharpen.errors import InputError
from sharpen.evaluation.calibration import fit_pool
from sharpen.evaluation.paired import PairedDifference, paired_difference
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.members import Member

METRICS = ("accuracy", "balanced-accuracy")
# Into so many groups labels are put where each is to be judged by what the others say.
_GROUPS = 5
# So many held-out predictions are enough to weigh a few opinions by.
_MOST = 5000


def check_metric(metric: str) -> None:
    """Refuses what is no metric to choose by.

    >>> check_metric("f1")
    Traceback (most recent call last):
    sharpen.errors.InputError: metric is 'f1'; choose one of accuracy, balanced-accuracy
    """
    if metric not in METRICS:
        raise InputError(f"is {metric!r}; choose one of {', '.join(METRICS)}", field="metric")


class Evidence:
    """Held-out predictions of all members, by candidate and labeled node.

    Args:
        members: All members that were trained.
        y: Classes of all nodes, −1 for unknown.
        metric: ``accuracy``, or ``balanced-accuracy``, in which every class counts the same.
    """

    def __init__(self, members: Sequence[Member], y: np.ndarray, metric: str = "accuracy") -> None:
        self.nodes = np.flatnonzero(y >= 0)
        self.y = y[self.nodes]
        self.num_classes = members[0].opinions.shape[2]
        self.weight = np.ones(len(self.y)) if metric == "accuracy" else 1 / np.bincount(self.y)[self.y]
        self.members: dict[Candidate, list[Member]] = {}
        for member in members:
            self.members.setdefault(member.candidate, []).append(member)
        self._hits = {candidate: self._mean_hits(own) for candidate, own in self.members.items()}
        self._first_hits = dict(self._hits)
        for candidate, own in self.members.items():
            if any(member.round_number for member in own):
                self._first_hits[candidate] = self._mean_hits([m for m in own if m.round_number == 0])

    @property
    def sound(self) -> list[Candidate]:
        """The candidates of which no member diverged."""
        return [c for c, members in self.members.items() if all(member.ok for member in members)]

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """The rows, among labeled nodes, of nodes of the graph."""
        return np.searchsorted(self.nodes, nodes)

    def _mean_hits(self, members: Sequence[Member]) -> np.ndarray:
        """How often each labeled node was got right while held out; NaN for nodes that never were."""
        sound = [member for member in members if member.ok]
        hits = np.bincount(self._said(sound)[0], self._judge(sound), len(self.y)) if sound else np.zeros(len(self.y))
        count = np.zeros(len(self.y))
        for member in members:  # those that diverged have no hit
            count[self.rows(member.test)] += 1
        with np.errstate(invalid="ignore"):
            return hits / count

    def _judge(self, members: Sequence[Member]) -> np.ndarray:
        """Whether each prediction for a node that its member never met is right.

        Where several opinions are weighed, those of one group of labels are weighed by what the other groups say: a label has no
        part in the weights by which it is judged.
        """
        rows, opinions = self._said(members)
        scores = opinions[0].copy()
        for g in range(_GROUPS if len(opinions) > 1 else 0):
            own = rows % _GROUPS == g
            scores[own] = np.tensordot(self._pool(rows[~own], opinions[:, ~own]), opinions[:, own], 1)
        return np.asarray(scores.argmax(1) == self.y[rows])

    def _said(self, members: Sequence[Member]) -> tuple[np.ndarray, np.ndarray]:
        """Rows and opinions [K, n, C] of every prediction for a node that its member never met."""
        rows = np.concatenate([self.rows(member.test) for member in members])
        return rows, np.concatenate([member.opinions for member in members], axis=1)

    def _pool(self, rows: np.ndarray, opinions: np.ndarray) -> np.ndarray:
        if not len(rows):
            return np.ones(len(opinions))
        some = slice(None, None, -(-len(rows) // _MOST))
        return fit_pool(opinions[:, some], self.y[rows[some]], smoothing=1 / (len(rows[some]) + 2))

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
        """How much its opinions count: of least log-loss on held-out labels, all of them or those to keep.

        The same for all its members, which were trained alike: the slice of one would be too few nodes to say. They make scores
        of the right confidence too; a candidate with one opinion is brought to its temperature.
        """
        rows, opinions = self._said([member for member in self.members[candidate] if member.ok])
        counted = np.ones(len(rows), dtype=bool) if keep is None else keep[rows]
        return self._pool(rows[counted], opinions[:, counted])

    def test_scores(self, candidate: Candidate, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Rows and class scores [n, C] of every prediction for a node that its member never met; None: all opinions count 1."""
        rows, opinions = self._said([member for member in self.members[candidate] if member.ok])
        return rows, np.tensordot(np.ones(len(opinions)) if weights is None else weights, opinions, 1)

    def log_loss(self, candidate: Candidate, keep: np.ndarray | None = None) -> float:
        """The mean surprise at held-out labels: it tells candidates of equal score apart."""
        rows, scores = self.test_scores(candidate, self.weights(candidate, keep))
        counted = np.ones(len(rows), dtype=bool) if keep is None else keep[rows]
        if not counted.any():
            return 0.0
        log_p = log_softmax(scores[counted], axis=1)
        return float(-log_p[np.arange(len(log_p)), self.y[rows[counted]]].mean())
