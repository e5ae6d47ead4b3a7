"""What the held-out labels say about each candidate: scores to choose by, and predictions to judge by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import softmax

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
        self._temperatures = {id(member): self.temperature(member) for member in members if member.ok}
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
            for nodes, logits in ((member.val, member.val_logits), (member.test, member.test_logits)):
                rows = self.rows(nodes)
                hits[rows] += member.ok & (logits.argmax(1) == self.y[rows])
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
                "nodes": len(own.val) + len(own.test),
                "a": self._percent(own),
                "b": self._percent(other),
            }
            for own, other in pairs
            if other is not None and own.ok and other.ok
        ]

    def _percent(self, member: Member) -> float:
        rows = self.rows(np.concatenate([member.val, member.test]))
        hits = np.concatenate([member.val_logits, member.test_logits]).argmax(1) == self.y[rows]
        return 100 * float(np.average(hits, weights=self.weight[rows]))

    def temperature(self, member: Member) -> float:
        """The temperature of a member's scores: of least log-loss on the nodes that chose its epoch.

        An early epoch leaves small scores and a late one large ones, so every member has its own. Nodes it never met have no part
        in it.
        """
        return fit_temperature(member.val_logits, self.y[self.rows(member.val)], smoothing=1 / (len(member.val) + 2))

    def test_votes(self, candidate: Candidate, *, calibrated: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Rows and probabilities of every prediction for a node that its member never met."""
        members = [member for member in self.members[candidate] if member.ok]
        rows = [self.rows(member.test) for member in members]
        scale = [self._temperatures[id(member)] if calibrated else 1.0 for member in members]
        logits = [member.test_logits.astype(np.float64) / t for member, t in zip(members, scale, strict=True)]
        return np.concatenate(rows), softmax(np.concatenate(logits), axis=1)
