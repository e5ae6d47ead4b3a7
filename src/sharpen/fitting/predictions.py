"""Probabilities as a table for people: what each node is, how sure that is, and what else it could be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import entr

from sharpen.errors import InputError


def prediction_frame(
    ids: Sequence[str] | np.ndarray,
    probabilities: np.ndarray,
    classes: Sequence[str] | np.ndarray,
    labeled: np.ndarray,
    *,
    abstain: float | None = None,
    every_class: bool = False,
    because: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """One row for each node.

    Args:
        ids: The names of the nodes.
        probabilities: [N, C].
        classes: The names of the classes.
        labeled: Whether a node's label was given.
        abstain: Leave the label blank where its probability is lower than this.
        every_class: Whether to add a column ``probability of CLASS`` for each class.
        because: Further columns, of reasons (:meth:`sharpen.fitting.reasons.Reasons.frame`).

    Returns:
        ``id``, ``label``, ``probability``, ``second`` (the next likely class), ``margin`` (the difference of the two
        probabilities), ``entropy`` (in nats: 0 is certain), ``labeled``.

    >>> frame = prediction_frame(["a", "b"], np.array([[0.9, 0.1], [0.4, 0.6]]), ["x", "y"], np.array([True, False]))
    >>> frame[["id", "label", "second"]].values.tolist(), frame["margin"].round(3).tolist()
    ([['a', 'x', 'y'], ['b', 'y', 'x']], [0.8, 0.2])
    """
    if abstain is not None and not 0 <= abstain <= 1:
        raise InputError(f"is {abstain}; give a probability from 0 to 1", field="abstain")
    names = np.array([str(name) for name in classes], dtype=object)
    order = np.argsort(-probabilities, axis=1, kind="stable")
    rows = np.arange(len(probabilities))
    first, second = probabilities[rows, order[:, 0]], probabilities[rows, order[:, 1]]
    label = names[order[:, 0]]
    if abstain is not None:
        label[first < abstain] = None
    frame = pd.DataFrame(
        {
            "id": np.asarray(ids, dtype=object),
            "label": label,
            "probability": first,
            "second": names[order[:, 1]],
            "margin": first - second,
            "entropy": entr(probabilities).sum(1),
            "labeled": np.asarray(labeled, dtype=bool),
        }
    )
    if every_class:
        columns = {f"probability of {name}": probabilities[:, c] for c, name in enumerate(names)}
        frame = pd.concat([frame, pd.DataFrame(columns)], axis=1)
    return frame if because is None else pd.concat([frame, because], axis=1)
