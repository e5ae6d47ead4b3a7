"""Candidates that are no networks: what each learns from labels, as arrays that a file can hold, and what it says of any graph.

They share one small interface with the networks (:class:`sharpen.fitting.backbone.Backbone`): trained on the same folds, judged by
the same held-out labels, saved without pickle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from scipy.special import softmax

from sharpen.fitting.aggregates import LinearOnColumns, TreesOnColumns
from sharpen.fitting.propagated import LogisticOnHops, SelfTraining
from sharpen.graph import Graph

_State = dict[str, np.ndarray]
"""What an estimator has learnt: arrays by name."""


class Estimator(Protocol):
    """What learns from known labels and gives class scores of all nodes."""

    def fit(self, graph: Graph, known: np.ndarray, num_classes: int, *, seed: int, balanced: bool) -> _State:
        """Learns from the nodes of known class.

        Args:
            graph: Its own labels are not looked at.
            known: The class of each node, −1 where it is unknown or held out.
            num_classes: How many there are, with and without labels.
            seed: Of what it draws.
            balanced: Whether classes weigh the same, however many labels they have.
        """

    def scores(self, graph: Graph, state: Mapping[str, np.ndarray], known: np.ndarray, num_classes: int) -> np.ndarray:
        """Class scores [N, C] of all nodes; of nodes of known class without that knowledge of their own."""

    def check(self, state: Mapping[str, np.ndarray], num_features: int, num_classes: int) -> None:
        """Refuses a state that :meth:`fit` would not give, as a ValueError."""


ESTIMATORS: dict[str, type[Estimator]] = {
    "logistic": LogisticOnHops,
    "self-training": SelfTraining,
    "linear": LinearOnColumns,
    "trees": TreesOnColumns,
}
"""By the name that candidates have."""


def meet_prior(scores: np.ndarray, unlabeled: np.ndarray, shares: np.ndarray) -> np.ndarray:
    r"""What to add to the scores of each class so that the mean prediction over unlabeled nodes has given class proportions.

    .. math:: b_c \leftarrow b_c + \log \pi_c - \log \operatorname{mean}_{i \in U} \operatorname{softmax}(z_i + b)_c

    until it stays: the correction of class probabilities to another prior (Saerens, Latinne and Decaestecker, 2002), with the prior
    given.

    Args:
        scores: [N, C].
        unlabeled: Which nodes count.
        shares: [C], above 0 and summing to 1.

    >>> scores = np.log(np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.3, 0.7]]))
    >>> bias = meet_prior(scores, np.ones(4, dtype=bool), np.array([0.75, 0.25]))
    >>> softmax(scores + bias, axis=1).mean(0).round(3).tolist()
    [0.75, 0.25]
    """
    bias, own = np.zeros(scores.shape[1]), scores[unlabeled].astype(np.float64)
    for _ in range(200 if len(own) else 0):
        step = np.log(shares) - np.log(np.maximum(softmax(own + bias, axis=1).mean(0), 1e-12))
        bias += step
        if np.abs(step).max() < 1e-6:
            break
    return bias - bias.mean()
