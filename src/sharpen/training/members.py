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
from sharpen.evaluation.populations import held_out_scores
from sharpen.graph import Split
from sharpen.kernels.adam import Adam
from sharpen.kernels.dropout import member_keys
from sharpen.kernels.loss import TRACED
from sharpen.objective import Objective, class_use
from sharpen.prior import proportions
from sharpen.training.ways import Moment
from sharpen.trial import Trial

# So many class scores at a time are looked at once a population is trained: they are copied in double precision.
_SCORES_AT_ONCE = 2**24


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
        parameters, statistics: The first weights of every member, and what else its model keeps, by name, [R, ...].
        y: The classes of all nodes, on the device; −1 where unknown.
        num_classes: How many there are.
        metric: ``accuracy``, ``balanced-accuracy`` or ``roc-auc``; it selects the epoch and is what is reported.
        trials: Resolved trials, one for each member.
        splits: Their splits, in the same order and in the numbers of ``y``.
        dtype: The precision.
        terms: What else is asked of all of them.
        rates: Learning rates and weight decays that some parameters have of their own.
    """

    # What an epoch leaves a trace of: numbers of the training step, the loss first, then scores of the evaluation.
    STEP: tuple[str, ...] = ("loss", *TRACED)
    SCORES = ("train", "val")
    best_logits: Tensor

    def __init__(
        self,
        parameters: dict[str, Tensor],
        statistics: dict[str, Tensor],
        y: Tensor,
        num_classes: int,
        metric: str,
        trials: Sequence[Trial],
        splits: Sequence[Split],
        dtype: torch.dtype,
        terms: Terms = PLAIN,
        rates: Sequence[tuple[float | None, float | None]] | None = None,
    ) -> None:
        self.metric, self.y, self.terms = metric, y, terms
        self.members, nodes, device = len(trials), len(y), y.device

        def column(name: str) -> Tensor:
            return torch.tensor([getattr(trial, name) for trial in trials], dtype=dtype, device=device)

        priors = _priors(trials, splits, y, num_classes)
        self.objective = Objective.of(trials, terms.class_weight, priors, device, dtype)
        drops = [trial.dropout or 0.0 for trial in trials]
        self.dropout = torch.tensor(drops, dtype=dtype, device=device) if any(drops) else None

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
        self.parameters, self.statistics = parameters, statistics
        self.keys = member_keys(seeds).to(device)
        self.epoch_number = torch.zeros((), dtype=torch.int64, device=device)
        self.adam = Adam(list(self.parameters.values()), column("lr"), column("weight_decay"), rates)
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
        self.best_weights = {name: w.clone() for name, w in self._weights().items()} if terms.keep_weights else {}

    def _weights(self) -> dict[str, Tensor]:
        """What a saved model would hold."""
        return {name: p.detach() for name, p in self.parameters.items()} | self.statistics

    def _moment(self, epoch: Tensor | None = None, first: int = 0, train: Tensor | None = None) -> Moment:
        """This epoch, or another number that says when; all training nodes, or those whose classes the model may know."""
        when = self.epoch_number if epoch is None else epoch
        return Moment(self.keys, when, self.dropout, first, self.masks["train"] if train is None else train)

    @torch.no_grad()
    def _note(self, val: Tensor) -> Tensor:
        """Takes note of which members are better than ever; weights are kept for them. Gives who they are, [R]."""
        better = self.alive & ((val > self.best_val) if self.terms.choose == "best" else True)
        self.best_val = torch.where(better, val, self.best_val, out=self.best_val)
        self.best_epoch = torch.where(better, self.epoch_number, self.best_epoch, out=self.best_epoch)
        weights = self._weights() if self.best_weights else {}
        for name, best in self.best_weights.items():
            torch.where(better.view(-1, *[1] * (best.dim() - 1)), weights[name], best, out=best)
        return better

    def _score(self, logits: Tensor, mask: Tensor) -> Tensor:
        if self.metric == "accuracy":
            return accuracy(logits, self.y, mask)
        if self.metric == "balanced-accuracy":
            return balanced_accuracy(logits, self.y, mask)
        return roc_auc(logits[..., 1] - logits[..., 0], self.y, mask)

    @torch.no_grad()
    def _metrics(self, best: Tensor, last: Tensor) -> dict[str, Tensor]:
        """What else is recorded of the members' class scores at the chosen and at the last epoch, by name, [R]."""
        found: dict[str, Tensor] = {}
        for ending, logits in (("", best), ("_last", last)):
            step = max(1, _SCORES_AT_ONCE // logits[0].numel())
            parts = [self._some_metrics(logits[i : i + step], slice(i, i + step)) for i in range(0, self.members, step)]
            found |= {f"{name}{ending}": torch.cat([part[name] for part in parts]) for name in parts[0]}
        return found | {f"{part}_last": self._score(last, self.masks[part]) for part in ("val", "test")}

    def _some_metrics(self, logits: Tensor, members: slice) -> dict[str, Tensor]:
        scores = held_out_scores(logits, self.y, self.masks["val"][members], self.masks["test"][members])
        used = class_use(logits, self.y, self.labeled[members], self.unlabeled[members])
        return scores | {"class_use": used.double()}

    @torch.no_grad()
    def _trace(self, values: list[Tensor]) -> None:
        self.alive &= torch.isfinite(values[0])
        now = torch.stack([value.to(self.traces.dtype) for value in values])
        self.traces[: len(values)].index_copy_(1, self.epoch_number[None], now[:, None])


def _priors(trials: Sequence[Trial], splits: Sequence[Split], y: Tensor, num_classes: int) -> list[list[float]] | None:
    """The class proportions of every member, where they have a prior; all have one, or none."""
    if any(trial.prior is None for trial in trials):
        return None
    known = y.cpu().numpy()
    return [
        proportions(str(trial.prior), num_classes, known[split.train.numpy()], known)
        for trial, split in zip(trials, splits, strict=True)
    ]


class Results:
    """A finished population, on the host."""

    def __init__(self, population: Members, test: Tensor, metrics: dict[str, Tensor]) -> None:
        self.alive = population.alive.cpu().numpy()
        self.val = np.where(self.alive, population.best_val.cpu().numpy(), np.nan)
        self.test = np.where(self.alive, test.cpu().numpy(), np.nan)
        self.best_epoch = np.where(self.alive, population.best_epoch.cpu().numpy(), -1)
        self.metrics = {name: np.where(self.alive, values.cpu().numpy(), np.nan) for name, values in metrics.items()}
        self.logits = population.best_logits.cpu().numpy()
        names = population.STEP + population.SCORES
        self.traces = dict(zip(names, population.traces.cpu().numpy(), strict=True))
        self.weights = {name: weight.cpu().numpy() for name, weight in population.best_weights.items()}
