"""Boosted trees as arrays: what scikit-learn has grown, saved without pickle and followed with NumPy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

_ARRAYS = {"feature": "i", "threshold": "f", "left": "i", "right": "i", "value": "f", "missing_left": "b"}
# A class without a label has this score beside those with one: a label in a hundred.
_ABSENT = float(-np.log(100.0))
_ROWS = 16384


def tree_arrays(model: HistGradientBoostingClassifier, classes: np.ndarray) -> dict[str, np.ndarray]:
    """The trees of a fitted model, one after another: a leaf is a node that leads to itself.

    Args:
        model: Without categorical columns.
        classes: Which class numbers its classes are, in order.
    """
    parts: dict[str, list[np.ndarray]] = {name: [] for name in _ARRAYS}
    roots, size = [], 0
    for stage in model._predictors:
        for tree in stage:
            nodes = tree.nodes
            here, leaf = np.arange(len(nodes)), nodes["is_leaf"].astype(bool)
            roots.append(size)
            parts["feature"].append(np.where(leaf, 0, nodes["feature_idx"]).astype(np.int32))
            parts["threshold"].append(np.where(leaf, 0.0, nodes["num_threshold"]).astype(np.float64))
            for side in ("left", "right"):
                parts[side].append((size + np.where(leaf, here, nodes[side])).astype(np.int32))
            parts["value"].append(np.where(leaf, nodes["value"], 0.0).astype(np.float64))
            parts["missing_left"].append(nodes["missing_go_to_left"].astype(bool))
            size += len(nodes)
    arrays = {name: np.concatenate(own) for name, own in parts.items()}
    per_stage = len(model._predictors[0])
    base = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1)
    return {
        **arrays,
        "roots": np.array(roots, dtype=np.int32).reshape(-1, per_stage),
        "base": base,
        "classes": np.asarray(classes, dtype=np.int64),
    }


def boosted_scores(state: Mapping[str, np.ndarray], table: np.ndarray, num_classes: int) -> np.ndarray:
    """Class scores [N, C], whose softmax is what scikit-learn's model gives as probabilities.

    Args:
        state: From :func:`tree_arrays`.
        table: One row for each node.
        num_classes: With and without labels.
    """
    raw = np.empty((len(table), state["roots"].shape[1]))
    for start in range(0, len(table), _ROWS):
        raw[start : start + _ROWS] = _raw_scores(state, np.asarray(table[start : start + _ROWS], dtype=np.float64))
    classes = state["classes"]
    scores = np.full((len(table), num_classes), _ABSENT)
    scores[:, classes] = np.hstack([-raw / 2, raw / 2]) if len(classes) == 2 else raw
    return scores


def _raw_scores(state: Mapping[str, np.ndarray], table: np.ndarray) -> np.ndarray:
    raw = np.tile(state["base"], (len(table), 1))
    rows = np.arange(len(table))[:, None]
    feature, threshold, left, right = (state[name] for name in ("feature", "threshold", "left", "right"))
    for stage in state["roots"]:
        at = np.tile(stage, (len(table), 1))
        while True:  # all trees of a stage, a step further at once, until all stand in a leaf
            value = table[rows, feature[at]]
            goes_left = np.where(np.isnan(value), state["missing_left"][at], value <= threshold[at])
            further = np.where(goes_left, left[at], right[at])
            if (further == at).all():
                break
            at = further
        raw += state["value"][at]
    return raw


def check_trees(state: Mapping[str, np.ndarray], width: int, num_classes: int) -> None:
    """Refuses arrays that are no trees for a table of this width, as a ValueError."""
    wanted = {*_ARRAYS, "roots", "base", "classes", "numeric"}
    if set(state) != wanted:
        raise ValueError(f"its trees have {', '.join(sorted(state))}")
    size, classes, roots = len(state["value"]), state["classes"], state["roots"]
    for name, kind in _ARRAYS.items():
        if state[name].shape != (size,) or state[name].dtype.kind != kind:
            raise ValueError(f"{name} of its trees holds {state[name].dtype} values of shape {state[name].shape}")
    if classes.ndim != 1 or classes.dtype.kind != "i" or not len(classes) or np.unique(classes).size != len(classes):
        raise ValueError("classes of its trees are no class numbers")
    if classes.min() < 0 or classes.max() >= num_classes:
        raise ValueError(f"its trees have class {classes.max()}, but there are {num_classes}")
    per_stage = 1 if len(classes) == 2 else len(classes)
    if roots.ndim != 2 or roots.shape[1] != per_stage or state["base"].shape != (per_stage,):
        raise ValueError("its trees are not one for each class")
    here = np.arange(size)
    for name in ("left", "right"):  # children come later, so that every way ends
        to = state[name]
        if not ((to >= here) & (to < size)).all() or ((state["left"] == here) != (state["right"] == here)).any():
            raise ValueError(f"{name} of its trees leads nowhere")
    if roots.dtype.kind != "i" or (roots.size and (roots.min() < 0 or roots.max() >= size)):
        raise ValueError("roots of its trees lie outside them")
    if size and (state["feature"].min() < 0 or state["feature"].max() >= width):
        raise ValueError(f"its trees read column {state['feature'].max()} of {width}")
