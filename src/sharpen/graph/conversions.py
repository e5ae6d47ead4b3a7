"""Graphs from NetworkX, and back: what the methods of :class:`sharpen.Graph` do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from torch import Tensor

from sharpen.checks import Array, Sparse, is_unknown
from sharpen.errors import InputError

if TYPE_CHECKING:
    import networkx

    from sharpen.graph.graph import Graph


def networkx_parts(
    graph: networkx.Graph,
    features: str | None,
    label: str | None,
    x: Array | Sparse | None,
    class_names: Iterable[str] | None,
    weight: str | None,
) -> tuple[Any, np.ndarray, np.ndarray, tuple[str, ...], np.ndarray | None]:
    """Features, edges, labels, class names and weights of a NetworkX graph."""
    nodes = list(graph.nodes)
    position = {node: i for i, node in enumerate(nodes)}
    ends, weights = [], []
    for one, other, attributes in graph.edges(data=True):
        value = attributes.get(weight) if weight is not None else None
        if isinstance(value, Real) and value == 0:
            continue
        ends.append((position[one], position[other]))
        weights.append(value)
    edge_index = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    given = any(value is not None for value in weights)
    edge_weight = np.array([1 if value is None else value for value in weights]) if given else None
    if not graph.is_directed():
        back = edge_index[0] != edge_index[1]
        edge_index = np.concatenate([edge_index, edge_index[::-1, back]], axis=1)
        edge_weight = None if edge_weight is None else np.concatenate([edge_weight, edge_weight[back]])
    if x is None:
        x = _node_features(graph, features)
    values = [None if label is None else graph.nodes[node].get(label) for node in nodes]
    y, names = _encode(values, class_names)
    return x, edge_index, y, names, edge_weight


def to_networkx(graph: Graph, features: str | None, label: str | None) -> networkx.Graph:
    """The graph in NetworkX."""
    import networkx

    edges = graph.edge_matrix(np.float64)
    symmetric = abs(edges - edges.T).sum() == 0
    out = networkx.Graph() if symmetric else networkx.DiGraph()
    out.add_nodes_from(range(graph.num_nodes))
    pairs = graph.edge_index.T.tolist()
    if graph.edge_weight is None:
        out.add_edges_from(pairs)
    else:
        weights = graph.edge_weight.tolist()
        out.add_weighted_edges_from((a, b, w) for (a, b), w in zip(pairs, weights, strict=True))
    if features is not None:
        rows = to_csr(graph.x) if graph.is_sparse else graph.x.numpy().copy()
        for node in range(graph.num_nodes):
            out.nodes[node][features] = rows[node : node + 1] if graph.is_sparse else rows[node]
    if label is not None:
        for node in (graph.y >= 0).nonzero()[:, 0].tolist():
            out.nodes[node][label] = graph.class_names[int(graph.y[node])]
    return out


def to_csr(x: Tensor) -> scipy.sparse.csr_array:
    """Sparse features as a SciPy matrix over the same memory."""
    parts: Any = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return scipy.sparse.csr_array(parts, shape=(x.shape[0], x.shape[1]))


def _node_features(graph: networkx.Graph, attribute: str | None) -> np.ndarray | Sparse:
    without = "or give x (for nodes without features: x=scipy.sparse.eye_array(len(graph)))"
    if attribute is None:
        way_out = f"name the node attribute that holds the features, {without}"
        raise InputError("is None and so is x", field="features", hint=way_out)
    rows: list[Any] = []
    for node, attributes in graph.nodes(data=True):
        if attribute not in attributes:
            way_out = f"set it on every node, name another one with features, {without}"
            raise InputError(f"node {node!r} has no attribute {attribute!r}", hint=way_out)
        value = attributes[attribute]
        row: Any = value if scipy.sparse.issparse(value) else np.atleast_1d(value)
        if rows and row.shape != rows[0].shape:
            both = f"has shape {row.shape}, but that of the first node has {rows[0].shape}"
            way_out = "give every node the same number of features"
            raise InputError(f"attribute {attribute!r} of node {node!r} {both}", hint=way_out)
        rows.append(row)
    if rows and scipy.sparse.issparse(rows[0]):
        return scipy.sparse.vstack(rows, format="csr")
    return np.array(rows)


def _encode(values: list[Hashable], class_names: Iterable[str] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels of any type as integers and class names; missing ones as -1."""
    known = [v for v in values if not is_unknown(v)]
    names = _in_order(set(known)) if class_names is None else tuple(str(c) for c in class_names)
    number = {c: i for i, c in enumerate(names)}
    stray = next((v for v in known if str(v) not in number), None)
    if stray is not None:
        raise InputError(f"label {stray!r} is not among class_names {list(names)}; add it, or set the label to None")
    return np.array([-1 if is_unknown(v) else number[str(v)] for v in values], dtype=np.int64), names


def _in_order(labels: set[Any]) -> tuple[str, ...]:
    if all(str(label).isdecimal() for label in labels):
        return tuple(map(str, sorted(labels, key=lambda label: int(str(label)))))  # "10" after "9"
    try:
        return tuple(map(str, sorted(labels)))
    except TypeError:  # values of several types have an order only as text
        return tuple(sorted(map(str, labels)))
