"""What the held-out labels say about each candidate: scores to choose by, and predictions to judge by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import log_softmax

from sharpen.errors import InputError
from sharpen.evaluation.calibration import fit_temperature
from sharpen.evaluation.paired import PairedDifference, paired_difference
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.members import Member

METRICS = ("accuracy", "balanced-accuracy")


def check_metric(metric: str) -> None:
    """Refuses what is no metric to choose by.

    >>> check_metric("f1")
    Traceback (most recent call last):
    sharpen.errors.InputError: metric is 'f1'; choose one of accuracy, balanced-accuracy
    """
    if metric not in METRICS:
        raise InputError(f"metric is {metric!r}; choose one of {', '.join(METRICS)}")


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
        self.num_classes = members[0].test_logits.shape[1]
        self.weight = np.ones(len(self.y)) if metric == "accuracy" else 1 / np.bincount(self.y)[self.y]
        self.members: dict[Candidate, list[Member]] = {}
        for member in members:
            self.members.setdefault(member.candidate, []).append(member)
        self._hits = {candidate: self._mean_hits(own) for candidate, own in self.members.items()}
        first = {c: [member for member in own if member.round_number == 0] for c, own in self.members.items()}
        self._first_hits = {candidate: self._mean_hits(own) for candidate, own in first.items()}

    @property
    def sound(self) -> list[Candidate]:
        """The candidates of which no member diverged."""
        return [c for c, members in self.members.items() if all(member.ok for member in members)]

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """The rows, among labeled nodes, of nodes of the graph."""
        return np.searchsorted(self.nodes, nodes)

    def _mean_hits(self, members: Sequence[Member]) -> np.ndarray:
        """How often each labeled node was got right while held out; NaN for nodes that never were."""
        hits, count = np.zeros(len(self.y)), np.zeros(len(self.y))
        for member in members:
            rows = self.rows(member.test)
            hits[rows] += member.ok & (member.test_logits.argmax(1) == self.y[rows])
            count[rows] += 1
        with np.errstate(invalid="ignore"):
            return hits / count

    def score(self, candidate: Candidate, keep: np.ndarray | None = None, *, first_round: bool = False) -> float:
        """The mean held-out score, over all labeled nodes or those to keep; of all rounds or the first."""
        hits = self._first_hits[candidate] if first_round else self._hits[candidate]
        counted = ~np.isnan(hits) if keep is None else ~np.isnan(hits) & keep
        return float(np.average(hits[counted], weights=self.weight[counted])) if counted.any() else 0.0

    def difference(self, a: Candidate, b: Candidate) -> PairedDifference:
        """Candidate a against b in percentage points, paired on the labeled nodes that both were held out on."""
        both = ~np.isnan(self._hits[a]) & ~np.isnan(self._hits[b])
        # Weights that average to one keep the mean difference the difference of the two scores.
        weight = 100 * self.weight[both] / self.weight[both].mean()
        return paired_difference(weight * self._hits[a][both], weight * self._hits[b][both])

    def folds(self, a: Candidate, b: Candidate) -> list[dict[str, float]]:
        """The same fold by fold: how many held-out labels, and the share in percent that each got right on them."""
        others = {(own.round_number, own.test.tobytes()): own for own in self.members[b]}
        pairs = [(own, others.get((own.round_number, own.test.tobytes()))) for own in self.members[a]]
        return [
            {
                "round": own.round_number,
                "nodes": len(own.test),
                "a": self._percent(own),
                "b": self._percent(other),
            }
            for own, other in pairs
            if other is not None and own.ok and other.ok
        ]

    def _percent(self, member: Member) -> float:
        rows = self.rows(member.test)
        hits = member.test_logits.argmax(1) == self.y[rows]
        return 100 * float(np.average(hits, weights=self.weight[rows]))

    def test_scores(self, candidate: Candidate) -> tuple[np.ndarray, np.ndarray]:
        """Rows and class scores of every prediction for a node that its member never met."""
        members = [member for member in self.members[candidate] if member.ok]
        rows = np.concatenate([self.rows(member.test) for member in members])
        return rows, np.concatenate([member.test_logits for member in members]).astype(np.float64)

    def temperature(self, candidate: Candidate, keep: np.ndarray | None = None) -> float:
        """The temperature of a candidate's scores: of least log-loss on held-out labels, all of them or those to keep.

        One for all its members, which were trained alike: a member's own slice would be too few nodes to say.
        """
        rows, scores = self.test_scores(candidate)
        counted = np.ones(len(rows), dtype=bool) if keep is None else keep[rows]
        if not counted.any():
            return 1.0
        return fit_temperature(scores[counted], self.y[rows[counted]], smoothing=1 / (int(counted.sum()) + 2))

    def log_loss(self, candidate: Candidate, keep: np.ndarray | None = None) -> float:
        """The mean surprise at held-out labels, at the candidate's temperature: it tells candidates of equal score apart."""
        rows, scores = self.test_scores(candidate)
        counted = np.ones(len(rows), dtype=bool) if keep is None else keep[rows]
        if not counted.any():
            return 0.0
        log_p = log_softmax(scores[counted] / self.temperature(candidate, keep), axis=1)
        return float(-log_p[np.arange(len(log_p)), self.y[rows[counted]]].mean())
