r"""Train, validation and test nodes of a graph, and the ways to choose them.

A split's name says completely how it was drawn, so that :func:`draw_split` makes it again from the labels alone:

===================================  ===================================================================================
``balanced-20-500-1000-seed123``     20 training nodes of each class, then 500 validation and 1000 test nodes
``ratio-60-20-20-seed0``             60 % training, 20 % validation, 20 % test nodes, whatever their classes
``stratified-60-20-20-seed0``        the same, in every class
===================================  ===================================================================================

Only nodes of known class (:math:`y_i \ge 0`) are drawn. All draws are permutations by ``torch.randperm`` on the CPU,
from a generator with the seed of the name: the numbers that follow ``torch.manual_seed``. No other random state is read
or changed. A test holds recorded members, so that a version of torch that draws otherwise would not go unnoticed.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from sharpen.checks import Array, integer_tensor
from sharpen.errors import InputError


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Split:
    """Three disjoint sets of nodes; validation and test may be empty, training may not.

    Args:
        name: How the split was made.
        train, val, test: Node indices in any order, each at most once. Kept sorted, as int64.

    >>> split = Split("mine", train=[4, 0], val=[1], test=[2, 3])
    >>> split, split.train
    (Split('mine', train=2, val=1, test=2), tensor([0, 4]))
    >>> Split("mine", train=[0, 1], val=[1], test=[])
    Traceback (most recent call last):
    sharpen.errors.InputError: node 1 is in train and in val; give every node to one set only
    """

    name: str
    train: Tensor
    val: Tensor
    test: Tensor

    def __init__(self, name: str, train: Array, val: Array, test: Array) -> None:
        if not isinstance(name, str) or not name:
            raise InputError(f"is {name!r}; give the split a name, such as 'given-0'", field="name")
        sets = {field: _node_set(nodes, field) for field, nodes in (("train", train), ("val", val), ("test", test))}
        if not sets["train"].numel():
            raise InputError("is empty; give at least one training node", field="train")
        for first, second in (("train", "val"), ("train", "test"), ("val", "test")):
            both = np.intersect1d(sets[first].numpy(), sets[second].numpy(), assume_unique=True)
            if both.size:
                raise InputError(f"node {both[0]} is in {first} and in {second}; give every node to one set only")
        object.__setattr__(self, "name", name)
        for field, nodes in sets.items():
            object.__setattr__(self, field, nodes)

    def __repr__(self) -> str:
        sizes = f"train={self.train.numel()}, val={self.val.numel()}, test={self.test.numel()}"
        return f"Split({self.name!r}, {sizes})"

    @cached_property
    def id(self) -> str:
        """16 hexadecimal digits that stand for the name and the members.

        >>> Split("mine", [0], [1], [2]).id == Split("mine", [0], [1], [2]).id != Split("mine", [0], [2], [1]).id
        True
        """
        digest = hashlib.sha256(self.name.encode())
        for nodes in (self.train, self.val, self.test):
            digest.update(b"\0" + nodes.numel().to_bytes(8, "little"))
            digest.update(nodes.numpy().astype("<i8").tobytes())
        return digest.hexdigest()[:16]

    def masks(self, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
        """The three sets as boolean masks of length ``num_nodes``.

        >>> train, val, test = Split("mine", [0], [1], [3]).masks(4)
        >>> test
        tensor([False, False, False,  True])
        """
        last = max(int(nodes[-1]) for nodes in (self.train, self.val, self.test) if nodes.numel())
        if last >= num_nodes:
            way_out = f"give a split of this graph, with nodes from 0 to {num_nodes - 1}"
            raise InputError(f"split {self.name!r} holds node {last}, but there are only {num_nodes} nodes; {way_out}")
        masks = torch.zeros(3, num_nodes, dtype=torch.bool)
        for mask, nodes in zip(masks, (self.train, self.val, self.test), strict=True):
            mask[nodes] = True
        return masks[0], masks[1], masks[2]


def class_balanced(y: Array, per_class: int = 20, val: int = 500, test: int = 1000, seed: int = 0) -> Split:
    """The same number of training nodes from each class, the rest drawn from all other nodes alike.

    For each class in increasing order its nodes are permuted; the first ``per_class`` are for training. What remains of
    all classes, in class order, is permuted once more: the first ``val`` are for validation, the next ``test`` for
    testing. With seed 123 and the defaults this is the split of the paper on Cora, CiteSeer and PubMed, node for node.

    Args:
        y: Classes, -1 for unknown.
        per_class: Training nodes of each class.
        val, test: Validation and test nodes in all.
        seed: From 0 to 2**32 - 1.

    >>> split = class_balanced([0, 0, 0, 1, 1, 1, -1], per_class=1, val=2, test=2, seed=7)
    >>> split
    Split('balanced-1-2-2-seed7', train=2, val=2, test=2)
    """
    labels = _known_labels(y)
    for argument, size, least in (("per_class", per_class, 1), ("val", val, 0), ("test", test, 0)):
        if not isinstance(size, int | np.integer) or size < least:
            raise InputError(f"is {size}; give a whole number of nodes, {least} or more", field=argument)
    generator = _generator(seed)
    train, rest = [], []
    for c in _classes(labels):
        nodes = _permuted((labels == c).nonzero()[:, 0], generator)
        if nodes.numel() < per_class:
            way_out = f"give per_class={nodes.numel()} or less, or set the class of these nodes to -1"
            raise InputError(f"class {c} has {nodes.numel()} nodes, fewer than per_class={per_class}; {way_out}")
        train.append(nodes[:per_class])
        rest.append(nodes[per_class:])
    others = _permuted(torch.cat(rest), generator)
    if others.numel() < val + test:
        what = f"{others.numel()} nodes of known class remain after training, fewer than val + test = {val + test}"
        raise InputError(f"{what}; give smaller val and test")
    name = f"balanced-{per_class}-{val}-{test}-seed{seed}"
    return Split(name, torch.cat(train), others[:val], others[val : val + test])


def random_ratio(y: Array, train: float = 0.6, val: float = 0.2, seed: int = 0) -> Split:
    """A share of the nodes for training, a share for validation, the rest for testing, whatever their classes.

    Of n nodes in a random order, training ends at ``train * n`` and validation at ``(train + val) * n``, each rounded
    to the nearest node.

    Args:
        y: Classes, -1 for unknown.
        train, val: Shares between 0 and 1 (0.6 for the 60 % of ``ratio-60-20-20-seed0``).
        seed: From 0 to 2**32 - 1.

    >>> random_ratio([0, 1, 0, 1, 0, 1, 0, 1, 0, 1, -1], train=0.5, val=0.3)
    Split('ratio-50-30-20-seed0', train=5, val=3, test=2)
    """
    labels = _known_labels(y)
    percent = _percentages(train, val)
    nodes = _permuted((labels >= 0).nonzero()[:, 0], _generator(seed))
    first = _round(percent[0] / 100 * nodes.numel())
    second = _round((percent[0] + percent[1]) / 100 * nodes.numel())
    return _of_ratio("ratio", percent, seed, (nodes[:first], nodes[first:second], nodes[second:]))


def stratified_ratio(y: Array, train: float = 0.6, val: float = 0.2, seed: int = 0) -> Split:
    r"""A share of the nodes of each class for training, a share for validation, the rest for testing.

    What rounding leaves over is carried from class to class, so that the totals keep the ratio however small the
    classes are: with :math:`S_c` nodes in the classes up to and including c, class c gives

    .. math:: t_c = \lfloor p_\text{train} S_c \rceil - \lfloor p_\text{train} S_{c-1} \rceil

    training nodes, and validation nodes by the same rule from what remains, with the share
    :math:`p_\text{val} / (1 - p_\text{train})`. A class of three nodes or more for which this gives no training node
    gives one all the same. So training misses its share by less than one node in each class, and by at most half a node
    in all, plus one for each class that the last rule helped.

    Args:
        y: Classes, -1 for unknown.
        train, val: Shares between 0 and 1 (0.6 for the 60 % of ``stratified-60-20-20-seed0``).
        seed: From 0 to 2**32 - 1.

    >>> split = stratified_ratio([0, 0, 0, 0, 0, 1, 1, 1, 1, 1], train=0.6, val=0.2)
    >>> split, int((split.train < 5).sum())
    (Split('stratified-60-20-20-seed0', train=6, val=2, test=2), 3)
    """
    labels = _known_labels(y)
    percent = _percentages(train, val)
    generator = _generator(seed)
    share = percent[0] / 100
    share_of_rest = percent[1] / (percent[1] + percent[2]) if percent[0] < 100 else 0.0
    seen = seen_rest = 0
    parts: list[list[Tensor]] = [[], [], []]
    for c in _classes(labels):
        nodes = _permuted((labels == c).nonzero()[:, 0], generator)
        size = nodes.numel()
        num_train = _round(share * (seen + size)) - _round(share * seen)
        if size >= 3:
            num_train = max(num_train, 1)
        rest = size - num_train
        num_val = _round(share_of_rest * (seen_rest + rest)) - _round(share_of_rest * seen_rest)
        seen, seen_rest = seen + size, seen_rest + rest
        for part, chosen in zip(parts, nodes.split([num_train, num_val, rest - num_val]), strict=True):
            part.append(chosen)
    return _of_ratio("stratified", percent, seed, tuple(torch.cat(part) for part in parts))


def from_masks(train: Array, val: Array, test: Array, name: str = "given-0") -> Split:
    """A split from three boolean masks over the nodes.

    >>> from_masks([True, False, False], [False, True, False], [False, False, True], name="given-0").test
    tensor([2])
    """
    sets, lengths = [], []
    for field, values in (("train", train), ("val", val), ("test", test)):
        mask = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
        if mask.dtype != bool or mask.ndim != 1:
            way_out = "give one True or False per node, or give node indices to Split"
            raise InputError(f"is not a mask but {mask.dtype} of shape {mask.shape}", field=field, hint=way_out)
        sets.append(mask.nonzero()[0])
        lengths.append(mask.size)
    if len(set(lengths)) > 1:
        what = f"train, val and test have lengths {lengths[0]}, {lengths[1]} and {lengths[2]}"
        raise InputError(f"{what}; give masks over the nodes of one graph")
    return Split(name, *sets)


def draw_split(name: str, y: Array) -> Split:
    """The split that ``name`` describes, drawn from the classes ``y`` (see the table of this module).

    >>> y = [0, 1] * 10
    >>> draw_split("balanced-2-6-10-seed3", y).id == class_balanced(y, 2, 6, 10, seed=3).id
    True
    >>> draw_split("stratified-60-20", y)
    Traceback (most recent call last):
    sharpen.errors.InputError: split 'stratified-60-20' cannot be drawn; write it like 'stratified-60-20-20-seed0'
    """
    match = re.fullmatch(r"balanced-(\d+)-(\d+)-(\d+)-seed(\d+)", name)
    if match:
        per_class, num_val, num_test, seed = map(int, match.groups())
        return class_balanced(y, per_class, num_val, num_test, seed)
    number = r"(\d+(?:\.\d+)?)"
    match = re.fullmatch(rf"(ratio|stratified)-{number}-{number}-{number}-seed(\d+)", name)
    if match:
        kind, *shares = match.groups()[:4]
        train, val, test = map(float, shares)
        if not math.isclose(train + val + test, 100, abs_tol=1e-6):
            what = f"split {name!r} has {train + val + test:g} percent in all, not 100"
            raise InputError(f"{what}; write it like '{kind}-60-20-20-seed{match[5]}'")
        draw = random_ratio if kind == "ratio" else stratified_ratio
        return draw(y, train / 100, val / 100, int(match[5]))
    if re.fullmatch(r"given-\d+|public", name):
        raise InputError(f"split {name!r} cannot be drawn: it comes with a dataset's files; take it from its splits")
    forms = ["balanced-20-500-1000-seed0", "ratio-60-20-20-seed0", "stratified-60-20-20-seed0"]
    near = [form for form in forms if name.split("-")[0] == form.split("-")[0]] or forms
    raise InputError(f"split {name!r} cannot be drawn; write it like {' or '.join(map(repr, near))}")


def _node_set(values: Array, field: str) -> Tensor:
    nodes = integer_tensor(values, field)
    is_mask = values.dtype == torch.bool if isinstance(values, Tensor) else np.asarray(values).dtype == bool
    if is_mask:
        way_out = "give node indices, or make the split with sharpen.splits.from_masks(train, val, test)"
        raise InputError("is a mask", field=field, hint=way_out)
    if nodes.dim() != 1:
        raise InputError(f"has shape {tuple(nodes.shape)}; give one list of node indices", field=field)
    nodes = nodes.sort().values
    if nodes.numel() and nodes[0] < 0:
        raise InputError(f"holds node {int(nodes[0])}; give indices from 0", field=field)
    again = nodes[1:][nodes[1:] == nodes[:-1]]
    if again.numel():
        way_out = "give every node once (a mask must be bool)"
        raise InputError(f"holds node {int(again[0])} more than once", field=field, hint=way_out)
    return nodes


def _known_labels(y: Array) -> Tensor:
    labels = integer_tensor(y, "y")
    if labels.dim() != 1:
        raise InputError(f"has shape {tuple(labels.shape)}; give one class per node", field="y")
    if not (labels >= 0).any():
        raise InputError("holds no node of known class; give classes from 0 (-1 is unknown)", field="y")
    return labels


def _classes(labels: Tensor) -> list[int]:
    return labels[labels >= 0].unique().tolist()


def _generator(seed: int) -> torch.Generator:
    # The generator reads 32 bits of the seed: beyond them two names would mean one draw.
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise InputError(f"is {seed}; give an integer from 0 to {2**32 - 1}", field="seed")
    return torch.Generator().manual_seed(int(seed))


def _permuted(nodes: Tensor, generator: torch.Generator) -> Tensor:
    return nodes[torch.randperm(nodes.numel(), generator=generator)]


def _percentages(train: float, val: float) -> tuple[float, float, float]:
    """The three shares in percent, free of the noise that multiplying by 100 brings."""
    if not (0 < train <= 1 and 0 <= val <= 1 and train + val <= 1 + 1e-9):
        way_out = "give shares of 1 with train + val <= 1, such as 0.6 and 0.2"
        raise InputError(f"is {train} and val is {val}", field="train", hint=way_out)
    first, second = round(100 * train, 8), round(100 * val, 8)
    return first, second, abs(round(100 - first - second, 8))


def _of_ratio(kind: str, percent: tuple[float, float, float], seed: int, sets: Sequence[Tensor]) -> Split:
    if not sets[0].numel():
        nodes = sum(map(len, sets))
        raise InputError(f"train={percent[0] / 100:g} of {nodes} nodes of known class is none; give a larger share")
    shares = (f"{share:.8f}".rstrip("0").rstrip(".") for share in percent)
    return Split("-".join([kind, *shares, f"seed{seed}"]), *sets)


def _round(value: float) -> int:
    return math.floor(value + 0.5 + 1e-9)  # halves up, also where the product falls short of one by rounding
