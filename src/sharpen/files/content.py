"""A user's file as bytes: found or its nearest name told, unpacked within limits, and never a pickle.

The kind of a file follows from its name: ``nodes.csv``, ``nodes.csv.gz``, or ``nodes.zip`` with one member ``nodes.csv``.
How far a packed file may grow is the business of :mod:`sharpen.limits`.
"""

from __future__ import annotations

import bz2
import difflib
import gzip
import io
import itertools
import lzma
import pickletools
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from sharpen.errors import InputError, printable, told_as
from sharpen.limits import check_size, check_unpacked

_ENDINGS = {
    "csv": (".csv", ".txt"), "tsv": (".tsv", ".tab"), "parquet": (".parquet", ".pq"), "npz": (".npz",), "pt": (".pt", ".pth"),
    "jsonl": (".jsonl", ".ndjson", ".json"), "graphml": (".graphml",), "gexf": (".gexf",),
}  # fmt: skip
_KINDS = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings}
_UNPACKED: dict[str, Callable[[io.BytesIO], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": lambda file: pa.CompressedInputStream(file, "zstd"),
}
_PICKLES = (".pkl", ".pickle", ".p", ".joblib", ".dill")
_SHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
_FORMATS = "CSV, TSV, Parquet, JSON lines (also .gz, .bz2, .xz, .zst, .zip), .npz, GraphML, GEXF or a PyG .pt"
_MAGIC = (
    (b"PAR1", "a Parquet file", ".parquet"),
    (b"\x1f\x8b", "packed with gzip", ".gz"),
    (b"BZh", "packed with bzip2", ".bz2"),
    (b"\xfd7zXZ\x00", "packed with xz", ".xz"),
    (b"\x28\xb5\x2f\xfd", "packed with Zstandard", ".zst"),
    (b"PK\x03\x04", "a zip archive", ".zip"),
)


@dataclass(frozen=True)
class Content:
    """What a file holds."""

    name: str  # the path as the user gave it, for messages
    kind: str  # one of _KINDS
    data: bytes  # unpacked


def read_file(path: Path | str) -> Content:
    """The bytes of a file and the kind that its name says.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "nodes.csv.gz"
    >>> _ = path.write_bytes(gzip.compress(b"id,label"))
    >>> content = read_file(path)
    >>> content.kind, content.data
    ('csv', b'id,label')
    >>> read_file(path.with_name("node.csv.gz"))
    Traceback (most recent call last):
    sharpen.errors.InputError: ...node.csv.gz does not exist; did you mean ...nodes.csv.gz?
    """
    path = Path(path)
    name = str(path)
    _check_is_file(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in (*_UNPACKED, ".zip") else None
    suffix = suffixes[-1] if suffixes else ""
    if packed != ".zip":  # whose member's name counts
        _check_suffix(name, suffix)
    with told_as(f"{name} cannot be read", "check that you may read it", (OSError, MemoryError)):
        check_size(name, path.stat().st_size)
        data = path.read_bytes()
    if not data:
        raise InputError(f"{name} is empty (0 bytes); write it again, with a header line and one row per node or edge")
    with told_as(f"{name} is damaged: it cannot be unpacked", "copy or pack it again"):
        if packed == ".zip":
            suffix, data = _unzip(name, data, suffix)
        elif packed is not None:
            data = _read_limited(name, _UNPACKED[packed](io.BytesIO(data)), len(data))
    if not data:
        raise InputError(f"{name} is empty once unpacked; write it again, with a header line and rows")
    kind = _KINDS[suffix]
    _check_content(name, kind, data)
    return Content(name, kind, data)


def _check_is_file(path: Path) -> None:
    try:
        plain, folder, there = path.is_file(), path.is_dir(), path.exists()
        around = [p.name for p in (path if folder else path.parent).iterdir() if p.is_file()] if not plain else []
    except (OSError, ValueError):  # a folder that does not exist or may not be listed; a NUL in the name
        plain = folder = there = False
        around = []
    if plain:
        return
    if folder:
        which = f"such as {path / min(around)}" if around else "in it"
        raise InputError(f"{path} is a directory; give a file {which}")
    if there:
        raise InputError(f"{path} is not a plain file; save what it gives to a file first")
    near = difflib.get_close_matches(path.name, around, n=1)
    way_out = f"did you mean {path.parent / near[0]}?" if near else "check the path"
    raise InputError(f"{path} does not exist; {way_out}")


def _check_suffix(name: str, suffix: str) -> None:
    if suffix in _PICKLES:
        raise InputError(
            f"{name} is a pickle, which could run any program, and is not opened; save it as CSV or Parquet"
        )
    if suffix in _SHEETS:
        raise InputError(f"{name} is a spreadsheet; save the sheet as CSV (File, Save as, CSV UTF-8) and give that")
    if suffix not in _KINDS:
        said = f"ends in {suffix}" if suffix else "has no ending"
        raise InputError(f"{name} {said}, which tells no known format; save it as {_FORMATS}")


def _unzip(name: str, raw: bytes, suffix: str) -> tuple[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
        if len(members) != 1:
            found = ", ".join(printable(m.filename) for m in members[:4]) or "nothing"
            raise InputError(f"{name} holds {len(members)} files ({found}); give an archive of one file, or unpack it")
        member = members[0]
        inner = Path(member.filename).suffix.lower()
        if inner not in _KINDS and suffix in _KINDS:
            inner = suffix  # nodes.csv.zip says what a member without an ending is
        _check_suffix(f"{name} (member {printable(member.filename)})", printable(inner))
        if member.flag_bits & 1:
            raise InputError(f"{name} is protected by a password; unpack it, and give the unpacked file")
        return inner, _read_limited(name, archive.open(member), member.compress_size)


def _read_limited(name: str, stream: IO[bytes], packed: int) -> bytes:
    data = bytearray()
    with stream:
        while chunk := stream.read(2**20):
            data += chunk
            check_unpacked(name, len(data), packed)
    return bytes(data)


def _check_content(name: str, kind: str, data: bytes) -> None:
    if kind != "pt" and is_pickle(data):
        what = "is a pickle, whatever its name says; pickles could run any program and are not opened"
        raise InputError(f"{name} {what}: save the table as CSV or Parquet")
    if kind in ("csv", "tsv", "jsonl", "graphml", "gexf"):
        for magic, what, ending in _MAGIC:
            if data.startswith(magic):
                raise InputError(f"{name} is {what} by its content; rename it so that it ends in {ending}")


def is_pickle(data: bytes) -> bool:
    """Whether bytes are a Python pickle; nothing is executed to find out.

    >>> import pickle
    >>> [is_pickle(pickle.dumps({"id": 1}, protocol=p)) for p in range(6)]
    [True, True, True, True, True, True]
    >>> is_pickle(b"id,label")
    False
    """
    if data[:1] == b"\x80" and data[1:2] <= b"\x05":
        return True
    if data[-1:] != b"." or data[:1] not in b"(c]}l)dSVIFLNKJM":  # how a pickle of protocol 0 or 1 ends and begins
        return False
    try:
        positions = [position for _, _, position in itertools.islice(pickletools.genops(data), 10_000)]
    except Exception:  # pickletools raises whatever the stray bytes lead it to
        return False
    return len(positions) == 10_000 or positions[-1] == len(data) - 1  # no text happens to be so many instructions
