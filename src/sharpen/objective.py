r"""The objective: learn from labeled nodes, be sure on unlabeled ones, and less sure than that on labeled ones.

.. math::
    L = \frac{1}{|V_L|} \sum_{i \in V_L} -\log p_{i, y_i}
        + \frac{\lambda}{|V_U|} \sum_{i \in V_U} H(p_i)
        + \frac{\lambda_L}{|V_L|} \sum_{i \in V_L} H(p_i)
        - \beta \, H\Big(\frac{1}{|V_U|} \sum_{i \in V_U} p_i\Big), \qquad \lambda_L = -\lambda \text{ unless given}

H is the Tsallis entropy of order q (:mod:`sharpen.entropy`) or any uncertainty of your own. The last term is off by
default; with a weight β it rewards predictions that, as a whole, are spread over the classes, which keeps strong
sharpening from emptying classes.

:class:`SharpeningLoss` is for a training loop of your own: it checks what it is given. Under it lie two pure functions
for loops that cannot stop to look: :func:`sharpening_parts` and :func:`combine` have fixed shapes, never wait for the
device, and keep leading dimensions apart, so that a member that holds NaN spoils no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sharpen.entropy import tsallis_entropy_of_log_probs, widen
from sharpen.errors import InputError

if TYPE_CHECKING:
    from sharpen.trial import Trial

Uncertainty = Callable[[Tensor], Tensor]
"""Logits ``[..., N, C]`` to one number for each node, ``[..., N]``."""
Setting = float | Sequence[float] | Tensor
"""A number, or one for each member of logits with leading dimensions."""
Nodes = Tensor | Sequence[int] | Sequence[bool]
"""Some of the nodes: a boolean mask over all of them, or their indices."""


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


class LossTrace(NamedTuple):
    """The objective and its terms, by name: what :meth:`SharpeningLoss.parts` returns.

    >>> LossTrace._fields
    ('loss', 'cross_entropy', 'entropy_labeled', 'entropy_unlabeled', 'entropy_mean')
    """

    loss: Tensor
    """The weighted total: what :class:`SharpeningLoss` returns."""
    cross_entropy: Tensor
    """As in :class:`LossParts`, like all that follow."""
    entropy_labeled: Tensor
    entropy_unlabeled: Tensor
    entropy_mean: Tensor


def sharpening_parts(
    logits: Tensor,
    y: Tensor,
    labeled_weight: Tensor,
    unlabeled_weight: Tensor,
    q: float | Tensor = 2.0,
    class_weight: Tensor | None = None,
    uncertainty: Uncertainty | None = None,
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

    return LossParts(
        cross_entropy=cross_entropy,
        entropy_labeled=(entropy * labeled_weight).sum(-1),
        entropy_unlabeled=(entropy * unlabeled_weight).sum(-1),
        entropy_mean=torch.where(total.squeeze(-1) > 0, entropy_mean, 0),
    )


def combine(
    parts: LossParts,
    lam: float | Tensor,
    lam_labeled: float | Tensor | None = None,
    balance: float | Tensor = 0.0,
) -> Tensor:
    """The objective, cross_entropy + lam · entropy_unlabeled + lam_labeled · entropy_labeled - balance · entropy_mean.

    A weight that is the number 0 leaves its term out altogether, so plain training pays nothing for terms that it does
    not use. Tensors hold one weight for each member; gradients flow to them. ``lam_labeled=None`` is ``-lam``.

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
        (-balance, parts.entropy_mean),
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

    @classmethod
    def of(
        cls,
        trials: Sequence[Trial],
        class_weight: Sequence[float] | None,
        device: torch.device,
        dtype: torch.dtype,
    ) -> Objective:
        """The objective of a population: what its resolved trials say, one number for each."""

        def column(name: str) -> Tensor:
            return torch.tensor([getattr(trial, name) for trial in trials], dtype=dtype, device=device)

        orders = {trial.q for trial in trials}
        return cls(
            lam=column("lam"),
            lam_labeled=column("lam_labeled"),
            q=orders.pop() if len(orders) == 1 else column("q"),
            balance=column("balance") if any(trial.balance for trial in trials) else 0.0,
            class_weight=None if class_weight is None else torch.tensor(class_weight, dtype=dtype, device=device),
        )

    @property
    def is_gini(self) -> bool:
        """Whether it is the paper's alone: order 2 for all members, no balance, classes that weigh the same."""
        if isinstance(self.q, Tensor) or isinstance(self.balance, Tensor) or self.class_weight is not None:
            return False
        return self.q == 2.0 and self.balance == 0

    def parts(self, logits: Tensor, y: Tensor, labeled: Tensor, unlabeled: Tensor) -> LossParts:
        """The terms before they are weighed; arguments as for :func:`sharpening_parts`."""
        return sharpening_parts(logits, y, labeled, unlabeled, self.q, self.class_weight)

    def combine(self, parts: LossParts) -> Tensor:
        """The weighted total."""
        return combine(parts, self.lam, self.lam_labeled, self.balance)

    def __call__(self, logits: Tensor, y: Tensor, labeled: Tensor, unlabeled: Tensor) -> tuple[Tensor, LossParts]:
        """Every member's loss, and its terms."""
        parts = self.parts(logits, y, labeled, unlabeled)
        return self.combine(parts), parts


class SharpeningLoss(nn.Module):
    r"""Transductive Sharpening as a loss for any model that gives logits for all nodes of a graph.

    .. math::
        L = \mathrm{CE}(V_L) + \lambda \, \overline{H}(V_U) + \lambda_L \, \overline{H}(V_L)
            - \beta \, H(\overline{p}(V_U))

    CE and :math:`\overline{H}` are means over the labeled nodes :math:`V_L` and the unlabeled nodes :math:`V_U`, H is
    the Tsallis entropy of order q, :math:`\overline{p}` the mean prediction. ``lam=0`` is plain cross-entropy, and
    negative weights are allowed. Weights may be changed between calls (``loss.lam = 0.5``), for instance by a schedule.

    Args:
        lam: λ, the weight on unlabeled nodes: a number, or one for each member if the logits have a leading dimension.
        lam_labeled: λ_L, the weight on labeled nodes, likewise; None is -lam. 0 removes the term.
        q: order of the entropy, > 0, likewise: 2 is Gini, 1 is Shannon.
        balance: β, likewise: how strongly to reward a mean unlabeled prediction that is spread over the classes.
        uncertainty: a differentiable function from logits ``[..., N, C]`` to ``[..., N]`` in place of the entropy; q is
            then not used. For the balance it is given the logarithm of the mean prediction as logits ``[..., 1, C]``.
        class_weight: one number >= 0 for each class, as ``weight`` in :func:`torch.nn.functional.cross_entropy`; it
            weighs the cross-entropy alone.

    One line changes in a training loop; the labels of other nodes are never used:

    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]], requires_grad=True)  # model(x, edge_index)
    >>> y, train_mask = torch.tensor([0, -1, -1]), torch.tensor([True, False, False])
    >>> loss = SharpeningLoss(lam=0.25)(logits, y, labeled=train_mask)
    >>> loss.backward()

    Three members, each with a λ of its own, give three losses:

    >>> SharpeningLoss(lam=[0.0, 0.5, 1.0])(logits.expand(3, 3, 2), y, labeled=train_mask).shape
    torch.Size([3])
    """

    def __init__(
        self,
        lam: Setting = 0.25,
        lam_labeled: Setting | None = None,
        q: Setting = 2.0,
        balance: Setting = 0.0,
        uncertainty: Uncertainty | None = None,
        class_weight: Sequence[float] | Tensor | None = None,
    ) -> None:
        super().__init__()
        self.lam, self.lam_labeled, self.q, self.balance = lam, lam_labeled, q, balance
        self.uncertainty, self.class_weight = uncertainty, class_weight
        if uncertainty is not None and not callable(uncertainty):
            raise InputError(
                f"uncertainty is {uncertainty!r}; give a function from logits [..., N, C] to [..., N], or None"
            )
        # Said here, where the mistake was made, as well as at the call, since settings may change in between.
        for name in ("lam", "lam_labeled", "q", "balance", "class_weight"):
            value = getattr(self, name)
            if value is not None or name not in ("lam_labeled", "class_weight"):
                doubts: list[_Doubt] = []
                _class_weight(value, doubts) if name == "class_weight" else _setting(name, value, doubts)
                _settle(doubts)

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
        return self.parts(logits, y, labeled, unlabeled, num_unlabeled).loss

    def parts(
        self,
        logits: Tensor,
        y: Tensor,
        labeled: Nodes,
        unlabeled: Nodes | None = None,
        num_unlabeled: Setting | None = None,
    ) -> LossTrace:
        """The objective and its terms by name, for traces; arguments as for the call itself.

        >>> trace = SharpeningLoss(lam=1.0).parts(torch.zeros(2, 4), torch.tensor([3, -1]), labeled=[0])
        >>> {name: round(value.item(), 2) for name, value in trace._asdict().items()}
        {'loss': 1.39, 'cross_entropy': 1.39, 'entropy_labeled': 0.75, 'entropy_unlabeled': 0.75, 'entropy_mean': 0.75}
        """
        _check_logits(logits)
        y = _labels(y, logits)
        # What depends on values is noted as a doubt, and all doubts are settled at once: a GPU is waited for only once.
        doubts: list[_Doubt] = []
        in_labeled = _node_mask("labeled", labeled, logits, doubts)
        num_labeled = in_labeled.sum(-1, keepdim=True)
        nobody = (
            "labeled is empty{member}; give at least one labeled node, and in mini-batches skip those that hold none"
        )
        doubts.append(_Doubt(num_labeled == 0, nobody))
        _doubt_labels(y, in_labeled, logits, doubts)
        if unlabeled is None:
            in_unlabeled = ~in_labeled
        else:
            in_unlabeled = _node_mask("unlabeled", unlabeled, logits, doubts)
            overlap = in_labeled & in_unlabeled
            doubts.append(_Doubt(overlap, "unlabeled and labeled share {node}; take it out of one of them"))
        if num_unlabeled is None:
            divisor: float | Tensor = in_unlabeled.sum(-1, keepdim=True).clamp_min(1)
        else:
            divisor = _setting("num_unlabeled", num_unlabeled, doubts, logits)
            divisor = divisor.unsqueeze(-1) if isinstance(divisor, Tensor) else divisor
        lam = _setting("lam", self.lam, doubts, logits)
        lam_labeled = None if self.lam_labeled is None else _setting("lam_labeled", self.lam_labeled, doubts, logits)
        q = _setting("q", self.q, doubts, logits)
        balance = _setting("balance", self.balance, doubts, logits)
        class_weight = None
        if self.class_weight is not None:
            class_weight = _class_weight(self.class_weight, doubts, logits)
            labeled_sum = (in_labeled * class_weight[y.clamp(0, logits.shape[-1] - 1)]).sum(-1, keepdim=True)
            doubts.append(
                _Doubt(
                    labeled_sum == 0,
                    "class_weight is 0 at all labeled nodes{member}; raise one of their classes above 0",
                )
            )
        _settle(doubts)

        terms = sharpening_parts(
            logits,
            y,
            in_labeled.to(_precision(logits)) / num_labeled,
            in_unlabeled.to(_precision(logits)) / divisor,
            q,
            class_weight,
            None if self.uncertainty is None else _checked(self.uncertainty),
        )
        return LossTrace(combine(terms, lam, lam_labeled, balance), *terms)

    def extra_repr(self) -> str:
        """λ and q, and whatever else differs from its default.

        >>> SharpeningLoss(lam=0.5, balance=0.1)
        SharpeningLoss(lam=0.5, q=2.0, balance=0.1)
        """
        shown: dict[str, object] = {"lam": self.lam}
        if self.lam_labeled is not None:
            shown["lam_labeled"] = self.lam_labeled
        shown["q"] = self.q
        if not (isinstance(self.balance, Real) and self.balance == 0):
            shown["balance"] = self.balance
        if self.uncertainty is not None:
            shown["uncertainty"] = getattr(self.uncertainty, "__name__", self.uncertainty)
        if self.class_weight is not None:
            shown["class_weight"] = self.class_weight
        return ", ".join(f"{k}={v.tolist() if hasattr(v, 'tolist') else v}" for k, v in shown.items())


class _Doubt(NamedTuple):
    """Something wrong wherever `bad` is true; the message may name {node}, {index}, {member} and {value} there."""

    bad: Tensor  # [..., n]: leading dimensions are members
    message: str
    values: Tensor | None = None  # [..., n]


def _settle(doubts: list[_Doubt]) -> None:
    """Raise the first doubt that holds, at the first place where it does."""
    if not doubts:
        return
    verdicts = torch.stack([doubt.bad.any() for doubt in doubts]).tolist()
    for doubt, holds in zip(doubts, verdicts, strict=True):
        if holds:
            *member, index = place = doubt.bad.nonzero()[0].tolist()
            value = None if doubt.values is None else doubt.values.expand_as(doubt.bad)[tuple(place)].item()
            where = f" in member {member[0] if len(member) == 1 else tuple(member)}" if member else ""
            raise InputError(doubt.message.format(node=f"node {index}{where}", index=index, member=where, value=value))


def _check_logits(logits: Tensor) -> None:
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        kind = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise InputError(f"logits are {kind}; give a floating-point tensor, the model's output before softmax")
    if logits.dim() < 2 or logits.shape[-2] < 1 or logits.shape[-1] < 2:
        raise InputError(
            f"logits have shape {list(logits.shape)}; give [N, C] or [..., N, C], with two classes or more"
        )


def _precision(logits: Tensor) -> torch.dtype:
    return widen(logits.new_empty(0)).dtype


def _tensor(name: str, value: object, expected: str) -> Tensor:
    try:  # by way of NumPy, which keeps Python's numbers in double precision
        return value if isinstance(value, Tensor) else torch.as_tensor(np.array(value))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} is {value!r}; give {expected}") from error


def _fits(leading: torch.Size, logits: Tensor) -> bool:
    """Whether something with these leading dimensions holds for every member, or has a part for each."""
    members = logits.shape[:-2]
    return len(leading) <= len(members) and all(a in (1, b) for a, b in zip(leading[::-1], members[::-1], strict=False))


def _labels(y: object, logits: Tensor) -> Tensor:
    labels = _tensor("y", y, "a tensor of integer class labels")
    one_hot = labels.dim() > 1 and labels.shape[-2:] == logits.shape[-2:] and not _fits(labels.shape[:-1], logits)
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        way_out = "y.argmax(-1)" if one_hot else "y.long()"
        raise InputError(f"y is {labels.dtype}; give integer class labels, {way_out}, with -1 for unknown")
    nodes = logits.shape[-2]
    if labels.dim() < 1 or labels.shape[-1] != nodes or not _fits(labels.shape[:-1], logits):
        hint = ", y.argmax(-1)" if one_hot else ", y.squeeze(-1)" if labels.shape == (nodes, 1) else ""
        raise InputError(
            f"y has shape {list(labels.shape)} but logits have shape {list(logits.shape)}; "
            f"give one label for each of the {nodes} nodes{hint}"
        )
    return labels.to(logits.device, torch.int64)


def _doubt_labels(y: Tensor, in_labeled: Tensor, logits: Tensor, doubts: list[_Doubt]) -> None:
    classes = logits.shape[-1]
    unknown = "y is {value} (unknown) at {node}, which labeled holds; take it out of labeled or give its label"
    doubts.append(_Doubt(in_labeled & (y < 0), unknown, y))
    beyond = (
        f"y is {{value}} at {{node}} but logits have {classes} classes; give labels 0 to {classes - 1}, or more logits"
    )
    doubts.append(_Doubt(in_labeled & (y >= classes), beyond, y))


def _node_mask(name: str, value: Nodes, logits: Tensor, doubts: list[_Doubt]) -> Tensor:
    """A set of nodes, given as a mask or as indices, as a mask ``[N]`` or ``[..., N]``."""
    size = logits.shape[-2]
    nodes = _tensor(name, value, "a boolean mask or node indices").to(logits.device)
    as_mask = f"{name}.bool()" if isinstance(value, Tensor) else f"torch.tensor({name}).bool()"
    if nodes.numel() == 0 and nodes.dtype != torch.bool:
        nodes = nodes.long()  # torch.tensor([]) is a float tensor, and means no nodes
    if nodes.dtype == torch.bool:
        if nodes.dim() < 1 or nodes.shape[-1] != size or not _fits(nodes.shape[:-1], logits):
            columns = nodes.dim() == 2 and nodes.shape[0] == size
            raise InputError(
                f"{name} is a mask of shape {list(nodes.shape)} but logits have shape {list(logits.shape)}; "
                f"give one entry for each of the {size} nodes"
                + (f", such as {name}[:, 0] for the first of {nodes.shape[1]} splits" if columns else "")
            )
        return nodes
    if nodes.dtype not in (torch.int64, torch.int32, torch.int16):
        raise InputError(f"{name} is {nodes.dtype}; give a boolean mask, {as_mask}, or int64 node indices")
    if nodes.dim() < 1 or not _fits(nodes.shape[:-1], logits):
        raise InputError(
            f"{name} holds indices of shape {list(nodes.shape)} but logits have shape {list(logits.shape)}; "
            f"give a list of node indices, or one list of the same length for each member"
            + (f"; of one column, {name}.view(-1) is one" if nodes.dim() == 2 and nodes.shape[1] == 1 else "")
        )
    nodes = nodes.long()
    outside = f"{name} holds index {{value}}{{member}}; give indices from 0 to {size - 1}, as there are {size} nodes"
    doubts.append(_Doubt((nodes < 0) | (nodes >= size), outside, nodes))
    count = nodes.new_zeros(*nodes.shape[:-1], size)
    count = count.scatter_add(-1, nodes.clamp(0, size - 1), torch.ones_like(nodes))
    # Above all this finds masks of zeros and ones that are no boolean masks.
    twice = f"{name} holds {{node}} {{value}} times; give each index once, or {as_mask} if it is a mask"
    doubts.append(_Doubt(count > 1, twice, count))
    return count > 0


def _setting(name: str, value: Setting, doubts: list[_Doubt], logits: Tensor | None = None) -> float | Tensor:
    """A number as a float; one for each member as a tensor on the device and in the precision of the logits."""
    positive = name in ("q", "num_unlabeled")
    expected = f"a finite number{' above 0' if positive else ''}, or one for each member"
    if isinstance(value, Real):
        if not math.isfinite(value) or (positive and value <= 0):
            raise InputError(f"{name} is {value}; give {expected}")
        return float(value)
    numbers = _tensor(name, value, expected)
    if numbers.is_complex() or numbers.dtype == torch.bool:
        raise InputError(f"{name} is {numbers.dtype}; give {expected}")
    if logits is not None:
        if not _fits(numbers.shape, logits):
            raise InputError(
                f"{name} has shape {list(numbers.shape)} but logits have shape {list(logits.shape)}; "
                f"give a number, or a tensor of shape {list(logits.shape[:-2])}"
            )
        numbers = numbers.to(logits.device, _precision(logits))
    bad = ~torch.isfinite(numbers) | (numbers <= 0) if positive else ~torch.isfinite(numbers)
    doubts.append(_Doubt(bad.unsqueeze(-1), f"{name} is {{value}}{{member}}; give {expected}", numbers.unsqueeze(-1)))
    return numbers


def _class_weight(value: Sequence[float] | Tensor, doubts: list[_Doubt], logits: Tensor | None = None) -> Tensor:
    weights = _tensor("class_weight", value, "one number for each class")
    if weights.dim() != 1 or (logits is not None and len(weights) != logits.shape[-1]):
        classes = "" if logits is None else f" ({logits.shape[-1]} in these logits)"
        raise InputError(f"class_weight has shape {list(weights.shape)}; give one number for each class{classes}")
    if logits is not None:
        weights = weights.to(logits.device, _precision(logits))
    bad = ~torch.isfinite(weights) | (weights < 0)
    doubts.append(
        _Doubt(bad, "class_weight is {value} for class {index}; give a finite number >= 0 for each class", weights)
    )
    return weights


def _checked(uncertainty: Uncertainty) -> Uncertainty:
    """The same function, which must return one number for each row."""

    def call(logits: Tensor) -> Tensor:
        values = uncertainty(logits)
        if not isinstance(values, Tensor) or values.shape != logits.shape[:-1]:
            shape = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise InputError(
                f"uncertainty returned {shape} for logits of shape {list(logits.shape)}; "
                f"let it return a tensor of shape {list(logits.shape[:-1])}, reducing the last dimension alone"
            )
        return values

    return call
