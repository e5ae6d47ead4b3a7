"""Whether sharpening emptied classes: the mean prediction's entropy beside that of the labels, run by run."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

_FAR_BELOW = 0.5


def has_collapsed(class_use: float, plain: float = 1.0) -> bool:
    """Whether a run uses far fewer classes than the labels have, and than plain training does on the same split.

    Where classes really are so unequal that balanced labels have twice the entropy, plain training is as far below: that is no
    collapse.

    Args:
        class_use: Of the run (:func:`sharpen.objective.class_use`).
        plain: Of plain training, if there was any.

    >>> has_collapsed(0.1), has_collapsed(0.9), has_collapsed(0.3, plain=0.4)
    (True, False, False)
    """
    return class_use < _FAR_BELOW * min(1.0, 1.0 if math.isnan(plain) else plain)


def collapse_note(name: str, uses: Sequence[float], plain: Sequence[float] | None = None, what: str = "run") -> str:
    """A sentence about the runs that collapsed; empty if none did.

    Args:
        name: Of what was trained, such as ``λ = 0.25``.
        uses: The use of classes at the last epoch of every run.
        plain: The same of plain training, run by run.
        what: What the runs are called.

    >>> collapse_note("λ = 0.25", [0.1, 0.9], [0.95, 0.97])
    'λ = 0.25 empties classes in 1 of 2 runs: at the last epoch their mean prediction has 10 % of the entropy of the labels (plain
    training: 95 %); give a balance, such as 0.25, or the class proportions as a prior.'
    """
    others = [1.0] * len(uses) if plain is None else list(plain)
    pairs = [pair for pair in zip(uses, others, strict=True) if has_collapsed(*pair)]
    if not pairs:
        return ""
    mean, beside = (100 * float(np.nanmean(values)) for values in zip(*pairs, strict=True))
    compared = "" if plain is None or math.isnan(beside) else f" (plain training: {beside:.0f} %)"
    return (
        f"{name} empties classes in {len(pairs)} of {len(uses)} {what}s: at the last epoch their mean prediction has "
        f"{mean:.0f} % of the entropy of the labels{compared}; give a balance, such as 0.25, or the class proportions as a prior."
    )
