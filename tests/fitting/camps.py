"""A small graph that can be learnt, and members whose skill is known."""

import numpy as np

from sharpen.fitting.candidates import Candidate
from sharpen.fitting.folds import draw_round
from sharpen.fitting.members import Job, Member
from sharpen.graph import Graph


def two_camps(nodes: int = 40, labeled: int = 16, seed: int = 0) -> Graph:
    """Two camps, denser within than between; features say little, the graph says much."""
    rng = np.random.default_rng(seed)
    y = np.arange(nodes) % 2
    chance = np.where(y[:, None] == y[None], 0.3, 0.02)
    source, target = np.nonzero(np.triu(rng.random((nodes, nodes)) < chance, 1))
    x = rng.normal(size=(nodes, 6)) + 0.3 * y[:, None]
    known = np.where(np.arange(nodes) < labeled, y, -1)
    return Graph(x=x, edge_index=np.stack([source, target]), y=known, class_names=["left", "right"])


def member(candidate: Candidate, job: Job, y: np.ndarray, wrong: np.ndarray) -> Member:
    """One that gets all nodes right but for those named, and is sure of each to 2 in logits."""

    def logits(nodes: np.ndarray) -> np.ndarray:
        guess = np.where(np.isin(nodes, wrong), 1 - y[nodes], y[nodes])
        return 2.0 * np.eye(2)[guess]

    test = job.split.test.numpy()
    return Member(candidate, test, logits(test)[None], {}, round_number=job.round_number)


def members_of(candidate: Candidate, y: np.ndarray, wrong: list[int], rounds: int = 1) -> list[Member]:
    """The members of all folds of some rounds."""
    return [
        member(candidate, Job(candidate, split, 0, number), y, np.array(wrong, dtype=int))
        for number in range(rounds)
        for split in draw_round(y, number)
    ]
