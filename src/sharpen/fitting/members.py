"""One trained member of a search: what it is, what it says about labeled nodes, and the weights to say more with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from sharpen.fitting.candidates import AFTER, Candidate
from sharpen.fitting.neighbours import Neighbours
from sharpen.graph import Graph
from sharpen.splits import Split


@dataclass(frozen=True)
class Job:
    """One member to train, on the training nodes of a split; its test nodes are those it is to be judged by."""

    candidate: Candidate
    split: Split
    seed: int
    round_number: int = 0


@dataclass(frozen=True)
class Member:
    """A trained member.

    Args:
        candidate: Model and objective, and what was done to its predictions.
        test: The labeled nodes it never met.
        test_logits: Its class scores of them.
        weights: Parameters and buffers by name.
        ok: Whether it stayed finite.
        round_number: In which round of the search it was trained.
        traces: Per epoch, as :class:`sharpen.Record` holds them, where what trained it keeps them.
    """

    candidate: Candidate
    test: np.ndarray
    test_logits: np.ndarray = field(repr=False)
    weights: dict[str, np.ndarray] = field(repr=False)
    ok: bool = True
    round_number: int = 0
    traces: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)


def judged(
    neighbours: Neighbours,
    y: np.ndarray,
    job: Job,
    logits: np.ndarray,
    weights: dict[str, np.ndarray],
    ok: bool,
    traces: Mapping[str, np.ndarray] | None = None,
) -> list[Member]:
    """The member that a job gave, as it is and after all that may be done to its predictions, in the order of ``AFTER``.

    Args:
        neighbours: Of the graph.
        y: Classes of all nodes; those of the job's training nodes are spread, no other is read.
        job: What was trained.
        logits: Class scores of all nodes, [N, C]; only those of held-out labels are kept.
        weights, ok, traces: As for :class:`Member`.
    """
    train, test = job.split.train.numpy(), job.split.test.numpy()
    known = np.full(len(y), -1)
    known[train] = y[train]
    return [
        Member(
            replace(job.candidate, after=after),
            test,
            heard(neighbours, logits, after, known)[test],
            weights,
            ok,
            job.round_number,
            traces or {},
        )
        for after in AFTER
    ]


def heard(neighbours: Neighbours, logits: np.ndarray, after: str, known: np.ndarray) -> np.ndarray:
    """Class scores after what a candidate does to them.

    Args:
        neighbours: Of the graph.
        logits: Class scores of all nodes, [N, C].
        after: One of ``AFTER``.
        known: The class of each node, −1 where it is not to be used.
    """
    if after == "smoothed":
        return neighbours.smoothed(logits)
    return neighbours.spread(logits, known) if after == "spread" else logits.astype(np.float64)


class Backbone(Protocol):
    """What can train members and predict with their weights: a population of the built-in models, or a module."""

    def train(self, graph: Graph, jobs: Sequence[Job]) -> list[Member]:
        """Members of each job, in the same order: as it is, and after all that may be done to its predictions."""
        ...

    def logits(
        self, graph: Graph, model: str, num_classes: int, weights: Sequence[dict[str, np.ndarray]]
    ) -> Iterator[np.ndarray]:
        """Class scores [N, C] of every set of weights of one model, in the same order."""
        ...
