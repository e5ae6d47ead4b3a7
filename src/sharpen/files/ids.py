"""Which column names the nodes: the one whose values are unique and are the ends of edges; names of columns come second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from sharpen.errors import InputError, as_given
from sharpen.files.columns import Columns, guess_ends, guess_label, guess_weight, id_by_name, is_number, listed, no_id
from sharpen.files.table import DataTable, canonical, comparable_cells, decoded, first_row, is_text, to_objects

_GLANCE = 64
# A column of ids with a few mistakes is still one of ids; the mistakes are named later.
NEARLY_UNIQUE, MOSTLY_ENDS = 0.9, 0.5


def choose_id(
    table: DataTable, edges: DataTable | None, columns: Columns, known: Sequence[str] | np.ndarray | None = None
) -> str:
    """The column of a node table that names the nodes.

    Args:
        known: In place of edges: ids that the table should hold, such as those of predictions.

    >>> from sharpen.files.table import by_row
    >>> people = DataTable("nodes.csv", pa.table({"name": ["Ann", "Ann"], "Personal-Nr.": ["7", "9"]}), by_row)
    >>> choose_id(people, DataTable("edges.csv", pa.table({"a": ["7"], "b": ["9"]}), by_row), Columns())
    'Personal-Nr.'
    """
    names = [name for name in table.names if name not in (columns.label, *(columns.features or ()), *columns.ignore)]
    by_name = id_by_name(names)
    if by_name is None and guess_ends(table.names) is not None and len(table.names) <= 4:
        what = f"looks like a table of edges (it has {listed(table.names)})"
        raise InputError(f"{table.name} {what}; give the table of nodes first")
    label = guess_label(names, taken="") if columns.label is None else columns.label
    unique = [name for name in names if _nearly_unique(table, name)]
    ends = _ends(edges, columns) if known is None else [canonical(pa.array(list(known), pa.string()))]
    if ends:
        covers = {name: _covers(table, name, ends) for name in unique}
        best = max(covers.values(), default=0.0)
        if best >= MOSTLY_ENDS:
            first = [name for name, share in covers.items() if share == best]
            return id_by_name(first) or first[0]
    if by_name is not None:
        return by_name
    whole = [name for name in unique if name != label and _can_name(table, name)]
    if len(whole) == 1:
        return whole[0]
    raise no_id(table.name, table.names, label_missing=label is None)


def read_ids(table: DataTable, column: str) -> np.ndarray:
    """The ids as they stand; an InputError if one is blank or not unique.

    >>> from sharpen.files.table import by_row
    >>> read_ids(DataTable("nodes.csv", pa.table({"id": ["1.0", "a"]}), by_row), "id").tolist()
    ['1.0', 'a']
    """
    text = table.text(column)
    if (row := first_row(text.is_null())) is not None:
        more = f" ({text.null_count - 1} more are)" if text.null_count > 1 else ""
        what = f"{table.place(row, column)} is blank{more}, but every node needs an id"
        raise InputError(f"{what}; fill it in or remove the row")
    keys = canonical(text)
    if pc.count_distinct(keys).as_py() < len(keys):
        first = pc.index_in(keys, value_set=pc.unique(keys)).to_numpy(zero_copy_only=False)
        _, rows = np.unique(first, return_index=True)
        again = np.setdiff1d(np.arange(len(keys)), rows)
        before = int(np.flatnonzero(first == first[again[0]])[0])
        others = f" ({len(again) - 1} more row{'s repeat' if len(again) > 2 else ' repeats'} an id)"
        more = others if len(again) > 1 else ""
        where = f"already stands on {table.locate(before)}, in a row that differs{more}"
        way_out = f"give every node its own id, or name another column with {as_given('id')}"
        row = int(again[0])
        raise InputError(f"the id {str(text[row])!r} {where}", place=table.place(row, column), hint=way_out)
    return to_objects(text)


def without_copies(table: DataTable) -> DataTable:
    """The table with each row once; a note says how many were exact copies.

    >>> from sharpen.files.table import by_row
    >>> once = without_copies(DataTable("nodes.csv", pa.table({"id": ["a", "b", "a"], "age": ["1", "2", "1"]}), by_row))
    >>> once.columns.to_pydict(), once.notes
    ({'id': ['a', 'b'], 'age': ['1', '2']}, ('nodes.csv: 1 row is an exact copy of another (the first is row 3) and is left out',))
    """
    rows = table.columns
    if any(_all_differ(rows.column(name)) for name in table.names):
        return table
    frame = pd.DataFrame({i: rows.column(i).to_pandas().map(repr) for i in range(rows.num_columns)})
    copy = frame.duplicated().to_numpy()
    count = int(copy.sum())
    if not count:
        return table
    kept, place = np.flatnonzero(~copy), table.locate(int(np.argmax(copy)))
    are = f"{count:,} rows are exact copies of others" if count > 1 else "1 row is an exact copy of another"
    note = f"{table.name}: {are} (the first is {place}) and {'are' if count > 1 else 'is'} left out"
    once, locate = rows.filter(pa.array(~copy)), lambda row: table.locate(int(kept[row]))
    return replace(table, columns=once, locate=locate, notes=(*table.notes, note))


def is_edge(cells: list[str], nodes: DataTable, columns: Columns) -> bool:
    """Whether the first row of an edge file is an edge rather than the names of its columns.

    >>> from sharpen.files.table import by_row
    >>> nodes = DataTable("nodes.csv", pa.table({"id": ["ann", "bob"]}), by_row)
    >>> is_edge(["ann", "bob"], nodes, Columns()), is_edge(["from", "to"], nodes, Columns()), is_edge(["7", "8"], nodes, Columns())
    (True, False, True)
    """
    if len(cells) < 2 or any(name in cells for name in (columns.source, columns.target, columns.weight) if name):
        return False
    if all(is_number(cell) for cell in cells[:2]):
        return True
    if guess_ends(cells) is not None:
        return False
    ends = [canonical(pa.array(cells[:2], pa.string()))]
    return any(_nearly_unique(nodes, name) and _covers(nodes, name, ends) == 1 for name in nodes.names)


def _ends(edges: DataTable | None, columns: Columns) -> list[pa.Array]:
    """The columns of an edge table that may hold ids, in the form in which they are compared."""
    if edges is None or not edges.columns.num_rows:
        return []
    pair = (columns.source, columns.target) if columns.source and columns.target else guess_ends(edges.names)
    weights = (columns.weight, guess_weight(edges.names))
    names = [name for name in edges.names if (name in pair if pair else name not in weights)]
    return [cells for name in names if (cells := comparable_cells(edges, name)) is not None]


def _covers(table: DataTable, name: str, ends: list[pa.Array]) -> float:
    """The share of the cells of the two columns (or the one) that it covers best which are among its values."""
    keys = id_keys(table, name)
    shares = sorted(float(pc.mean(pc.is_in(end, value_set=keys)).as_py() or 0.0) for end in ends)
    return sum(shares[-2:]) / len(shares[-2:])


def id_keys(table: DataTable, name: str) -> pa.Array:
    """A column in the form in which ids are compared.

    >>> from sharpen.files.table import by_row
    >>> id_keys(DataTable("nodes.csv", pa.table({"id": ["1.0", "a"]}), by_row), "id").to_pylist()
    ['1', 'a']
    """
    return canonical(table.text(name)).cast(pa.string())


def _all_differ(values: pa.ChunkedArray) -> bool:
    """Whether these are words or whole numbers of which no two are the same."""
    values = decoded(values)
    if not is_text(values.type) and not pa.types.is_integer(values.type):
        return False
    return all(pc.count_distinct(each).as_py() == len(each) for each in (values.slice(0, _GLANCE), values))


def _nearly_unique(table: DataTable, name: str) -> bool:
    values = decoded(table.columns.column(name))
    if not is_text(values.type) and not pa.types.is_integer(values.type) and not pa.types.is_floating(values.type):
        return False
    for some in (values.slice(0, _GLANCE), id_keys(table, name)):
        if pc.count_distinct(some).as_py() < NEARLY_UNIQUE * len(some) - 1:
            return False
    return True


def _can_name(table: DataTable, name: str) -> bool:
    """Whether, with no edges to go by, it names nodes rather than measures them: all different, and words or whole numbers."""
    keys = id_keys(table, name)
    fractions = pc.any(pc.match_substring_regex(keys, r"^[+-]?[0-9]*[.,][0-9]+$")).as_py()
    return bool(keys.null_count == 0 and pc.count_distinct(keys).as_py() == len(keys) and not fractions)
