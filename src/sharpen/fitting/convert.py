"""Labels of any type as class numbers, and graphs of any kind as a :class:`~sharpen.graph.Graph`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from sharpen.checks import is_unknown
from sharpen.errors import InputError
from sharpen.files import to_graph
from sharpen.fitting.frames import Frames
from sharpen.graph import Graph


def encode_labels(values: Any, classes: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Class numbers (−1 where the label is None, NaN or −1) and the classes in order, of the type that was given.

    Args:
        values: One label for each node: a list, an array, a tensor, a pandas Series.
        classes: The classes, if they are known already; a label that is not among them is refused.

    >>> numbers, classes = encode_labels(["cat", None, "dog", "cat"])
    >>> numbers.tolist(), classes.tolist()
    ([0, -1, 1, 0], ['cat', 'dog'])
    >>> encode_labels([7, -1, 3])[0].tolist()
    [1, -1, 0]
    """
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    try:
        array = values if isinstance(values, np.ndarray) else np.array(list(values), dtype=object)
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError("is not one label for each node; give a flat list of text, numbers, or None", field="y")
    plain = np.empty(len(array), dtype=object)
    plain[:] = [_plain(value) for value in array.tolist()]
    array = plain
    missing = np.array([is_unknown(value) for value in array], dtype=bool)
    for i in np.flatnonzero(~missing):
        if not isinstance(array[i], str | int | float):
            raise InputError(f"y[{i}] is {array[i]!r}, a {type(array[i]).__name__}; give text or numbers, or None")
    if all(isinstance(value, float) and value.is_integer() for value in array[~missing]):
        # Integers with gaps, which pandas and NumPy hold as floats.
        array[~missing] = [int(value) for value in array[~missing]]
    if classes is None:
        classes = _classes(array[~missing])
    number = {value: i for i, value in enumerate(classes.tolist())}
    numbers = np.full(len(array), -1, dtype=np.int64)
    for i in np.flatnonzero(~missing):
        value = array[i]
        if value not in number:
            raise InputError(
                f"y[{i}] is {value!r}, which is none of the classes {_some(classes)}; set it to None, or fit again"
            )
        numbers[i] = number[value]
    return numbers, classes


def as_graph(
    data: Any, y: Any = None, classes: np.ndarray | None = None, x: np.ndarray | None = None, unit: float | None = None
) -> tuple[Graph, np.ndarray]:
    """A graph and its classes, from a Graph, a PyG ``Data``, a NetworkX graph, (X, adjacency), or DataFrames.

    Of a ``Data`` with a ``train_mask``, only the labels in its ``train_mask`` and ``val_mask`` are taken for known.

    Args:
        data: What to label.
        y: Labels in the order of the nodes; None: those that ``data`` holds, if any.
        classes: The classes, if they are known already.
        x: Features for DataFrames, and for the nodes of a NetworkX graph that carry none.
        unit: What to divide the weights of an edge DataFrame by.

    >>> x, path = np.eye(3), scipy.sparse.coo_array(([1, 1], ([0, 1], [1, 2])), shape=(3, 3))
    >>> graph, classes = as_graph((x, path), ["a", None, "b"])
    >>> graph.num_edges, graph.y.tolist(), classes.tolist()
    (2, [0, -1, 1], ['a', 'b'])
    """
    if isinstance(data, Graph) and y is None:  # its classes have an order already, and nothing need be copied
        return data, _class_values(data)
    graph, held = convert(data, x, y, unit)
    values = held if y is None or isinstance(y, str) else y
    if values is None:
        raise InputError("the graph holds no labels; give them as y, one for each node, None where unknown")
    numbers, classes = encode_labels(values, classes)
    if len(numbers) != graph.num_nodes:
        raise InputError(
            f"has {len(numbers)} labels, but the graph has {graph.num_nodes} nodes; give one for each node", field="y"
        )
    return replace(graph, y=torch.from_numpy(numbers), class_names=_names(classes)), classes


def _class_values(graph: Graph) -> np.ndarray:
    """The classes of a graph: its names, or numbers if nobody named them.

    >>> _class_values(Graph(x=np.eye(2), edge_index=[[0], [1]], y=[0, 1])).tolist()
    [0, 1]
    """
    names = graph.class_names
    return np.arange(len(names)) if names == tuple(map(str, range(len(names)))) else np.array(names)


def convert(data: Any, x: np.ndarray | None = None, y: Any = None, unit: float | None = None) -> tuple[Graph, Any]:
    """A graph of any kind as a Graph, and the labels that came with it, if any.

    Args:
        data: What :func:`as_graph` takes.
        x, y, unit: As for :func:`as_graph`; of ``y``, only which column of a DataFrame it is.

    >>> graph, labels = convert((np.eye(3), scipy.sparse.eye_array(3)))
    >>> graph.num_nodes, labels is None
    (3, True)
    """
    if isinstance(data, Graph):
        classes = _class_values(data)
        return data, np.array([None if c < 0 else classes[c] for c in data.y.tolist()], dtype=object)
    frames = Frames.of(data, y)
    if frames is not None:
        tables = frames.tables()
        if x is None:
            raise InputError("the model was not fitted on DataFrames; give the graph in the form that it was fitted on")
        graph = to_graph(replace(tables, labels=np.full(tables.num_nodes, None)), x, ["0", "1"], unit=unit)
        known = np.array([label is not None for label in tables.labels], dtype=bool)
        return graph, tables.labels if known.any() else None
    kind = type(data).__module__.split(".")[0]
    if kind == "torch_geometric":
        graph = Graph.from_pyg(data)
        return graph, None if data.y is None else _masked(data, graph.y)
    if kind == "networkx":
        graph = Graph.from_networkx(data, label=None, x=x)
        values = np.array([data.nodes[node].get("label") for node in data.nodes], dtype=object)
        return graph, None if all(value is None for value in values) else values
    if isinstance(data, tuple | list) and len(data) == 2:
        x, adjacency = data
        if not scipy.sparse.issparse(adjacency):
            if isinstance(adjacency, Tensor) and adjacency.layout != torch.strided:
                coo = adjacency.cpu().to_sparse_coo().coalesce()
                adjacency = scipy.sparse.coo_array((coo.values().numpy(), coo.indices().numpy()), shape=coo.shape)
                return Graph.from_scipy(adjacency, x), None
            adjacency = scipy.sparse.csr_array(np.asarray(adjacency))
        return Graph.from_scipy(adjacency, x), None
    raise InputError(
        f"the graph is a {type(data).__name__}; give a sharpen.Graph, a PyG Data, a NetworkX graph, (X, adjacency), "
        "or DataFrames of nodes and edges"
    )


def _masked(data: Any, y: Tensor) -> Tensor:
    masks = [getattr(data, name, None) for name in ("train_mask", "val_mask")]
    if masks[0] is None:
        return y
    known = torch.zeros_like(y, dtype=torch.bool)
    for mask in masks:
        if mask is not None:
            if mask.dim() != 1:
                raise InputError("data.train_mask holds several splits; set data.train_mask to one column of it")
            known |= mask.cpu()
    return torch.where(known, y, -1)


def _plain(value: Any) -> Any:
    """A Python number or text for one of NumPy's, so that equal labels are equal whoever holds them."""
    return value.item() if isinstance(value, np.generic) else value


def _classes(known: np.ndarray) -> np.ndarray:
    try:
        return np.array(np.unique(known).tolist())
    except TypeError:  # several types: no order but that of their text
        distinct = sorted({value: None for value in known}, key=str)
        out = np.empty(len(distinct), dtype=object)
        out[:] = distinct
        return out


def _names(classes: np.ndarray) -> tuple[str, ...]:
    names = tuple(str(value) for value in classes.tolist())
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"holds {twice!r} in two types, such as a number and its text; make them one", field="y")
    return names


def _some(classes: np.ndarray) -> str:
    shown = ", ".join(repr(value) for value in classes.tolist()[:5])
    return shown if len(classes) <= 5 else f"{shown}, ... ({len(classes)} in all)"
