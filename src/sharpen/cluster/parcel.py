"""Datasets and graphs as arrays that many processes of a machine can share.

Ray keeps an object once on each machine, and hands NumPy arrays in it to every process there without a copy; torch's tensors it
would copy. So tensors travel as arrays, and become tensors over the same memory on arrival. Nothing may write to them: the
memory is everybody's.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sharpen.large.disk import as_tensor


@dataclass(frozen=True)
class Parcel:
    """An object without its arrays, pickled; those, byte by byte; and what tells it from other parcels.

    >>> parcel = pack({"a": torch.arange(3), "b": "text"})
    >>> parcel.nbytes, unpack(parcel)["a"].tolist(), unpack(parcel)["b"]
    (24, [0, 1, 2], 'text')
    """

    rest: bytes
    arrays: list[np.ndarray]
    name: str

    @property
    def nbytes(self) -> int:
        """The size of the arrays."""
        return sum(array.nbytes for array in self.arrays)


def pack(content: Any) -> Parcel:
    """Anything that can be pickled, with its arrays and tensors on the CPU taken out; each once, however often it occurs."""
    file, buffers = io.BytesIO(), list[pickle.PickleBuffer]()
    packer = pickle.Pickler(file, protocol=5, buffer_callback=buffers.append)
    packer.dispatch_table = {**copyreg.dispatch_table, Tensor: _as_arrays}
    packer.dump(content)
    return Parcel(file.getvalue(), [np.asarray(buffer.raw()) for buffer in buffers], uuid.uuid4().hex)


def unpack(parcel: Parcel) -> Any:
    """What was packed; its tensors lie over the parcel's arrays.

    >>> parcel = pack(torch.eye(2).to_sparse_csr())
    >>> unpack(parcel).to_dense().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return pickle.loads(parcel.rest, buffers=parcel.arrays)


def _as_arrays(tensor: Tensor) -> tuple[Any, tuple[Any, ...]]:
    if tensor.layout == torch.sparse_csr:
        return _csr, (tensor.crow_indices(), tensor.col_indices(), tensor.values(), tuple(tensor.shape))
    return as_tensor, (tensor.detach().numpy(),)


def _csr(rows: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    return torch.sparse_csr_tensor(rows, columns, values, shape, check_invariants=False)
