"""A graph with some rows changed and some added, for one request: the tables that are served stay as they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sharpen.errors import InputError
from sharpen.files.ids import id_keys
from sharpen.files.table import DataTable, as_text, by_row, comparable_ids, from_objects, is_text

_Record = Mapping[str, Any]


def merged_nodes(base: DataTable | None, records: Sequence[_Record], id_column: str) -> tuple[DataTable, list[int]]:
    """The nodes of a table, changed and new ones among them, and the rows of these in the order of the records.

    A record with the id of a node changes the columns that it names; one with another id adds a node at the end.

    >>> base = DataTable("nodes.csv", pa.table({"id": ["a", "b"], "age": ["3", "4"]}), by_row)
    >>> table, rows = merged_nodes(base, [{"id": "c", "age": 5}, {"id": "a", "age": 9}], "id")
    >>> table.columns.to_pydict(), rows
    ({'id': ['a', 'b', 'c'], 'age': ['9', '4', '5']}, [2, 0])
    """
    keys = _ids(records, id_column)
    if base is None:
        return DataTable("the request", _columns(records, [], None), by_row), list(range(len(records)))
    row_of = {key: row for row, key in enumerate(id_keys(base, id_column).to_pylist())}
    _check_names(f"node {keys[0]!r}", records, base)
    count, changed, rows = base.columns.num_rows, [], []
    new = count
    for key, record in zip(keys, records, strict=True):
        if key in row_of:
            row = row_of[key]
            changed.append({name: base.columns.column(name)[row].as_py() for name in base.names} | dict(record))
        else:
            row, new = new, new + 1
            changed.append(dict(record))
        rows.append(row)
    # In place, so that a graph whose rows are given unchanged is still the same graph.
    order = np.arange(new)
    order[rows] = count + np.arange(len(rows))
    both = _with(base, changed)
    return replace(both, columns=both.columns.take(pa.array(order))), rows


def merged_edges(base: DataTable | None, records: Sequence[_Record], ends: tuple[str, str]) -> DataTable:
    """The edges of a table, and those of a request, which may also call their ends ``source`` and ``target``.

    >>> merged_edges(None, [{"source": "a", "target": "b"}], ("source", "target")).columns.to_pydict()
    {'source': ['a'], 'target': ['b']}
    """
    real = dict(zip(("source", "target"), ends, strict=True))
    named = [{real.get(name, name): value for name, value in record.items()} for record in records]
    for number, record in enumerate(named, start=1):
        for missing in (end for end in ends if record.get(end) is None):
            raise InputError(f"edge {number} does not say its {missing!r}; name both ends")
    if base is None:
        empty = pa.table({name: pa.array([], pa.string()) for name in ends})
        return DataTable("the request", _columns(named, list(ends), None) if named else empty, by_row)
    if not named:
        return base
    _check_names("an edge", named, base)
    return _with(base, named)


def _check_names(who: str, records: Sequence[_Record], base: DataTable) -> None:
    for unknown in sorted({name for record in records for name in record} - set(base.names)):
        there = f"{base.name} does not have; it has {', '.join(base.names)}"
        raise InputError(f"{who} names column {unknown!r}, which {there}")


def _with(base: DataTable, records: Sequence[_Record]) -> DataTable:
    """A table and, below it, some rows."""
    added = _columns(records, base.names, base.columns.schema)
    both = pa.concat_tables([base.columns, added], promote_options="permissive")
    return DataTable(base.name, both, by_row, delimiter=base.delimiter)


def _ids(records: Sequence[_Record], column: str) -> list[str]:
    """The ids of records, in the form in which they are compared."""
    values = []
    for number, record in enumerate(records, start=1):
        value = record.get(column)
        if value is None or isinstance(value, list | dict) or not str(value).strip():
            raise InputError(f"node {number} has no {column!r}; give every node its id")
        values.append(value)
    keys: list[str] = comparable_ids(values).tolist()
    for again, times in Counter(keys).items():
        if times > 1:
            raise InputError(f"the id {again!r} stands twice in the request; give each node once")
    return keys


def _columns(records: Sequence[_Record], names: Sequence[str], like: pa.Schema | None) -> pa.Table:
    """Records as columns, of the types of a table where there is one."""
    every = list(names) or list(dict.fromkeys(name for record in records for name in record))
    columns = {}
    for name in every:
        place, cells = partial(_place, column=name), [record.get(name) for record in records]
        for row, cell in enumerate(cells):
            if isinstance(cell, float) and not math.isfinite(cell):
                raise InputError(f"{place(row)} is {cell}; write null where a value is missing")
        kind = None if like is None else like.field(name).type
        if kind is not None and is_text(kind):
            cells = [_text(cell, place(row)) for row, cell in enumerate(cells)]
        values = from_objects(cells, place)
        kind = values.type if kind is None else kind
        try:
            columns[name] = values.cast(kind)
        except pa.ArrowException as error:
            raise InputError(f"column {name!r} of the request does not hold {kind} values; give them") from error
    return pa.table(columns)


def _text(cell: Any, place: str) -> str | None:
    """A value as a file of text holds it.

    >>> _text(3.0, ""), _text(True, ""), _text("x", "")
    ('3', 'true', 'x')
    """
    if cell is None or isinstance(cell, str):
        return cell
    column = from_objects([cell], lambda row: place)
    return as_text(pa.chunked_array([column]), lambda row: place)[0].as_py()


def _place(row: int, column: str) -> str:
    return f"node or edge {row + 1} of the request, column {column!r}"
