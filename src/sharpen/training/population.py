"""A population: trials of one graph and one architecture, trained together as one batch.

Everything a member has is a row of a tensor [R, ...]; no operation mixes rows. The state lives on the device, the epoch's
number among it, so that an epoch is the same sequence of operations every time and can be captured and replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from sharpen.kernels.loss import population_loss
from sharpen.models import Inputs, Network
from sharpen.splits import Split
from sharpen.training.members import PLAIN, Members, Results, Terms
from sharpen.trial import Trial


class Population(Members):
    """Members that see the whole graph at every step, and what one epoch does to them.

    Args:
        network: The architecture that all members share.
        inputs: The graph on the device.
        metric: ``accuracy``, ``balanced-accuracy`` or ``roc-auc``; it selects the epoch and is what is reported.
        trials: Resolved trials, one for each member.
        splits: Their splits, in the same order.
        terms: What else is asked of all of them.
    """

    def __init__(
        self,
        network: Network,
        inputs: Inputs,
        metric: str,
        trials: Sequence[Trial],
        splits: Sequence[Split],
        terms: Terms = PLAIN,
    ) -> None:
        super().__init__(network, inputs.labels(), metric, trials, splits, inputs.dtype, terms)
        self.inputs = inputs
        with torch.no_grad():
            projected = network.project(self.parameters, inputs)
        self.projected = [block.requires_grad_() for block in projected]
        nodes = inputs.num_nodes
        self.best_logits = torch.zeros(
            self.members, nodes, network.num_classes, dtype=inputs.dtype, device=inputs.device
        )

    def epoch(self) -> None:
        """One training step of every member, then one evaluation."""
        self._trace(self._train_step() + self._evaluate())
        self.epoch_number += 1

    def _train_step(self) -> list[Tensor]:
        logits = self.network.logits(
            self.parameters, self.statistics, self.projected, self.inputs, True, self._layer_dropout
        )
        loss, parts = population_loss(
            logits,
            self.y,
            self.labeled,
            self.unlabeled,
            self.q,
            self.lam,
            self.lam_labeled,
            self.balance,
            self.class_weight,
        )
        self.adam.step(self._gradients(loss, self.parameters, self.projected))
        return [loss.detach(), *parts]

    def _gradients(
        self, loss: Tensor, parameters: Mapping[str, Tensor], projected: Sequence[Tensor], keep_graph: bool = False
    ) -> list[Tensor]:
        """Every member's gradient of its own loss, in the order of the parameters."""
        # The first weights get their gradients through the projection, the others straight from the loss.
        first = set(self.network.first_names)
        later = {name: p for name, p in parameters.items() if name not in first}
        # Members share nothing, so the gradient of the sum is each member's own.
        gradients = torch.autograd.grad(
            loss.sum(), [*projected, *later.values()], retain_graph=keep_graph, materialize_grads=True
        )
        blocks = len(projected)
        by_name = self.network.project_gradients(gradients[:blocks], parameters, self.inputs)
        by_name |= dict(zip(later, gradients[blocks:], strict=True))
        return [by_name[name] for name in parameters]

    @torch.no_grad()
    def _evaluate(self) -> list[Tensor]:
        self.network.project_into(self.projected, self.parameters, self.inputs)
        logits = self.network.logits(self.parameters, self.statistics, self.projected, self.inputs, False)
        self.alive &= torch.isfinite(logits.sum((1, 2)))
        val = self._score(logits, self.masks["val"])
        better = self._note(val)
        torch.where(better[:, None, None], logits, self.best_logits, out=self.best_logits)
        return [self._score(logits, self.masks["train"]), val]

    def results(self) -> Results:
        """What the members came to. Here, once, the test labels are read."""
        test = self._score(self.best_logits, self.masks["test"])
        return Results(self, test)
