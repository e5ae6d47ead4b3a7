"""Arrays and folders on disk: mapped where they are, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sharpen.errors import InputError


def load_array(path: Path) -> np.ndarray:
    """An array on disk, mapped for reading: however large it is, memory is needed only for what is looked at."""
    return np.load(path, mmap_mode="r", allow_pickle=False)


def as_tensor(array: np.ndarray) -> Tensor:
    """A tensor over an array that nobody may write to; torch would warn of that, and nobody does.

    >>> fixed = np.arange(3)
    >>> fixed.flags.writeable = False
    >>> as_tensor(fixed).tolist()
    [0, 1, 2]
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return torch.from_numpy(array)


@contextmanager
def writing_beside(folder: Path) -> Iterator[None]:
    """A block that writes to the folder of a stored graph; where that is not possible, the way out is named.

    >>> with writing_beside(Path("lent")):
    ...     raise PermissionError(13, "Permission denied")
    Traceback (most recent call last):
    sharpen.errors.InputError: lent cannot be written to (Permission denied), but training in batches keeps the graph in the order
    of its parts there; make it writable, make room, or store the graph in another folder
    """
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written to ({error.strerror or error}), but training in batches keeps the graph in the order of "
            f"its parts there; make it writable, make room, or store the graph in another folder"
        ) from error


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


@contextmanager
def writing_whole(folder: Path) -> Iterator[Path]:
    """A folder to write to that comes to its place whole or not at all; where another process was quicker, its folder stays.

    >>> place = Path(tempfile.mkdtemp(), "whole")
    >>> with writing_whole(place) as made:
    ...     size = (made / "size").write_text("3")
    >>> [path.name for path in place.iterdir()]
    ['size']
    """
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".writing-") as unfinished:
        made = Path(unfinished, folder.name)
        made.mkdir()
        yield made
        try:
            os.replace(made, folder)
        except OSError:
            if is_free(folder):
                raise


def is_free(folder: Path) -> bool:
    """Whether nothing is there, or an empty folder.

    >>> place = Path(tempfile.mkdtemp())
    >>> is_free(place), is_free(place / "new"), is_free(place.parent)
    (True, True, False)
    """
    return not any(folder.iterdir()) if folder.is_dir() else not folder.exists()
