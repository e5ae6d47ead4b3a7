"""A population: trials of one graph and one architecture, trained together as one batch.

Everything a member has is a row of a tensor [R, ...]; no operation mixes rows. The state lives on the device, the epoch's
number among it, so that an epoch is the same sequence of operations every time and can be captured and replayed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sharpen.entropy import tsallis_entropy
from sharpen.graph import Split
from sharpen.kernels.loss import population_loss
from sharpen.training.members import PLAIN, Members, Terms
from sharpen.training.ways import Way
from sharpen.trial import Trial

_SHANNON = ("shannon_labeled", "shannon_unlabeled")


class Population(Members):
    """Members that see the whole graph at every step; a way says how their class scores are computed, on which graph."""

    def __init__(
        self, way: Way, metric: str, trials: Sequence[Trial], splits: Sequence[Split], terms: Terms = PLAIN
    ) -> None:
        self.way, self.inputs = way, way.inputs
        if terms.shannon:
            self.STEP = (*self.STEP, *_SHANNON)
        parameters, statistics = way.start(trials)
        y = self.inputs.labels()
        super().__init__(parameters, statistics, y, way.num_classes, metric, trials, splits, terms, way.rates)
        self.leaves = way.leaves(self.parameters)
        shape = (self.members, self.inputs.num_nodes, way.num_classes)
        self.best_logits = torch.zeros(shape, dtype=self.inputs.dtype, device=self.inputs.device)

    def epoch(self) -> None:
        """One training step of every member, then one evaluation, unless the last epoch is kept whatever it scores."""
        step = self._train_step()
        with torch.no_grad():
            self.way.refresh(self.leaves, self.parameters)
        self._trace(step + (self._evaluate() if self.terms.choose == "best" else []))
        self.epoch_number += 1

    def _weights(self) -> dict[str, Tensor]:
        kept = self.way.persistent
        return {name: w for name, w in super()._weights().items() if kept is None or name in kept}

    def _train_step(self) -> list[Tensor]:
        logits, more = self.way.scored(self.parameters, self.statistics, self.leaves, True, self._moment())
        loss, parts = population_loss(logits, self.y, self.labeled, self.unlabeled, self.objective)
        loss = loss if more is None else loss + more
        self.adam.step(self.way.gradients(loss, self.parameters, self.leaves))
        return [loss.detach(), *parts, *self._shannon(logits, self.labeled, self.unlabeled)]

    @torch.no_grad()
    def _shannon(self, logits: Tensor, labeled: Tensor, unlabeled: Tensor) -> list[Tensor]:
        """Shannon's entropy of the labeled and of the unlabeled predictions of a training step, if it is to be traced."""
        if not self.terms.shannon:
            return []
        entropy = tsallis_entropy(logits.detach(), 1.0)
        return [(entropy * weight).sum(1) for weight in (labeled, unlabeled)]

    def _scores(self) -> Tensor:
        return self.way.logits(self.parameters, self.statistics, self.leaves, False, self._moment())

    def _best_scores(self) -> Tensor:
        if self.terms.choose == "last":
            self.epoch_number -= 1  # of the last epoch, which is over
            self.traces[len(self.STEP) :, -1] = torch.stack(self._evaluate()).to(self.traces.dtype)
        return self.best_logits

    def _note(self, val: Tensor, logits: Tensor) -> Tensor:
        better = super()._note(val, logits)
        torch.where(better[:, None, None], logits, self.best_logits, out=self.best_logits)
        return better
