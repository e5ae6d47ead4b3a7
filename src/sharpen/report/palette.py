"""The colours of every figure and page: told apart by people who see colours differently, and in print.

The hues are those of Okabe and Ito (*Color Universal Design*, 2008), with two of Paul Tol's for more than eight classes. Each has
a lighter twin for a dark background. Colour never carries a meaning alone: lines are dashed, gains have a sign.
"""

PALETTE: dict[str, tuple[str, str]] = {
    "blue": ("#0072B2", "#4BA3DB"),
    "amber": ("#E69F00", "#F0B429"),
    "green": ("#009E73", "#2CC295"),
    "vermilion": ("#D55E00", "#F4803C"),
    "sky": ("#56B4E9", "#9AD7F7"),
    "pink": ("#CC79A7", "#E39CC2"),
    "wine": ("#882255", "#C05A8A"),
    "olive": ("#999933", "#C3C35A"),
    "yellow": ("#E4D500", "#F5EC6A"),
    "ink": ("#33383F", "#E3E6EA"),
    "grey": ("#7A828C", "#9AA3AE"),
    "other": ("#B4BAC2", "#5D656F"),
}
"""By name: the colour on a light and on a dark background."""

CLASSES = ("blue", "amber", "green", "vermilion", "pink", "sky", "wine", "olive", "yellow", "ink")
"""The colours of the most frequent classes, in order; the rest share ``other``."""


def class_colors(counts: list[int]) -> list[str]:
    """A colour for each class, the most frequent first served.

    >>> class_colors([5, 9])
    ['amber', 'blue']
    >>> class_colors([1] * 12)[-2:]
    ['other', 'other']
    """
    ranked = sorted(range(len(counts)), key=lambda c: (-counts[c], c))
    colors = {c: CLASSES[place] if place < len(CLASSES) else "other" for place, c in enumerate(ranked)}
    return [colors[c] for c in range(len(counts))]
