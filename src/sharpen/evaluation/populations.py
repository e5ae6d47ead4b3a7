r"""Class-wise scores and calibration of whole populations, on the device: what :mod:`sharpen.evaluation.calibration` says of one.

Members may have different test nodes, and different numbers of them. Everything is computed in float64 from the nodes that are
asked about, all members at once; no sum depends on the order in which a device happens to add.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from sharpen.evaluation.calibration import COLDEST, HOTTEST

_BINS = 15
# Halving the range of temperatures so often leaves it narrower than 1e-9.
_HALVINGS = 33


def held_out_scores(logits: Tensor, y: Tensor, val: Tensor, test: Tensor) -> dict[str, Tensor]:
    """Macro-F1, expected calibration error, log-loss and Brier score of test nodes, before and after temperature scaling.

    Args:
        logits: ``[R, N, C]``.
        y: ``[N]``; what stands at nodes that are not asked about does not matter.
        val: ``[R, N]``, a mask: the nodes whose labels choose each member's temperature.
        test: ``[R, N]``, a mask: the nodes to score.

    Returns:
        ``[R]`` in float64 by name: ``macro_f1``, ``ece``, ``log_loss``, ``brier``, ``temperature``, and with the ending
        ``_scaled`` those that it changes. NaN for a member without the nodes that it takes, or with a NaN logit among them.

    >>> logits = torch.tensor([[[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 0.0]]])
    >>> halves = torch.tensor([[True, True, False, False]])
    >>> scores = held_out_scores(logits, torch.tensor([0, 1, 1, 0]), halves, ~halves)
    >>> {name: round(value.item(), 2) for name, value in scores.items() if not name.endswith("scaled")}
    {'macro_f1': 1.0, 'ece': 0.12, 'log_loss': 0.13, 'brier': 0.03, 'temperature': 20.0}
    """
    of_val, of_test = _taken(logits, y, val), _taken(logits, y, test)
    temperature = _temperature(*of_val)
    z, classes, weight = of_test
    scores = {"macro_f1": _macro_f1(z, classes, weight), **_calibration(z, classes, weight), "temperature": temperature}
    scaled = _calibration(z / temperature[:, None, None], classes, weight)
    return scores | {f"{name}_scaled": value for name, value in scaled.items()}


def _taken(logits: Tensor, y: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, classes and weights of the nodes in each member's mask: [R, M, C], [R, M], [R, M]; weights sum to 1."""
    most = max(1, int(mask.sum(1).max()))
    nodes = mask.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :most]
    weight = mask.gather(1, nodes).double()
    weight = weight / weight.sum(1, keepdim=True)  # NaN for a member without any
    z = logits.gather(1, nodes.unsqueeze(-1).expand(-1, -1, logits.shape[-1])).double()
    return z, y[nodes].clamp(0, logits.shape[-1] - 1), weight


def _true(values: Tensor, classes: Tensor) -> Tensor:
    return values.gather(-1, classes.unsqueeze(-1)).squeeze(-1)


def _calibration(z: Tensor, classes: Tensor, weight: Tensor) -> dict[str, Tensor]:
    log_p = z.log_softmax(-1)
    p = log_p.exp()
    lost = -_true(log_p, classes).clamp_min(math.log(torch.finfo(torch.float64).tiny))
    squared = p.square().sum(-1) - 2 * _true(p, classes) + 1
    confidence, predicted = p.max(-1)
    surplus = weight * ((predicted == classes).double() - confidence)
    # Open below, closed above: a certain prediction belongs to the last bin.
    edges = torch.linspace(0, 1, _BINS + 1, dtype=torch.float64, device=z.device)[1:-1]
    place = torch.bucketize(confidence, edges)
    gaps = [torch.where(place == number, surplus, 0.0).sum(-1).abs() for number in range(_BINS)]
    return {
        "ece": torch.stack(gaps).sum(0) + 0 * weight.sum(-1),
        "log_loss": (weight * lost).sum(-1),
        "brier": (weight * squared).sum(-1),
    }


def _macro_f1(z: Tensor, classes: Tensor, weight: Tensor) -> Tensor:
    """The mean over the classes in y of 2 TP / (2 TP + FP + FN)."""
    largest, predicted = z.max(-1)
    every = torch.arange(z.shape[-1], device=z.device)
    is_, says = ((each.unsqueeze(-1) == every).double() * weight.unsqueeze(-1) for each in (classes, predicted))
    hit = torch.where((classes == predicted).unsqueeze(-1), is_, 0.0).sum(1)
    there = is_.sum(1)
    f1 = torch.where(there > 0, 2 * hit / (there + says.sum(1)), 0.0).sum(-1) / (there > 0).sum(-1)
    return torch.where((largest * weight).sum(-1).isnan(), torch.nan, f1)


def _temperature(z: Tensor, classes: Tensor, weight: Tensor) -> Tensor:
    """The temperature of least log-loss of every member: the loss is convex in 1 / T, so its slope is 0 there and nowhere else."""
    low = torch.full((len(z),), -math.log(HOTTEST), dtype=torch.float64, device=z.device)
    high = torch.full_like(low, -math.log(COLDEST))
    own = _true(z, classes)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        p = (z * middle.exp()[:, None, None]).softmax(-1)
        rises = (weight * ((p * z).sum(-1) - own)).sum(-1) > 0
        low, high = torch.where(rises, low, middle), torch.where(rises, middle, high)
    known = weight.sum(-1) + 0 * own.sum(-1)
    return torch.where(known.isnan(), torch.nan, (-(low + high) / 2).exp())
