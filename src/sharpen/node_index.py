"""A classifier of node indices, for scikit-learn's own tools."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from sharpen.errors import InputError
from sharpen.estimator import NodeClassifier
from sharpen.fitting.convert import convert, encode_labels
from sharpen.fitting.frames import Frames


class NodeIndexClassifier(ClassifierMixin, BaseEstimator):
    """Labels the nodes of one graph; X are node indices, so that ``cross_val_score``, ``GridSearchCV`` and ``Pipeline`` work.

    A graph cannot be cut into rows as a table can: what is held out is a node's label, not the node. So the graph is a parameter,
    X says which nodes a call is about, and y has their labels. Nodes outside X, and those that a split holds out, are the
    unlabeled ones of the fit.

    For a graph of your own, :class:`sharpen.NodeClassifier` is the simpler one: it draws folds and chooses λ by itself. This one
    is for scikit-learn's scores, grids and splits.

    Args:
        graph: What :class:`sharpen.NodeClassifier` takes; labels in it are not looked at. Of DataFrames,
            leave the column of labels out, unless its name says what it is: it would be learnt from.
        classifier: What fits; None: ``NodeClassifier()``. Its parameters are ``classifier__lam`` and so on.

    >>> import networkx
    >>> from sklearn.model_selection import cross_val_score
    >>> club = networkx.karate_club_graph()
    >>> graph = (np.eye(34), networkx.to_scipy_sparse_array(club))
    >>> y = [club.nodes[n]["club"] for n in club]
    >>> small = NodeClassifier(model="gcn", lam=0.25, hidden=8, epochs=20, device="cpu")
    >>> cross_val_score(NodeIndexClassifier(graph, small), np.arange(34), y, cv=2).mean() > 0.7
    np.True_
    """

    def __init__(self, graph: Any = None, classifier: NodeClassifier | None = None) -> None:
        self.graph = graph
        self.classifier = classifier

    def fit(self, X: Any, y: Any) -> NodeIndexClassifier:
        """Learns from the labels y of the nodes X."""
        frames = Frames.of(self._given())
        count = convert(self._given())[0].num_nodes if frames is None else frames.tables().num_nodes
        nodes = self._nodes(X, count)
        values = list(y)
        if len(values) != len(nodes):
            raise InputError(f"has {len(nodes)} nodes and y {len(values)} labels; give one for each node", field="X")
        numbers, classes = encode_labels(values)
        labels: np.ndarray = np.full(count, None, dtype=object)
        labels[nodes] = [None if number < 0 else classes[number] for number in numbers]
        self.classifier_ = clone(self.classifier or NodeClassifier()).fit(self._given(), labels)
        self.classes_ = self.classifier_.classes_
        self.n_features_in_ = 1
        self.probabilities_ = self.classifier_.predict_proba(self._given())
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Calibrated probabilities of the nodes X, [n, C]."""
        check_is_fitted(self)
        p: np.ndarray = self.probabilities_[self._nodes(X, len(self.probabilities_))]
        return p

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each of the nodes X."""
        best = self.predict_proba(X).argmax(1)  # which says if nothing was fitted
        return self.classes_[best]

    def __sklearn_clone__(self) -> NodeIndexClassifier:
        # The graph is shared: it is not changed, and a copy for each fold would be large.
        return type(self)(self.graph, None if self.classifier is None else clone(self.classifier))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "probabilities_")

    def _given(self) -> Any:
        if self.graph is None:
            raise InputError("is None; give the graph whose nodes X are", field="graph")
        return self.graph

    @staticmethod
    def _nodes(X: Any, count: int) -> np.ndarray:
        array = np.asarray(X)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise InputError(f"has shape {array.shape}; give node indices, [n] or [n, 1]", field="X")
        whole = array.astype(np.int64) if array.dtype.kind in "iufb" else None
        if whole is None or not (whole == array).all():
            raise InputError("holds something else than whole numbers; give node indices", field="X")
        if len(whole) and not (whole.min() >= 0 and whole.max() < count):
            there = f"the graph has {count} nodes, from 0 to {count - 1}"
            raise InputError(f"holds node {int(whole.max())}, but {there}", field="X")
        return whole
