"""What the members of a population are, whichever way they see the graph: weights, optimiser, and what is known of them so far.

Everything a member has is a row of a tensor [R, ...]; no operation mixes rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sharpen.datasets import Dataset
from sharpen.evaluation.metrics import accuracy, balanced_accuracy, roc_auc
from sharpen.evaluation.populations import held_out_scores
from sharpen.graph import Split
from sharpen.kernels.adam import Adam
from sharpen.kernels.dropout import member_keys
from sharpen.kernels.loss import TRACED
from sharpen.objective import Objective, class_use
from sharpen.prior import proportions
from sharpen.training.ways import Moment, Rates
from sharpen.trial import Record, Trial

if TYPE_CHECKING:
    from sharpen.training.progress import ProgressBar

# So many class scores at a time are looked at once a population is trained: they are copied in double precision.
_SCORES_AT_ONCE = 2**24


@dataclass(frozen=True)
class Terms:
    """What a call of :func:`sharpen.train` asks of every trial alike.

    Args:
        keep_weights: Whether to keep every member's weights of its chosen epoch.
        choose: ``best``: the first epoch with the best validation score; ``last``: the last, whatever it scores.
        class_weight: One weight for each class in the mean of the cross-entropy; None for equal ones.
        shannon: Whether to trace Shannon's entropy of the predictions, whatever the objective's order is.
    """

    keep_weights: bool = False
    choose: str = "best"
    class_weight: tuple[float, ...] | None = None
    shannon: bool = False


PLAIN = Terms()


@dataclass(frozen=True)
class Call:
    """A call of :func:`sharpen.train`: what its populations have in common."""

    dataset: Dataset
    device: torch.device
    precision: str
    terms: Terms
    bar: ProgressBar
    on_records: Callable[[list[Record]], None]
    checkpoints: Path | None = None

    def splits(self, trials: Sequence[Trial]) -> list[Split]:
        """The split of every trial."""
        return [self.dataset.splits[str(trial.split)] for trial in trials]


class Members:
    """The state of R members.

    Args:
        parameters, statistics: The first weights of every member, and what else its model keeps, by name, [R, ...].
        y: The classes of all nodes, on the device; −1 where unknown.
        num_classes: How many there are.
        metric: ``accuracy``, ``balanced-accuracy`` or ``roc-auc``; it selects the epoch and is what is reported.
        trials: Resolved trials, one for each member.
        splits: Their splits, in the same order and in the numbers of ``y``.
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
        terms: Terms = PLAIN,
        rates: Rates | None = None,
    ) -> None:
        self.metric, self.y, self.terms = metric, y, terms
        self.members, nodes, device, dtype = len(trials), len(y), y.device, next(iter(parameters.values())).dtype

        def column(name: str) -> Tensor:
            return torch.tensor([getattr(trial, name) for trial in trials], dtype=dtype, device=device)

        priors: list[list[float]] | None = None
        if all(trial.prior is not None for trial in trials):  # all have one, or none
            known = y.cpu().numpy()
            labels = [known[split.train.numpy()] for split in splits]
            both = zip(trials, labels, strict=True)
            priors = [proportions(str(trial.prior), num_classes, own, known) for trial, own in both]
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

    def _scores(self) -> Tensor:
        """Class scores of all nodes with the weights that members have now, [R, N, C]."""
        raise NotImplementedError

    def _best_scores(self) -> Tensor:
        """The same with the weights of the epochs that are kept."""
        raise NotImplementedError

    @torch.no_grad()
    def _evaluate(self) -> list[Tensor]:
        """The scores of an epoch."""
        logits = self._scores()
        self.alive &= torch.isfinite(logits.sum((1, 2)))
        val = self._score(logits, self.masks["val"])
        self._note(val, logits)
        return [self._score(logits, self.masks["train"]), val]

    @torch.no_grad()
    def results(self) -> tuple[Tensor, dict[str, Tensor]]:
        """The members' test scores, and what else is recorded of them, [R]. Here, once, the test labels are read."""
        best = self._best_scores()
        test = self._score(best, self.masks["test"])
        return test, self._metrics(best, best if self.terms.choose == "last" else self._scores())

    def _note(self, val: Tensor, logits: Tensor) -> Tensor:
        """Takes note of which members are better than ever; weights are kept for them. Gives who they are, [R]."""
        better = self.alive & ((val > self.best_val) if self.terms.choose == "best" else True)
        self.best_val = torch.where(better, val, self.best_val, out=self.best_val)
        self.best_epoch = torch.where(better, self.epoch_number, self.best_epoch, out=self.best_epoch)
        weights = self._weights() if self.best_weights else {}
        for name, best in self.best_weights.items():
            torch.where(better.view(-1, *[1] * (best.dim() - 1)), weights[name], best, out=best)
        return better

    def _score(self, logits: Tensor, mask: Tensor) -> Tensor:
        if self.metric != "roc-auc":
            return (accuracy if self.metric == "accuracy" else balanced_accuracy)(logits, self.y, mask)
        return roc_auc(logits[..., 1] - logits[..., 0], self.y, mask)

    @torch.no_grad()
    def _metrics(self, best: Tensor, last: Tensor) -> dict[str, Tensor]:
        """What else is recorded of the members' class scores at the chosen and at the last epoch, by name, [R]."""
        found: dict[str, Tensor] = {}
        step = max(1, _SCORES_AT_ONCE // best[0].numel())
        for ending, logits in (("", best), ("_last", last)):
            parts = []
            for some in (slice(i, i + step) for i in range(0, self.members, step)):
                used = class_use(logits[some], self.y, self.labeled[some], self.unlabeled[some])
                scores = held_out_scores(logits[some], self.y, self.masks["val"][some], self.masks["test"][some])
                parts.append(scores | {"class_use": used.double()})
            found |= {f"{name}{ending}": torch.cat([part[name] for part in parts]) for name in parts[0]}
        return found | {f"{part}_last": self._score(last, self.masks[part]) for part in ("val", "test")}

    @torch.no_grad()
    def _trace(self, values: list[Tensor]) -> None:
        self.alive &= torch.isfinite(values[0])
        now = torch.stack([value.to(self.traces.dtype) for value in values])
        self.traces[: len(values)].index_copy_(1, self.epoch_number[None], now[:, None])
