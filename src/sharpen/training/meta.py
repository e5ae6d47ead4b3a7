r"""λ learned while the model learns: each epoch, the λ whose next step does best on labeled nodes held out for the purpose.

Every member has a small network f (7 → 32 → 32 → 1, ReLU) that turns what is known of the model at an epoch into λ = λ_max σ(f).
Each epoch a tenth of the training nodes, drawn anew, is held out: the meta set. It counts as unlabeled. With η the member's
learning rate, the model looks one plain gradient step ahead,

.. math:: \theta'(\lambda) = \theta - \eta\,(\nabla L_0(\theta) + \lambda \nabla S(\theta)),
    \qquad S = \overline{H}(V_U) - \overline{H}(V_L)

L₀ being the loss without sharpening; f takes a step of Adam on C, the cross-entropy of the model at θ' on the meta set; then the
model takes its real step, Adam's, with the λ that f gives now. The objective is linear in λ, so the derivative of C through the
step needs no second derivative: it is exactly

.. math:: \frac{dC}{d\lambda} = -\eta\, \langle \nabla C(\theta'),\ \nabla S(\theta) \rangle

and ∇L₀ + λ∇S, with the new λ, is the gradient of the real step too. An epoch costs two forward and three backward passes, all of
them the ordinary ones.

What the paper leaves open, and what is done here:

- Before f is active (the first 20 epochs) λ is 0 and nothing is held out: plain training.
- The meta set stays out of the labeled nodes in the real step as well: the step that is taken is the one that was looked at.
- A tenth is rounded down, and is one node at least. The draw is uniform, not by class.
- f sees the model as it trains: its inputs come from the forward pass of the training step, dropout and all. Their entropies are
  means, of order 2 whatever the objective's order; no derivative flows through them. Epochs count from 0.
- The step ahead and the real step share one forward pass, and so the epoch's dropout masks. The model at θ' is in training mode
  too, under masks of its own (judged under the masks it was fitted with, a step would look better than it is), and leaves no
  mark on running statistics.
- The step ahead has no weight decay. f starts like :class:`torch.nn.Linear`, from the member's seed, so λ starts near λ_max / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor

from sharpen.entropy import tsallis_entropy
from sharpen.graph import Split
from sharpen.kernels.adam import Adam
from sharpen.kernels.dropout import layer_keys, random_words
from sharpen.kernels.loss import TRACED, population_loss
from sharpen.models.initial import Initial, draw, fan_in
from sharpen.objective import Objective
from sharpen.training.members import PLAIN, Terms
from sharpen.training.population import Population
from sharpen.training.ways import Way
from sharpen.trial import Trial

WARM_UP = 20
_HELD_OUT = 10  # one in so many
_LR = 0.001
_WIDTHS = (7, 32, 32, 1)
# Layers are numbered from 0 where random bits are drawn for them. These numbers are no layer's.
_META_SET, _STEPPED = -1, 512


class LambdaNetwork:
    """Every member's network from what is known of its model to its λ, with its own Adam; first weights come from the seeds.

    >>> network = LambdaNetwork(torch.tensor([1.0, 2.0]), seeds=[0, 0])
    >>> lam = network(torch.zeros(2, 7))
    >>> bool(0 < lam[0] < 1), bool(lam[1] == 2 * lam[0])
    (True, True)
    """

    def __init__(self, lam_max: Tensor, seeds: Sequence[int]) -> None:
        initials: dict[str, Initial] = {}
        for number, (before, after) in enumerate(pairwise(_WIDTHS)):
            initials[f"meta.{number}.weight"] = fan_in(before, before, after)
            initials[f"meta.{number}.bias"] = fan_in(before, after)
        self.lam_max = lam_max
        self.parameters = draw(initials, seeds, lam_max.device, lam_max.dtype)
        self.adam = Adam(
            list(self.parameters.values()), torch.full_like(lam_max, _LR), weight_decay=torch.zeros_like(lam_max)
        )
        for parameter in self.parameters.values():
            parameter.requires_grad_()

    def __call__(self, known: Tensor) -> Tensor:
        """λ of every member [R], from its row of [R, 7]."""
        x = known[:, None]
        for number in range(len(_WIDTHS) - 1):
            if number:
                x = x.relu()
            bias, weight = self.parameters[f"meta.{number}.bias"], self.parameters[f"meta.{number}.weight"]
            x = torch.baddbmm(bias[:, None], x, weight)
        return self.lam_max * x[:, 0, 0].sigmoid()

    def learn(self, lam: Tensor, slope: Tensor, steps: Tensor) -> None:
        """A step of Adam down the slope in λ that every member found, ``steps`` having been taken before."""
        self.adam.count(steps)
        self.adam.step(list(torch.autograd.grad(lam, list(self.parameters.values()), slope)))


class MetaPopulation(Population):
    """A population whose members learn their own λ. Arguments are those of :class:`Population`; every trial has a ``lam_max``.

    >>> from sharpen import Graph, train
    >>> ring = Graph(x=torch.eye(6), edge_index=[[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]], y=[0, 0, 0, 1, 1, 1])
    >>> halves = Split("halves", train=[0, 3], val=[1, 4], test=[2, 5])
    >>> (record,) = train(ring, [Trial(hidden=8, epochs=30, lam_max=1.0)], splits=[halves], device="cpu")
    >>> lam = record.traces["lam"]
    >>> float(lam[19]), bool(0 < lam[20] < 1)
    (0.0, True)
    """

    STEP = (*Population.STEP, "lam")

    def __init__(
        self, way: Way, metric: str, trials: Sequence[Trial], splits: Sequence[Split], terms: Terms = PLAIN
    ) -> None:
        super().__init__(way, metric, trials, splits, terms)
        inputs = way.inputs
        lam_max = torch.tensor([trial.lam_max for trial in trials], dtype=inputs.dtype, device=inputs.device)
        self.learner = LambdaNetwork(lam_max, [trial.seed for trial in trials])
        counts = [[max(1, len(split.train) // _HELD_OUT)] for split in splits]
        self.held_out = torch.tensor(counts, device=inputs.device)  # how many nodes, [R, 1]
        self.sharpened = self.unlabeled > 0
        self.val, self.test = self._shares(self.masks["val"]), self._shares(self.masks["test"])

    def _meta_set(self) -> Tensor:
        """The nodes held out at this epoch, a mask [R, N]: of the training nodes those with the lowest random numbers."""
        train = self.masks["train"]
        words = random_words(layer_keys(self.keys, self.epoch_number, _META_SET), train.shape[1])
        words = torch.where(train, words, torch.iinfo(words.dtype).max)
        highest = words.sort(dim=1).values.gather(1, self.held_out - 1)
        return train & (words <= highest) & (self.epoch_number >= WARM_UP)

    def _shares(self, mask: Tensor) -> Tensor:
        """Weights that make a sum over nodes a mean over the mask; all 0 if it is empty."""
        return mask.to(self.inputs.dtype) / mask.sum(1, keepdim=True).clamp(min=1)

    def _train_step(self) -> list[Tensor]:
        train, meta = self.masks["train"], self._meta_set()
        labeled, unlabeled = self._shares(train & ~meta), self._shares(~train | meta)
        # Nodes that are not to be sharpened count in the normaliser all the same.
        sharpened = unlabeled * (self.sharpened | meta)
        moment = self._moment(train=train & ~meta)
        logits, more = self.way.scored(self.parameters, self.statistics, self.leaves, True, moment)
        parts = self.objective.parts(logits, self.y, labeled, sharpened)
        without = replace(self.objective, lam=0.0, lam_labeled=0.0).combine(parts)
        without = without if more is None else without + more
        plain = self.way.gradients(without, self.parameters, self.leaves, keep_graph=True)
        sharpening = self.way.gradients(parts.entropy_unlabeled - parts.entropy_labeled, self.parameters, self.leaves)
        known = self._known(logits.detach(), parts.cross_entropy.detach(), labeled, unlabeled)
        lam = self.learner(known)
        slope = self._slope(_weighted(plain, sharpening, lam.detach()), sharpening, meta)
        # Before the warm-up is over nothing is held out, so the slope is 0 and Adam moves nothing.
        self.learner.learn(lam, slope, steps=(self.epoch_number - WARM_UP).clamp(min=0))
        with torch.no_grad():
            lam = torch.where(self.epoch_number >= WARM_UP, self.learner(known), 0.0)
            loss = replace(self.objective, lam=lam, lam_labeled=-lam).combine(parts)
            loss = loss if more is None else loss + more
        self.adam.step(_weighted(plain, sharpening, lam))
        shannon = self._shannon(logits, labeled, sharpened)
        return [loss, *(getattr(parts, name).detach() for name in TRACED), lam, *shannon]

    @torch.no_grad()
    def _known(self, logits: Tensor, cross_entropy: Tensor, labeled: Tensor, unlabeled: Tensor) -> Tensor:
        """What the network of λ sees, [R, 7]. Of test nodes that is their predictions, never their labels."""
        entropy = tsallis_entropy(logits)
        mean_prediction = (logits.softmax(2) * unlabeled[:, :, None]).sum(1)
        progress = (self.epoch_number.to(logits.dtype) / self.epochs).expand(self.members)
        entropies = [(entropy * weight).sum(1) for weight in (labeled, self.val, self.test, unlabeled)]
        return torch.stack([progress, cross_entropy, *entropies, 1 - mean_prediction.square().sum(1)], dim=1)

    def _slope(self, gradients: list[Tensor], sharpening: list[Tensor], meta: Tensor) -> Tensor:
        """The derivative in λ of the cross-entropy on the meta set after a step along the gradients, [R]."""
        lr = self.adam.lr
        with torch.no_grad():
            ahead = _weighted(list(self.parameters.values()), gradients, -lr)
        stepped = {name: p.requires_grad_() for name, p in zip(self.parameters, ahead, strict=True)}
        leaves = self.way.leaves(stepped)
        statistics = {name: value.clone() for name, value in self.statistics.items()}
        moment = self._moment(first=_STEPPED, train=self.masks["train"] & ~meta)
        logits = self.way.logits(stepped, statistics, leaves, True, moment)
        weight = self._shares(meta)
        none = torch.zeros_like(lr)
        supervised = Objective(lam=none, lam_labeled=none, class_weight=self.objective.class_weight)
        loss, _ = population_loss(logits, self.y, weight, weight, supervised)
        both = zip(self.way.gradients(loss, stepped, leaves), sharpening, strict=True)
        return -lr * torch.stack([(g * s).flatten(1).sum(1) for g, s in both]).sum(0)


def _weighted(base: Sequence[Tensor], more: Sequence[Tensor], weight: Tensor) -> list[Tensor]:
    """``base + weight · more``, tensor by tensor; one weight for each member."""
    return [torch.addcmul(a, b, weight.view(-1, *[1] * (a.dim() - 1))) for a, b in zip(base, more, strict=True)]
