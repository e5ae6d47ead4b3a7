"""Arrays out of an ``.npz`` file that anyone may have written: within limits, never a pickle, and damage is named."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Container
from pathlib import Path

import numpy as np

from sharpen.errors import InputError, told_as
from sharpen.limits import check_unpacked


def read_npz(
    name: str,
    source: Path | bytes,
    keys: Container[str] | None = None,
    way_out: str = "save it again with numpy.savez",
) -> dict[str, np.ndarray]:
    """The arrays by their names, in the order of the file.

    What an array says of its shape is compared with the bytes that are there before memory is taken for it. Whatever is
    wrong is an :class:`~sharpen.errors.InputError` that begins with ``name``.

    Args:
        keys: What to read; others are not touched: files of old hold pickled ones beside. None: all.
        way_out: What to do about a file that cannot be used.

    >>> file = io.BytesIO()
    >>> np.savez(file, edges=np.array([[0, 1]]))
    >>> read_npz("graph.npz", file.getvalue())
    {'edges': array([[0, 1]])}
    >>> read_npz("graph.npz", file.getvalue()[:-30])
    Traceback (most recent call last):
    sharpen.errors.InputError: graph.npz is not a whole .npz file (File is not a zip file); save it again with numpy.savez
    """
    arrays = {}
    with (
        told_as(f"{name} is not a whole .npz file", way_out),
        told_as(f"{name} cannot be read", way_out, OSError),
        zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive,
    ):
        packed = len(source) if isinstance(source, bytes) else source.stat().st_size
        for member in archive.infolist():
            part = member.filename.removesuffix(".npy")
            if keys is None or part in keys:
                check_unpacked(f"{name} (array {part!r})", member.file_size, packed)
                arrays[part] = _array(f"{name}: array {part!r}", archive.read(member), way_out)
    return arrays


def _array(name: str, data: bytes, way_out: str) -> np.ndarray:
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(stream)
    if dtype.hasobject:
        way_out = "save it as numbers or as text (dtype str)"
        raise InputError(f"{name} holds pickled Python objects, which are not opened; {way_out}")
    count = int(np.prod(shape, dtype=object))
    if count and not dtype.itemsize:
        raise InputError(f"{name} holds {count:,} values of no length ({dtype}); leave it out, or save it again")
    if count * dtype.itemsize > len(data):
        raise InputError(f"{name} is cut short; {way_out}")
    stream.seek(0)
    return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
