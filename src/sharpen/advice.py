"""λ and balance for someone who knows only how many labels there are."""

from __future__ import annotations

from typing import NamedTuple

# From so many labels for each class on, sharpening alone is safe: with ten it may still empty classes, and nothing between the two
# was measured. results/label_rates.py derives it from the study of the number of labels.
_ENOUGH = 20


class FirstChoice(NamedTuple):
    """λ and β, as :class:`sharpen.SharpeningLoss` takes them.

    >>> FirstChoice(0.25, 0.25)._asdict()
    {'lam': 0.25, 'balance': 0.25}
    """

    lam: float
    balance: float


def first_choice(labels_per_class: float, prior: bool = False) -> FirstChoice:
    """What to begin with where no validation labels say what is best.

    With few labels the entropy of unlabeled predictions falls fastest when classes are emptied, and the paper's objective loses
    tens of points; a balance forbids that. With many labels the balance costs some of the gain, because it pulls towards classes of
    equal size; where one class has half of the nodes, it costs points with few labels too. Where the class proportions are known,
    give them as a prior, and keep the balance.

    Args:
        labels_per_class: Labeled nodes, divided by the number of classes.
        prior: Whether the class proportions are known: then the balance pulls towards them, and is of use with many labels too.

    >>> first_choice(5), first_choice(60)
    (FirstChoice(lam=0.25, balance=0.25), FirstChoice(lam=0.25, balance=0.0))
    """
    return FirstChoice(0.25, 0.25 if prior or labels_per_class < _ENOUGH else 0.0)
