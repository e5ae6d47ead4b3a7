"""Parquet and JSON lines: tables whose values come with types."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sharpen import limits
from sharpen.errors import InputError, told_as
from sharpen.files.content import Content
from sharpen.files.delimited import check_text, line_finder
from sharpen.files.footer import column_chunks
from sharpen.files.table import DataTable, by_row, check_names, from_objects
from sharpen.limits import check_cells, check_columns, check_unpacked

_FREE_MISSING = 2**25  # keys that lines lack
_MAX_FOOTER = 20 * 2**20


def read_parquet(content: Content) -> DataTable:
    """The table in a Parquet file.

    >>> sink = pa.BufferOutputStream()
    >>> pq.write_table(pa.table({"id": [1, 2]}), sink)
    >>> read_parquet(Content("nodes.parquet", "parquet", sink.getvalue().to_pybytes())).columns.to_pydict()
    {'id': [1, 2]}
    >>> read_parquet(Content("nodes.parquet", "parquet", sink.getvalue().to_pybytes()[:50]))
    Traceback (most recent call last):
    sharpen.errors.InputError: nodes.parquet is not a whole Parquet file (...); copy or write it again
    """
    name = content.name
    with told_as(f"{name} is not a whole Parquet file", "copy or write it again"):
        columns = _read_limited(name, content.data)
        columns.validate(full=True)
    index = [c for c in columns.column_names if c.startswith("__index_level_")]
    check_names(name, list(columns.column_names), "the schema")
    return DataTable(name, columns.drop_columns(index) if index else columns, by_row)


def _read_limited(name: str, data: bytes) -> pa.Table:
    """The table, unless it is many times as large as its file: a value that is repeated costs a Parquet file nothing."""
    footer = int.from_bytes(data[-8:-4], "little")
    if _MAX_FOOTER < footer <= len(data):
        what = f"has a footer of {footer:,} bytes, as of far more than {limits.MAX_COLUMNS:,} columns"
        raise InputError(f"{name} {what}; leave some out, or give them as a list in one column")
    groups = column_chunks(data)
    file = pq.ParquetFile(pa.BufferReader(data))
    about, size = file.metadata, len(data)
    check_columns(name, about.num_columns)
    if any(len(group) != about.num_columns for group in groups):
        raise ValueError("a group of rows lacks columns")
    flat = listed = unpacked = 0
    repeated, dense = set(), set()
    for place in range(about.num_columns):
        column = about.schema.column(place)
        chunks = [group[place] for group in groups]
        values = sum(chunk.values for chunk in chunks)
        unpacked += sum(chunk.unpacked for chunk in chunks)
        flat, listed = (flat, listed + values) if column.max_repetition_level else (flat + values, listed)
        if column.physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
            if column.max_repetition_level or any(chunk.prefixes for chunk in chunks):
                dense.add(column.path.split(".")[0])
            elif any(chunk.repeats for chunk in chunks):
                repeated.add(column.path)
    claimed = max(flat, about.num_rows * about.num_columns)
    for count, free in ((claimed, limits.FREE_CELLS), (listed, limits.FREE_LISTED), (unpacked, None)):
        check_unpacked(name, count, size, free)
    for column in dense:  # read a few rows at a time, only to see how large it is
        grown = 0
        for batch in file.iter_batches(batch_size=64, columns=[column], use_threads=False):
            grown += batch.nbytes
            check_unpacked(f"{name}, column {column!r}", grown, size)
    # As dictionaries, in which a text that is repeated stands once: what it would grow to can be told before it does.
    table = pq.ParquetFile(pa.BufferReader(data), read_dictionary=sorted(repeated)).read(use_threads=False)
    return _without_dictionaries(name, table, size)


def _without_dictionaries(name: str, table: pa.Table, size: int) -> pa.Table:
    for place, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else None
        if kind not in (pa.string(), pa.large_string(), pa.binary()):
            continue
        grown = 0
        for chunk in table.column(place).chunks:
            lengths = pc.binary_length(chunk.dictionary)
            grown += pc.sum(pc.cast(pc.take(lengths, chunk.indices), pa.int64())).as_py() or 0
        check_unpacked(f"{name}, column {field.name!r}", grown, size)
        table = table.set_column(place, field.name, table.column(place).cast(kind))
    return table


def read_json_lines(content: Content) -> DataTable:
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
    records: list[dict[str, Any]] = []
    keys: dict[str, None] = {}
    written = 0
    for line, text in _lines(content.data):
        records.append(_parse(name, line, text))
        keys |= dict.fromkeys(records[-1])
        written += len(records[-1])
        if len(records) % 1000 == 0:
            check_cells(name, len(records), len(keys), written, _FREE_MISSING)
    check_cells(name, len(records), len(keys), written, _FREE_MISSING)
    if not records:
        raise InputError(f"{name} holds only blank lines; write one JSON object per line")
    stripped = [key.strip() for key in keys]
    check_names(name, stripped, "the keys")
    locate = line_finder(name, lambda again: _lines(again.data))

    def place(row: int, key: str) -> str:
        return f"{name} {locate(row)}, column {key!r}"

    arrays = [from_objects([record.get(key) for record in records], partial(place, key=key)) for key in keys]
    return DataTable(name, pa.table(dict(zip(stripped, arrays, strict=True))), locate)


def _lines(data: bytes) -> Iterator[tuple[int, str]]:
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="\n")
    for number, line in enumerate(text, start=1):
        stripped = line.strip()
        if stripped:
            yield number, stripped


def _refuse(constant: str) -> NoReturn:
    """NaN or Infinity, which Python's own writer puts where JSON has no word."""
    raise InputError(f"holds {constant}, which is no number; write null where a value is missing")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _parse(name: str, line: int, text: str) -> dict[str, Any]:
    place = f"{name} line {line}"
    try:
        record = _DECODER.decode(text)
    except InputError as error:
        raise InputError(f"{place} {error}") from None
    except (ValueError, RecursionError) as error:
        what = getattr(error, "msg", type(error).__name__)
        raise InputError(f"{place} is not one JSON object ({what}); write one object per line") from error
    if not isinstance(record, dict):
        hint = " (a whole JSON array is not read)" if isinstance(record, list) else ""
        raise InputError(f"{place} is not one JSON object{hint}; write one object per line")
    if not record:
        raise InputError(f"{place} is an object without values; give it at least an id")
    return record
