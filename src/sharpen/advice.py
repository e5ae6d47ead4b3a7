"""λ and balance for someone who knows only how many labels there are."""

from __future__ import annotations

from typing import NamedTuple

# Up to so many labels for each class, sharpening needs a balance: without one it empties classes.
_FEW = 10


class FirstChoice(NamedTuple):
    """λ and β, as :class:`sharpen.SharpeningLoss` takes them.

    >>> FirstChoice(0.25, 0.25)._asdict()
    {'lam': 0.25, 'balance': 0.25}
    """

    lam: float
    balance: float


def first_choice(labels_per_class: float) -> FirstChoice:
    """What to begin with where no validation labels say what is best.

    With few labels the entropy of unlabeled predictions falls fastest when classes are emptied, and the paper's objective loses
    tens of points; a balance forbids that. With many labels the balance costs some of the gain, because it pulls towards classes of
    equal size. Where the class proportions are known, give them as a prior, and keep the balance.

    Args:
        labels_per_class: Labeled nodes, divided by the number of classes.

    >>> first_choice(5), first_choice(60)
    (FirstChoice(lam=0.25, balance=0.25), FirstChoice(lam=0.25, balance=0.0))
    """
    return FirstChoice(0.25, 0.25 if labels_per_class <= _FEW else 0.0)
