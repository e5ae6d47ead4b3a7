"""Whole graphs as arrays: ``.npz`` from NumPy, and a saved PyG ``Data``. Nothing in them is executed.

An ``.npz`` is read without pickles. A ``.pt`` is a pickle by nature: its instructions are listed first without running
them, and refused unless they name only tensors and the few classes a ``Data`` is made of; then torch's restricted loader
reads it.
"""

from __future__ import annotations

import io
import itertools
import pickletools
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sharpen import npz
from sharpen.entropy import widen
from sharpen.errors import InputError, printable, told_as
from sharpen.files.content import Content, is_pickle
from sharpen.files.table import DataTable, by_row
from sharpen.limits import check_columns, check_unpacked

_STORAGES = "Float Double Half BFloat16 Long Int Short Char Byte Bool"
_TYPES = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool Size device"
_ALLOWED = {
    "collections OrderedDict",
    "torch._utils _rebuild_tensor",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_sparse_tensor",
    "torch.serialization _get_layout",
    "torch_geometric.data.data Data",
    "torch_geometric.data.data DataEdgeAttr",
    "torch_geometric.data.data DataTensorAttr",
    "torch_geometric.data.storage GlobalStorage",
    *(f"torch {kind}Storage" for kind in _STORAGES.split()),
    *(f"torch {kind}" for kind in _TYPES.split()),
}
_NOT_OF_A_DATA = ("STACK_GLOBAL", "INST", "OBJ", "EXT1", "EXT2", "EXT4", "NEWOBJ_EX")
_MAX_INSTRUCTIONS = 200_000  # of a saved Data, which has a few hundred
_PARTS = ("x", "edge_index", "y", "edge_weight", "ids")


@dataclass(frozen=True)
class GraphFile:
    """A graph that one file holds whole."""

    nodes: DataTable
    edge_index: np.ndarray  # [2, E] row numbers of nodes, whose column of ids is "id"
    edge_weight: np.ndarray | None
    label_column: str | None = None  # where the format says so


def read_npz(content: Content) -> GraphFile:
    """The graph in the arrays ``edge_index`` and, where present, ``x``, ``y``, ``edge_weight`` and ``ids``.

    >>> file = io.BytesIO()
    >>> np.savez(file, x=np.eye(3), edge_index=np.array([[0, 1], [1, 2]]), y=np.array([0, 1, -1]))
    >>> read_npz(Content("graph.npz", "npz", file.getvalue())).nodes.names
    ['id', 'label', 'x0', 'x1', 'x2']
    """
    return _graph(content.name, npz.read_npz(content.name, content.data, _PARTS), "array")


def read_pt(content: Content) -> GraphFile:
    """The graph in a saved PyG ``Data``, or in a saved dict of tensors with the same keys.

    >>> import torch
    >>> from torch_geometric.data import Data
    >>> file = io.BytesIO()
    >>> torch.save(Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]])), file)
    >>> read_pt(Content("graph.pt", "pt", file.getvalue())).edge_index
    array([[0, 1],
           [1, 2]])
    """
    import torch
    from torch_geometric.data.data import Data, DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    name, data = content.name, content.data
    way_out = "save a PyG Data, or a dict of tensors (x, edge_index, y), with torch.save"
    _check_instructions(name, data, way_out)
    arrays = {}
    known = torch.serialization.safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage])
    with told_as(f"{name} cannot be read as a PyG Data", way_out), known:
        loaded = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        found = loaded if isinstance(loaded, dict) else loaded.to_dict()
        for part in _PARTS[:4]:
            value = found.get(part)
            if value is None:
                continue
            if not isinstance(value, torch.Tensor):
                raise InputError(f"{name}: {part} is a {type(value).__name__}; {way_out}")
            check_unpacked(f"{name} (tensor {part!r})", value.numel() * value.element_size(), len(data))
            arrays[part] = widen(value.detach().to_dense()).numpy()
    return _graph(name, arrays, "tensor")


def _check_instructions(name: str, data: bytes, way_out: str) -> None:
    if not data.startswith(b"PK"):
        what = "is a plain pickle" if is_pickle(data) else "is not a file of torch.save"
        raise InputError(f"{name} {what}, which is not opened; {way_out}")
    with told_as(f"{name} is not a whole file of torch.save", way_out), zipfile.ZipFile(io.BytesIO(data)) as archive:
        check_unpacked(name, sum(member.file_size for member in archive.infolist()), len(data))
        programs = [m for m in archive.namelist() if m.endswith(".pkl")]
        if any(m.endswith((".py", "constants.pkl")) for m in archive.namelist()) or len(programs) != 1:
            raise InputError(f"{name} is a TorchScript or packaged program, which is not opened; {way_out}")
        program = archive.read(programs[0])
        operations = list(itertools.islice(pickletools.genops(program), _MAX_INSTRUCTIONS + 1))
    if len(operations) > _MAX_INSTRUCTIONS:
        what = f"has more than {_MAX_INSTRUCTIONS:,} instructions, where a Data has a few hundred"
        raise InputError(f"{name} {what}, and is not opened; {way_out}")
    for operation, argument, _ in operations:
        if operation.name in _NOT_OF_A_DATA:
            what = "is a pickle with instructions that a Data does not need"
            raise InputError(f"{name} {what}, and is not opened; {way_out}")
        if operation.name == "GLOBAL" and argument not in _ALLOWED:
            function = printable(str(argument)).replace(" ", ".")
            raise InputError(f"{name} would call {function}, so it is not opened; {way_out}")


def _graph(name: str, arrays: dict[str, np.ndarray], word: str) -> GraphFile:
    if "edge_index" not in arrays:
        found = ", ".join(arrays) or "none of the known ones"
        raise InputError(f"{name} has no {word} 'edge_index' (it has {found}); save one of shape [2, edges]")
    edges, x, y, ids = arrays["edge_index"], *(arrays.get(part) for part in ("x", "y", "ids"))
    if edges.dtype.kind not in "iu":
        raise InputError(f"{name}: edge_index is of type {edges.dtype}; give whole numbers (int64)")
    if edges.ndim == 2 and edges.shape[0] != 2 and edges.shape[1] == 2:
        edges = edges.T
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise InputError(f"{name}: edge_index has shape {list(edges.shape)}; give [2, edges], sources above targets")
    if y is not None and y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    count = _count_nodes(name, {"x": x, "y": y, "ids": ids}, edges)
    held = sum(array.size for array in arrays.values())
    if count > 10 * held + 1000:  # an axis of length 0 lets another have any length
        raise InputError(f"{name} is said to have {count:,} nodes, but holds {held:,} numbers for them; save it again")
    named = np.arange(count) if ids is None else _one_each(name, "ids", ids, count, kinds="iuUS", what="text")
    columns: dict[str, Any] = {"id": [str(node) for node in named]}
    if y is not None:
        y = _one_each(name, "y", y, count, kinds="biufUS", what="class")
        number = y.dtype.kind in "iuf"  # of which -1 is unknown, as everywhere in arrays
        columns["label"] = pa.array(y.astype(float), mask=(y == -1) | (y != y)) if number else pa.array(y.tolist())
    if x is not None:
        matrix = _features(name, x)
        check_columns(name, matrix.shape[1], "give fewer features")
        columns |= {f"x{i}": matrix[:, i] for i in range(matrix.shape[1])}
    if edges.size and (edges.min() < 0 or edges.max() >= count):
        column = int(((edges < 0) | (edges >= count)).any(axis=0).argmax())
        what = f"edge_index[:, {column}] is {edges[:, column].tolist()}, but there are {count} nodes"
        raise InputError(what, place=name, hint=f"number the nodes from 0 to {count - 1}")
    weight = arrays.get("edge_weight")
    if weight is not None:
        weight = weight.reshape(-1)
        if weight.dtype.kind not in "biuf" or weight.shape != (edges.shape[1],):
            raise InputError(f"{name}: edge_weight does not hold one number per edge; give shape [{edges.shape[1]}]")
        weight = weight.astype(np.float64)
    table = DataTable(name, pa.table(columns), by_row)
    return GraphFile(table, edges.astype(np.int64), weight, "label" if y is not None else None)


def _count_nodes(name: str, parts: dict[str, np.ndarray | None], edges: np.ndarray) -> int:
    for part, array in parts.items():
        if array is not None:
            if array.ndim == 0 or array.shape[0] == 0:
                raise InputError(f"{name}: {part} is empty; give one row per node")
            return int(array.shape[0])
    if edges.size == 0:
        raise InputError(f"{name} has no node; give x, one row per node")
    top = int(edges.max()) + 1
    if top > 10 * edges.size + 1000:
        few = f"edge_index names node {top - 1} with {edges.shape[1]} edges only"
        raise InputError(f"{name}: {few}; number the nodes from 0")
    return top


def _features(name: str, x: np.ndarray) -> np.ndarray:
    matrix = x[:, None] if x.ndim == 1 else x
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        found = f"has shape {list(x.shape)} and type {x.dtype}"
        raise InputError(f"{name}: x {found}; give numbers, one row per node: [N, F]")
    if matrix.dtype.kind != "f":
        return matrix
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        found = f"x[{row}, {column}] is {matrix[row, column]}"
        raise InputError(f"{name}: {found}; give finite numbers, for instance 0 where unknown")
    return matrix.astype(np.float64)


def _one_each(name: str, part: str, values: np.ndarray, count: int, kinds: str, what: str) -> np.ndarray:
    """An array with an entry for each node, bytes read as text."""
    if values.shape != (count,) or values.dtype.kind not in kinds:
        found = f"{part} has shape {list(values.shape)} and type {values.dtype}"
        raise InputError(f"{name}: {found}; give one {what} per node: [{count}]")
    return np.char.decode(values, "utf-8", "replace") if values.dtype.kind == "S" else values
