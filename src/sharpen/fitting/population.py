"""The built-in models as a backbone: members are trained in populations, and predict in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from sharpen.fitting.folds import balanced_weights
from sharpen.fitting.members import Job, Member, judged
from sharpen.fitting.neighbours import Neighbours
from sharpen.fitting.threads import suitable_threads
from sharpen.graph import Graph
from sharpen.models import Inputs, Network
from sharpen.training import train
from sharpen.training.device import arithmetic, resolve_device
from sharpen.trial import Record, Trial

# One layer's activations of all members that predict together.
_CHUNK_BYTES = 64 * 2**20


class PopulationBackbone:
    """Trains with :func:`sharpen.train`.

    Args:
        settings: ``layers hidden dropout norm residual input_linear lr weight_decay epochs q``, as in
            :class:`sharpen.Trial`, with nothing left open.
        device: ``auto``, ``cpu`` or ``cuda``.
        balanced: Whether classes weigh the same in the cross-entropy, however many labels they have.
        progress: Whether to draw a progress bar on a terminal.
        trainer: Takes the place of :func:`sharpen.train`: the same, somewhere else.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        device: str = "auto",
        balanced: bool = False,
        progress: bool = False,
        trainer: Callable[..., list[Record]] = train,
    ) -> None:
        self.settings, self.device, self.balanced, self.progress = dict(settings), device, balanced, progress
        self._train = trainer

    def train(self, graph: Graph, jobs: Sequence[Job]) -> list[Member]:
        """Members of each job, in the same order: as it is, and after all that may be done to its predictions."""
        splits = {job.split.name: job.split for job in jobs}
        trials = [
            Trial(
                model=job.candidate.model,
                lam=job.candidate.lam,
                balance=job.candidate.balance,
                split=job.split.name,
                seed=job.seed,
                **self.settings,
            )
            for job in jobs
        ]
        with suitable_threads(graph.num_nodes, self.settings["hidden"]):
            records = self._train(
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
        neighbours, y = Neighbours(graph), graph.y.numpy()
        for job, record in zip(jobs, records, strict=True):
            assert record.logits is not None
            ok = record.status == "ok"
            members += judged(neighbours, y, job, record.logits, record.weights, ok, record.traces)
        return members

    def logits(
        self, graph: Graph, model: str, num_classes: int, weights: Sequence[dict[str, np.ndarray]]
    ) -> Iterator[np.ndarray]:
        """Class scores [N, C] of every set of weights of one model, in the same order."""
        shape = {name: self.settings[name] for name in ("layers", "hidden", "norm", "residual", "input_linear")}
        network = Network(model, num_features=graph.num_features, num_classes=num_classes, **shape)
        where = resolve_device(self.device)
        size = max(1, _CHUNK_BYTES // (4 * graph.num_nodes * int(self.settings["hidden"])))
        with arithmetic("float32", where) as dtype, torch.no_grad():
            inputs = Inputs(graph, network.convolution, where, dtype)
            for start in range(0, len(weights), size):
                chunk = weights[start : start + size]
                stacked = {
                    name: torch.from_numpy(np.stack([own[name] for own in chunk])).to(where, dtype) for name in chunk[0]
                }
                statistics = {name: value for name, value in stacked.items() if ".running_" in name}
                parameters = {name: value for name, value in stacked.items() if name not in statistics}
                projected = network.project(parameters, inputs)
                yield from network.logits(parameters, statistics, projected, inputs, False).cpu().numpy()
