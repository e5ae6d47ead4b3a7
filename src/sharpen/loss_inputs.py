"""What a loss is given, checked: class scores, labels, sets of nodes, weights.

What depends on values is noted as a doubt, and all doubts are settled at once: a GPU is waited for only once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sharpen.entropy import widen
from sharpen.errors import InputError

Uncertainty = Callable[[Tensor], Tensor]
"""Logits ``[..., N, C]`` to one number for each node, ``[..., N]``."""
Setting = float | Sequence[float] | Tensor
"""A number, or one for each member of logits with leading dimensions."""
Nodes = Tensor | Sequence[int] | Sequence[bool]
"""Some of the nodes: a boolean mask over all of them, or their indices."""


class Doubt(NamedTuple):
    """Something wrong wherever `bad` is true; the message may name {node}, {index}, {member} and {value} there."""

    bad: Tensor  # [..., n]: leading dimensions are members
    message: str
    values: Tensor | None = None  # [..., n]


def settle(doubts: list[Doubt]) -> None:
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


def check_logits(logits: Tensor) -> None:
    """Refuses what is no tensor of class scores."""
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        kind = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise InputError(f"are {kind}; give a floating-point tensor, the model's output before softmax", field="logits")
    if logits.dim() < 2 or logits.shape[-2] < 1 or logits.shape[-1] < 2:
        way_out = "give [N, C] or [..., N, C], with two classes or more"
        raise InputError(f"logits have shape {list(logits.shape)}; {way_out}")


def precision_of(logits: Tensor) -> torch.dtype:
    return widen(logits.new_empty(0)).dtype


def _tensor(name: str, value: object, expected: str) -> Tensor:
    try:  # by way of NumPy, which keeps Python's numbers in double precision
        return value if isinstance(value, Tensor) else torch.as_tensor(np.array(value))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"is {value!r}; give {expected}", field=name) from error


def _fits(leading: torch.Size, logits: Tensor) -> bool:
    """Whether something with these leading dimensions holds for every member, or has a part for each."""
    members = logits.shape[:-2]
    return len(leading) <= len(members) and all(a in (1, b) for a, b in zip(leading[::-1], members[::-1], strict=False))


def labels_of(y: object, logits: Tensor) -> Tensor:
    labels = _tensor("y", y, "a tensor of integer class labels")
    one_hot = labels.dim() > 1 and labels.shape[-2:] == logits.shape[-2:] and not _fits(labels.shape[:-1], logits)
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        way_out = "y.argmax(-1)" if one_hot else "y.long()"
        raise InputError(f"is {labels.dtype}; give integer class labels, {way_out}, with -1 for unknown", field="y")
    nodes = logits.shape[-2]
    if labels.dim() < 1 or labels.shape[-1] != nodes or not _fits(labels.shape[:-1], logits):
        hint = ", y.argmax(-1)" if one_hot else ", y.squeeze(-1)" if labels.shape == (nodes, 1) else ""
        raise _misfit("y", labels, logits, f"give one label for each of the {nodes} nodes{hint}")
    return labels.to(logits.device, torch.int64)


def _misfit(name: str, value: Tensor, logits: Tensor, way_out: str, what: str = "has") -> InputError:
    shapes = f"{what} shape {list(value.shape)} but logits have shape {list(logits.shape)}"
    return InputError(shapes, field=name, hint=way_out)


def doubt_labels(y: Tensor, in_labeled: Tensor, logits: Tensor, doubts: list[Doubt]) -> None:
    classes = logits.shape[-1]
    unknown = "y is {value} (unknown) at {node}, which labeled holds; take it out of labeled or give its label"
    doubts.append(Doubt(in_labeled & (y < 0), unknown, y))
    way_out = f"give labels 0 to {classes - 1}, or more logits"
    beyond = f"y is {{value}} at {{node}} but logits have {classes} classes; {way_out}"
    doubts.append(Doubt(in_labeled & (y >= classes), beyond, y))


def node_mask(name: str, value: Nodes, logits: Tensor, doubts: list[Doubt]) -> Tensor:
    """A set of nodes, given as a mask or as indices, as a mask ``[N]`` or ``[..., N]``."""
    size = logits.shape[-2]
    nodes = _tensor(name, value, "a boolean mask or node indices").to(logits.device)
    as_mask = f"{name}.bool()" if isinstance(value, Tensor) else f"torch.tensor({name}).bool()"
    if nodes.numel() == 0 and nodes.dtype != torch.bool:
        nodes = nodes.long()  # torch.tensor([]) is a float tensor, and means no nodes
    if nodes.dtype == torch.bool:
        if nodes.dim() < 1 or nodes.shape[-1] != size or not _fits(nodes.shape[:-1], logits):
            columns = nodes.dim() == 2 and nodes.shape[0] == size
            one = f", such as {name}[:, 0] for the first of {nodes.shape[1]} splits" if columns else ""
            way_out = f"give one entry for each of the {size} nodes{one}"
            raise _misfit(name, nodes, logits, way_out, "is a mask of")
        return nodes
    if nodes.dtype not in (torch.int64, torch.int32, torch.int16):
        raise InputError(f"is {nodes.dtype}; give a boolean mask, {as_mask}, or int64 node indices", field=name)
    if nodes.dim() < 1 or not _fits(nodes.shape[:-1], logits):
        one = f"; of one column, {name}.view(-1) is one" if nodes.dim() == 2 and nodes.shape[1] == 1 else ""
        way_out = f"give a list of node indices, or one list of the same length for each member{one}"
        raise _misfit(name, nodes, logits, way_out, "holds indices of")
    nodes = nodes.long()
    outside = f"{name} holds index {{value}}{{member}}; give indices from 0 to {size - 1}, as there are {size} nodes"
    doubts.append(Doubt((nodes < 0) | (nodes >= size), outside, nodes))
    count = nodes.new_zeros(*nodes.shape[:-1], size)
    count = count.scatter_add(-1, nodes.clamp(0, size - 1), torch.ones_like(nodes))
    # Above all this finds masks of zeros and ones that are no boolean masks.
    twice = f"{name} holds {{node}} {{value}} times; give each index once, or {as_mask} if it is a mask"
    doubts.append(Doubt(count > 1, twice, count))
    return count > 0


def setting_of(name: str, value: Setting, doubts: list[Doubt], logits: Tensor | None = None) -> float | Tensor:
    """A number as a float; one for each member as a tensor on the device and in the precision of the logits."""
    positive = name in ("q", "num_unlabeled")
    expected = f"a finite number{' above 0' if positive else ''}, or one for each member"
    if isinstance(value, Real):
        if not math.isfinite(value) or (positive and value <= 0):
            raise InputError(f"is {value}; give {expected}", field=name)
        return float(value)
    numbers = _tensor(name, value, expected)
    if numbers.is_complex() or numbers.dtype == torch.bool:
        raise InputError(f"is {numbers.dtype}; give {expected}", field=name)
    if logits is not None:
        if not _fits(numbers.shape, logits):
            way_out = f"give a number, or a tensor of shape {list(logits.shape[:-2])}"
            raise _misfit(name, numbers, logits, way_out)
        numbers = numbers.to(logits.device, precision_of(logits))
    bad = ~torch.isfinite(numbers) | (numbers <= 0) if positive else ~torch.isfinite(numbers)
    doubts.append(Doubt(bad.unsqueeze(-1), f"{name} is {{value}}{{member}}; give {expected}", numbers.unsqueeze(-1)))
    return numbers


def class_weight_of(value: Sequence[float] | Tensor, doubts: list[Doubt], logits: Tensor | None = None) -> Tensor:
    weights = _tensor("class_weight", value, "one number for each class")
    if weights.dim() != 1 or (logits is not None and len(weights) != logits.shape[-1]):
        way_out = "give one number for each class" + (
            f" ({logits.shape[-1]} in these logits)" if logits is not None else ""
        )
        raise InputError(f"has shape {list(weights.shape)}", field="class_weight", hint=way_out)
    if logits is not None:
        weights = weights.to(logits.device, precision_of(logits))
    wrong = "class_weight is {value} for class {index}; give a finite number >= 0 for each class"
    doubts.append(Doubt(~torch.isfinite(weights) | (weights < 0), wrong, weights))
    return weights


def prior_of(value: object, doubts: list[Doubt], logits: Tensor | None = None) -> Tensor:
    """Class proportions as a tensor ``[C]`` or ``[..., C]`` on the device and in the precision of the logits."""
    expected = "one share above 0 for each class, summing to 1, such as [0.85, 0.15]"
    if isinstance(value, str):
        raise InputError(f"is {value!r}; give {expected}", field="prior")
    shares = _tensor("prior", value, expected)
    if shares.dim() < 1 or shares.is_complex() or shares.dtype == torch.bool:
        raise InputError(f"is {value!r}; give {expected}", field="prior")
    if logits is not None:
        if shares.shape[-1] != logits.shape[-1] or not _fits(shares.shape[:-1], logits):
            raise _misfit("prior", shares, logits, f"give one share for each of the {logits.shape[-1]} classes")
        shares = shares.to(logits.device, precision_of(logits))
    shares = shares if shares.is_floating_point() else shares.double()
    bad = ~torch.isfinite(shares) | (shares <= 0)
    rare = "prior is {value} for class {index}{member}; give every class a share above 0, a small one if it is rare"
    doubts.append(Doubt(bad, rare, shares))
    total = shares.sum(-1, keepdim=True)
    wrong = "prior sums to {value:.4g}{member}; give shares that sum to 1"
    doubts.append(Doubt((total - 1).abs() > 1e-3, wrong, total))
    return shares / total


def checked_uncertainty(uncertainty: Uncertainty) -> Uncertainty:
    """The same function, which must return one number for each row."""

    def call(logits: Tensor) -> Tensor:
        values = uncertainty(logits)
        if not isinstance(values, Tensor) or values.shape != logits.shape[:-1]:
            shape = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
            way_out = f"let it return a tensor of shape {list(logits.shape[:-1])}, reducing the last dimension alone"
            raise InputError(f"uncertainty returned {shape} for logits of shape {list(logits.shape)}; {way_out}")
        return values

    return call
