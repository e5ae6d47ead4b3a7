"""The built-in models as a backbone: members are trained in populations, and predict in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from sharpen.cluster.pool import IN_THIS_PROCESS, Trainer
from sharpen.fitting.folds import balanced_weights
from sharpen.fitting.members import Job, Listener, Member
from sharpen.graph import Graph
from sharpen.large.layerwise import layerwise_logits
from sharpen.large.parted import arrange
from sharpen.models import Inputs, Network
from sharpen.training.device import arithmetic, resolve_device
from sharpen.training.memory import choose_batching
from sharpen.training.threads import suitable_threads
from sharpen.trial import MODELS, Trial

# One layer's activations of all members that predict together.
_CHUNK_BYTES = 64 * 2**20
# Class scores of all nodes, of runs in batches that are judged together.
_SCORES_BYTES = 2**30
UNSPREAD = "known labels are not spread over a graph that a GCN takes in batches: that would be work on the whole of it at once"


class PopulationBackbone:
    """Trains with :func:`sharpen.train`.

    Args:
        settings: ``layers hidden dropout norm residual input_linear lr weight_decay epochs q``, as in
            :class:`sharpen.Trial`, with nothing left open.
        device: ``auto``, ``cpu`` or ``cuda``.
        balanced: Whether classes weigh the same in the cross-entropy, however many labels they have.
        progress: Whether to draw a progress bar on a terminal.
        batching: As for :func:`sharpen.training.memory.choose_batching`.
        tell: Is told, once, if the graph is taken in batches.
        trainer: Who trains: this process, or a cluster (:func:`sharpen.cluster.pool.trainer_on`).
        cuts: How the graph of the fit was taken in batches for each model, None for not at all; what is missing is decided when
            it is first needed, and then stays.

    After training, ``notes`` says what came of it.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        device: str = "auto",
        balanced: bool = False,
        progress: bool = False,
        batching: str = "auto",
        tell: Callable[[str], None] = lambda text: None,
        trainer: Trainer = IN_THIS_PROCESS,
        cuts: Mapping[str, str | None] | None = None,
    ) -> None:
        self.settings, self.device, self.balanced, self.progress = dict(settings), device, balanced, progress
        self.batching, self._tell, self._trainer = batching, tell, trainer
        self.cuts, self.notes = dict(cuts or {}), list[str]()
        self._spreads: bool | None = None

    def _network(self, graph: Graph, model: str, num_classes: int) -> Network:
        shape = {name: self.settings[name] for name in ("layers", "hidden", "norm", "residual", "input_linear")}
        return Network(model, num_features=graph.num_features, num_classes=num_classes, **shape)

    def check(self, model: str, num_features: int, num_classes: int, weights: Sequence[dict[str, np.ndarray]]) -> None:
        """Refuses weights that are not those of the model, as a ValueError that says which."""
        if model not in MODELS:
            raise ValueError(f"model is {model!r}")
        shape = {name: self.settings[name] for name in ("layers", "hidden", "norm", "residual", "input_linear")}
        if shape["layers"] > len(weights[0]):  # before as many are made up
            raise ValueError(f"it has weights for fewer than {shape['layers']} layers")
        network = Network(model, num_features=num_features, num_classes=num_classes, **shape)
        wanted = {name: tuple(initial.shape) for name, initial in network.initials.items()}
        running = network.statistics(1, torch.device("meta"), torch.float32)
        wanted |= {name: tuple(value.shape[1:]) for name, value in running.items()}
        for own in weights:
            got = {name: value.shape for name, value in own.items()}
            for name in sorted(got.keys() | wanted.keys()):
                if got.get(name) != wanted.get(name):
                    raise ValueError(
                        f"weights {name} of {model} have shape {got.get(name)}, where {wanted.get(name)} is needed"
                    )

    def _cut(self, graph: Graph, network: Network, left: int | None) -> tuple[str | None, str]:
        """How the graph is taken in batches for this network, if it is, and a sentence about it."""
        return choose_batching(self.batching, network, graph, resolve_device(self.device), torch.float32, left=left)

    def _decide(self, graph: Graph, models: Iterable[str]) -> bool:
        """How the graph is taken in batches for each model, and whether labels are spread over it; once for all that is trained
        here, so that candidates do not differ in what memory happened to be free."""
        left = self._trainer.memory_left
        for model in models:
            if model not in self.cuts:
                self.cuts[model], note = self._cut(graph, self._network(graph, model, graph.num_classes), left)
                if note and set(self.notes) <= {UNSPREAD}:  # of several models, the first says enough
                    self._note(note)
        if self._spreads is None:
            gcn = self._network(graph, "gcn", graph.num_classes)
            self._spreads = (self.cuts["gcn"] if "gcn" in self.cuts else self._cut(graph, gcn, left)[0]) is None
            if not self._spreads:
                self._note(UNSPREAD)
        return self._spreads

    def _note(self, text: str) -> None:
        self.notes.append(text)
        self._tell(text)

    def train(self, graph: Graph, jobs: Sequence[Job]) -> list[Member]:
        """Two members for each job, in the same order: alone, and with spread labels beside it; only the first of them where
        the graph is so large that even a GCN, which needs about as much as spreading, is trained in batches."""
        models = dict.fromkeys(job.candidate.model for job in jobs)
        spread = self._decide(graph, models)
        # Class scores of a large graph are judged as they come, a few runs at a time, and not kept.
        in_batches = any(self.cuts[model] for model in models)
        size = max(1, _SCORES_BYTES // (4 * graph.num_nodes * graph.num_classes)) if in_batches else len(jobs)
        listener, members = Listener(graph), list[Member]()
        for first in range(0, len(jobs), size):
            members += self._train(listener, jobs[first : first + size], spread)
        return members

    def _train(self, listener: Listener, jobs: Sequence[Job], spread: bool) -> list[Member]:
        graph = listener.graph
        splits = {job.split.name: job.split for job in jobs}
        trials = [
            Trial(
                model=job.candidate.model,
                lam=job.candidate.lam,
                balance=job.candidate.balance,
                split=job.split.name,
                seed=job.seed,
                batching=self.cuts[job.candidate.model],
                **self.settings,
            )
            for job in jobs
        ]
        with suitable_threads(graph.num_nodes, self.settings["hidden"]):
            records = self._trainer.train(
                graph,
                trials,
                splits=splits,
                device=self.device,
                progress=self.progress,
                keep_weights=True,
                choose="last",
                class_weight=balanced_weights(graph.y.numpy(), graph.num_classes) if self.balanced else None,
            )
        members: list[Member] = []
        for job, record in zip(jobs, records, strict=True):
            assert record.logits is not None
            ok = record.status == "ok"
            members += listener.judged(job, record.logits, record.weights, ok, record.traces, spread=spread)
        return members

    def logits(
        self, graph: Graph, model: str, num_classes: int, weights: Sequence[dict[str, np.ndarray]]
    ) -> Iterator[np.ndarray]:
        """Class scores [N, C] of every set of weights of one model, in the same order."""
        network = self._network(graph, model, num_classes)
        # As in the fit; but predictions are made here, whoever trained, and what fitted there may not fit here. The evaluation
        # layer by layer is exact: its scores are those of the whole graph at once, up to rounding.
        cut = self.cuts.get(model) or self._cut(graph, network, None)[0]
        where = resolve_device(self.device)
        size = max(1, _CHUNK_BYTES // (4 * graph.num_nodes * int(self.settings["hidden"])))
        with arithmetic("float32", where) as dtype, torch.no_grad():
            inputs = Inputs(graph, network.convolution, where, dtype)
            whole = arrange(graph, 1) if cut else None
            for start in range(0, len(weights), size):
                chunk = weights[start : start + size]
                stacked = {
                    name: torch.from_numpy(np.stack([own[name] for own in chunk])).to(where, dtype) for name in chunk[0]
                }
                statistics = {name: value for name, value in stacked.items() if ".running_" in name}
                parameters = {name: value for name, value in stacked.items() if name not in statistics}
                if whole is not None:
                    yield from layerwise_logits(network, parameters, statistics, whole).cpu().numpy()
                    continue
                projected = network.project(parameters, inputs)
                yield from network.logits(parameters, statistics, projected, inputs, False).cpu().numpy()
