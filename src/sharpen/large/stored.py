"""A graph as a folder of ``.npy`` files, which are mapped into memory and read where they are needed, when they are.

::

    rowptr.npy, col.npy   the adjacency: int32, symmetric, one self-loop per node
    x.npy                 features, float32; or x-indptr.npy, x-indices.npy, x-data.npy where they are sparse
    y.npy                 classes, int64, −1 for unknown
    weight.npy            of each entry of the adjacency, float64; where edges have weights
    graph.json            name, class names, number of features, a hash of the other files but y; what it was made from, where known
    clusters-64/          the same in the order of 64 parts, once training has asked for it; and features gathered over the graph
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sharpen.checks import Array, checked_class_names, checked_labels
from sharpen.errors import InputError
from sharpen.graph import Adjacency, Graph
from sharpen.large.disk import as_tensor, is_free, load_array, writing_whole
from sharpen.whole import written_whole

# Entries of an array on disk that are checked together.
_CHECKED_AT_ONCE = 2**22
# Bytes of a file that are hashed together.
_HASHED_AT_ONCE = 2**22


class CompressedGraph(Graph):
    """A graph that is its adjacency: its edges, in both directions and without self-loops, are listed when they are asked for."""

    @cached_property
    def edge_index(self) -> Tensor:
        """The edges, [2, E], in both directions; made when they are asked for, which training never does."""
        row, col = self.adjacency.row, self.adjacency.col.long()
        return torch.stack([row, col])[:, row != col]

    @cached_property
    def edge_weight(self) -> Tensor | None:
        """The weights of the edges, [E], if they have any."""
        if self.adjacency.weight is None:
            return None
        return self.adjacency.weight[self.adjacency.row != self.adjacency.col]

    @property
    def num_edges(self) -> int:
        """The number of edges, each direction counted."""
        return self.edge_index.shape[1] if "edge_index" in vars(self) else self.adjacency.nnz - self.num_nodes


@dataclass(frozen=True, eq=False, init=False, repr=False)
class StoredGraph(CompressedGraph):
    """A graph whose arrays lie on disk. Its edges are those of its adjacency, in both directions, without self-loops.

    With :func:`dataclasses.replace` a copy gets labels, class names or a name of its own, in memory; features and edges stay
    where they are. Pickled, it takes its arrays along, and is in memory wherever there is no such folder to write to.

    Args:
        folder: Where it lies.
        y, class_names, name: In place of those that lie there.
    """

    # Not asked for by dataclasses.replace: features are read from the folder again, edges made only when somebody needs them.
    x: Tensor = field(init=False)
    edge_index: Tensor = field(init=False)
    edge_weight: Tensor | None = field(init=False)
    folder: Path = field(kw_only=True)

    def __init__(
        self,
        folder: str | os.PathLike[str],
        y: Array | None = None,
        class_names: Iterable[str] | None = None,
        name: str | None = None,
    ) -> None:
        where = Path(folder)
        try:
            about = json.loads((where / "graph.json").read_text(encoding="utf-8"))
            rowptr, col, known = (_tensor(where / f"{key}.npy") for key in ("rowptr", "col", "y"))
            weight = _tensor(where / "weight.npy") if (where / "weight.npy").exists() else None
            if (where / "x.npy").exists():
                x = _tensor(where / "x.npy")
            else:
                starts, column, entries = (_tensor(where / f"x-{key}.npy") for key in ("indptr", "indices", "data"))
                shape = (len(starts) - 1, int(about["features"]))
                x = torch.sparse_csr_tensor(starts, column, entries, size=shape, check_invariants=False)
            names, title = tuple(map(str, about["class_names"])), str(about["name"])
        except InputError:
            raise
        except (FileNotFoundError, NotADirectoryError, EOFError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{where} is not a stored graph ({type(error).__name__}: {error}); make it with store_graph"
            ) from error
        except OSError as error:
            raise InputError(
                f"{where} cannot be read ({error.strerror or error}); see who may read it, and the limits on this process's memory"
            ) from error
        types = {"rowptr": (rowptr, torch.int32), "col": (col, torch.int32), "y": (known, torch.int64)}
        for key, (array, dtype) in types.items():
            if array.dim() != 1 or array.dtype != dtype:
                raise InputError(f"{where / key}.npy is no list of {dtype}; store the graph again")
        if not len(rowptr) - 1 == len(known) == len(x):
            raise InputError(f"{where}: rowptr, x and y do not agree in the number of nodes; store the graph again")
        if weight is not None and weight.shape != col.shape:
            raise InputError(f"{where}: weight and col do not agree in their length; store the graph again")
        check_rows(where, rowptr.numpy(), col.numpy())
        labels = known if y is None else checked_labels(y, len(known))
        vars(self).update(
            x=x,
            y=labels,
            class_names=checked_class_names(names if class_names is None else class_names, labels),
            name=title if name is None else str(name),
            folder=where,
            adjacency=Adjacency(rowptr, col, num_nodes=len(known), weight=weight),
        )

    @cached_property
    def content(self) -> str:
        """SHA-256 of the adjacency and the features in the folder; where it was not kept with them, all files are read for it."""
        about = json.loads((self.folder / "graph.json").read_text(encoding="utf-8"))
        if "content" not in about:
            about["content"] = _content(self.folder, self.num_features)
            with suppress(OSError):  # a folder that nobody may write to is read by each process that asks
                _write_about(self.folder, about)
        return str(about["content"])

    @property
    def identity(self) -> str:
        """SHA-256 of the content, the labels and the class names: what the fingerprint is, without reading all features again."""
        labels: Any = self.y.numpy()
        digest = hashlib.sha256(json.dumps([self.content, *self.class_names]).encode())
        digest.update(labels)
        return digest.hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        parts = {name: getattr(self, name) for name in ("x", "adjacency", "y", "class_names", "name")}
        return _arrived, (self.folder, self.content, parts)


def _arrived(folder: Path, content: str, parts: Mapping[str, Any]) -> Graph:
    """A stored graph that was pickled, perhaps on another machine: mapped if its folder is here too, and as good as there."""
    try:
        here = StoredGraph(folder, parts["y"], parts["class_names"], parts["name"])
        if os.access(folder, os.W_OK | os.X_OK) and here.content == content:
            return here
    except (InputError, OSError):
        pass
    graph = CompressedGraph.__new__(CompressedGraph)
    vars(graph).update(parts)
    return graph


def store_graph(graph: Graph, folder: str | os.PathLike[str]) -> StoredGraph:
    """Writes a graph to a new folder, or an empty one, and opens it there.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "path"
    >>> stored = store_graph(Graph(x=np.eye(3), edge_index=[[0, 1], [1, 2]], y=[0, 1, -1], name="path"), place)
    >>> stored
    Graph('path', nodes=3, edges=4, features=3, classes=2)
    >>> open_graph(place).adjacency.degree().tolist()
    [2, 3, 2]
    """
    x, adjacency = graph.x, graph.adjacency
    tensors = {"rowptr": adjacency.rowptr, "col": adjacency.col, "y": graph.y}
    if adjacency.weight is not None:
        tensors["weight"] = adjacency.weight
    if graph.is_sparse:
        tensors |= {"x-indptr": x.crow_indices(), "x-indices": x.col_indices(), "x-data": x.values()}
    else:
        tensors["x"] = x
    arrays = {key: tensor.numpy() for key, tensor in tensors.items()}
    return write_stored(folder, arrays, graph.num_features, graph.class_names, graph.name)


def write_stored(
    folder: str | os.PathLike[str],
    arrays: dict[str, np.ndarray],
    features: int,
    class_names: tuple[str, ...],
    name: str,
    x_file: Path | None = None,
    origin: Mapping[str, Any] | None = None,
) -> StoredGraph:
    """The arrays of a graph as a folder that appears whole or not at all; features may lie in a file already, which is moved.

    What it was made from, ``origin``, is kept beside them.
    """
    where = Path(folder)
    if not is_free(where):
        raise InputError(f"{where} exists already; give a new folder")
    where.parent.mkdir(parents=True, exist_ok=True)
    about: dict[str, Any] = {"name": name, "class_names": list(class_names), "features": int(features)}
    if origin is not None:
        about["origin"] = dict(origin)
    try:
        with writing_whole(where) as made:
            for key, array in arrays.items():
                np.save(made / f"{key}.npy", array)
            if x_file is not None:
                os.replace(x_file, made / "x.npy")
            about["content"] = _content(made, features)
            _write_about(made, about)
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.EXDEV):
            raise
        raise InputError(f"{where} cannot be replaced ({error.strerror}); give a new folder inside of it") from error
    if not _holds(where, about, arrays["y"]):
        raise InputError(f"another process has put something else at {where} meanwhile; give a new folder")
    return StoredGraph(where)


def _holds(folder: Path, about: Mapping[str, Any], y: np.ndarray) -> bool:
    """Whether a stored graph is there, and is this one."""
    try:
        found = json.loads((folder / "graph.json").read_text(encoding="utf-8"))
        return bool(found == about and np.array_equal(load_array(folder / "y.npy"), y))
    except (OSError, ValueError):
        return False


def open_graph(folder: str | os.PathLike[str]) -> StoredGraph:
    """A graph that :func:`store_graph` wrote; its pattern is gone through once to check it, features are read when they are needed.

    >>> open_graph("no/such/folder")
    Traceback (most recent call last):
    sharpen.errors.InputError: no/such/folder is not a stored graph (FileNotFoundError: ...); make it with store_graph
    """
    return StoredGraph(folder)


def _tensor(path: Path) -> Tensor:
    return as_tensor(load_array(path))


def _content(folder: Path, features: int) -> str:
    """The hash of all arrays of a stored graph but its labels, read in blocks."""
    digest = hashlib.sha256(str(int(features)).encode())
    for key in ("rowptr", "col", "weight", "x", "x-indptr", "x-indices", "x-data"):
        path = folder / f"{key}.npy"
        if path.exists():
            array: Any = load_array(path)
            digest.update(f"{key} {array.dtype.str} {array.shape} {np.isfortran(array)}".encode())
            with path.open("rb") as file:
                file.seek(array.offset)  # what stands before it is the version's of NumPy
                while block := file.read(_HASHED_AT_ONCE):
                    digest.update(block)
    return digest.hexdigest()


def _write_about(folder: Path, about: Mapping[str, Any]) -> None:
    with written_whole(folder / "graph.json") as file:
        file.write(json.dumps(about, ensure_ascii=False).encode())


def check_rows(where: Path, rowptr: np.ndarray, col: np.ndarray) -> None:
    """Refuses compressed rows that point outside of themselves, since those who follow them do not look.

    >>> check_rows(Path("pair"), np.array([0, 2, 4]), np.array([0, 1, 0, 1]))
    >>> check_rows(Path("pair"), np.array([0, 2, 4]), np.array([0, 1, 0, 2]))
    Traceback (most recent call last):
    sharpen.errors.InputError: pair: col[3] is 2, but there are 2 nodes; store the graph again
    """
    nodes, step = len(rowptr) - 1, _CHECKED_AT_ONCE
    if nodes < 1 or rowptr[0] != 0 or rowptr[-1] != len(col):
        raise InputError(f"{where}: rowptr does not run from 0 to the {len(col)} entries of col; store the graph again")
    for start in range(0, nodes, step):
        some = rowptr[start : start + step + 1]
        if not (some[1:] > some[:-1]).all():  # each node is in its own row, so none is empty
            raise InputError(f"{where}: rowptr does not increase from node to node; store the graph again")
    for start in range(0, len(col), step):
        some = col[start : start + step]
        if some.min() < 0 or some.max() >= nodes:
            entry = int(np.argmax((some < 0) | (some >= nodes)))
            raise InputError(
                f"{where}: col[{start + entry}] is {some[entry]}, but there are {nodes} nodes; store the graph again"
            )
