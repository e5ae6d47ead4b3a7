"""A population: trials of one graph and one architecture, trained together as one batch.

Everything a member has is a row of a tensor [R, ...]; no operation mixes rows. The state lives on the device, the epoch's
number among it, so that an epoch is the same sequence of operations every time and can be captured and replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sharpen.evaluation.metrics import accuracy, balanced_accuracy, roc_auc
from sharpen.kernels.activation import Dropout
from sharpen.kernels.adam import Adam
from sharpen.kernels.dropout import layer_keys, member_keys
from sharpen.kernels.loss import population_loss
from sharpen.models import Inputs, Network
from sharpen.models.initial import draw
from sharpen.splits import Split
from sharpen.trial import Trial


@dataclass(frozen=True)
class Terms:
    """What a call of :func:`sharpen.train` asks of every trial alike.

    Args:
        keep_weights: Whether to keep every member's weights of its chosen epoch.
        choose: ``best``: the first epoch with the best validation score; ``last``: the last, whatever it scores.
        class_weight: One weight for each class in the mean of the cross-entropy; None for equal ones.
    """

    keep_weights: bool = False
    choose: str = "best"
    class_weight: tuple[float, ...] | None = None


PLAIN = Terms()


class Population:
    """The state of R members and what one epoch does to it.

    Args:
        network: The architecture that all members share.
        inputs: The graph on the device.
        metric: ``accuracy``, ``balanced-accuracy`` or ``roc-auc``; it selects the epoch and is what is reported.
        trials: Resolved trials, one for each member.
        splits: Their splits, in the same order.
        terms: What else is asked of all of them.
    """

    # What an epoch leaves a trace of: numbers of the training step, the loss first, then scores of the evaluation.
    STEP: tuple[str, ...] = ("loss", "cross_entropy", "entropy_labeled", "entropy_unlabeled")
    SCORES = ("train", "val")

    def __init__(
        self,
        network: Network,
        inputs: Inputs,
        metric: str,
        trials: Sequence[Trial],
        splits: Sequence[Split],
        terms: Terms = PLAIN,
    ) -> None:
        self.network, self.inputs, self.metric, self.terms = network, inputs, metric, terms
        self.members, nodes = len(trials), inputs.num_nodes
        device, dtype = inputs.device, inputs.dtype

        def column(name: str) -> Tensor:
            return torch.tensor([getattr(trial, name) for trial in trials], dtype=dtype, device=device)

        self.lam, self.lam_labeled = column("lam"), column("lam_labeled")
        self.balance: float | Tensor = column("balance") if any(trial.balance for trial in trials) else 0.0
        orders = {trial.q for trial in trials}
        self.q: float | Tensor = orders.pop() if len(orders) == 1 else column("q")
        weight = terms.class_weight
        self.class_weight = None if weight is None else torch.tensor(weight, dtype=dtype, device=device)
        self.dropout = column("dropout") if any(trial.dropout for trial in trials) else None

        self.y = inputs.labels()
        masks = {name: torch.zeros(self.members, nodes, dtype=torch.bool) for name in ("train", "val", "test")}
        for r, split in enumerate(splits):
            for name, mask in masks.items():
                mask[r, getattr(split, name)] = True
        train, val = masks["train"], masks["val"]
        sharpened = ~train & ~(val & torch.tensor([not trial.sharpen_val for trial in trials])[:, None])
        self.labeled = (train.double() / train.sum(1, keepdim=True)).to(device, dtype)
        self.unlabeled = (sharpened.double() / (~train).sum(1, keepdim=True).clamp(min=1)).to(device, dtype)
        self.masks = {name: mask.to(device) for name, mask in masks.items()}

        seeds = [trial.seed for trial in trials]
        self.parameters = draw(network.initials, seeds, device, dtype)
        self.statistics = network.statistics(self.members, device, dtype)
        self.keys = member_keys(seeds).to(device)
        self.epoch_number = torch.zeros((), dtype=torch.int64, device=device)
        self.projected = [block.requires_grad_() for block in network.project(self.parameters, inputs)]
        self.adam = Adam(list(self.parameters.values()), column("lr"), column("weight_decay"))
        for parameter in self.parameters.values():
            parameter.requires_grad_()

        epochs = trials[0].epochs
        assert epochs is not None
        self.epochs = epochs
        traced = len(self.STEP) + len(self.SCORES)
        self.traces = torch.full((traced, epochs, self.members), torch.nan, dtype=torch.float32, device=device)
        self.alive = torch.ones(self.members, dtype=torch.bool, device=device)
        self.best_val = torch.full((self.members,), -torch.inf, dtype=torch.float64, device=device)
        self.best_epoch = torch.full((self.members,), -1, dtype=torch.int64, device=device)
        self.best_logits = torch.zeros(self.members, nodes, network.num_classes, dtype=dtype, device=device)
        weights = self.parameters | self.statistics
        self.best_weights = {name: w.detach().clone() for name, w in weights.items()} if terms.keep_weights else {}

    def epoch(self) -> None:
        """One training step of every member, then one evaluation."""
        self._trace(self._train_step() + self._evaluate())
        self.epoch_number += 1

    def _layer_dropout(self, layer: int) -> Dropout | None:
        if self.dropout is None:
            return None
        return Dropout(self.dropout, layer_keys(self.keys, self.epoch_number, layer))

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
        better = self.alive & ((val > self.best_val) if self.terms.choose == "best" else True)
        self.best_val = torch.where(better, val, self.best_val, out=self.best_val)
        self.best_epoch = torch.where(better, self.epoch_number, self.best_epoch, out=self.best_epoch)
        torch.where(better[:, None, None], logits, self.best_logits, out=self.best_logits)
        weights = self.parameters | self.statistics
        for name, best in self.best_weights.items():
            torch.where(better.view(-1, *[1] * (best.dim() - 1)), weights[name].detach(), best, out=best)
        return [self._score(logits, self.masks["train"]), val]

    def _score(self, logits: Tensor, mask: Tensor) -> Tensor:
        if self.metric == "accuracy":
            return accuracy(logits, self.y, mask)
        if self.metric == "balanced-accuracy":
            return balanced_accuracy(logits, self.y, mask)
        return roc_auc(logits[..., 1] - logits[..., 0], self.y, mask)

    @torch.no_grad()
    def _trace(self, values: list[Tensor]) -> None:
        self.alive &= torch.isfinite(values[0])
        now = torch.stack([value.to(self.traces.dtype) for value in values])
        self.traces.index_copy_(1, self.epoch_number[None], now[:, None])

    def results(self) -> Results:
        """What the members came to. Here, once, the test labels are read."""
        test = self._score(self.best_logits, self.masks["test"])
        return Results(self, test)


class Results:
    """A finished population, on the host."""

    def __init__(self, population: Population, test: Tensor) -> None:
        self.alive = population.alive.cpu().numpy()
        self.val = np.where(self.alive, population.best_val.cpu().numpy(), np.nan)
        self.test = np.where(self.alive, test.cpu().numpy(), np.nan)
        self.best_epoch = np.where(self.alive, population.best_epoch.cpu().numpy(), -1)
        self.logits = population.best_logits.cpu().numpy()
        names = population.STEP + population.SCORES
        self.traces = dict(zip(names, population.traces.cpu().numpy(), strict=True))
        self.weights = {name: weight.cpu().numpy() for name, weight in population.best_weights.items()}
