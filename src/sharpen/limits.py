"""How large what a file holds may be, checked before it is made: a few bytes can stand for terabytes.

A file may be unpacked without question to ``_FREE_BYTES``; beyond, to at most ``_MAX_RATIO`` times its own size, and never to more
than half of the memory at hand. Tables may have ``MAX_COLUMNS`` columns, and cells that cost their file nothing, as repeated or
missing ones, up to ``FREE_CELLS``. A graph of ten million edges and a thousand columns is far within all of them.
"""

from __future__ import annotations

from sharpen.errors import InputError
from sharpen.machine import memory_at_hand

_FREE_BYTES = 64 * 2**20
_MAX_BYTES = 8 * 2**30
_MAX_RATIO = 200
MAX_COLUMNS = 50_000
FREE_CELLS = 2**27
FREE_LISTED = 2**25  # values in lists, of which one row may hold any number


def check_unpacked(name: str, size: int, packed: int, free: int | None = None) -> None:
    """Refuses a part of a file that would be unpacked from ``packed`` to ``size`` bytes, if that is too many.

    Args:
        free: What is allowed in any case; None: ``_FREE_BYTES``.

    >>> check_unpacked("nodes.csv.gz", 1000, packed=10)
    >>> check_unpacked("nodes.csv.gz", 2**40, packed=10**6)
    Traceback (most recent call last):
    sharpen.errors.InputError: nodes.csv.gz unpacks from 1,000,000 to 1,099,511,627,776 bytes or more, as only a harmful ...
    """
    if _within(size, packed, free):
        return
    if size <= _MAX_RATIO * packed:
        what = f"{name} unpacks to {size:,} bytes or more, but {memory_at_hand():,} bytes of memory are free"
        raise InputError(what, hint="use a machine with more memory, or leave columns out")
    what = f"{name} unpacks from {packed:,} to {size:,} bytes or more, as only a harmful file (a zip bomb) does"
    raise InputError(what, hint="unpack it yourself if you trust it, and give the unpacked file")


def _within(size: int, packed: int, free: int | None = None) -> bool:
    if size <= (_FREE_BYTES if free is None else free):
        return True
    return size <= min(_MAX_RATIO * packed, _MAX_BYTES, memory_at_hand() // 2)


def check_size(name: str, size: int) -> None:
    """Refuses a file that does not fit in memory, before it is read.

    >>> check_size("nodes.csv", 10**15)
    Traceback (most recent call last):
    sharpen.errors.InputError: nodes.csv has 1,000,000,000,000,000 bytes, but ... bytes of memory are free; use a machine ...
    """
    if size > _FREE_BYTES and size > (left := memory_at_hand()) // 2:
        what = f"{name} has {size:,} bytes, but {left:,} bytes of memory are free"
        raise InputError(what, hint="use a machine with more memory, or a part of it")


def check_columns(name: str, count: int, way_out: str = "leave some out, or give them as a list in one column") -> None:
    """Refuses a table with more columns than are read in seconds.

    >>> check_columns("nodes.csv", 200_000)
    Traceback (most recent call last):
    sharpen.errors.InputError: nodes.csv has 200,000 columns, but at most 50,000 are read; leave some out, or ...
    """
    if count > MAX_COLUMNS:
        raise InputError(f"{name} has {count:,} columns, but at most {MAX_COLUMNS:,} are read; {way_out}")


def check_cells(name: str, rows: int, columns: int, written: int, free: int) -> None:
    """Refuses a table that is large only by cells that cost the file nothing: it spends ``written`` bytes or cells on them.

    >>> check_cells("nodes.jsonl", 20_000, 20_000, written=40_000, free=2**25)
    Traceback (most recent call last):
    sharpen.errors.InputError: nodes.jsonl would be 20,000 rows of 20,000 columns, most of them never written; ...
    """
    check_columns(name, columns)
    if not _within(rows * columns, written, free):
        what = f"{name} would be {rows:,} rows of {columns:,} columns, most of them never written"
        raise InputError(what, hint="give every row the same columns")
