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
from sharpen.errors import InputError, printable, reason
from sharpen.files.content import Content, is_pickle
from sharpen.files.table import DataTable, by_row
from sharpen.limits import MAX_INSTRUCTIONS, check_columns, too_large, within_limits

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
_PARTS = ("x", "edge_index", "y", "edge_weight", "ids")


@dataclass(frozen=True)
class GraphFile:
    """A graph that one file holds whole.

    Args:
        nodes: The nodes; the id column is ``id_column``.
        edge_index: ``[2, E]`` row numbers of ``nodes``.
        edge_weight: ``[E]``, or None.
        id_column: Which column names the nodes.
        label_column: Which column holds the classes, where the format says so.
    """

    nodes: DataTable
    edge_index: np.ndarray
    edge_weight: np.ndarray | None
    id_column: str
    label_column: str | None


def read_npz(content: Content) -> GraphFile:
    """The graph in the arrays ``edge_index`` and, where present, ``x``, ``y``, ``edge_weight`` and ``ids``.

    >>> file = io.BytesIO()
    >>> np.savez(file, x=np.eye(3), edge_index=np.array([[0, 1], [1, 2]]), y=np.array([0, 1, -1]))
    >>> read_npz(Content("graph.npz", "npz", file.getvalue())).nodes.names
    ['id', 'label', 'x0', 'x1', 'x2']
    """
    arrays = npz.read_npz(content.name, content.data, _PARTS)
    return _graph(content.name, arrays, "array")


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
    try:
        with torch.serialization.safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]):
            loaded = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        found = loaded if isinstance(loaded, dict) else loaded.to_dict()
        arrays = {}
        for part in _PARTS[:4]:
            value = found.get(part)
            if value is None:
                continue
            if not isinstance(value, torch.Tensor):
                raise InputError(f"{name}: {part} is a {type(value).__name__}; {way_out}")
            if not within_limits(value.numel() * value.element_size(), len(data)):
                raise too_large(f"{name} (tensor {part!r})", value.numel() * value.element_size(), len(data))
            value = value.detach().to_dense() if value.layout != torch.strided else value.detach()
            arrays[part] = (value.float() if value.dtype in (torch.float16, torch.bfloat16) else value).numpy()
    except InputError:
        raise
    except Exception as error:  # torch raises many kinds on damaged bytes
        raise InputError(f"{name} cannot be read as a PyG Data ({reason(error)}); {way_out}") from error
    return _graph(name, arrays, "tensor")


def _check_instructions(name: str, data: bytes, way_out: str) -> None:
    if not data.startswith(b"PK"):
        what = "is a plain pickle" if is_pickle(data) else "is not a file of torch.save"
        raise InputError(f"{name} {what}, which is not opened; {way_out}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if not within_limits(size, len(data)):
                raise too_large(name, size, len(data))
            programs = [m for m in archive.namelist() if m.endswith(".pkl")]
            if any(m.endswith((".py", "constants.pkl")) for m in archive.namelist()) or len(programs) != 1:
                raise InputError(f"{name} is a TorchScript or packaged program, which is not opened; {way_out}")
            program = archive.read(programs[0])
            operations = list(itertools.islice(pickletools.genops(program), MAX_INSTRUCTIONS + 1))
    except InputError:
        raise
    except Exception as error:  # zipfile and pickletools raise many kinds on damaged bytes
        raise InputError(f"{name} is not a whole file of torch.save; {way_out}") from error
    if len(operations) > MAX_INSTRUCTIONS:
        raise InputError(
            f"{name} has more than {MAX_INSTRUCTIONS:,} instructions, where a Data has a few hundred, and is not opened; {way_out}"
        )
    for operation, argument, _ in operations:
        if operation.name in ("STACK_GLOBAL", "INST", "OBJ", "EXT1", "EXT2", "EXT4", "NEWOBJ_EX"):
            raise InputError(
                f"{name} is a pickle with instructions that a Data does not need, and is not opened; {way_out}"
            )
        if operation.name == "GLOBAL" and argument not in _ALLOWED:
            raise InputError(
                f"{name} would call {printable(str(argument)).replace(' ', '.')}, so it is not opened; {way_out}"
            )


def _graph(name: str, arrays: dict[str, np.ndarray], word: str) -> GraphFile:
    if "edge_index" not in arrays:
        found = ", ".join(arrays) or "none of the known ones"
        raise InputError(f"{name} has no {word} 'edge_index' (it has {found}); save one of shape [2, edges]")
    edges = _integers(name, "edge_index", arrays["edge_index"])
    if edges.ndim == 2 and edges.shape[0] != 2 and edges.shape[1] == 2:
        edges = edges.T
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise InputError(f"{name}: edge_index has shape {list(edges.shape)}; give [2, edges], sources above targets")
    x = arrays.get("x")
    y = arrays.get("y")
    if y is not None and y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    count = _count_nodes(name, x, y, arrays.get("ids"), edges)
    held = sum(array.size for array in arrays.values())
    if count > 10 * held + 1000:  # an axis of length 0 lets another have any length
        raise InputError(f"{name} is said to have {count:,} nodes, but holds {held:,} numbers for them; save it again")
    columns: dict[str, Any] = {"id": _ids(name, arrays.get("ids"), count)}
    if y is not None:
        columns["label"] = _labels(name, y, count)
    if x is not None:
        matrix = _features(name, x, count)
        check_columns(name, matrix.shape[1], "give fewer features")
        columns |= {f"x{i}": matrix[:, i] for i in range(matrix.shape[1])}
    if edges.size and (edges.min() < 0 or edges.max() >= count):
        column = int(((edges < 0) | (edges >= count)).any(axis=0).argmax())
        raise InputError(
            f"{name}: edge_index[:, {column}] is {edges[:, column].tolist()}, but there are {count} nodes; "
            f"number the nodes from 0 to {count - 1}"
        )
    weight = arrays.get("edge_weight")
    if weight is not None:
        weight = weight.reshape(-1)
        if weight.dtype.kind not in "biuf" or weight.shape != (edges.shape[1],):
            raise InputError(f"{name}: edge_weight does not hold one number per edge; give shape [{edges.shape[1]}]")
        weight = weight.astype(np.float64)
    table = DataTable(name, pa.table(columns), by_row)
    return GraphFile(table, edges.astype(np.int64), weight, "id", "label" if y is not None else None)


def _count_nodes(name: str, x: Any, y: Any, ids: Any, edges: np.ndarray) -> int:
    for part, array in (("x", x), ("y", y), ("ids", ids)):
        if array is not None:
            if array.ndim == 0 or array.shape[0] == 0:
                raise InputError(f"{name}: {part} is empty; give one row per node")
            return int(array.shape[0])
    if edges.size == 0:
        raise InputError(f"{name} has no node; give x, one row per node")
    top = int(edges.max()) + 1
    if top > 10 * edges.size + 1000:
        raise InputError(
            f"{name}: edge_index names node {top - 1} with {edges.shape[1]} edges only; number the nodes from 0"
        )
    return top


def _features(name: str, x: np.ndarray, count: int) -> np.ndarray:
    matrix = x[:, None] if x.ndim == 1 else x
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise InputError(
            f"{name}: x has shape {list(x.shape)} and type {x.dtype}; give numbers, one row per node: [N, F]"
        )
    if matrix.dtype.kind == "f" and not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise InputError(
            f"{name}: x[{row}, {column}] is {matrix[row, column]}; give finite numbers, for instance 0 where unknown"
        )
    return matrix.astype(np.float64) if matrix.dtype.kind == "f" else matrix


def _labels(name: str, y: np.ndarray, count: int) -> Any:
    y = _one_each(name, "y", y, count, kinds="biufUS", what="class")
    if y.dtype.kind in "iuf":
        return pa.array(y.astype(np.float64), mask=(y == -1) | (y != y))  # -1 is unknown, as everywhere in arrays
    return y.astype(str) if y.dtype.kind == "U" else y


def _ids(name: str, ids: np.ndarray | None, count: int) -> list[str]:
    if ids is None:
        return [str(i) for i in range(count)]
    return [str(i) for i in _one_each(name, "ids", ids, count, kinds="iuUS", what="text")]


def _one_each(name: str, part: str, values: np.ndarray, count: int, kinds: str, what: str) -> np.ndarray:
    """An array with an entry for each node, bytes read as text."""
    if values.shape != (count,) or values.dtype.kind not in kinds:
        raise InputError(
            f"{name}: {part} has shape {list(values.shape)} and type {values.dtype}; give one {what} per node: [{count}]"
        )
    return np.char.decode(values, "utf-8", "replace") if values.dtype.kind == "S" else values


def _integers(name: str, part: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "iu":
        raise InputError(f"{name}: {part} is of type {values.dtype}; give whole numbers (int64)")
    return values
