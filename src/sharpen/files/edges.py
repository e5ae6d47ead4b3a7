"""A table of edges as row numbers of the table of nodes."""

from __future__ import annotations

import difflib
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharpen.errors import InputError, as_given, called
from sharpen.files.columns import Columns, choose_ends, find, guess_weight, is_number, listed, names_nodes
from sharpen.files.decimals import SEPARATED_BY, reading, with_points
from sharpen.files.table import DataTable, as_text, canonical


def read_edges(
    table: DataTable, columns: Columns, nodes: str, keys: pa.Array, guesses: list[str]
) -> tuple[np.ndarray, np.ndarray | None, bool]:
    """The row numbers of the two ends of each edge, ``[2, E]``, the weights if there are any, and if these have decimal commas.

    Args:
        table: The edges.
        columns: What the columns mean, where their names do not say.
        nodes: The file of the nodes, for messages.
        keys: The ids of the nodes in order, in the form in which they are compared.
        guesses: Receives a line for each guess.

    >>> from sharpen.files.table import by_row
    >>> table = DataTable("edges.parquet", pa.table({"src": [7, 9], "dst": [9.0, 9.0]}), by_row)
    >>> read_edges(table, Columns(), "nodes.parquet", pa.array(["7", "9"]), [])
    (array([[0, 1],
           [1, 1]]), None, False)
    """
    source, target, guessed = edge_ends(table, columns, keys)
    if guessed:
        guesses.append(f"source and target columns: {source}, {target} (guessed)")
    ends, kept = _without_strays(table, (source, target), nodes, keys, columns.strict, guesses)
    weight_column = columns.weight and find(table.name, table.names, columns.weight, "weight")
    if weight_column is None:
        weight_column = guess_weight([name for name in table.names if name not in (source, target)])
        if weight_column is not None:
            guesses.append(f"weight column: {weight_column} (guessed)")
    weight, comma = None, False
    if weight_column is not None:
        weight, comma = _weights(table, weight_column, columns)
        if comma:
            guesses.append(f"{table.name}: decimal commas in column {weight_column} (guessed)")
    rest = [name for name in table.names if name not in (source, target, weight_column)]
    unused = [name for name in rest if not names_nodes(name) and _holds_numbers(table, name)]
    if unused:
        what = (
            f"column {unused[0]} of {table.name} is"
            if len(unused) == 1
            else f"columns {listed(unused)} of {table.name} are"
        )
        guesses.append(f"{what} not used; {as_given('weight', unused[0])} would make it the weights")
    ends = ends[:, kept]
    count = ends.shape[1] - len(np.unique(ends[0] * len(keys) + ends[1]))
    if count:
        way = "each counts once" if weight is None else "their weights add up"
        guesses.append(
            f"{table.name}: {count:,} edge{'s repeat' if count > 1 else ' repeats'} the ends of another; {way}"
        )
    return ends, None if weight is None else weight[kept], comma


def edge_ends(table: DataTable, columns: Columns, keys: pa.Array) -> tuple[str, str, bool]:
    """The columns of the two ends of an edge, and whether they were guessed.

    Args:
        table, columns, keys: As for :func:`read_edges`.

    >>> from sharpen.files.table import by_row
    >>> edge_ends(DataTable("edges.csv", pa.table({"one": ["a"], "other": ["b"]}), by_row), Columns(), pa.array(["a", "b"]))
    ('one', 'other', True)
    """
    return choose_ends(table.name, table.names, columns, lambda name: _share_of_ids(table.columns.column(name), keys))


def _share_of_ids(values: pa.ChunkedArray, keys: pa.Array) -> float:
    """The share of cells that name a node; 0 where ids are whole numbers, which counts and marks are as well."""
    if pc.all(pc.match_substring_regex(keys, "^[0-9]+$")).as_py():
        return 0.0
    try:
        text = canonical(as_text(values, str)).cast(keys.type)
    except (InputError, pa.ArrowException):  # lists and the like name no nodes
        return 0.0
    return float(pc.mean(pc.is_in(text, value_set=keys)).as_py() or 0.0)


def _numbered(table: DataTable, column: str, keys: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """The row of the node that each cell names, -1 where it names none; and the cells."""
    text = table.text(column)
    rows = pc.index_in(canonical(text).cast(keys.type), value_set=keys, skip_nulls=True)
    return rows.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64), text


def _without_strays(
    table: DataTable, names: tuple[str, str], nodes: str, keys: pa.Array, strict: bool, guesses: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """The row numbers of the ends of all edges, and which of these have two: the others are noted, or refused."""
    found = [_numbered(table, column, keys) for column in names]
    ends = np.stack([rows for rows, _ in found])
    kept = np.asarray((ends >= 0).all(axis=0))
    if kept.all():
        return ends, kept
    row = int(np.argmin(kept))
    end = int(np.argmin(ends[:, row]))
    place, cell = table.place(row, names[end]), found[end][1][row].as_py()
    count = int((~kept).sum())
    many = f", the first of {count:,} such edges" if count > 1 else ""
    if cell is None:
        what = f"{place} is blank{many}"
        way_out = "name the node at this end, or remove the edge"
    else:
        near = difflib.get_close_matches(str(cell), keys.slice(0, 5000).drop_null().to_pylist(), n=1, cutoff=0.8)
        hint = f" (nearest: {near[0]!r})" if near else ""
        what = f"{place}: {nodes} has no node with the id {str(cell)!r}{hint}{many}"
        way_out = "add a row for it, or remove the edge"
    if strict:
        raise InputError(what, hint=f"{way_out}, or do without {called('strict')}")
    if not kept.any():
        raise InputError(
            f"{table.name}: no edge joins two nodes of {nodes}; {what}; check that both files use the same ids"
        )
    share = f"{count:,} of {len(kept):,} edges"
    guesses.append(f"{share} {'are' if count > 1 else 'is'} left out: {what}; {way_out}")
    return ends, kept


def _holds_numbers(table: DataTable, column: str) -> bool:
    values = table.columns.column(column)
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return values.null_count < len(values)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)) or not len(values):
        return False
    text = pc.utf8_trim_whitespace(values)
    blank = pc.equal(text, "")
    filled = pc.if_else(blank, pa.scalar(None, text.type), text)
    try:
        filled.cast(pa.float64())
    except pa.ArrowException:
        return table.delimiter in SEPARATED_BY and reading(filled) == "decimals"
    return not pc.all(blank).as_py()


def _weights(table: DataTable, column: str, columns: Columns) -> tuple[np.ndarray, bool]:
    """The weights, and whether they are written with decimal commas."""
    values = table.columns.column(column)
    way_out = f"or leave {called('weight')} out" if columns.weight else "or rename the column if it holds no weights"
    kind, comma = values.type, False
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        numbers = values.cast(
            pa.float64(), safe=False
        )  # the nearest one, where a whole number has more digits than a float
    else:
        text = pc.utf8_trim_whitespace(as_text(values, lambda row: table.place(row, column)))
        commas = reading(text, known=columns.weight_comma) if table.delimiter in SEPARATED_BY else None
        mark = "," if pc.any(pc.match_substring(text, ",")).as_py() else "."
        if commas == "unclear" and (mark == "," or columns.weight_comma):
            row = int(np.argmax(pc.fill_null(pc.match_substring(text, mark), False).to_numpy(zero_copy_only=False)))
            raise InputError(
                f"{table.place(row, column)}: the mark of the weight {text[row].as_py()!r} may stand for decimals or thousands; "
                f"write weights without marks for thousands, and one with a decimal {'point' if mark == ',' else 'comma'} among "
                f"them, {way_out}"
            )
        comma = commas == "decimals"
        text = with_points(text) if comma else text
        try:
            numbers = text.cast(pa.float64())
        except pa.ArrowException:
            cells = text.to_pylist()
            row = next((i for i, cell in enumerate(cells) if cell is not None and not is_number(cell)), 0)
            raise InputError(
                f"{table.place(row, column)}: the weight {cells[row]!r} is no number; give a number of 0 or more, {way_out}"
            ) from None
    weight = numbers.to_numpy(zero_copy_only=False) if isinstance(numbers, pa.Array) else numbers.to_numpy()
    if numbers.null_count:
        row = int(np.argmax(np.isnan(weight)))
        raise InputError(f"{table.place(row, column)} is blank; fill it in, {way_out}")
    check_weights(weight, lambda row: table.place(row, column), f"give a number of 0 or more, {way_out}")
    return np.asarray(weight, dtype=np.float64), comma


def check_weights(
    weight: np.ndarray | None, place: Callable[[int], str], way_out: str = "give a number of 0 or more"
) -> None:
    """Weights are finite and not negative.

    >>> check_weights(np.array([1.0, -2.0]), lambda edge: f"edge {edge}")
    Traceback (most recent call last):
    sharpen.errors.InputError: edge 1: the weight is -2; give a number of 0 or more
    """
    if weight is None:
        return
    wrong = ~np.isfinite(weight) | (weight < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"{place(row)}: the weight is {weight[row]:g}; {way_out}")
