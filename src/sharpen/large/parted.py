"""A graph whose nodes stand in the order of its parts, so that a batch is a few long runs of rows, in memory or on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from sharpen.graph import Graph
from sharpen.graph.conversions import to_csr
from sharpen.graph.matrices import degree_factors
from sharpen.graph.partition import metis
from sharpen.kernels.sparse import Csr, spmm_into
from sharpen.large.disk import as_tensor, load_array, save_array, writing_beside, writing_whole
from sharpen.large.stored import StoredGraph, check_rows

# Entries of the adjacency that are looked at together where the whole graph is gone through.
_CHUNK_ENTRIES = 2**22
# A GPU holds the features of all nodes if they take at most this share of its free memory: batches are then cut out there.
_HELD_SHARE = 1 / 16
_DENSE_ROWS = 2**14


class PartedGraph:
    """The arrays of a graph, its nodes renumbered part by part.

    Args:
        rowptr, col: The adjacency in the new numbers, one self-loop per node.
        x: Features: an array, which may lie on disk, or a SciPy matrix.
        order: The old number of each node.
        offsets: Where each part starts; one longer than the number of parts.
        folder: Where more may be kept, if anywhere.
        weight: Of each entry of the adjacency; None: all count the same. Degrees are sums of weights.

    >>> pairs = Graph(x=np.eye(4), edge_index=[[0, 1], [2, 3]])
    >>> parted = arrange(pairs, parts=2)
    >>> parted.num_parts, parted.sizes.tolist(), parted.degree.tolist()
    (2, [2, 2], [2, 2, 2, 2])
    """

    def __init__(
        self,
        rowptr: np.ndarray,
        col: np.ndarray,
        x: Any,
        order: np.ndarray,
        offsets: np.ndarray,
        folder: Path | None,
        weight: np.ndarray | None = None,
    ) -> None:
        self.rowptr, self.col, self.x, self.weight = rowptr, col, x, weight
        self.order, self.offsets, self.folder = order, offsets, folder
        # No row is empty: each holds its node.
        self.degree = np.diff(rowptr) if weight is None else np.add.reduceat(weight, rowptr[:-1])
        self._propagated: dict[tuple[str, torch.dtype], Any] = {}
        self._held: dict[tuple[str | None, torch.device, torch.dtype], Tensor | None] = {}
        self._factors: dict[tuple[str, torch.device], tuple[Tensor, Tensor]] = {}
        self._rows: dict[tuple[int, int, str, torch.device, torch.dtype], Csr] = {}

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return len(self.order)

    @property
    def num_parts(self) -> int:
        """The number of parts; none is empty."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> np.ndarray:
        """How many nodes each part has."""
        return np.diff(self.offsets)

    def chunks(self, entries: int = _CHUNK_ENTRIES) -> Iterator[slice]:
        """All nodes in runs with about so many entries of the adjacency, at least one node in each.

        >>> [(c.start, c.stop) for c in arrange(Graph(x=np.eye(4), edge_index=[[0, 1], [2, 3]]), 1).chunks(4)]
        [(0, 2), (2, 4)]
        """
        start = 0
        while start < self.num_nodes:
            stop = int(np.searchsorted(self.rowptr, self.rowptr[start] + entries, side="right")) - 1
            stop = min(max(stop, start + 1), self.num_nodes)
            yield slice(start, stop)
            start = stop

    def rows(self, nodes: slice, gather: str, device: torch.device, dtype: torch.dtype) -> Csr:
        """The rows of P for a run of nodes, a column for each node there is; of ones where P is attention.

        Those of a graph that is small enough to be looked at as a whole are kept.
        """
        key = (nodes.start, nodes.stop, gather, device, dtype)
        if key not in self._rows:
            rows = self._make_rows(nodes, gather, device, dtype)
            if len(self.col) > _CHUNK_ENTRIES:
                return rows
            self._rows[key] = rows
        return self._rows[key]

    def _make_rows(self, nodes: slice, gather: str, device: torch.device, dtype: torch.dtype) -> Csr:
        begin, end = self.rowptr[nodes.start], self.rowptr[nodes.stop]
        rowptr = torch.from_numpy((self.rowptr[nodes.start : nodes.stop + 1] - begin).astype(np.int32)).to(device)
        col = torch.from_numpy(np.array(self.col[begin:end])).to(device)
        if gather == "pattern":
            return Csr(rowptr, col, torch.ones(len(col), dtype=dtype, device=device), self.num_nodes)
        if (gather, device) not in self._factors:
            degree = torch.from_numpy(self.degree).to(device, torch.float64)
            self._factors[gather, device] = degree_factors(gather, degree)
        by_row, by_col = self._factors[gather, device]
        value = torch.repeat_interleave(by_row[nodes], rowptr.diff()).mul_(by_col.index_select(0, col))
        if self.weight is not None:
            value = value * torch.from_numpy(np.array(self.weight[begin:end])).to(device)
        return Csr(rowptr, col, value.to(dtype), self.num_nodes)

    def held(self, gather: str | None, device: torch.device, dtype: torch.dtype) -> Tensor | None:
        """X of all nodes, or P X, dense on a GPU that has the room; otherwise None, and batches take their rows from elsewhere."""
        key = (gather, device, dtype)
        if key not in self._held:
            rows = self.x if gather is None else self.propagated(gather, dtype)
            size = rows.shape[0] * rows.shape[1] * dtype.itemsize
            self._held[key] = _dense_on(rows, device, dtype) if size <= _room(device) else None
        return self._held[key]

    def propagated(self, gather: str, dtype: torch.dtype) -> Any:
        """P X over the whole graph, like ``x``; made when it is first asked for, once, and kept on disk if the graph is."""
        key = (gather, dtype)
        if key not in self._propagated:
            numbers = np.dtype(str(dtype).removeprefix("torch."))
            place = None if self.folder is None else self.folder / f"{gather}-{numbers}"
            propagate = self._propagate_sparse if sp.issparse(self.x) else self._propagate_dense
            self._propagated[key] = propagate(gather, numbers, place)
        return self._propagated[key]

    def _propagate_dense(self, gather: str, numbers: np.dtype[Any], place: Path | None) -> Any:
        def fill(out: np.ndarray) -> None:
            whole = torch.from_numpy(out)[None]
            features = as_tensor(self.x).to(whole.dtype)[None]
            for chunk in self.chunks():
                spmm_into(whole[:, chunk], self.rows(chunk, gather, torch.device("cpu"), whole.dtype), features)

        if place is None:
            out = np.empty(self.x.shape, numbers)
            fill(out)
            return out
        path = place.with_name(f"{place.name}.npy")
        if not path.exists():
            with writing_beside(path.parent):
                save_array(path, self.x.shape, numbers, fill)
        return load_array(path)

    def _propagate_sparse(self, gather: str, numbers: np.dtype[Any], place: Path | None) -> Any:
        if place is None:
            return self._gather_sparse(gather, numbers)
        if not place.exists():
            with writing_beside(place.parent), writing_whole(place) as made:
                _write_sparse(made, "", self._gather_sparse(gather, numbers))
        return _read_sparse(place, "", self.x.shape)

    def _gather_sparse(self, gather: str, numbers: np.dtype[Any]) -> Any:
        products: list[Any] = []
        x: Any = self.x
        for chunk in self.chunks():
            s = self.rows(chunk, gather, torch.device("cpu"), torch.float64)
            parts: Any = (s.value.numpy(), s.col.numpy(), s.rowptr.numpy())
            products.append((sp.csr_array(parts, shape=(s.num_rows, s.num_cols)) @ x).astype(numbers))
        return sp.csr_array(sp.vstack(products, format="csr"))


def _room(device: torch.device) -> float:
    """How many bytes a device spares for the features of all nodes; a CPU none, since they are in its memory anyway."""
    return _HELD_SHARE * torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0.0


def _dense_on(rows: Any, device: torch.device, dtype: torch.dtype) -> Tensor:
    """A matrix on the device, brought there in runs of rows, so that the host never holds a dense copy."""
    out = torch.empty(rows.shape, device=device, dtype=dtype)
    for start in range(0, len(out), _DENSE_ROWS):
        run = slice(start, start + _DENSE_ROWS)
        some = np.array(rows[run]) if isinstance(rows, np.ndarray) else rows[run].toarray()
        out[run] = torch.from_numpy(some).to(device, dtype)
    return out


def _write_sparse(folder: Path, prefix: str, matrix: Any) -> None:
    for name in ("indptr", "indices", "data"):
        np.save(folder / f"{prefix}{name}.npy", getattr(matrix, name))


def _read_sparse(folder: Path, prefix: str, shape: tuple[int, int]) -> Any:
    """A matrix over arrays that are mapped."""
    parts: Any = tuple(load_array(folder / f"{prefix}{name}.npy") for name in ("data", "indices", "indptr"))
    return sp.csr_array(parts, shape=shape)


_ARRANGED: WeakKeyDictionary[Graph, dict[int, PartedGraph]] = WeakKeyDictionary()


def arrange(graph: Graph, parts: int) -> PartedGraph:
    """The graph in so many parts; METIS runs once for a graph and a number of parts.

    A stored graph is arranged on disk, beside its own arrays, and found there the next time, by any process.
    """
    known = _ARRANGED.setdefault(graph, {})
    if parts not in known:
        if parts == 1:
            known[parts] = _as_it_is(graph)
        elif isinstance(graph, StoredGraph):
            folder = graph.folder / f"clusters-{parts}"
            if not folder.exists():
                with writing_beside(graph.folder):
                    _write(folder, graph, parts)
            known[parts] = _read(folder)
        else:
            known[parts] = _renumbered(graph, parts)
    return known[parts]


def _as_it_is(graph: Graph) -> PartedGraph:
    nodes, (rowptr, col, weight) = graph.num_nodes, _arrays(graph)
    folder = graph.folder if isinstance(graph, StoredGraph) else None
    return PartedGraph(rowptr, col, _features(graph), np.arange(nodes), np.array([0, nodes]), folder, weight)


def _arrays(graph: Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    a = graph.adjacency
    return a.rowptr.numpy(), a.col.numpy(), None if a.weight is None else a.weight.numpy()


def _features(graph: Graph) -> Any:
    return to_csr(graph.x) if graph.is_sparse else graph.x.numpy()


def _renumbered(graph: Graph, parts: int) -> PartedGraph:
    part = metis(graph.adjacency, parts)
    order = np.argsort(part, kind="stable")
    sizes = np.bincount(part)
    offsets = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    old_rowptr, old_col, old_weight = _arrays(graph)
    degree = np.diff(old_rowptr)[order]
    rowptr = np.concatenate([[0], np.cumsum(degree, dtype=np.int64)])
    col = np.empty(len(old_col), dtype=np.int32)
    weight = None if old_weight is None else np.empty(len(old_col))
    arranged = PartedGraph(rowptr, col, None, order, offsets, None)
    for chunk in arranged.chunks():  # in runs, so that little more than the result is in memory
        nodes = order[chunk]
        entries = _entries(old_rowptr, nodes)
        block: Any = (
            np.ones(len(entries), dtype=np.int8) if old_weight is None else old_weight[entries],
            place[old_col[entries]],
            rowptr[chunk.start : chunk.stop + 1] - rowptr[chunk.start],
        )
        matrix = sp.csr_array(block, shape=(len(nodes), len(order)))
        matrix.sort_indices()
        col[rowptr[chunk.start] : rowptr[chunk.stop]] = matrix.indices
        if weight is not None:
            weight[rowptr[chunk.start] : rowptr[chunk.stop]] = matrix.data
    x = _features(graph)
    # Dense features of a stored graph are renumbered on the way from file to file.
    x = x if isinstance(graph, StoredGraph) and not graph.is_sparse else x[order]
    return PartedGraph(rowptr, col, x, order, offsets, None, weight)


def _entries(rowptr: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Where the entries of these rows stand, row after row."""
    counts = rowptr[nodes + 1] - rowptr[nodes]
    ends = np.cumsum(counts, dtype=np.int64)
    return np.arange(ends[-1]) + np.repeat(rowptr[nodes] - (ends - counts), counts)


def _write(folder: Path, graph: Graph, parts: int) -> None:
    with writing_whole(folder) as made:
        # After the folder: METIS takes long, and what cannot be written is known before.
        parted = _renumbered(graph, parts)
        for name in ("rowptr", "col", "order", "offsets", "weight"):
            if (array := getattr(parted, name)) is not None:
                np.save(made / f"{name}.npy", array)
        x, order = parted.x, parted.order
        if sp.issparse(x):
            _write_sparse(made, "x-", x)
        else:

            def fill(out: np.ndarray) -> None:
                for start in range(0, len(order), 2**16):
                    out[start : start + 2**16] = x[order[start : start + 2**16]]

            save_array(made / "x.npy", x.shape, x.dtype, fill)
        (made / "graph.json").write_text(json.dumps({"features": int(x.shape[1])}), encoding="utf-8")


def _read(folder: Path) -> PartedGraph:
    arrays = {name: load_array(folder / f"{name}.npy") for name in ("rowptr", "col", "order", "offsets")}
    if (folder / "x.npy").exists():
        x: Any = load_array(folder / "x.npy")
    else:
        features = json.loads((folder / "graph.json").read_text(encoding="utf-8"))["features"]
        x = _read_sparse(folder, "x-", (len(arrays["order"]), features))
    weight = load_array(folder / "weight.npy") if (folder / "weight.npy").exists() else None
    check_rows(folder, arrays["rowptr"], arrays["col"])
    return PartedGraph(arrays["rowptr"], arrays["col"], x, arrays["order"], arrays["offsets"], folder, weight)
