"""What is at hand without `fit`: peers that learn from the same labels, each with one setting for all graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
import torch
from scipy.special import softmax
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from sharpen import Graph, Split, Trial, train
from sharpen.fitting.spreading import features_of

WIDE, COMPONENTS = 512, 64
HOPS, KEPT = 16, 0.05


@dataclass
class Bench:
    """One graph with what several methods make of it; a task gives it the labels of a draw."""

    graph: Graph
    budget: float

    @cached_property
    def x(self) -> Any:
        """Columns for a linear model: bags of words at unit length, else as the encoder scaled them."""
        x = features_of(self.graph)
        return normalize(x) if self.graph.num_features > WIDE else x

    @cached_property
    def columns(self) -> np.ndarray:
        """Columns for trees, as few as they can take."""
        if self.graph.num_features > WIDE:
            return np.asarray(TruncatedSVD(COMPONENTS, random_state=0).fit_transform(self.x))
        return self.x.toarray() if scipy.sparse.issparse(self.x) else np.asarray(self.x)

    @cached_property
    def step(self) -> Any:
        """The adjacency without loops, weights if there are any."""
        with_loops = scipy.sparse.csr_array(self.graph.adjacency.to_scipy()).astype(np.float64)
        return scipy.sparse.csr_array(with_loops - scipy.sparse.diags_array(with_loops.diagonal()))

    @cached_property
    def propagated(self) -> np.ndarray:
        """S²GC: the mean of 16 hops of the normalised adjacency with loops, beside 5 % of the node itself; rows at unit length."""
        adjacency = scipy.sparse.csr_array(self.graph.adjacency.to_scipy()).astype(np.float32)
        scale = scipy.sparse.diags_array(1 / np.sqrt(np.asarray(adjacency.sum(axis=1)).ravel()))
        hop = scipy.sparse.csr_array(scale @ adjacency @ scale)
        x = self.x.toarray() if scipy.sparse.issparse(self.x) else np.asarray(self.x)
        power = x.astype(np.float32)
        total = KEPT * power
        for _ in range(HOPS):
            power = hop @ power
            total += (1 - KEPT) / HOPS * power
        return np.asarray(normalize(total, copy=False))

    @cached_property
    def around(self) -> np.ndarray:
        """Columns beside their mean, maximum and minimum over neighbours (0 where there are none) and the number of these."""
        count = np.diff(self.step.indptr)
        parts = [self.columns, np.log1p(count)[:, None]]
        some = np.flatnonzero(count)
        for reduce in (np.add, np.maximum, np.minimum):
            part = np.zeros(self.columns.shape, dtype=np.float32)
            for block in np.array_split(some, max(1, self.step.nnz // 200_000)):
                for first in range(0, self.columns.shape[1], COMPONENTS):
                    where = slice(first, first + COMPONENTS)
                    rows = self.step[block]
                    part[block, where] = reduce.reduceat(self.columns[:, where][rows.indices], rows.indptr[:-1], axis=0)
            parts.append(part / np.maximum(1, count)[:, None] if reduce is np.add else part)
        return np.hstack(parts)

    def beside_labels(self, known: np.ndarray) -> np.ndarray:
        """The same, and which share of the neighbours is known to be of each class; never one's own label."""
        labels = np.zeros((len(known), self.graph.num_classes))
        labels[known >= 0, known[known >= 0]] = 1
        return np.hstack([self.around, self.step @ labels / np.maximum(1, np.diff(self.step.indptr))[:, None]])


def answered(model: Any, x: Any, known: np.ndarray, num_classes: int) -> np.ndarray:
    """Probabilities of all nodes by a scikit-learn classifier that learns from the known ones."""
    p = np.zeros((len(known), num_classes))
    labeled = np.flatnonzero(known >= 0)
    if len(np.unique(known[labeled])) == 1:
        p[:, known[labeled[0]]] = 1
        return p
    model.fit(x[labeled], known[labeled])
    p[:, model.classes_] = model.predict_proba(x)
    return p


def linear(x: Any, known: np.ndarray, classes: int, c: float) -> np.ndarray:
    """Logistic regression; dense columns are standardised unless they are at unit length already."""
    if not scipy.sparse.issparse(x) and c == 1:
        x = StandardScaler().fit_transform(x)
    return answered(LogisticRegression(C=c, max_iter=1000), x, known, classes)


def trees(x: np.ndarray, known: np.ndarray, classes: int) -> np.ndarray:
    """Boosted trees, with leaves small enough for few labels."""
    leaf = max(1, min(20, int((known >= 0).sum()) // (4 * classes)))
    return answered(HistGradientBoostingClassifier(min_samples_leaf=leaf, random_state=0), x, known, classes)


def propagation(bench: Bench, known: np.ndarray, draw: int) -> np.ndarray:
    """PyG's LabelPropagation; a node that no label reaches is of no class more than of another."""
    from torch_geometric.nn import LabelPropagation  # this peer alone needs it

    edges = torch.from_numpy(np.stack(bench.step.nonzero()[::-1])).long()
    labels = torch.from_numpy(known)
    out = LabelPropagation(num_layers=50, alpha=0.9)(labels.clamp(min=0), edges, mask=labels >= 0).numpy() + 1e-9
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def spread(bench: Bench, known: np.ndarray, draw: int) -> np.ndarray:
    """scikit-learn's LabelSpreading over the nearest neighbours of the features."""
    x = bench.x.toarray() if scipy.sparse.issparse(bench.x) else bench.x
    model = LabelSpreading(kernel="knn", n_neighbors=7).fit(x, known)
    p = np.full((len(known), bench.graph.num_classes), 1e-9)
    p[:, model.classes_] += np.nan_to_num(model.label_distributions_)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def train_oneself(bench: Bench, known: np.ndarray, draw: int) -> np.ndarray:
    """scikit-learn's self-training around logistic regression on the columns."""
    model = SelfTrainingClassifier(LogisticRegression(max_iter=1000), threshold=0.75).fit(bench.x, known)
    p = np.zeros((len(known), bench.graph.num_classes))
    p[:, model.classes_] = model.predict_proba(bench.x)
    return p


def network(bench: Bench, known: np.ndarray, draw: int, **settings: Any) -> np.ndarray:
    """One run of a model on all labels, its last epoch."""
    split = Split("drawn", train=np.flatnonzero(known >= 0), val=[], test=[])
    trial = Trial(split="drawn", seed=draw, **settings)
    record = train(bench.graph, [trial], splits=[split], device="cpu", progress=False, choose="last")[0]
    assert record.logits is not None
    return np.asarray(softmax(record.logits, axis=1))


_PLAIN = {"norm": "none", "residual": False, "input_linear": False, "layers": 2, "hidden": 64, "dropout": 0.5}
_GCN = {"model": "gcn", **_PLAIN, "lr": 0.01, "weight_decay": 5e-4, "epochs": 200}
_GRAND = {"model": "grand", "hidden": 32, "lr": 0.01, "weight_decay": 5e-4, "epochs": 200, "lam": 0.5, "balance": 0.5}

PEERS: dict[str, tuple[str, Callable[[Bench, np.ndarray, int], np.ndarray]]] = {
    "s2gc": ("S²GC, regression", lambda b, known, draw: linear(b.propagated, known, b.graph.num_classes, 10)),
    "linear": (
        "regression, columns",
        lambda b, known, draw: linear(b.x, known, b.graph.num_classes, 10 if b.graph.num_features > WIDE else 1),
    ),
    "linear-around": (
        "regression, + neighbours",
        lambda b, known, draw: linear(b.beside_labels(known), known, b.graph.num_classes, 1),
    ),
    "trees": ("trees, columns", lambda b, known, draw: trees(b.columns, known, b.graph.num_classes)),
    "trees-around": (
        "trees, + neighbours",
        lambda b, known, draw: trees(b.beside_labels(known), known, b.graph.num_classes),
    ),
    "propagation": ("label propagation", propagation),
    "spreading": ("LabelSpreading", spread),
    "self-training": ("SelfTraining", train_oneself),
    "gcn": ("GCN", lambda b, known, draw: network(b, known, draw, **_GCN)),
    "grand": ("GRAND-like", lambda b, known, draw: network(b, known, draw, **_GRAND)),
}
