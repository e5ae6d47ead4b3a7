"""One trained member of a search: what it is, what it says about labeled nodes, and the weights to say more with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np
from scipy.special import log_softmax

from sharpen.fitting.candidates import Candidate
from sharpen.fitting.spreading import Spreading
from sharpen.graph import Graph
from sharpen.graph.splits import Split

# No opinion rules a class out: beside others, one that is too sure would be a veto.
LEAST = float(np.log(1e-4))


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
        candidate: Model and objective, and whether spread labels are listened to.
        test: The labeled nodes it never met.
        opinions: What is said of them, as logarithms of probabilities, [K, nodes, C]: by :meth:`Listener.opinions`.
        weights: Parameters and buffers by name.
        ok: Whether it stayed finite.
        round_number: In which round of the search it was trained.
        traces: Per epoch, as :class:`sharpen.Record` holds them, where what trained it keeps them.
    """

    candidate: Candidate
    test: np.ndarray
    opinions: np.ndarray = field(repr=False)
    weights: dict[str, np.ndarray] = field(repr=False)
    ok: bool = True
    round_number: int = 0
    traces: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)


class Listener:
    """Gathers the opinions about the nodes of one graph.

    Args:
        graph: The graph; of its labels, only those are read that are said to be known.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self._spreading = graph, Spreading(graph)
        self._spread: dict[bytes, np.ndarray] = {}

    def opinions(
        self, logits: np.ndarray, spread: bool, known: np.ndarray, nodes: np.ndarray | None = None
    ) -> np.ndarray:
        """Logarithms of probabilities, [K, nodes, C]: the model's own, and what spread labels say if they are asked.

        Args:
            logits: Class scores of all nodes, [N, C].
            spread: Whether labels are asked.
            known: The class of each node, −1 where it is not to be used.
            nodes: Whom to ask about; None: all.
        """
        where = slice(None) if nodes is None else nodes
        own = np.maximum(log_softmax(logits[where].astype(np.float64), axis=1), LEAST)
        if not spread:
            return own[None]
        key = blake2b(known.tobytes() + (b"" if nodes is None else nodes.tobytes())).digest()
        if key not in self._spread:  # the same for all members that know the same
            self._spread[key] = np.maximum(self._spreading.spread(known, logits.shape[1])[where], LEAST)
        return np.stack([own, self._spread[key]])

    def judged(
        self,
        job: Job,
        logits: np.ndarray,
        weights: dict[str, np.ndarray],
        ok: bool,
        traces: Mapping[str, np.ndarray] | None = None,
        *,
        spread: bool = True,
    ) -> list[Member]:
        """The member that a job gave, alone and with spread labels beside it.

        Args:
            job: What was trained; the labels of its training nodes are spread, no other is read.
            logits: Class scores of all nodes, [N, C]; only those of held-out labels are kept.
            weights, ok, traces: As for :class:`Member`.
            spread: Whether labels are spread; otherwise, and where there is no edge to spread along, it is judged alone, and no
                work is done on the whole graph.
        """
        train, test, y = job.split.train.numpy(), job.split.test.numpy(), self.graph.y.numpy()
        known = np.full(len(y), -1)
        known[train] = y[train]
        return [
            Member(
                replace(job.candidate, spread=asked),
                test,
                self.opinions(logits, asked, known, test),
                weights,
                ok,
                job.round_number,
                traces or {},
            )
            for asked in ((False, True) if spread and self.graph.num_edges else (False,))
        ]
