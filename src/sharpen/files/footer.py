"""What the footer of a Parquet file says of its columns, read without Arrow: of a damaged one, Arrow's own view ends the process.

The footer is a structure of Thrift's compact protocol, https://github.com/apache/parquet-format: fields by number, each with its
type, lists with their length in front.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

_MOST_DEPTH = 16
_DICTIONARY, _SHARED_PREFIXES = {2, 8}, 7


class Chunk(NamedTuple):
    """A column in one group of rows."""

    values: int  # those in lists counted each
    unpacked: int  # bytes of its pages
    repeats: bool  # whether a value may stand once for many
    prefixes: bool  # whether values may stand without the beginning that they share


def column_chunks(data: bytes) -> list[list[Chunk]]:
    """The columns of every group of rows; a ValueError if the footer cannot be read.

    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> sink = pa.BufferOutputStream()
    >>> pq.write_table(pa.table({"id": [1, 2], "v": [[1.0], [2.0, 3.0]]}), sink)
    >>> [[chunk.values for chunk in group] for group in column_chunks(sink.getvalue().to_pybytes())]
    [[2, 3]]
    """
    size = int.from_bytes(data[-8:-4], "little")
    if len(data) < 12 or data[-4:] != b"PAR1" or not 0 < size <= len(data) - 12:
        raise ValueError("its footer is not where it should be")
    try:
        groups = _Reader(data[-8 - size : -8]).struct().get(4, [])
        return [[_chunk(column[3]) for column in group[1]] for group in groups]
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"its footer is damaged ({type(error).__name__})") from error


def _chunk(about: dict[int, Any]) -> Chunk:
    encodings = set(about[2])
    values, unpacked = about[5], about[6]
    if not (isinstance(values, int) and isinstance(unpacked, int) and values >= 0 and unpacked >= 0):
        raise ValueError("its footer has a negative size")
    return Chunk(values, unpacked, bool(encodings & _DICTIONARY), _SHARED_PREFIXES in encodings)


class _Reader:
    """Reads values of Thrift's compact protocol, one after another."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """A structure as a dict by the numbers of its fields."""
        if depth > _MOST_DEPTH:
            raise ValueError("its footer is nested too deep")
        return dict(self._fields(depth))

    def _fields(self, depth: int) -> Iterator[tuple[int, Any]]:
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = head & 15
            yield number, kind == 1 if kind in (1, 2) else self._value(kind, depth)

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 12:
            return self.struct(depth + 1)
        if kind == 9 or kind == 10:
            return self._list(depth + 1)
        if kind == 8:
            return self._bytes(self._unsigned())
        if kind in (1, 2, 3):
            return self._byte()
        if kind == 7:
            return self._bytes(8)
        raise ValueError("its footer holds a type that there is none of")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._unsigned()
        if count > len(self._data) - self._at or depth > _MOST_DEPTH:
            raise ValueError("its footer holds a list that is longer than itself")
        return [self._value(head & 15, depth) for _ in range(count)]

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        if self._at > len(self._data):
            raise ValueError("its footer is cut off")
        return self._data[self._at - count : self._at]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("its footer holds a number that is too long")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
