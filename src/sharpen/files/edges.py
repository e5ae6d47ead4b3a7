"""A table of edges as row numbers of the table of nodes."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharpen.errors import InputError
from sharpen.files.columns import Columns, choose_ends, find, guess_weight, is_number, listed, names_nodes
from sharpen.files.decimals import SEPARATED_BY, reading, with_points
from sharpen.files.table import Table, as_text, canonical


def read_edges(
    table: Table, columns: Columns, nodes: str, keys: pa.Array, guesses: list[str]
) -> tuple[np.ndarray, np.ndarray | None, bool]:
    """The row numbers of the two ends of each edge, ``[2, E]``, the weights if there are any, and if these have decimal commas.

    Args:
        table: The edges.
        columns: What the columns mean, where their names do not say.
        nodes: The file of the nodes, for messages.
        keys: The ids of the nodes in order, in the form in which they are compared.
        guesses: Receives a line for each guess.

    >>> from sharpen.files.table import by_row
    >>> table = Table("edges.parquet", pa.table({"src": [7, 9], "dst": [9.0, 9.0]}), by_row)
    >>> read_edges(table, Columns(), "nodes.parquet", pa.array(["7", "9"]), [])
    (array([[0, 1],
           [1, 1]]), None, False)
    """
    source, target, guessed = choose_ends(
        table.name, table.names, columns, lambda name: _share_of_ids(table.columns.column(name), keys)
    )
    if guessed:
        _check_header(table, source, target, keys)
        guesses.append(f"source and target columns: {source}, {target} (guessed)")
    ends = [_numbered(table, column, keys, nodes) for column in (source, target)]
    weight_column = columns.weight and find(table.name, table.names, columns.weight, "--weight")
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
        guesses.append(f"{what} not used; --weight {shlex.quote(unused[0])} would make it the weights")
    return np.stack(ends), weight, comma


def _share_of_ids(values: pa.ChunkedArray, keys: pa.Array) -> float:
    """The share of cells that name a node; 0 where ids are whole numbers, which counts and marks are as well."""
    if pc.all(pc.match_substring_regex(keys, "^[0-9]+$")).as_py():
        return 0.0
    try:
        text = canonical(as_text(values, str)).cast(keys.type)
    except (InputError, pa.ArrowException):  # lists and the like name no nodes
        return 0.0
    return float(pc.mean(pc.is_in(text, value_set=keys)).as_py() or 0.0)


def _check_header(table: Table, source: str, target: str, keys: pa.Array) -> None:
    header = canonical(pa.array([source, target], keys.type))
    if pc.all(pc.is_in(header, value_set=keys)).as_py():
        raise InputError(
            f"{table.name} line 1 ({source}, {target}) names two nodes, so it is an edge and not a header; "
            f"put a line above it: source,target"
        )


def _numbered(table: Table, column: str, keys: pa.Array, nodes: str) -> np.ndarray:
    """The row of the node that each cell names."""
    text = as_text(table.columns.column(column), lambda row: table.place(row, column))
    if text.null_count:
        row = int(np.argmax(text.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"{table.place(row, column)} is blank; name the node at this end, or remove the edge")
    rows = pc.index_in(canonical(text).cast(keys.type), value_set=keys)
    if rows.null_count:
        unknown = rows.is_null().to_numpy(zero_copy_only=False)
        row = int(np.argmax(unknown))
        stray = str(text[row])
        near = difflib.get_close_matches(stray, keys.slice(0, 5000).to_pylist(), n=1, cutoff=0.8)
        many = f", the first of {int(unknown.sum())} such cells" if unknown.sum() > 1 else ""
        hint = f" (nearest: {near[0]!r})" if near else ""
        raise InputError(
            f"{table.place(row, column)}: {nodes} has no node with the id {stray!r}{hint}{many}; "
            f"add a row for it, or remove the edge"
        )
    return rows.to_numpy(zero_copy_only=False).astype(np.int64)


def _holds_numbers(table: Table, column: str) -> bool:
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


def _weights(table: Table, column: str, columns: Columns) -> tuple[np.ndarray, bool]:
    """The weights, and whether they are written with decimal commas."""
    values = table.columns.column(column)
    way_out = "or leave --weight out" if columns.weight else "or rename the column if it holds no weights"
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
