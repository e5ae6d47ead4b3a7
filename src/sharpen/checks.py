"""What users give of a graph, checked, as tensors: features, edges, labels, class names.

Each check that fails is one sentence that names the argument, the place in it, and the way out.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, NoReturn, TypeAlias

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from sharpen.errors import InputError, called, told_as

Array: TypeAlias = Tensor | np.ndarray | Sequence[Any]


Sparse: TypeAlias = scipy.sparse.sparray | scipy.sparse.spmatrix


def integer_tensor(values: Array, argument: str) -> Tensor:
    """``values`` as a new int64 tensor on the CPU, or an :class:`~sharpen.errors.InputError` that names ``argument``.

    Booleans count as 0 and 1; an empty list of any type is an empty tensor.

    >>> integer_tensor([3, 1], "train")
    tensor([3, 1])
    >>> integer_tensor([0.5], "train")
    Traceback (most recent call last):
    sharpen.errors.InputError: train holds float64 values; give integers
    """
    if isinstance(values, Tensor):
        if values.layout != torch.strided:
            raise InputError("is a sparse tensor; give a dense one of integers", field=argument)
        if values.numel() and (values.is_floating_point() or values.is_complex()):
            raise InputError(f"holds {values.dtype} values; give integers", field=argument)
        return values.detach().to(device="cpu", dtype=torch.int64, copy=True)
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"is not rectangular ({error}); give integers", field=argument) from error
    if array.size and array.dtype.kind not in "iub":
        raise InputError(f"holds {array.dtype} values; give integers", field=argument)
    return torch.from_numpy(array.astype(np.int64))


def checked_features(x: Array | Sparse) -> Tensor:
    """Features as a float32 tensor [N, F], finite; sparse ones in compressed rows. Of a DataFrame, true and false are 1 and 0.

    >>> checked_features([[1, 0]])
    tensor([[1., 0.]])
    >>> import pandas as pd
    >>> checked_features(pd.get_dummies(pd.DataFrame({"age": [3.5, 4.0], "city": ["Rome", "Oslo"]})))
    tensor([[3.5000, 0.0000, 1.0000],
            [4.0000, 1.0000, 0.0000]])
    >>> checked_features(scipy.sparse.eye_array(2)).layout
    torch.sparse_csr
    """
    if scipy.sparse.issparse(x) or (isinstance(x, Tensor) and x.layout != torch.strided):
        return _sparse_features(x)
    if isinstance(x, Tensor):
        if x.is_complex():
            raise InputError(f"holds {x.dtype} values; give real numbers", field="x")
        dense = x.detach().to(device="cpu", dtype=torch.float32, copy=True).contiguous()
    else:
        with told_as(f"{called('x')} is not rectangular", "give every node the same number of features", ValueError):
            array = _frame_values(x) if hasattr(x, "iloc") and hasattr(x, "columns") else np.asarray(x)
        if array.dtype == object:
            array = _object_values(array)
        _check_real(array)
        with np.errstate(over="ignore"):  # what overflows is named below
            dense = torch.from_numpy(np.array(array, dtype=np.float32, order="C"))
    _check_shape(tuple(dense.shape))
    if not all(math.isfinite(bound) for bound in dense.aminmax()):  # NaN survives it, and nothing is allocated
        row, column = (~dense.isfinite()).nonzero()[0].tolist()
        _refuse_not_finite(row, column)
    return dense


def _frame_values(frame: Any) -> np.ndarray:
    """A DataFrame as float64, NaN where a value is missing."""
    columns = []
    for position, name in enumerate(frame.columns):
        values = frame.iloc[:, position]
        if getattr(values.dtype, "kind", "O") not in "fiub":
            stray = next((value for value in values if not isinstance(value, Real | np.bool_)), None)
            example = "" if stray is None else f" such as {str(stray)[:40]!r}"
            way_out = "make them numbers, or categories into columns with pandas.get_dummies(x)"
            raise InputError(f"x, column {name!r} holds {values.dtype} values{example}", hint=way_out)
        columns.append(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.stack(columns, axis=1) if columns else np.empty(frame.shape)


def _object_values(array: np.ndarray) -> np.ndarray:
    """What pandas gives for columns of several types, as numbers if all of them are numbers or truth values."""
    for place, value in np.ndenumerate(array):
        if not isinstance(value, Real | np.bool_):
            what = f"x[{', '.join(map(str, place))}] is {str(value)[:40]!r}, a {type(value).__name__}"
            raise InputError(what, hint="give real numbers, for instance of text with x.astype(float)")
    return array.astype(np.float64)


def _sparse_features(x: Any) -> Tensor:
    if isinstance(x, Tensor):
        coo = x.detach().cpu().to_sparse_coo().coalesce()
        _check_shape(tuple(coo.shape))
        values = coo.values() if coo.is_complex() else coo.values().float()
        x = scipy.sparse.coo_array((values.numpy(), coo.indices().numpy()), shape=tuple(coo.shape))
    _check_shape(tuple(x.shape))
    _check_real(x)
    with np.errstate(over="ignore"):
        csr = scipy.sparse.csr_array(x, dtype=np.float32, copy=True)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    finite = np.isfinite(csr.data)
    if not finite.all():
        entry = int(np.argmin(finite))
        _refuse_not_finite(int(np.searchsorted(csr.indptr, entry, side="right")) - 1, int(csr.indices[entry]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
        return torch.sparse_csr_tensor(
            torch.from_numpy(csr.indptr.astype(np.int64)),
            torch.from_numpy(csr.indices.astype(np.int64)),
            torch.from_numpy(csr.data),
            size=csr.shape,
            check_invariants=False,  # SciPy has just established them
        )


def _check_real(x: Any) -> None:
    if x.dtype.kind not in "fiub":
        raise InputError(f"holds {x.dtype} values; give real numbers", field="x")


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or 0 in shape:
        without = "for nodes without features: scipy.sparse.eye_array(nodes)"
        way_out = f"give at least one row and one column, [nodes, features] ({without})"
        raise InputError(f"has shape {shape}", field="x", hint=way_out)


def _refuse_not_finite(row: int, column: int) -> NoReturn:
    way_out = "replace NaN and infinite features, for instance by 0"
    raise InputError(f"x[{row}, {column}] is not a finite float32 number", hint=way_out)


def checked_edges(edge_index: Array, edge_weight: Array | None, num_nodes: int) -> tuple[Tensor, Tensor | None]:
    """Edges between nodes that there are, [2, E], and their weights, if any.

    >>> checked_edges([[0], [1]], None, num_nodes=2)
    (tensor([[0],
            [1]]), None)
    """
    edges = integer_tensor(edge_index, "edge_index")
    if edges.dim() != 2 or edges.shape[0] != 2:
        has = " (edge_index.T has)" if edges.dim() == 2 and edges.shape[1] == 2 else ""
        way_out = f"give two rows, sources above targets: [2, edges]{has}"
        raise InputError(f"has shape {tuple(edges.shape)}", field="edge_index", hint=way_out)
    source, target = edges.numpy()
    for ends in (source, target):
        if ends.size and (ends.min() < 0 or ends.max() >= num_nodes):
            column = int(np.argmax((ends < 0) | (ends >= num_nodes)))
            what = f"edge_index[:, {column}] is ({source[column]}, {target[column]}), but x has {num_nodes} rows"
            raise InputError(what, hint=f"number the nodes from 0 to {num_nodes - 1}")
    weight = None if edge_weight is None else _weights(edge_weight, source.size)
    key = source * num_nodes + target  # one integer per edge: sorting it sorts by source, then by target
    if not (key[1:] > key[:-1]).all():
        if weight is not None:
            order = np.argsort(key, kind="stable")
            first = np.flatnonzero(np.append(True, np.diff(key[order]) != 0))
            weight = np.add.reduceat(weight[order], first)
        key.sort()
        key = key[np.append(True, key[1:] != key[:-1])]
    edges = torch.from_numpy(np.stack(np.divmod(key, num_nodes)))
    return edges, None if weight is None or (weight == 1).all() else torch.from_numpy(weight)


def _weights(values: Array, num_edges: int) -> np.ndarray:
    try:
        array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
        weight = np.array(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"edge_weight does not hold numbers ({error}); give one number above 0 per edge") from error
    if weight.shape != (num_edges,):
        what = f"has shape {weight.shape}, but edge_index holds {num_edges} edges"
        raise InputError(what, field="edge_weight", hint=f"give one number above 0 per edge: [{num_edges}]")
    wrong = ~(np.isfinite(weight) & (weight > 0))
    if wrong.any():
        edge = int(np.argmax(wrong))
        way_out = "give a finite number above 0, and leave out edges that do not count"
        raise InputError(f"edge_weight[{edge}] is {weight[edge]:g}", hint=way_out)
    return weight


def checked_labels(y: Array, num_nodes: int) -> Tensor:
    """One class number for each node, −1 for unknown, as int64; anything else is named and refused.

    >>> checked_labels([0, -1], 2)
    tensor([ 0, -1])
    """
    labels = integer_tensor(y, "y")
    if tuple(labels.shape) != (num_nodes,):
        what = f"has shape {tuple(labels.shape)}, but x has {num_nodes} rows"
        raise InputError(what, field="y", hint=f"give one class per node: [{num_nodes}]")
    if labels.min() < -1:
        node = int((labels < -1).nonzero()[0])
        raise InputError(f"y[{node}] is {int(labels[node])}; give -1 for a node whose class is unknown")
    return labels


def checked_class_names(class_names: Iterable[str] | None, y: Tensor) -> tuple[str, ...]:
    """A name for each class in y, each once; None: their numbers.

    >>> checked_class_names(None, torch.tensor([0, -1, 1]))
    ('0', '1')
    """
    top = int(y.max())
    if class_names is None:
        if top >= y.numel():  # labels that are really identifiers would make a class of every number below
            way_out = "number the classes from 0 without gaps, or give class_names"
            raise InputError(f"holds class {top}, but there are only {y.numel()} nodes", field="y", hint=way_out)
        return tuple(str(c) for c in range(top + 1))
    if isinstance(class_names, str):
        raise InputError(f"is one string, {class_names!r}; give one name per class, as a list", field="class_names")
    names = tuple(str(c) for c in class_names)
    if len(set(names)) < len(names):
        twice = next(c for c in names if names.count(c) > 1)
        raise InputError(f"holds {twice!r} twice; give every class its own name", field="class_names")
    if top >= len(names):
        node = int((y >= len(names)).nonzero()[0])
        what = f"y[{node}] is {int(y[node])}, but class_names has {len(names)} names"
        raise InputError(what, hint=f"give one name per class, {top + 1} or more, or None")
    return names


def is_unknown(label: Any) -> bool:
    """Whether a label stands for "not known": None, NA, NaN, −1 and blank text.

    >>> [is_unknown(label) for label in (None, float("nan"), -1, " ", 0, "a", False)]
    [True, True, True, True, False, False, False]
    """
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(label, str):
        return not label.strip()
    return (
        isinstance(label, float | int | np.number)
        and not isinstance(label, bool)
        and bool(label != label or label == -1)
    )
