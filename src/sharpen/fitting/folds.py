"""Which labeled nodes to learn from, and which to keep for an honest number.

Labeled nodes are dealt into five slices, class by class. Each of the five runs of a round learns from four slices and never
meets the fifth, which judges it. No slice is spent on choosing an epoch: on the few nodes of one it would choose by luck, so
training runs for a fixed number of epochs. Another round deals anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sharpen.errors import InputError
from sharpen.graph.splits import Split

_SLICES = 5
# A class needs two nodes to learn from, whatever slice is held out.
FEWEST = 3
# So many validation nodes in a round are enough; with many labels, fewer folds have them.
_ENOUGH = 300


def check_labels(y: np.ndarray, class_names: Sequence[str]) -> list[str]:
    """Refuses labels that nothing can be learnt from, and notes what cannot be checked.

    >>> check_labels(np.array([0, 0, 0, 1, 1, 1, 2, -1]), ["a", "b", "c"])
    ["class 'c' has 1 labeled node: it is learnt from, but too few to check, so that no score here says anything about it; 3 ..."]
    """
    count = np.bincount(y[y >= 0], minlength=len(class_names))
    total, present = int(count.sum()), int((count > 0).sum())
    if total == 0:
        raise InputError("no node has a label; give at least three nodes of each of two classes their labels")
    if total == 1:
        raise InputError(
            f"only one node has a label ({class_names[int(count.argmax())]!r}); "
            "give at least three nodes of each of two classes their labels"
        )
    if present == 1:
        raise InputError(
            f"all {total} labels are {class_names[int(count.argmax())]!r}; give labels of at least two classes"
        )
    if not can_check(y):
        few = ", ".join(f"{name!r} has {c}" for name, c in zip(class_names, count.tolist(), strict=True) if c)
        return [
            f"too few labels to learn from some and check on others ({few[:200]}), so that nothing here is checked by labels; "
            f"give at least {FEWEST} labeled nodes in each of two classes"
        ]
    return [
        f"class {name!r} has {c} labeled node{'s' * (c > 1)}: it is learnt from, but too few to check, so that no score here says "
        f"anything about it; {FEWEST} would do"
        for name, c in unchecked_classes(count.tolist(), class_names).items()
    ]


def can_check(y: np.ndarray) -> bool:
    """Whether two classes have labels enough to hold some out.

    >>> can_check(np.array([0, 0, 0, 1, 1, -1])), can_check(np.array([0, 0, 0, 1, 1, 1]))
    (False, True)
    """
    return bool((np.bincount(y[y >= 0]) >= FEWEST).sum() >= 2)


def unchecked_classes(count: Sequence[int], class_names: Sequence[str]) -> dict[str, int]:
    """The classes with labels, but too few to hold any of them out: how many, by name.

    >>> unchecked_classes([20, 2, 0], ["a", "b", "c"])
    {'b': 2}
    """
    return {name: c for name, c in zip(class_names, count, strict=True) if 0 < c < FEWEST}


def deal(y: np.ndarray, seed: int) -> list[np.ndarray]:
    """The labeled nodes in slices that differ by at most one node in size, and so in each class.

    Nodes of classes too small to validate are in no slice.

    >>> [len(part) for part in deal(np.array([0, 1] * 11 + [2, -1]), seed=0)]
    [5, 5, 4, 4, 4]
    """
    rng = np.random.default_rng(seed)
    by_class = [np.flatnonzero(y == c) for c in range(int(y.max()) + 1)]
    order = np.concatenate([rng.permutation(nodes) for nodes in by_class if len(nodes) >= FEWEST])
    return [np.sort(order[k::_SLICES]) for k in range(_SLICES)]


def draw_round(y: np.ndarray, round_number: int, seed: int = 0) -> list[Split]:
    """The folds of one round.

    >>> folds = draw_round(np.array([0, 1] * 20), 0)
    >>> len(folds), folds[0]
    (5, Split('round0-fold0', train=32, val=0, test=8))
    """
    slices = deal(y, 1000 * seed + round_number)
    labeled = np.flatnonzero(y >= 0)
    folds = []
    for k in range(folds_needed(len(labeled))):
        train = np.setdiff1d(labeled, slices[k], assume_unique=True)
        folds.append(Split(f"round{round_number}-fold{k}", train=train, val=[], test=slices[k]))
    return folds


def all_labels(y: np.ndarray) -> Split:
    """Every labeled node to learn from, none to judge by.

    >>> all_labels(np.array([0, -1, 1]))
    Split('all', train=2, val=0, test=0)
    """
    return Split("all", train=np.flatnonzero(y >= 0), val=[], test=[])


def balanced_weights(y: np.ndarray, num_classes: int) -> list[float]:
    """A weight for each class that makes up for how few labels it has: inverse to their number, 1 on the average label.

    All labels are counted, those a fold holds out too: one population trains several folds, with one weight for each class. What
    that tells a fold of its held-out labels is next to nothing, since slices are dealt class by class and a fold has the same
    share of each class, to within one label.

    >>> balanced_weights(np.array([0, 0, 0, 1, -1]), 3)
    [0.6666666666666666, 2.0, 1.0]
    """
    count = np.bincount(y[y >= 0], minlength=num_classes)
    present = int((count > 0).sum())
    return [float(count.sum() / (present * c)) if c else 1.0 for c in count]


def folds_needed(labeled: int) -> int:
    """How many of a round's five folds are trained: all while labels are few.

    >>> folds_needed(140), folds_needed(1000), folds_needed(50_000)
    (5, 2, 1)
    """
    return max(1, min(_SLICES, math.ceil(_ENOUGH * _SLICES / labeled)))


def rounds_wanted(labeled: int) -> int:
    """How many rounds to train at most: more where few labels leave much to chance.

    >>> rounds_wanted(40), rounds_wanted(140), rounds_wanted(5000)
    (4, 3, 1)
    """
    return max(1, min(4, math.ceil(400 / labeled)))
