"""One trained member of a search: what it is, what it says about labeled nodes, and the weights to say more with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from sharpen.fitting.candidates import Candidate
from sharpen.fitting.smoothing import smoothed
from sharpen.graph import Graph
from sharpen.splits import Split


@dataclass(frozen=True)
class Job:
    """One member to train."""

    candidate: Candidate
    split: Split
    seed: int
    round_number: int = 0


@dataclass(frozen=True)
class Member:
    """A trained member.

    Args:
        candidate: Model and objective.
        val, test: The labeled nodes that chose its epoch, and those it never met.
        val_logits, test_logits: Class scores of those nodes at the chosen epoch.
        weights: Parameters and buffers by name.
        best_epoch: The chosen epoch.
        ok: Whether it stayed finite.
        round_number: In which round of the search it was trained.
        traces: Per epoch, as :class:`sharpen.Record` holds them, where what trained it keeps them.
    """

    candidate: Candidate
    val: np.ndarray
    test: np.ndarray
    val_logits: np.ndarray = field(repr=False)
    test_logits: np.ndarray = field(repr=False)
    weights: dict[str, np.ndarray] = field(repr=False)
    best_epoch: int = 0
    ok: bool = True
    round_number: int = 0
    traces: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)


def judged(
    graph: Graph,
    job: Job,
    logits: np.ndarray,
    weights: dict[str, np.ndarray],
    best_epoch: int,
    ok: bool,
    traces: Mapping[str, np.ndarray] | None = None,
) -> list[Member]:
    """The member that a job gave, and the same with its predictions smoothed.

    Args:
        graph, job: What was trained on what.
        logits: Class scores of all nodes, [N, C]; only those of held-out labels are kept.
        weights, best_epoch, ok, traces: As for :class:`Member`.
    """
    val, test = job.split.val.numpy(), job.split.test.numpy()
    members = []
    for candidate, scores in ((job.candidate, logits), (replace(job.candidate, smooth=True), smoothed(graph, logits))):
        members.append(
            Member(
                candidate, val, test, scores[val], scores[test], weights, best_epoch, ok, job.round_number, traces or {}
            )
        )
    return members


class Backbone(Protocol):
    """What can train members and predict with their weights: a population of the built-in models, or a module."""

    def train(self, graph: Graph, jobs: Sequence[Job]) -> list[Member]:
        """Two members for each job, in the same order: as it is, and smoothed."""
        ...

    def logits(
        self, graph: Graph, model: str, num_classes: int, weights: Sequence[dict[str, np.ndarray]]
    ) -> Iterator[np.ndarray]:
        """Class scores [N, C] of every set of weights of one model, in the same order."""
        ...
