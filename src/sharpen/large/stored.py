"""A graph as a folder of ``.npy`` files, which are mapped into memory and read where they are needed, when they are.

::

    rowptr.npy, col.npy   the adjacency: int32, symmetric, one self-loop per node
    x.npy                 features, float32; or x-indptr.npy, x-indices.npy, x-data.npy where they are sparse
    y.npy                 classes, int64, −1 for unknown
    weight.npy            of each entry of the adjacency, float64; where edges have weights
    graph.json            name, class names, number of features
    clusters-64/          the same in the order of 64 parts, once training has asked for it
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sharpen.errors import InputError
from sharpen.graph import Adjacency, Graph


class StoredGraph(Graph):
    """A graph whose arrays lie on disk. Its edges are those of its adjacency, in both directions, without self-loops."""

    folder: Path

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        where = Path(folder)
        try:
            about = json.loads((where / "graph.json").read_text(encoding="utf-8"))
            rowptr, col = (torch.from_numpy(load_array(where / f"{name}.npy")) for name in ("rowptr", "col"))
            weighs = (where / "weight.npy").exists()
            weight = torch.from_numpy(load_array(where / "weight.npy")) if weighs else None
            adjacency = Adjacency(rowptr, col, num_nodes=len(rowptr) - 1, weight=weight)
            y = torch.from_numpy(load_array(where / "y.npy"))
            if (where / "x.npy").exists():
                x = torch.from_numpy(load_array(where / "x.npy"))
            else:
                starts, column, value = (
                    torch.from_numpy(load_array(where / f"x-{name}.npy")) for name in ("indptr", "indices", "data")
                )
                shape = (len(y), int(about["features"]))
                x = torch.sparse_csr_tensor(starts, column, value, size=shape, check_invariants=False)
            fields = {
                "x": x,
                "y": y,
                "class_names": tuple(about["class_names"]),
                "name": about["name"],
            }
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{where} is not a stored graph ({type(error).__name__}: {error}); make it with store_graph"
            ) from error
        if adjacency.num_nodes != len(y) or len(x) != len(y):
            raise InputError(f"{where}: rowptr, x and y do not agree in the number of nodes; store the graph again")
        for field, value in fields.items():
            object.__setattr__(self, field, value)
        object.__setattr__(self, "folder", where)
        object.__setattr__(self, "adjacency", adjacency)

    @cached_property
    def edge_index(self) -> Tensor:
        """The edges, [2, E], in both directions; made when they are asked for, which training never does."""
        row = torch.repeat_interleave(torch.arange(self.num_nodes), self.adjacency.degree().long())
        col = self.adjacency.col.long()
        return torch.stack([row, col])[:, row != col]

    @cached_property
    def edge_weight(self) -> Tensor | None:
        """The weights of the edges, [E], if they have any."""
        if self.adjacency.weight is None:
            return None
        row = torch.repeat_interleave(torch.arange(self.num_nodes), self.adjacency.degree().long())
        return self.adjacency.weight[row != self.adjacency.col]

    @property
    def num_edges(self) -> int:
        """The number of edges, each direction counted."""
        return self.adjacency.nnz - self.num_nodes


def store_graph(graph: Graph, folder: str | os.PathLike[str]) -> StoredGraph:
    """Writes a graph to a new folder and opens it there.

    >>> place = Path(tempfile.mkdtemp()) / "path"
    >>> stored = store_graph(Graph(x=np.eye(3), edge_index=[[0, 1], [1, 2]], y=[0, 1, -1], name="path"), place)
    >>> stored
    Graph('path', nodes=3, edges=4, features=3, classes=2)
    >>> open_graph(place).adjacency.degree().tolist()
    [2, 3, 2]
    """
    arrays = {
        "rowptr": graph.adjacency.rowptr.numpy(),
        "col": graph.adjacency.col.numpy(),
        "y": graph.y.numpy(),
    }
    if graph.adjacency.weight is not None:
        arrays["weight"] = graph.adjacency.weight.numpy()
    if graph.is_sparse:
        x = graph.x
        arrays |= {
            "x-indptr": x.crow_indices().numpy(),
            "x-indices": x.col_indices().numpy(),
            "x-data": x.values().numpy(),
        }
    else:
        arrays["x"] = graph.x.numpy()
    return write_stored(folder, arrays, graph.num_features, graph.class_names, graph.name)


def write_stored(
    folder: str | os.PathLike[str],
    arrays: dict[str, np.ndarray],
    features: int,
    class_names: tuple[str, ...],
    name: str,
    x_file: Path | None = None,
) -> StoredGraph:
    """The arrays of a graph as a folder that appears whole or not at all; features may lie in a file already, which is moved."""
    where = Path(folder)
    if where.exists():
        raise InputError(f"{where} exists already; give a new folder")
    where.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=where.parent, prefix=".storing-") as unfinished:
        made = Path(unfinished, where.name)
        made.mkdir()
        for key, array in arrays.items():
            np.save(made / f"{key}.npy", array)
        if x_file is not None:
            os.replace(x_file, made / "x.npy")
        about: dict[str, Any] = {"name": name, "class_names": list(class_names), "features": int(features)}
        (made / "graph.json").write_text(json.dumps(about, ensure_ascii=False), encoding="utf-8")
        os.replace(made, where)
    return StoredGraph(where)


def open_graph(folder: str | os.PathLike[str]) -> StoredGraph:
    """A graph that :func:`store_graph` wrote; nothing but its labels' size is read before it is needed.

    >>> open_graph("no/such/folder")
    Traceback (most recent call last):
    sharpen.errors.InputError: no/such/folder is not a stored graph (FileNotFoundError: ...); make it with store_graph
    """
    return StoredGraph(folder)


def load_array(path: Path) -> np.ndarray:
    """An array on disk, mapped; what is written to it stays in memory, though nothing should be."""
    array: np.ndarray = np.load(path, mmap_mode="c", allow_pickle=False)
    return array


def save_array(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], fill: Callable[[np.ndarray], None]) -> None:
    """An array on disk that ``fill`` writes, and that appears whole or not at all."""
    name = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        out = np.lib.format.open_memmap(name, mode="w+", dtype=dtype, shape=shape)
        fill(out)
        out.flush()
        os.replace(name, path)
    except BaseException:
        name.unlink(missing_ok=True)
        raise
