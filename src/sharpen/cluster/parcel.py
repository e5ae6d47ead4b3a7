"""Datasets and graphs as arrays that many processes of a machine can share.

Ray keeps an object once on each machine, and hands NumPy arrays in it to every process there without a copy; torch's tensors it
would copy. So tensors travel as arrays, and become tensors over the same memory on arrival. Nothing may write to them: the
memory is everybody's.
"""

from __future__ import annotations

import io
import pickle
import uuid
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Parcel:
    """An object without its tensors, and those as arrays.

    Args:
        rest: The object, pickled.
        arrays: Its tensors.
        name: What tells it from other parcels.

    >>> parcel = pack({"a": torch.arange(3), "b": "text"})
    >>> parcel.arrays[0].tolist(), unpack(parcel)["b"]
    ([0, 1, 2], 'text')
    """

    rest: bytes
    arrays: list[np.ndarray]
    name: str

    @property
    def nbytes(self) -> int:
        """The size of the arrays."""
        return sum(array.nbytes for array in self.arrays)


def pack(content: Any) -> Parcel:
    """Anything that can be pickled, with its tensors on the CPU taken out; each once, however often it occurs."""
    buffer = io.BytesIO()
    packer = _Packer(buffer, protocol=5)
    packer.dump(content)
    return Parcel(buffer.getvalue(), packer.arrays, uuid.uuid4().hex)


def unpack(parcel: Parcel) -> Any:
    """What was packed; its tensors lie over the parcel's arrays.

    >>> parcel = pack(torch.eye(2).to_sparse_csr())
    >>> unpack(parcel).to_dense().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return _Unpacker(io.BytesIO(parcel.rest), parcel.arrays).load()


class _Packer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol=protocol)
        self.arrays: list[np.ndarray] = []
        self._known: dict[int, tuple[Tensor, int | tuple[Any, ...]]] = {}

    def persistent_id(self, content: object) -> int | tuple[Any, ...] | None:
        if not isinstance(content, Tensor):
            return None
        if id(content) not in self._known:  # beside the number, the tensor: while it lives, its id is no other's
            self._known[id(content)] = (content, self._take(content))
        return self._known[id(content)][1]

    def _take(self, tensor: Tensor) -> int | tuple[Any, ...]:
        if tensor.layout == torch.sparse_csr:
            parts = (tensor.crow_indices(), tensor.col_indices(), tensor.values())
            return (*map(self._take, parts), tuple(tensor.shape))
        self.arrays.append(tensor.detach().numpy())
        return len(self.arrays) - 1


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, arrays: list[np.ndarray]) -> None:
        super().__init__(file)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*not writable.*")  # that is the point of them
            self._tensors = [torch.from_numpy(array) for array in arrays]
        self._sparse: dict[tuple[Any, ...], Tensor] = {}

    def persistent_load(self, number: int | tuple[Any, ...]) -> Tensor:
        if isinstance(number, int):
            return self._tensors[number]
        if number not in self._sparse:
            rows, columns, values = (self._tensors[part] for part in number[:3])
            self._sparse[number] = torch.sparse_csr_tensor(rows, columns, values, number[3], check_invariants=False)
        return self._sparse[number]
