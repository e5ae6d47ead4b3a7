"""The columns of a node table to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from sharpen.errors import InputError, Problems, as_given, printable
from sharpen.files.column import DataColumn
from sharpen.files.columns import Columns, find, listed
from sharpen.files.decimals import SEPARATED_BY, decimal_commas, reading
from sharpen.files.table import DataTable, decoded, first_row


def feature_columns(table: DataTable, columns: Columns, taken: set[str | None], problems: Problems) -> pd.DataFrame:
    """The columns to learn from, as they stand, lists spread out.

    Args:
        taken: Columns that are the id or the label.
        problems: Receives what is wrong with single columns, which are then left out.

    >>> from sharpen.files.table import by_row
    >>> table = DataTable("nodes.parquet", pa.table({"id": [1], "v": [[0.5, 2.0]]}), by_row)
    >>> feature_columns(table, Columns(), {"id"}, Problems()).to_dict("list")
    {'v[0]': [0.5], 'v[1]': [2.0]}
    """
    ignored = {find(table.name, table.names, name, "ignore") for name in columns.ignore}
    if columns.features is None:
        wanted = [name for name in table.names if name not in taken and name not in ignored]
    else:
        wanted = [find(table.name, table.names, name, "features") for name in dict.fromkeys(columns.features)]
        for both in (name for name in wanted if name in taken or name in ignored):
            what = f"{both!r} is given as a feature and as id, label or ignored"
            raise InputError(f"{table.name}: {what}; give it one part")
    series: dict[str, Any] = {}
    for name in wanted:
        with problems.collected():
            for key, values in _expanded(table, name).items():
                wrong = pc.invert(pc.is_finite(values)) if pa.types.is_floating(values.type) else np.array([])
                if (row := first_row(wrong)) is not None:
                    what = f"{table.place(row, name)} is {values[row].as_py()}"
                    raise InputError(f"{what}; leave it empty (null) if unknown, or give a finite number")
                series[key] = values.to_pandas()
    return pd.DataFrame(series, index=pd.RangeIndex(table.columns.num_rows))


def written_with_commas(table: DataTable, names: Sequence[str], known: Sequence[str], guesses: list[str]) -> list[str]:
    """The columns among ``names`` whose numbers are written with decimal commas; ``known`` are those that were, when fitted."""
    if table.delimiter not in SEPARATED_BY:
        return []
    values = {name: table.columns.column(name) for name in names}
    some = [name for name in names if pc.any(pc.match_substring_regex(values[name], "[.,]")).as_py()]
    text = {name: DataColumn(name, values[name], str).filled for name in some}
    found = decimal_commas(text, known)
    for name in known:
        if name not in found and name in text and reading(text[name], known=True):
            row = first_row(pc.match_substring(text[name], ".")) or 0
            value = text[name][row].as_py()
            way_out = f"write {value.replace('.', '')}, or {value.replace('.', ',')} if that is meant"
            what = f"{table.place(row, name)} is {value}, where the model was fitted on decimal commas"
            raise InputError(what, hint=way_out)
    if found:
        guesses.append(f"{table.name}: decimal commas in column{'s' * (len(found) > 1)} {listed(found)} (guessed)")
    return found


def _expanded(table: DataTable, name: str) -> dict[str, pa.ChunkedArray]:
    """A column of lists as one column per position; any other as it is."""
    values = decoded(table.columns.column(name))
    kind, types = values.type, pa.types
    way_out = f"give text, numbers or lists of numbers, or leave the column out with {as_given('ignore', [name])}"
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if lists and not (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
        what = f"lists of {printable(str(kind.value_type))} values"
        raise InputError(f"{table.name}, column {name!r} holds {what}; {way_out}")
    if types.is_struct(kind) or types.is_map(kind) or types.is_union(kind) or types.is_binary(kind):
        raise InputError(f"{table.name}, column {name!r} holds {printable(str(kind))} values; {way_out}")
    if not lists:
        return {name: values}
    rows: list[list[float | None]] = [entry or [] for entry in values.to_pylist()]
    usual = len(rows[0])
    row = next((i for i, entry in enumerate(rows) if len(entry) != usual or None in entry), None)
    if row is not None or not usual:
        place = table.place(row or 0, name)
        raise InputError(f"{place} does not hold {usual} numbers as {table.locate(0)} does; {way_out}")
    matrix = np.array(rows, dtype=np.float64)
    return {f"{name}[{i}]": pa.chunked_array([matrix[:, i]]) for i in range(usual)}
