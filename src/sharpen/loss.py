"""Transductive Sharpening as a loss for a training loop of one's own: checked, with every term by name."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sharpen.advice import first_choice
from sharpen.errors import InputError
from sharpen.loss_inputs import (
    Doubt,
    Nodes,
    Setting,
    Uncertainty,
    check_logits,
    checked_uncertainty,
    class_weight_of,
    doubt_labels,
    labels_of,
    node_mask,
    precision_of,
    prior_of,
    setting_of,
    settle,
)
from sharpen.objective import LossParts, class_use, combine, sharpening_parts


class LossTrace(NamedTuple):
    """The objective and its terms, by name: what :meth:`SharpeningLoss.parts` returns.

    >>> LossTrace._fields
    ('loss', 'cross_entropy', 'entropy_labeled', 'entropy_unlabeled', 'entropy_mean', 'divergence', 'class_use')
    """

    loss: Tensor
    """The weighted total: what :class:`SharpeningLoss` returns."""
    cross_entropy: Tensor
    """As in :class:`LossParts`, like all that follow."""
    entropy_labeled: Tensor
    entropy_unlabeled: Tensor
    entropy_mean: Tensor
    divergence: Tensor
    """0 without a prior."""
    class_use: Tensor
    """:func:`sharpen.objective.class_use`: 1 if the unlabeled nodes use the classes as evenly as the labels do; near 0, classes
    are being emptied, and ``balance`` is called for."""


class SharpeningLoss(nn.Module):
    r"""Transductive Sharpening as a loss for any model that gives logits for all nodes of a graph.

    .. math::
        L = \mathrm{CE}(V_L) + \lambda \, \overline{H}(V_U) + \lambda_L \, \overline{H}(V_L)
            - \beta \, H(\overline{p}(V_U))

    CE and :math:`\overline{H}` are means over the labeled nodes :math:`V_L` and the unlabeled nodes :math:`V_U`, H is
    the Tsallis entropy of order q, :math:`\overline{p}` the mean prediction. With a prior π the last term is
    :math:`+ \beta D(\overline{p}, \pi)`, :func:`sharpen.objective.divergence`. ``lam=0`` is plain cross-entropy, and
    negative weights are allowed. Weights may be changed between calls (``loss.lam = 0.5``), for instance by a schedule.

    The paper's objective, ``SharpeningLoss(lam=0.25)``, needs labels: with ten or fewer for each class it may put all unlabeled
    nodes into a few classes and lose tens of points. ``lam="auto"`` is safe there.

    Args:
        lam: λ, the weight on unlabeled nodes: a number, or one for each member if the logits have a leading dimension; or
            ``auto``: λ and, unless it is given, the balance follow from the number of labels (:func:`sharpen.first_choice`). It
            counts those of the call; for mini-batches take both from the whole graph, ``**first_choice(n)._asdict()``.
        lam_labeled: λ_L, the weight on labeled nodes, likewise; None is -lam. 0 removes the term.
        q: order of the entropy, > 0, likewise: 2 is Gini, 1 is Shannon.
        balance: β, likewise: how strongly to reward a mean unlabeled prediction that is spread over the classes, or, with a
            prior, one that is near it; None is 0, or with ``lam="auto"`` what goes with the number of labels.
        uncertainty: a differentiable function from logits ``[..., N, C]`` to ``[..., N]`` in place of the entropy; q is
            then not used. For the balance it is given the logarithm of the mean prediction as logits ``[..., 1, C]``.
        class_weight: one number >= 0 for each class, as ``weight`` in :func:`torch.nn.functional.cross_entropy`; it
            weighs the cross-entropy alone.
        prior: The class proportions of the graph where they are known, one share above 0 for each class, summing to 1; or one
            row of them for each member. It needs a balance. A wrong prior costs accuracy: with 5 labels for each class, one share
            doubled by mistake cost up to 10 points, halved up to 2.

    One line changes in a training loop; the labels of other nodes are never used:

    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]], requires_grad=True)  # model(x, edge_index)
    >>> y, train_mask = torch.tensor([0, -1, -1]), torch.tensor([True, False, False])
    >>> loss = SharpeningLoss(lam="auto")(logits, y, labeled=train_mask)
    >>> loss.backward()

    Someone who knows that three quarters of the nodes are of the first class says so:

    >>> known = SharpeningLoss(lam=0.25, balance=0.25, prior=[0.75, 0.25])

    Three members, each with a λ of its own, give three losses:

    >>> SharpeningLoss(lam=[0.0, 0.5, 1.0])(logits.expand(3, 3, 2), y, labeled=train_mask).shape
    torch.Size([3])
    """

    def __init__(
        self,
        lam: Setting | str = "auto",
        lam_labeled: Setting | None = None,
        q: Setting = 2.0,
        balance: Setting | None = None,
        uncertainty: Uncertainty | None = None,
        class_weight: Sequence[float] | Tensor | None = None,
        prior: Sequence[float] | Sequence[Sequence[float]] | Tensor | None = None,
    ) -> None:
        super().__init__()
        self.lam, self.lam_labeled, self.q, self.balance = lam, lam_labeled, q, balance
        self.uncertainty, self.class_weight, self.prior = uncertainty, class_weight, prior
        if uncertainty is not None and not callable(uncertainty):
            way_out = "give a function from logits [..., N, C] to [..., N], or None"
            raise InputError(f"is {uncertainty!r}", field="uncertainty", hint=way_out)
        # Said here, where the mistake was made, as well as at the call, since settings may change in between.
        doubts: list[Doubt] = []
        for name in ("lam", "lam_labeled", "q", "balance"):
            value = getattr(self, name)
            if (value is not None or name in ("lam", "q")) and not (name == "lam" and isinstance(value, str)):
                setting_of(name, value, doubts)
        self._automatic()
        if class_weight is not None:
            class_weight_of(class_weight, doubts)
        if prior is not None:
            prior_of(prior, doubts)
            self._check_prior_is_used()
        settle(doubts)

    def _automatic(self) -> bool:
        """Whether λ follows from the number of labels."""
        if isinstance(self.lam, str) and self.lam != "auto":
            raise InputError(f"is {self.lam!r}; give a number such as 0.25, or 'auto'", field="lam")
        return isinstance(self.lam, str)

    def _check_prior_is_used(self) -> None:
        if _is_zero(self.balance) or (self.balance is None and not self._automatic()):
            why = "is given, but balance is 0, so that it would do nothing"
            raise InputError(why, field="prior", hint="give a balance, such as 0.25")

    def forward(
        self,
        logits: Tensor,
        y: Tensor,
        labeled: Nodes,
        unlabeled: Nodes | None = None,
        num_unlabeled: Setting | None = None,
    ) -> Tensor:
        """The objective: a scalar, or one number for each member of logits with leading dimensions.

        Args:
            logits: ``[N, C]``, or ``[..., N, C]``.
            y: labels, integers, ``[N]`` or ``[..., N]``; only those of labeled nodes are used.
            labeled: which nodes are labeled: a boolean mask, ``[N]`` or ``[..., N]``, or node indices; at least one. (For
                mini-batches of which some hold none: skip them, or weigh nodes with :func:`sharpening_parts`.)
            unlabeled: which nodes are sharpened, likewise; None is all that are not labeled. The terms of an empty set
                are 0.
            num_unlabeled: what the sum over unlabeled nodes is divided by; None is their number. To sharpen only some
                of the unlabeled nodes without pulling harder on each, name those in ``unlabeled`` and give the number
                of all here.

        >>> logits, y = torch.zeros(4, 2), torch.tensor([0, 1, -1, -1])
        >>> SharpeningLoss(lam=1.0)(logits, y, labeled=[0, 1])  # log 2 + 1/2 - 1/2
        tensor(0.6931)
        >>> SharpeningLoss(lam=1.0)(logits, y, labeled=[0, 1], unlabeled=[3], num_unlabeled=2)  # log 2 + 1/4 - 1/2
        tensor(0.4431)
        """
        return self._terms(logits, y, labeled, unlabeled, num_unlabeled)[0]

    def parts(
        self,
        logits: Tensor,
        y: Tensor,
        labeled: Nodes,
        unlabeled: Nodes | None = None,
        num_unlabeled: Setting | None = None,
    ) -> LossTrace:
        """The objective and its terms by name, for traces; arguments as for the call itself.

        >>> trace = SharpeningLoss(lam=1.0).parts(torch.zeros(3, 2), torch.tensor([0, 1, -1]), labeled=[0, 1])
        >>> {name: round(value.item(), 2) for name, value in trace._asdict().items() if name.startswith("entropy")}
        {'entropy_labeled': 0.5, 'entropy_unlabeled': 0.5, 'entropy_mean': 0.5}
        >>> trace.class_use  # both classes are in use, as among the labels
        tensor(1.)
        """
        loss, terms, weighed = self._terms(logits, y, labeled, unlabeled, num_unlabeled)
        apart = torch.zeros_like(terms.cross_entropy) if terms.divergence is None else terms.divergence
        return LossTrace(loss, *terms[:4], divergence=apart, class_use=class_use(logits, *weighed))

    def _terms(
        self, logits: Tensor, y: Tensor, labeled: Nodes, unlabeled: Nodes | None, num_unlabeled: Setting | None
    ) -> tuple[Tensor, LossParts, tuple[Tensor, Tensor, Tensor]]:
        """The objective, its terms, and the labels with the weights of labeled and unlabeled nodes."""
        check_logits(logits)
        y = labels_of(y, logits)
        # What depends on values is noted as a doubt, and all doubts are settled at once: a GPU is waited for only once.
        doubts: list[Doubt] = []
        in_labeled = node_mask("labeled", labeled, logits, doubts)
        num_labeled = in_labeled.sum(-1, keepdim=True)
        way_out = "give at least one labeled node, and in mini-batches skip those that hold none"
        doubts.append(Doubt(num_labeled == 0, f"labeled is empty{{member}}; {way_out}"))
        doubt_labels(y, in_labeled, logits, doubts)
        in_unlabeled = ~in_labeled if unlabeled is None else node_mask("unlabeled", unlabeled, logits, doubts)
        overlap = in_labeled & in_unlabeled
        doubts.append(Doubt(overlap, "unlabeled and labeled share {node}; take it out of one of them"))
        divisor: float | Tensor = in_unlabeled.sum(-1, keepdim=True).clamp_min(1)
        if num_unlabeled is not None:
            divisor = setting_of("num_unlabeled", num_unlabeled, doubts, logits)
            divisor = divisor.unsqueeze(-1) if isinstance(divisor, Tensor) else divisor
        lam, balance = self._weights(num_labeled, logits, doubts)
        lam_labeled = None if self.lam_labeled is None else setting_of("lam_labeled", self.lam_labeled, doubts, logits)
        q = setting_of("q", self.q, doubts, logits)
        prior = None
        if self.prior is not None:
            prior = prior_of(self.prior, doubts, logits)
            self._check_prior_is_used()
        class_weight = None
        if self.class_weight is not None:
            class_weight = class_weight_of(self.class_weight, doubts, logits)
            labeled_sum = (in_labeled * class_weight[y.clamp(0, logits.shape[-1] - 1)]).sum(-1, keepdim=True)
            nothing = "class_weight is 0 at all labeled nodes{member}; raise one of their classes above 0"
            doubts.append(Doubt(labeled_sum == 0, nothing))
        settle(doubts)

        labeled_weight = in_labeled.to(precision_of(logits)) / num_labeled
        unlabeled_weight = in_unlabeled.to(precision_of(logits)) / divisor
        own = None if self.uncertainty is None else checked_uncertainty(self.uncertainty)
        terms = sharpening_parts(logits, y, labeled_weight, unlabeled_weight, q, class_weight, own, prior)
        return combine(terms, lam, lam_labeled, balance), terms, (y, labeled_weight, unlabeled_weight)

    def _weights(
        self, num_labeled: Tensor, logits: Tensor, doubts: list[Doubt]
    ) -> tuple[float | Tensor, float | Tensor]:
        """λ and β, as they are set or as they follow from the number of labels."""
        balance = 0.0 if self.balance is None else setting_of("balance", self.balance, doubts, logits)
        if not self._automatic():
            assert not isinstance(self.lam, str)
            return setting_of("lam", self.lam, doubts, logits), balance
        counts = num_labeled.squeeze(-1)
        chosen = [first_choice(count / logits.shape[-1], self.prior is not None) for count in counts.flatten().tolist()]
        lams, betas = torch.tensor(chosen, dtype=precision_of(logits), device=logits.device).unbind(-1)
        return lams.view(counts.shape), betas.view(counts.shape) if self.balance is None else balance

    def extra_repr(self) -> str:
        """λ and q, and whatever else differs from its default.

        >>> SharpeningLoss(lam=0.5, balance=0.1)
        SharpeningLoss(lam=0.5, q=2.0, balance=0.1)
        """
        names = ("lam", "lam_labeled", "q", "balance", "uncertainty", "class_weight", "prior")
        values = {name: getattr(self, name) for name in names}
        shown = {name: value for name, value in values.items() if value is not None}
        if _is_zero(self.balance):
            del shown["balance"]
        if self.uncertainty is not None:
            shown["uncertainty"] = getattr(self.uncertainty, "__name__", self.uncertainty)
        return ", ".join(f"{k}={v.tolist() if hasattr(v, 'tolist') else v}" for k, v in shown.items())


def _is_zero(setting: object) -> bool:
    return isinstance(setting, Real) and setting == 0
