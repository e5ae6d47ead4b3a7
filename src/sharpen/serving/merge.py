"""A graph with some rows changed and some added, for one request: the tables that are served stay as they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sharpen.errors import InputError
from sharpen.files.ids import id_keys
from sharpen.files.table import DataTable, as_text, canonical, from_objects

_Record = Mapping[str, Any]


def merged_nodes(base: DataTable | None, records: Sequence[_Record], id_column: str) -> tuple[DataTable, list[int]]:
    """The nodes of a table, changed and new ones among them, and the rows of these in the order of the records.

    A record with the id of a node changes the columns that it names; one with another id adds a node at the end.

    Args:
        base: The table that is served; None: the records are all there is.
        records: By column.
        id_column: The column of ids.

    >>> from sharpen.files.table import by_row
    >>> base = DataTable("nodes.csv", pa.table({"id": ["a", "b"], "age": ["3", "4"]}), by_row)
    >>> table, rows = merged_nodes(base, [{"id": "c", "age": 5}, {"id": "a", "age": 9}], "id")
    >>> table.columns.to_pydict(), rows
    ({'id': ['a', 'b', 'c'], 'age': ['9', '4', '5']}, [2, 0])
    """
    keys = _ids(records, id_column)
    if base is None:
        return DataTable("the request", _columns(records, [], None), _place), list(range(len(records)))
    row_of = {key: row for row, key in enumerate(id_keys(base, id_column).to_pylist())}
    unknown = sorted({name for record in records for name in record} - set(base.names))
    if unknown:
        raise InputError(
            f"node {keys[0]!r} names column {unknown[0]!r}, which {base.name} does not have; it has {', '.join(base.names)}"
        )
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
    added = _columns(changed, base.names, base.columns.schema)
    # In place, so that a graph whose rows are given unchanged is still the same graph.
    order = np.arange(new)
    order[rows] = count + np.arange(len(rows))
    both = pa.concat_tables([base.columns, added], promote_options="permissive").take(pa.array(order))
    return DataTable(base.name, both, _place, delimiter=base.delimiter), rows


def merged_edges(base: DataTable | None, records: Sequence[_Record], ends: tuple[str, str]) -> DataTable:
    """The edges of a table, and those of a request.

    Args:
        base: The table that is served; None: the records are all there is.
        records: By column.
        ends: What the two ends are called; a record may also call them ``source`` and ``target``.

    >>> merged_edges(None, [{"source": "a", "target": "b"}], ("source", "target")).columns.to_pydict()
    {'source': ['a'], 'target': ['b']}
    """
    named = [
        {{"source": ends[0], "target": ends[1]}.get(name, name): value for name, value in record.items()}
        for record in records
    ]
    for number, record in enumerate(named, start=1):
        missing = next((end for end in ends if record.get(end) is None), None)
        if missing is not None:
            raise InputError(f"edge {number} does not say its {missing!r}; name both ends")
    if base is None:
        empty = pa.table({name: pa.array([], pa.string()) for name in ends})
        return DataTable("the request", _columns(named, list(ends), None) if named else empty, _place)
    if not named:
        return base
    unknown = sorted({name for record in named for name in record} - set(base.names))
    if unknown:
        raise InputError(
            f"an edge names column {unknown[0]!r}, which {base.name} does not have; it has {', '.join(base.names)}"
        )
    added = _columns(named, base.names, base.columns.schema)
    both = pa.concat_tables([base.columns, added], promote_options="permissive")
    return DataTable(base.name, both, _place, delimiter=base.delimiter)


def _ids(records: Sequence[_Record], column: str) -> list[str]:
    """The ids of records, in the form in which they are compared."""
    values = []
    for number, record in enumerate(records, start=1):
        value = record.get(column)
        if value is None or isinstance(value, list | dict) or not str(value).strip():
            raise InputError(f"node {number} has no {column!r}; give every node its id")
        values.append(value if isinstance(value, str) else str(value))
    keys: list[str] = canonical(pa.array(values, pa.string())).to_pylist()
    again = next((key for i, key in enumerate(keys) if key in keys[:i]), None) if len(set(keys)) < len(keys) else None
    if again is not None:
        raise InputError(f"the id {again!r} stands twice in the request; give each node once")
    return keys


def _columns(records: Sequence[_Record], names: Sequence[str], like: pa.Schema | None) -> pa.Table:
    """Records as columns, of the types of a table where there is one."""
    every = list(names) or list(dict.fromkeys(name for record in records for name in record))
    columns = {}
    for name in every:
        place, cells = _cell(name), [record.get(name) for record in records]
        wrong = next(
            (row for row, cell in enumerate(cells) if isinstance(cell, float) and not math.isfinite(cell)), None
        )
        if wrong is not None:
            raise InputError(f"{place(wrong)} is {cells[wrong]}; write null where a value is missing")
        kind = None if like is None else like.field(name).type
        if kind is not None and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
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


def _cell(name: str) -> Any:
    return lambda row: f"node or edge {row + 1} of the request, column {name!r}"


def _place(row: int) -> str:
    return f"row {row + 1}"
