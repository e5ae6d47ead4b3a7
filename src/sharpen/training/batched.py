"""A population that sees the graph in batches: many steps an epoch, and an exact evaluation after it.

All members see the same batches. A step's gradient is the mean over its batches, each an estimate without bias
(:mod:`sharpen.large.batches`); which process computes which batch, and how many there are, changes sums only in their order.
Running statistics of a batch norm are treated alike: each batch starts from those before the step, and the mean of what comes out
is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from sharpen.batching import Batching
from sharpen.errors import InputError
from sharpen.graph import Graph, Split
from sharpen.kernels.loss import TRACED, population_loss
from sharpen.large.batches import Batch, make_batches
from sharpen.large.disk import as_tensor
from sharpen.large.inputs import BatchInputs
from sharpen.large.layerwise import layerwise_logits
from sharpen.large.parted import PartedGraph, arrange
from sharpen.large.stored import StoredGraph
from sharpen.models.initial import draw
from sharpen.models.network import Network
from sharpen.training.members import PLAIN, Members, Terms
from sharpen.training.ranks import Ranks
from sharpen.trial import Trial


class BatchedPopulation(Members):
    """Members that see a part of the graph at every step; with weights, class scores of all nodes are given too."""

    def __init__(
        self,
        network: Network,
        graph: Graph,
        batching: Batching,
        metric: str,
        trials: Sequence[Trial],
        splits: Sequence[Split],
        device: torch.device,
        dtype: torch.dtype,
        terms: Terms = PLAIN,
        ranks: Ranks | None = None,
    ) -> None:
        self.ranks = ranks or Ranks()
        if batching.per_step < self.ranks.world:
            raise InputError(
                f"batching {batching.name} has {batching.per_step} batches a step, but {self.ranks.world} processes are to share "
                f"them; give at least {self.ranks.world}, as a last number: {batching.name.rsplit('-', batching.per_step > 1)[0]}"
                f"-{self.ranks.world}"
            )
        if isinstance(graph, StoredGraph):
            # What is kept on disk is made by one process and found by the others; what is in memory, each makes for itself.
            self.ranks.decided(lambda: self._prepare(network, graph, batching, dtype).num_nodes)
        self.parted = self._prepare(network, graph, batching, dtype)
        self.batching, self.batches = batching, make_batches(batching, self.parted, network.hops)
        place = np.argsort(self.parted.order)
        renumbered = {
            id(split): Split(split.name, place[split.train], place[split.val], place[split.test]) for split in splits
        }
        y = graph.y[as_tensor(self.parted.order)].to(device)
        self.network = network
        super().__init__(
            draw(network.initials, [trial.seed for trial in trials], device, dtype),
            network.statistics(len(trials), device, dtype),
            y,
            network.num_classes,
            metric,
            trials,
            [renumbered[id(split)] for split in splits],
            replace(terms, keep_weights=True),
        )
        self.device, self.dtype, self._place, self._keeps = device, dtype, place, terms.keep_weights
        # What training took so far, kept in checkpoints: whoever trains it says.
        self.seconds = torch.zeros((), dtype=torch.float64, device=device)
        if self.objective.class_weight is not None:
            # The weighted mean is over all labeled nodes: its normaliser is theirs, and a batch only estimates the sum.
            known = self.objective.class_weight[self.y.clamp(min=0)]
            self._weighted = known / (self.labeled * known).sum(1, keepdim=True)

    @staticmethod
    def _prepare(network: Network, graph: Graph, batching: Batching, dtype: torch.dtype) -> PartedGraph:
        parted = arrange(graph, batching.parts or 1)
        if network.is_gathered_beforehand:
            parted.propagated(network.convolution.gather, dtype)
        return parted

    def epoch(self) -> None:
        """A step for every few batches, until all nodes were met once; then one evaluation."""
        epoch, per_step = int(self.epoch_number), self.batching.per_step
        drawn = self.batches.draw(epoch)
        steps = [self.ranks.mine(range(first, first + per_step)) for first in range(0, len(drawn), per_step)]
        built = self._built([(drawn[number], epoch * len(drawn) + number) for step in steps for number in step])
        total = self.labeled.new_zeros(len(self.STEP), self.members)
        for step in steps:
            total += self._train_step([next(built) for _ in step])
        self._trace([*(total / len(steps)), *self._evaluate()])
        self.epoch_number += 1

    def _built(self, wanted: Sequence[tuple[np.ndarray, int]]) -> Iterator[tuple[int, Batch]]:
        """The batches one after the other, each with its moment; the next is cut out of the graph while one is computed with."""
        with ThreadPoolExecutor(1) as ahead:
            coming = ahead.submit(self.batches.build, *wanted[0])
            for (_, moment), following in pairwise(wanted):
                batch, coming = coming.result(), ahead.submit(self.batches.build, *following)
                yield moment, batch
            yield wanted[-1][1], coming.result()

    def _train_step(self, batches: Sequence[tuple[int, Batch]]) -> Tensor:
        """One step of every member from this process's batches and those of the others; gives the step's numbers, [4, R]."""
        per_step = self.batching.per_step
        numbers = self.labeled.new_zeros(len(self.STEP), self.members)
        gradients = [torch.zeros_like(p) for p in self.parameters.values()]
        statistics = {name: torch.zeros_like(value) for name, value in self.statistics.items()}
        for when, batch in batches:
            after = {name: value.clone() for name, value in self.statistics.items()}
            loss, parts = self._loss(when, batch, after)
            # Members share nothing, so the gradient of the sum is each member's own.
            own = torch.autograd.grad(loss.sum(), list(self.parameters.values()), materialize_grads=True)
            for gradient, more in zip(gradients, own, strict=True):
                gradient += more
            for name, value in after.items():
                statistics[name] += value
            numbers += torch.cat([loss.detach()[None], parts])
        self.ranks.add([numbers, *gradients, *statistics.values()])
        self.adam.step([gradient / per_step for gradient in gradients])
        for name, value in statistics.items():
            self.statistics[name].copy_(value / per_step)
        return numbers / per_step

    def _loss(self, when: int, batch: Batch, statistics: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Every member's estimate of its loss from one batch; statistics are updated in place."""
        inputs = BatchInputs(self.parted, batch, self.device, self.dtype)
        moment = torch.tensor(when, device=self.device)
        projected, dropout = self.network.project(self.parameters, inputs), self._moment(moment).dropout
        logits = self.network.logits(self.parameters, statistics, projected, inputs, True, dropout)
        core = torch.from_numpy(batch.nodes[: batch.core]).to(self.device)
        labeled, unlabeled = (weight[:, core] / batch.probability for weight in (self.labeled, self.unlabeled))
        scores, y = logits[:, : batch.core].contiguous(), self.y[core]
        equal = replace(self.objective, class_weight=None)
        if self.objective.class_weight is None:
            return population_loss(scores, y, labeled, unlabeled, equal)
        parts = equal.parts(scores, y, labeled, unlabeled)
        weighted = equal.parts(scores, y, labeled * self._weighted[:, core], unlabeled)
        parts = parts._replace(cross_entropy=weighted.cross_entropy)
        return equal.combine(parts), torch.stack([getattr(parts, name) for name in TRACED]).detach()

    def _logits(self, weights: dict[str, Tensor]) -> Tensor:
        """Exact class scores of all nodes, [R, N, C], in the parted order."""
        parameters = {name: weights[name].detach() for name in self.parameters}
        statistics = {name: weights[name] for name in self.statistics}
        ranks = self.ranks
        return layerwise_logits(
            self.network,
            parameters,
            statistics,
            self.parted,
            lambda run: run % ranks.world == ranks.rank,
            ranks.share_runs,
        )

    def _scores(self) -> Tensor:
        return self._logits(self.parameters | self.statistics)

    def _best_scores(self) -> Tensor:
        logits = self._logits(self.best_weights)
        self.best_logits = logits[:, torch.from_numpy(self._place).to(logits.device)] if self._keeps else logits[:, :0]
        if not self._keeps:  # they were needed here only
            self.best_weights = {}
        return logits

    def state(self) -> dict[str, Tensor]:
        """All that changes during training: tensors by name, the very ones, so that writing to them restores a state."""
        groups = {"parameters": self.parameters, "statistics": self.statistics, "best": self.best_weights}
        for moments in ("first", "second"):
            groups[f"adam.{moments}"] = dict(zip(self.parameters, getattr(self.adam, moments), strict=True))
        named = {f"{of}.{name}": value.detach() for of, group in groups.items() for name, value in group.items()}
        single = ("epoch_number", "traces", "alive", "best_val", "best_epoch", "seconds")
        return named | {name: getattr(self, name) for name in single}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Goes on from a state; of several processes only the first one's is looked at."""
        mine = self.state()

        def fits() -> bool:
            if state.keys() != mine.keys() or any(state[name].shape != mine[name].shape for name in mine):
                raise InputError("the checkpoint is of another kind of training; remove it to start anew")
            return True

        self.ranks.decided(fits)
        if self.ranks.writes:
            for name, value in mine.items():
                value.copy_(state[name])
        self.ranks.from_first(mine)
        self.adam.count(self.epoch_number * (self.batches.per_epoch // self.batching.per_step))
