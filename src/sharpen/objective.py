r"""The objective: learn from labeled nodes, be sure on unlabeled ones, and less sure than that on labeled ones.

.. math::
    L = \frac{1}{|V_L|} \sum_{i \in V_L} -\log p_{i, y_i}
        + \frac{\lambda}{|V_U|} \sum_{i \in V_U} H(p_i)
        + \frac{\lambda_L}{|V_L|} \sum_{i \in V_L} H(p_i)
        - \beta \, H(\bar p), \qquad \lambda_L = -\lambda \text{ unless given},
        \quad \bar p = \frac{1}{|V_U|} \sum_{i \in V_U} p_i

H is the Tsallis entropy of order q (:mod:`sharpen.entropy`) or any uncertainty of your own. The last term is off by
default; with a weight β it rewards predictions that, as a whole, are spread over the classes, which keeps sharpening from
emptying classes: with few labels it would. Where class proportions π are known, a prior, the last term is

.. math:: + \beta \, D(\bar p, \pi)

in its place (:func:`divergence`): it pulls the mean prediction towards them.

:class:`sharpen.SharpeningLoss` is for a training loop of your own: it checks what it is given. Under it lie two pure
functions for loops that cannot stop to look: :func:`sharpening_parts` and :func:`combine` have fixed shapes, never wait for
the device, and keep leading dimensions apart, so that a member that holds NaN spoils no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from sharpen.entropy import tsallis_entropy_of_log_probs, widen
from sharpen.loss_inputs import Uncertainty

if TYPE_CHECKING:
    from sharpen.trial import Trial


class LossParts(NamedTuple):
    """The terms of the objective before they are weighed; each has the leading shape of the logits.

    >>> LossParts(*torch.tensor([0.7, 0.1, 0.4, 0.5])).entropy_unlabeled
    tensor(0.4000)
    """

    cross_entropy: Tensor
    """Mean cross-entropy of the labeled nodes."""
    entropy_labeled: Tensor
    """Mean uncertainty of the labeled nodes."""
    entropy_unlabeled: Tensor
    """Mean uncertainty of the unlabeled nodes."""
    entropy_mean: Tensor
    """Uncertainty of the mean prediction over the unlabeled nodes: high if all classes are in use."""
    divergence: Tensor | None = None
    """How far the mean prediction is from the prior; None without one."""


def sharpening_parts(
    logits: Tensor,
    y: Tensor,
    labeled_weight: Tensor,
    unlabeled_weight: Tensor,
    q: float | Tensor = 2.0,
    class_weight: Tensor | None = None,
    uncertainty: Uncertainty | None = None,
    prior: Tensor | None = None,
) -> LossParts:
    """The terms of the objective as weighted sums over nodes. Pure: no checks, no waiting for the device.

    Args:
        logits: ``[..., N, C]``. Half precision is computed in float32.
        y: labels ``[N]`` or ``[..., N]``, int64. Where ``labeled_weight`` is 0 they have no effect and may be anything.
        labeled_weight: ``[N]`` or ``[..., N]``: 1 / (number of labeled nodes) on those, 0 elsewhere.
        unlabeled_weight: likewise for the unlabeled nodes. It need not sum to 1: a smaller sum is a weaker term.
        q: order of the entropy; a tensor has the leading shape of the logits (``[R]`` for ``[R, N, C]``).
        class_weight: ``[C]``; the cross-entropy becomes the weighted mean of ``F.cross_entropy(weight=...)``.
        uncertainty: takes the place of the entropy; called with the logits, and with the logarithm of the mean
            unlabeled prediction as logits ``[..., 1, C]``.
        prior: Class proportions, ``[C]`` or ``[..., C]``, above 0 and summing to 1; None: no divergence from one is computed.

    Returns:
        :class:`LossParts`, to be weighed by :func:`combine`.

    >>> logits = torch.zeros(3, 2)  # three nodes, two classes, no opinion
    >>> mask = torch.tensor([1.0, 0.0, 0.0])
    >>> parts = sharpening_parts(logits, torch.tensor([0, -1, -1]), mask, (1 - mask) / 2)
    >>> parts.cross_entropy, parts.entropy_unlabeled  # log 2 and 1 - 1/2
    (tensor(0.6931), tensor(0.5000))
    """
    logits = widen(logits)
    log_p = torch.log_softmax(logits, dim=-1)
    p = torch.exp(log_p)

    known = y.clamp(0, log_p.shape[-1] - 1)
    node_loss = -log_p.gather(-1, known.expand(log_p.shape[:-1]).unsqueeze(-1)).squeeze(-1)
    # Not a bare product: a class ruled out by a logit of -inf costs inf at a node without weight, and 0 * inf is NaN.
    node_loss = torch.where(labeled_weight > 0, node_loss, 0)
    if class_weight is None:
        cross_entropy = (node_loss * labeled_weight).sum(-1)
    else:
        weight = labeled_weight * class_weight.to(log_p)[known]
        cross_entropy = (node_loss * weight).sum(-1) * (labeled_weight.sum(-1) / weight.sum(-1))

    if uncertainty is not None:
        entropy = uncertainty(logits)
    else:
        entropy = tsallis_entropy_of_log_probs(log_p, q.unsqueeze(-1) if isinstance(q, Tensor) else q, p)

    # Not a matrix product, which autocast and TF32 would take in fewer digits. An empty set is given the uniform
    # prediction on the way, and the clamps keep logarithm and quotient finite, so that no derivative is NaN.
    tiny = torch.finfo(p.dtype).tiny
    total = unlabeled_weight.sum(-1, keepdim=True)
    mean = (p * unlabeled_weight.unsqueeze(-1)).sum(-2) / total.clamp_min(tiny)
    mean = torch.where(total > 0, mean, 1 / p.shape[-1])
    log_mean = mean.clamp_min(tiny).log()
    if uncertainty is not None:
        entropy_mean = uncertainty(log_mean.unsqueeze(-2)).squeeze(-1)
    else:
        entropy_mean = tsallis_entropy_of_log_probs(log_mean, q, mean)

    known_mean = total.squeeze(-1) > 0
    return LossParts(
        cross_entropy=cross_entropy,
        entropy_labeled=(entropy * labeled_weight).sum(-1),
        entropy_unlabeled=(entropy * unlabeled_weight).sum(-1),
        entropy_mean=torch.where(known_mean, entropy_mean, 0),
        divergence=None if prior is None else torch.where(known_mean, divergence(mean, prior.to(mean)), 0),
    )


def divergence(mean: Tensor, prior: Tensor) -> Tensor:
    r"""How far a mean prediction is from known class proportions: Pearson's χ², over the number of classes.

    .. math:: D(\bar p, \pi) = \frac{1}{C} \sum_c \frac{(\bar p_c - \pi_c)^2}{\pi_c}

    >>> divergence(torch.tensor([0.5, 0.5]), torch.tensor([0.8, 0.2])).round(decimals=4)
    tensor(0.2812)
    """
    return ((mean - prior).square() / prior).mean(-1)


def class_use(logits: Tensor, y: Tensor, labeled_weight: Tensor, unlabeled_weight: Tensor) -> Tensor:
    r"""Whether the unlabeled nodes use the classes as evenly as the labels do: a ratio of two Shannon entropies.

    .. math:: \frac{H(\bar p)}{H(\bar y)}

    of the mean prediction over the unlabeled nodes and of the class proportions of the labeled ones. Near 1 for a model that
    uses the classes as they are labeled; near 0 for one that puts all unlabeled nodes into one class. NaN where the labels are
    of one class, or no node is unlabeled. Arguments are as for :func:`sharpening_parts`.

    >>> logits, y = torch.tensor([[9.0, 0.0], [0.0, 9.0], [9.0, 0.0], [9.0, 0.0]]), torch.tensor([0, 1, -1, -1])
    >>> half = torch.tensor([0.5, 0.5, 0.0, 0.0])
    >>> class_use(logits, y, half, half.flip(0)).round(decimals=2)  # both labels are in use, and one prediction
    tensor(0.)
    """
    p = torch.softmax(widen(logits.detach()), dim=-1)
    classes = torch.arange(p.shape[-1], device=p.device)
    known = (y.unsqueeze(-1) == classes).to(p) * labeled_weight.unsqueeze(-1)
    used = (p * unlabeled_weight.unsqueeze(-1)).sum(-2) / unlabeled_weight.sum(-1, keepdim=True)
    shares = known.sum(-2) / labeled_weight.sum(-1, keepdim=True)
    wanted = torch.special.entr(shares).sum(-1)
    return torch.where(wanted > 0, torch.special.entr(used).sum(-1) / wanted, torch.nan)


def combine(
    parts: LossParts,
    lam: float | Tensor,
    lam_labeled: float | Tensor | None = None,
    balance: float | Tensor = 0.0,
) -> Tensor:
    """The objective, cross_entropy + lam · entropy_unlabeled + lam_labeled · entropy_labeled - balance · entropy_mean.

    Where there is a prior, the last term is + balance · divergence. A weight that is the number 0 leaves its term out
    altogether, so plain training pays nothing for terms that it does not use. Tensors hold one weight for each member; gradients
    flow to them. ``lam_labeled=None`` is ``-lam``.

    >>> parts = LossParts(*torch.tensor([0.7, 0.1, 0.4, 0.5]))
    >>> combine(parts, lam=0.5)  # 0.7 + 0.5 * 0.4 - 0.5 * 0.1
    tensor(0.8500)
    >>> combine(parts, lam=0.5, lam_labeled=0.0, balance=1.0)  # 0.7 + 0.5 * 0.4 - 0.5
    tensor(0.4000)
    """
    total = parts.cross_entropy
    for weight, term in (
        (lam, parts.entropy_unlabeled),
        (-lam if lam_labeled is None else lam_labeled, parts.entropy_labeled),
        (-balance, parts.entropy_mean) if parts.divergence is None else (balance, parts.divergence),
    ):
        if isinstance(weight, Tensor) or weight != 0:
            total = total + weight * term
    return total


@dataclass(frozen=True, eq=False)
class Objective:
    """Which terms, with which weights: the objective of a training loop, as a value. Pure: no checks, no waiting for the device.

    A new term is a part in :class:`LossParts`, a weight here, and a field of :class:`sharpen.Trial`: whoever trains passes this
    object on, and fused kernels decline what they do not know.

    Args:
        lam, lam_labeled, q, balance: As for :class:`SharpeningLoss`; a number, or a tensor with one for each member, [R].
        class_weight: [C], or None.
        prior: The class proportions of each member, [R, C], or None.

    >>> y, labeled = torch.tensor([0, -1]), torch.tensor([[1.0, 0.0]])
    >>> loss, parts = Objective(lam=1.0)(torch.zeros(1, 2, 2), y, labeled, 1 - labeled)
    >>> loss, parts.entropy_unlabeled
    (tensor([0.6931]), tensor([0.5000]))
    """

    lam: float | Tensor = 0.0
    lam_labeled: float | Tensor | None = None
    q: float | Tensor = 2.0
    balance: float | Tensor = 0.0
    class_weight: Tensor | None = None
    prior: Tensor | None = None

    @classmethod
    def of(
        cls,
        trials: Sequence[Trial],
        class_weight: Sequence[float] | None,
        priors: Sequence[Sequence[float]] | None,
        device: torch.device,
        dtype: torch.dtype,
    ) -> Objective:
        """The objective of a population: what its resolved trials say, one number for each, and a prior for each or for none."""

        def column(name: str) -> Tensor:
            return torch.tensor([getattr(trial, name) for trial in trials], dtype=dtype, device=device)

        orders = {trial.q for trial in trials}
        return cls(
            lam=column("lam"),
            lam_labeled=column("lam_labeled"),
            q=orders.pop() if len(orders) == 1 else column("q"),
            balance=column("balance") if any(trial.balance for trial in trials) else 0.0,
            class_weight=None if class_weight is None else torch.tensor(class_weight, dtype=dtype, device=device),
            prior=None if priors is None else torch.tensor(priors, dtype=dtype, device=device),
        )

    @property
    def is_gini(self) -> bool:
        """Whether it is the paper's alone: order 2 for all members, no balance, no prior, classes that weigh the same."""
        others = (self.class_weight, self.prior)
        if isinstance(self.q, Tensor) or isinstance(self.balance, Tensor) or any(each is not None for each in others):
            return False
        return self.q == 2.0 and self.balance == 0

    def parts(self, logits: Tensor, y: Tensor, labeled: Tensor, unlabeled: Tensor) -> LossParts:
        """The terms before they are weighed; arguments as for :func:`sharpening_parts`."""
        return sharpening_parts(logits, y, labeled, unlabeled, self.q, self.class_weight, prior=self.prior)

    def combine(self, parts: LossParts) -> Tensor:
        """The weighted total."""
        return combine(parts, self.lam, self.lam_labeled, self.balance)

    def __call__(self, logits: Tensor, y: Tensor, labeled: Tensor, unlabeled: Tensor) -> tuple[Tensor, LossParts]:
        """Every member's loss, and its terms."""
        parts = self.parts(logits, y, labeled, unlabeled)
        return self.combine(parts), parts
