"""A table of edges as row numbers of the table of nodes."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharpen.errors import InputError, as_given, called
from sharpen.files.columns import Columns, choose_ends, find, guess_weight, is_number, listed, names_nodes
from sharpen.files.decimals import SEPARATED_BY, reading, with_points
from sharpen.files.table import DataTable, canonical, comparable_cells, first_row, is_text


def read_edges(
    table: DataTable, columns: Columns, nodes: str, keys: pa.Array, guesses: list[str]
) -> tuple[np.ndarray, np.ndarray | None, bool]:
    """The row numbers of the two ends of each edge, ``[2, E]``, the weights if there are any, and if these have decimal commas.

    Args:
        keys: The ids of the nodes in order, in the form in which they are compared.

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
        one = len(unused) == 1
        what = f"{'column' if one else 'columns'} {listed(unused)} of {table.name} {'is' if one else 'are'}"
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
    """The columns of the two ends of an edge, and whether they were guessed; ``keys`` as for :func:`read_edges`.

    >>> from sharpen.files.table import by_row
    >>> edge_ends(DataTable("edges.csv", pa.table({"one": ["a"], "other": ["b"]}), by_row), Columns(), pa.array(["a", "b"]))
    ('one', 'other', True)
    """

    def share_of_ids(name: str) -> float:
        """The share of cells that name a node; 0 where ids are whole numbers, which counts and marks are as well."""
        if pc.all(pc.match_substring_regex(keys, "^[0-9]+$")).as_py():
            return 0.0
        cells = comparable_cells(table, name)
        return 0.0 if cells is None else float(pc.mean(pc.is_in(cells, value_set=keys)).as_py() or 0.0)

    return choose_ends(table.name, table.names, columns, share_of_ids)


def _without_strays(
    table: DataTable, names: tuple[str, str], nodes: str, keys: pa.Array, strict: bool, guesses: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """The row numbers of the ends of all edges, and which of these have two: the others are noted, or refused."""
    cells = [table.text(column) for column in names]
    # The row of the node that each cell names, -1 where it names none.
    rows = [pc.index_in(canonical(text).cast(keys.type), value_set=keys, skip_nulls=True) for text in cells]
    ends = np.stack([np.asarray(each.fill_null(-1)).astype(np.int64) for each in rows])
    kept = np.asarray((ends >= 0).all(axis=0))
    row = first_row(~kept)
    if row is None:
        return ends, kept
    end = int(np.argmin(ends[:, row]))
    place, cell = table.place(row, names[end]), cells[end][row].as_py()
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
        none = f"no edge joins two nodes of {nodes}"
        raise InputError(f"{table.name}: {none}; {what}; check that both files use the same ids")
    share = f"{count:,} of {len(kept):,} edges"
    guesses.append(f"{share} {'are' if count > 1 else 'is'} left out: {what}; {way_out}")
    return ends, kept


def _holds_numbers(table: DataTable, column: str) -> bool:
    values = table.columns.column(column)
    if not is_text(values.type) and not pa.types.is_integer(values.type) and not pa.types.is_floating(values.type):
        return False
    text = pc.utf8_trim_whitespace(table.text(column))
    try:
        text.cast(pa.float64())
    except pa.ArrowException:
        return table.delimiter in SEPARATED_BY and reading(text) == "decimals"
    return text.null_count < len(text)


def _weights(table: DataTable, column: str, columns: Columns) -> tuple[np.ndarray, bool]:
    """The weights, and whether they are written with decimal commas."""
    values = table.columns.column(column)
    way_out = f"or leave {called('weight')} out" if columns.weight else "or rename the column if it holds no weights"
    kind, comma = values.type, False
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        # The nearest one, where a whole number has more digits than a float.
        numbers = values.cast(pa.float64(), safe=False)
    else:
        text = pc.utf8_trim_whitespace(table.text(column))
        commas = reading(text, known=columns.weight_comma) if table.delimiter in SEPARATED_BY else None
        mark, other = (",", "point") if pc.any(pc.match_substring(text, ",")).as_py() else (".", "comma")
        if commas == "unclear" and (mark == "," or columns.weight_comma):
            row = first_row(pc.match_substring(text, mark)) or 0
            raise InputError(
                f"{table.place(row, column)}: the mark of the weight {text[row].as_py()!r} may stand for decimals or thousands; "
                f"write weights without marks for thousands, and one with a decimal {other} among them, {way_out}"
            )
        comma = commas == "decimals"
        text = with_points(text) if comma else text
        try:
            numbers = text.cast(pa.float64())
        except pa.ArrowException:
            cells = text.to_pylist()
            row = next((i for i, cell in enumerate(cells) if cell is not None and not is_number(cell)), 0)
            what = f"{table.place(row, column)}: the weight {cells[row]!r} is no number"
            raise InputError(f"{what}; give a number of 0 or more, {way_out}") from None
    weight = np.asarray(numbers, dtype=np.float64)
    if numbers.null_count:
        raise InputError(f"{table.place(int(np.isnan(weight).argmax()), column)} is blank; fill it in, {way_out}")
    check_weights(weight, partial(table.place, column=column), f"give a number of 0 or more, {way_out}")
    return weight, comma


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
    if (row := first_row(~np.isfinite(weight) | (weight < 0))) is not None:
        raise InputError(f"{place(row)}: the weight is {weight[row]:g}; {way_out}")
