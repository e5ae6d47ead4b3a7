"""How sure to be of nodes without an edge.

A model that listens to neighbours is calibrated on labeled nodes, most of which have some. Of a node that has none it says what
its own features alone suggest, in the same sure voice, and is more often wrong. So the same runs are asked about the labeled
nodes they never met once more, with all edges taken away, and the temperature of least log-loss there is that of isolated nodes.

Two things keep that from being exact. Where features were made from the structure, those of the labeled nodes still tell of the
edges that were taken away, and isolated nodes are predicted worse than this says. And the temperature is that of the few runs
that never met a node, while what is delivered is the mean of all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import softmax

from sharpen.evaluation.calibration import fit_temperature
from sharpen.fitting.backbone import Backbone
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.evidence import Evidence
from sharpen.fitting.runs import Listener
from sharpen.graph import Graph


@dataclass(frozen=True)
class IsolatedNodes:
    """What is known about predictions for nodes without an edge.

    Args:
        temperature: Of the ensemble's mean.
        accuracy: How often it is right about labeled nodes without their edges.
        labels: How many of these there are.
    """

    temperature: float
    accuracy: float
    labels: int


def isolated_nodes(graph: Graph) -> np.ndarray:
    """Which nodes no message reaches but their own.

    >>> isolated_nodes(Graph(x=np.eye(4), edge_index=[[0, 2], [1, 2]])).tolist()
    [False, False, True, True]
    """
    return np.asarray(graph.adjacency.degree().numpy() == 1)


def without_edges(graph: Graph) -> Graph:
    """The same nodes, each for itself.

    >>> without_edges(Graph(x=np.eye(2), edge_index=[[0], [1]])).num_edges
    0
    """
    return dataclasses.replace(graph, edge_index=torch.empty((2, 0), dtype=torch.long), edge_weight=None)


def judge_isolated(
    evidence: Evidence, shares: Mapping[Candidate, float], graph: Graph, backbone: Backbone
) -> IsolatedNodes | None:
    """Asks the chosen runs about labeled nodes they never met, with all edges taken away; None where there are none to ask.

    None too for a graph that is kept on disk, whose nodes without edges are taken like all others: it is not copied for this.

    Args:
        evidence: Of all runs.
        shares: How much each chosen candidate contributes.
        graph: What they were fitted on.
        backbone: What they were trained with.
    """
    if type(graph) is not Graph:
        return None
    bare = without_edges(graph)
    listener, nothing_known = Listener(bare), np.full(graph.num_nodes, -1)
    total, heard = np.zeros((len(evidence.y), evidence.num_classes)), np.zeros(len(evidence.y))
    for candidate, share in shares.items():
        counts = evidence.weights(candidate)
        runs = [run for run in evidence.runs[candidate] if run.ok]
        weights = [run.weights for run in runs]
        scores = backbone.logits(bare, candidate.model, evidence.num_classes, weights, nothing_known)
        try:
            for run, logits in zip(runs, scores, strict=True):
                own = listener.opinions(logits, False, nothing_known, run.test)[0]  # spread labels do not arrive
                rows = evidence.rows(run.test)
                total[rows] += share * softmax(counts[0] * own, axis=1)
                heard[rows] += share
        except (RuntimeError, IndexError, ValueError):  # a module of the user's that cannot do without an edge
            return None
    asked = heard > 0
    if not asked.any():
        return None
    p, y = total[asked] / heard[asked, None], evidence.y[asked]
    temperature = fit_temperature(np.log(np.maximum(p, 1e-300)), y, smoothing=1 / (len(y) + 2))
    return IsolatedNodes(temperature, float((p.argmax(1) == y).mean()), len(y))
