"""Arrays out of files that someone else wrote: only the keys that are needed, and never a pickle."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sharpen.datasets.download import WAY_OUT
from sharpen.errors import InputError
from sharpen.npz import read_npz


def read_arrays(path: Path, keys: Iterable[str]) -> dict[str, np.ndarray]:
    """The arrays of an ``.npz`` file by key. A damaged file or a missing key is an InputError that names the file.

    Args:
        keys: What to read. Other arrays are not touched: files of old hold pickled ones beside.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "graph.npz"
    >>> np.savez(path, edges=np.array([[0, 1]]))
    >>> read_arrays(path, ["edges"])
    {'edges': array([[0, 1]])}
    >>> read_arrays(path, ["edges", "labels"])
    Traceback (most recent call last):
    sharpen.errors.InputError: ...graph.npz has no array 'labels' (it has edges); put the published file in its place,
    or remove it to have it downloaded
    """
    wanted = list(keys)
    found = read_npz(str(path), path, wanted, WAY_OUT)
    for key in wanted:
        if key not in found:
            there = ", ".join(found) or "none of those needed"
            raise InputError(f"{path} has no array {key!r} (it has {there}); {WAY_OUT}")
    return {key: found[key] for key in wanted}


def both_directions(edge_index: Tensor) -> Tensor:
    """Every edge and its reverse. Doubles are left for :class:`sharpen.graph.Graph` to drop.

    >>> both_directions(torch.tensor([[0], [1]])).tolist()
    [[0, 1], [1, 0]]
    """
    return torch.cat([edge_index, edge_index.flip(0)], dim=1)
