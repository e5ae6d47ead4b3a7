"""A small graph that can be learnt, and runs whose skill is known."""

import dataclasses

import numpy as np

from sharpen.fitting.candidates import Candidate
from sharpen.fitting.folds import draw_round
from sharpen.fitting.runs import Run
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


def trained(run: Run, y: np.ndarray, wrong: np.ndarray) -> Run:
    """One that gets all nodes right but for those named, and is sure of each to 2 in logits."""

    def logits(nodes: np.ndarray) -> np.ndarray:
        guess = np.where(np.isin(nodes, wrong), 1 - y[nodes], y[nodes])
        return 2.0 * np.eye(2)[guess]

    return dataclasses.replace(run, opinions=logits(run.test)[None])


def runs_of(candidate: Candidate, y: np.ndarray, wrong: list[int], rounds: int = 1) -> list[Run]:
    """The runs of all folds of some rounds."""
    return [
        trained(Run(candidate, split, 0, number), y, np.array(wrong, dtype=int))
        for number in range(rounds)
        for split in draw_round(y, number)
    ]
