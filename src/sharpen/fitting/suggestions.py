r"""Which unlabeled nodes are worth labeling next: those whose labels would settle most of the others.

A linear model on propagated features predicts node v with a variance that depends on which nodes are labeled, and not on what
their labels are. With f the features (S²GC, rows at unit length), Q the posterior covariance of the weights given the labeled
nodes L, and :math:`u_v` how unsure the delivered prediction of v is,

.. math:: Q = \Big(I + \sum_{l \in L} f_l f_l^\top\Big)^{-1}, \qquad V = \sum_v u_v \, f_v^\top Q f_v

a label of s takes :math:`\sum_v u_v (f_v^\top Q f_s)^2 / (1 + f_s^\top Q f_s)` off V. The node that takes most is chosen, Q updated
as if it were labeled, and so on: a batch in which no two nodes tell the same (Ji and Han, *A Variance Minimization Criterion to
Active Learning on Graphs*, 2012, with features in the place of the graph's Laplacian). Each choice costs one pass over the nodes.
``benchmarks/suggest.py`` holds it against random choice and other rules.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr

from sharpen.errors import InputError
from sharpen.fitting.spreading import features_of
from sharpen.graph import Graph
from sharpen.graph.matrices import propagation_matrix

HOPS, KEPT = 16, 0.05
_COMPONENTS = 128


class Suggestions(NamedTuple):
    """Nodes in the order in which to label them.

    Args:
        nodes: Their places in the graph.
        left: The share of the variance V that is left once this one and those before it are labeled.
    """

    nodes: np.ndarray
    left: np.ndarray


def check_suggest(n: object) -> None:
    """Refuses what is no number of nodes.

    >>> check_suggest(0)
    Traceback (most recent call last):
    sharpen.errors.InputError: suggest is 0; give how many nodes to name, a whole number from 1
    """
    if isinstance(n, bool) or not isinstance(n, Integral) or int(n) < 1:
        raise InputError(f"suggest is {n!r}; give how many nodes to name, a whole number from 1")


def suggest(graph: Graph, known: np.ndarray, probabilities: np.ndarray, n: int = 20) -> Suggestions:
    """The unlabeled nodes to label next; as many as there are, where ``n`` is more.

    Args:
        graph: Its features and edges; its labels are not looked at.
        known: The class of each node, −1 where it is unknown.
        probabilities: What is predicted now, [N, C].
        n: How many.

    Two groups, one of them labeled: the other is asked about first.

    >>> groups = Graph(x=np.eye(2)[[0, 0, 0, 1, 1, 1]], edge_index=[[0, 1, 3, 4], [1, 2, 4, 5]])
    >>> suggest(groups, np.array([0, -1, -1, -1, -1, -1]), np.full((6, 2), 0.5), n=1).nodes.tolist()
    [3]
    """
    check_suggest(n)
    free = known < 0
    return _least_variance(_propagated(graph), ~free, entr(probabilities).sum(axis=1) * free, min(n, int(free.sum())))


def _least_variance(f: np.ndarray, labeled: np.ndarray, unsure: np.ndarray, n: int) -> Suggestions:
    """Greedy choice. Beside each node's variance and what its label takes off V, Q f is kept, so that a choice costs O(Nd)."""
    q = np.linalg.inv(np.eye(f.shape[1]) + f[labeled].T @ f[labeled])
    others = f.T @ (f * (unsure if unsure.any() else ~labeled)[:, None])
    whole = float(np.sum(others * q))
    told = f @ q
    variance, gain = np.einsum("nd,nd->n", told, f), np.einsum("nd,nd->n", told @ others, told)
    taken, left, nodes = labeled.copy(), whole, np.empty(n, dtype=np.int64)
    shares = np.empty(n)
    for i in range(n):
        worth = np.where(taken, -np.inf, gain / (1 + variance))
        best = int(worth.argmax())
        left -= float(worth[best])
        nodes[i], shares[i], taken[best] = best, max(0.0, left / whole) if whole > 0 else 0.0, True
        direction, scale = told[best].copy(), 1 + float(variance[best])
        along = f @ direction
        pulled = others @ direction
        gain += along / scale * (along / scale * float(direction @ pulled) - 2 * (told @ pulled))
        variance -= along**2 / scale
        told -= np.outer(along / scale, direction)
    return Suggestions(nodes, shares)


def _propagated(graph: Graph) -> np.ndarray:
    """Features averaged over 16 hops (S²GC), of at most 128 components, rows at unit length; float64."""
    from sklearn.preprocessing import normalize

    x: Any = features_of(graph)
    if x.shape[1] > _COMPONENTS < x.shape[0]:
        from sklearn.decomposition import TruncatedSVD

        x = TruncatedSVD(_COMPONENTS, random_state=0).fit_transform(normalize(x))
    x = x.toarray() if hasattr(x, "toarray") else x
    x = np.asarray(normalize(x), dtype=np.float64)
    return np.asarray(normalize(_propagate(graph, x)))


def _propagate(graph: Graph, x: np.ndarray, hops: int = HOPS, kept: float = KEPT) -> np.ndarray:
    r"""The mean over hops of :math:`\hat A^k x`, k from 1 to ``hops``, beside a share ``kept`` of x itself.

    >>> pair = Graph(x=np.eye(2), edge_index=[[0], [1]])
    >>> _propagate(pair, np.eye(2), hops=1, kept=0.5).round(2).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    hop, power = propagation_matrix(graph, "symmetric"), x
    total = kept * x
    for _ in range(hops):
        power = hop @ power
        total = total + (1 - kept) / hops * power
    return np.asarray(total)
