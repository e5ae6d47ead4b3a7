"""Parquet and JSON lines: tables whose values come with types."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from sharpen.errors import InputError
from sharpen.files.content import Content, read_file, reason, too_large, within_limits
from sharpen.files.delimited import check_text
from sharpen.files.table import Table, by_row, check_names, from_objects


def read_parquet(content: Content) -> Table:
    """The table in a Parquet file.

    >>> sink = pa.BufferOutputStream()
    >>> pq.write_table(pa.table({"id": [1, 2]}), sink)
    >>> read_parquet(Content("nodes.parquet", "parquet", sink.getvalue().to_pybytes())).columns.to_pydict()
    {'id': [1, 2]}
    >>> read_parquet(Content("nodes.parquet", "parquet", sink.getvalue().to_pybytes()[:50]))
    Traceback (most recent call last):
    sharpen.errors.InputError: nodes.parquet is not a whole Parquet file (...); copy or write it again
    """
    name, size = content.name, len(content.data)
    try:
        file = pq.ParquetFile(pa.BufferReader(content.data))
        claimed = file.metadata.num_rows * max(1, file.metadata.num_columns)  # repeats cost a Parquet file nothing
        if not within_limits(claimed, size):
            raise too_large(name, claimed, size)
        columns = file.read(use_threads=False)
        columns.validate(full=True)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError, KeyError, TypeError) as error:
        raise InputError(f"{name} is not a whole Parquet file ({reason(error)}); copy or write it again") from error
    index = [c for c in columns.column_names if c.startswith("__index_level_")]
    check_names(name, list(columns.column_names), "the schema")
    return Table(name, columns.drop_columns(index) if index else columns, by_row)


def read_json_lines(content: Content) -> Table:
    r"""The table in a file of one JSON object per line; a key that a line lacks, or null, is a missing value.

    >>> content = Content("nodes.jsonl", "jsonl", b'{"id": 1, "age": 3}\n\n{"id": 2}\n')
    >>> read_json_lines(content).columns.to_pydict()
    {'id': [1, 2], 'age': [3, None]}
    >>> read_json_lines(Content("nodes.jsonl", "jsonl", b'{"id": 1}\n{"id"\n'))
    Traceback (most recent call last):
    sharpen.errors.InputError: nodes.jsonl line 2 is not one JSON object (Expecting ':' delimiter); write one object ...
    """
    check_text(content)
    name = content.name
    columns: dict[str, list[Any]] = {}
    rows = 0
    for line, text in _lines(content.data):
        record = _parse(name, line, text)
        for key, value in record.items():
            if key not in columns:
                columns[key] = [None] * rows
            columns[key].append(value)
        rows += 1
        if len(record) < len(columns):
            for values in columns.values():
                if len(values) < rows:
                    values.append(None)
    if rows == 0:
        raise InputError(f"{name} holds only blank lines; write one JSON object per line")
    stripped = [key.strip() for key in columns]
    check_names(name, stripped, "the keys")
    lines = _Lines(name)
    arrays = [
        from_objects(values, lambda row, key=key: f"{name} {lines.locate(row)}, column {key!r}")  # type: ignore[misc]
        for key, values in columns.items()
    ]
    return Table(name, pa.table(dict(zip(stripped, arrays, strict=True))), lines.locate)


def _lines(data: bytes) -> Iterator[tuple[int, str]]:
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="\n")
    for number, line in enumerate(text, start=1):
        stripped = line.strip()
        if stripped:
            yield number, stripped


class _Constant(ValueError):
    """NaN or Infinity, which Python's own writer puts where JSON has no word."""


def _refuse(constant: str) -> NoReturn:
    raise _Constant(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _parse(name: str, line: int, text: str) -> dict[str, Any]:
    place = f"{name} line {line}"
    try:
        record = _DECODER.decode(text)
    except _Constant as error:
        raise InputError(f"{place} holds {error}, which is no number; write null where a value is missing") from error
    except (ValueError, RecursionError) as error:
        what = getattr(error, "msg", type(error).__name__)
        raise InputError(f"{place} is not one JSON object ({what}); write one object per line") from error
    if not isinstance(record, dict):
        hint = " (a whole JSON array is not read)" if isinstance(record, list) else ""
        raise InputError(f"{place} is not one JSON object{hint}; write one object per line")
    if not record:
        raise InputError(f"{place} is an object without values; give it at least an id")
    return record


@dataclass(frozen=True)
class _Lines:
    name: str

    def locate(self, row: int) -> str:
        try:
            data = read_file(self.name).data
        except InputError:  # gone or changed since
            return by_row(row)
        return next((f"line {line}" for number, (line, _) in enumerate(_lines(data)) if number == row), by_row(row))
