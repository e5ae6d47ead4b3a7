"""One run of a candidate on one fold: what it is to learn from, and, once it is trained, what it says about held-out labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np
from scipy.special import log_softmax

from sharpen.fitting.candidates import Candidate
from sharpen.fitting.spreading import CAUTION, Spreading
from sharpen.graph import Graph
from sharpen.graph.splits import Split

# No opinion rules a class out: beside others, one that is too sure would be a veto.
LEAST = float(np.log(1e-4))


@dataclass(frozen=True)
class Run:
    """A candidate on a fold; after training with what it came to.

    Args:
        candidate: Model and objective, and whether spread labels are listened to.
        split: Its training nodes are learnt from; its test nodes are those that judge it.
        seed: Of first weights and dropout.
        round_number: In which round of the search it belongs.
        opinions: What is said of the test nodes, as logarithms of probabilities, [K, nodes, C]: by :meth:`Listener.opinions`.
        weights: What it has learnt: arrays by name.
        ok: Whether it stayed finite.
        traces: Per epoch, as :class:`sharpen.Record` holds them, where what trained it keeps them.
        seconds: What it took to train, as far as what trained it knows; 0 where it does not.
    """

    candidate: Candidate
    split: Split
    seed: int = 0
    round_number: int = 0
    opinions: np.ndarray = field(default_factory=lambda: np.empty((0, 0, 0)), repr=False)
    weights: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    ok: bool = True
    traces: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)
    seconds: float = 0.0

    @property
    def test(self) -> np.ndarray:
        """The labeled nodes it never meets."""
        return self.split.test.numpy()

    def known(self, y: np.ndarray) -> np.ndarray:
        """The classes of its training nodes, −1 elsewhere.

        >>> Run(Candidate("gcn"), Split("s", train=[0], val=[], test=[1])).known(np.array([1, 0, 1])).tolist()
        [1, -1, -1]
        """
        train = self.split.train.numpy()
        known = np.full(len(y), -1)
        known[train] = y[train]
        return known


class Listener:
    """Gathers the opinions about the nodes of one graph.

    Args:
        graph: The graph; of its labels, only those are read that are said to be known.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self._spreading = graph, Spreading(graph)
        self._spread: dict[bytes, np.ndarray] = {}

    def opinions(
        self,
        logits: np.ndarray,
        spread: bool,
        known: np.ndarray,
        nodes: np.ndarray | None = None,
        caution: float = CAUTION,
    ) -> np.ndarray:
        """Logarithms of probabilities, [K, nodes, C]: the model's own, and what spread labels say if they are asked.

        Args:
            logits: Class scores of all nodes, [N, C].
            spread: Whether labels are asked.
            known: The class of each node, −1 where it is not to be used.
            nodes: Whom to ask about; None: all.
            caution: Of spread labels (:meth:`sharpen.fitting.spreading.Spreading.spread`).
        """
        where = slice(None) if nodes is None else nodes
        own = np.maximum(log_softmax(logits[where].astype(np.float64), axis=1), LEAST)
        if not spread:
            return own[None]
        key = blake2b(known.tobytes() + (b"" if nodes is None else nodes.tobytes())).digest()
        if key not in self._spread:  # the same for all runs that know the same
            self._spread[key] = np.maximum(self._spreading.spread(known, logits.shape[1], caution)[where], LEAST)
        return np.stack([own, self._spread[key]])

    def judged(
        self,
        run: Run,
        logits: np.ndarray,
        weights: dict[str, np.ndarray],
        ok: bool = True,
        traces: Mapping[str, np.ndarray] | None = None,
        *,
        seconds: float = 0.0,
        spread: bool = True,
    ) -> list[Run]:
        """A run once it is trained, alone and with spread labels beside it.

        Args:
            run: What was trained; the labels of its training nodes are spread, no other is read.
            logits: Class scores of all nodes, [N, C]; only those of held-out labels are kept.
            weights, ok, traces, seconds: As for :class:`Run`.
            spread: Whether labels are spread; otherwise, and where there is no edge to spread along, it is judged alone, and no
                work is done on the whole graph.
        """
        known, test = run.known(self.graph.y.numpy()), run.test
        return [
            replace(
                run,
                candidate=replace(run.candidate, spread=asked),
                opinions=self.opinions(logits, asked, known, test),
                weights=weights,
                ok=ok,
                traces=traces or {},
                seconds=seconds,
            )
            for asked in ((False, True) if spread and self.graph.num_edges else (False,))
        ]
