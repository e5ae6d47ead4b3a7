"""What the members of a population are, whichever way they see the graph: weights, optimiser, and what is known of them so far.

Everything a member has is a row of a tensor [R, ...]; no operation mixes rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sharpen.evaluation.metrics import accuracy, balanced_accuracy, roc_auc
from sharpen.kernels.activation import Dropout
from sharpen.kernels.adam import Adam
from sharpen.kernels.dropout import layer_keys, member_keys
from sharpen.models import Network
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


class Members:
    """The state of R members.

    Args:
        network: The architecture that all members share.
        y: The classes of all nodes, on the device; −1 where unknown.
        metric: ``accuracy``, ``balanced-accuracy`` or ``roc-auc``; it selects the epoch and is what is reported.
        trials: Resolved trials, one for each member.
        splits: Their splits, in the same order and in the numbers of ``y``.
        dtype: The precision.
        terms: What else is asked of all of them.
    """

    # What an epoch leaves a trace of: numbers of the training step, the loss first, then scores of the evaluation.
    STEP: tuple[str, ...] = ("loss", "cross_entropy", "entropy_labeled", "entropy_unlabeled")
    SCORES = ("train", "val")
    best_logits: Tensor

    def __init__(
        self,
        network: Network,
        y: Tensor,
        metric: str,
        trials: Sequence[Trial],
        splits: Sequence[Split],
        dtype: torch.dtype,
        terms: Terms = PLAIN,
    ) -> None:
        self.network, self.metric, self.y, self.terms = network, metric, y, terms
        self.members, nodes, device = len(trials), len(y), y.device

        def column(name: str) -> Tensor:
            return torch.tensor([getattr(trial, name) for trial in trials], dtype=dtype, device=device)

        self.lam, self.lam_labeled = column("lam"), column("lam_labeled")
        self.balance: float | Tensor = column("balance") if any(trial.balance for trial in trials) else 0.0
        orders = {trial.q for trial in trials}
        self.q: float | Tensor = orders.pop() if len(orders) == 1 else column("q")
        weight = terms.class_weight
        self.class_weight = None if weight is None else torch.tensor(weight, dtype=dtype, device=device)
        self.dropout = column("dropout") if any(trial.dropout for trial in trials) else None

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
        weights = self.parameters | self.statistics
        self.best_weights = {name: w.detach().clone() for name, w in weights.items()} if terms.keep_weights else {}

    def _layer_dropout(self, layer: int) -> Dropout | None:
        return self._dropout_at(self.epoch_number, layer)

    def _dropout_at(self, moment: Tensor, layer: int) -> Dropout | None:
        """What a layer drops at an epoch, or at another number that says when."""
        return None if self.dropout is None else Dropout(self.dropout, layer_keys(self.keys, moment, layer))

    @torch.no_grad()
    def _note(self, val: Tensor) -> Tensor:
        """Takes note of which members are better than ever; weights are kept for them. Gives who they are, [R]."""
        better = self.alive & ((val > self.best_val) if self.terms.choose == "best" else True)
        self.best_val = torch.where(better, val, self.best_val, out=self.best_val)
        self.best_epoch = torch.where(better, self.epoch_number, self.best_epoch, out=self.best_epoch)
        weights = self.parameters | self.statistics
        for name, best in self.best_weights.items():
            torch.where(better.view(-1, *[1] * (best.dim() - 1)), weights[name].detach(), best, out=best)
        return better

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


class Results:
    """A finished population, on the host."""

    def __init__(self, population: Members, test: Tensor) -> None:
        self.alive = population.alive.cpu().numpy()
        self.val = np.where(self.alive, population.best_val.cpu().numpy(), np.nan)
        self.test = np.where(self.alive, test.cpu().numpy(), np.nan)
        self.best_epoch = np.where(self.alive, population.best_epoch.cpu().numpy(), -1)
        self.logits = population.best_logits.cpu().numpy()
        names = population.STEP + population.SCORES
        self.traces = dict(zip(names, population.traces.cpu().numpy(), strict=True))
        self.weights = {name: weight.cpu().numpy() for name, weight in population.best_weights.items()}
