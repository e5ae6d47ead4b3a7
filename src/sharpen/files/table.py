"""One file as a table of columns that remembers where its rows stand, and the text form of a column."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharpen.errors import InputError, printable, reason, short

WHOLE = r"^([+-]?\d+)\.0+$"


@dataclass(frozen=True)
class DataTable:
    """Columns of equal length, with the words for a place in them.

    Args:
        name: The file as the user named it.
        columns: The columns; all text if the file is CSV or TSV.
        locate: From a row (0 is the first below the header) to the words for it: ``"line 2"``, ``"row 1"``.
        notes: What the reader had to decide, for the user to see.
        delimiter: What separates the cells of a CSV or TSV file.

    >>> table = DataTable("nodes.parquet", pa.table({"id": ["a", "b"]}), by_row)
    >>> table.place(1, "id")
    "nodes.parquet row 2, column 'id'"
    >>> table.names
    ['id']
    """

    name: str
    columns: pa.Table
    locate: Callable[[int], str]
    notes: tuple[str, ...] = ()
    delimiter: str | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns in order."""
        return list(self.columns.column_names)

    def place(self, row: int, column: str) -> str:
        """The words for one cell: file, line or row, column."""
        return f"{self.name} {self.locate(row)}, column {column!r}"

    def text(self, column: str) -> pa.Array:
        """A column as text (:func:`as_text`)."""
        return as_text(self.columns.column(column), lambda row: self.place(row, column))


def by_row(row: int) -> str:
    """The words for a row of a file that has no lines, counted from 1.

    >>> by_row(0)
    'row 1'
    """
    return f"row {row + 1}"


def check_names(name: str, names: list[str], place: str = "the header") -> None:
    """Every column has a name that can be printed, and a name of its own.

    >>> check_names("nodes.csv", ["id", "age", "age"])
    Traceback (most recent call last):
    sharpen.errors.InputError: nodes.csv, the header: column 'age' appears twice (columns 2 and 3); rename or remove one
    """
    seen: dict[str, int] = {}
    for position, column in enumerate(names, start=1):
        if not column:
            raise InputError(f"{name}, {place}: column {position} has no name; name it, or remove the column")
        if not column.isprintable():
            what = f"column {position}, {column!r}, holds characters that do not print"
            raise InputError(f"{name}, {place}: {what}; rename it")
        if column in seen:
            what = f"column {column!r} appears twice (columns {seen[column]} and {position})"
            raise InputError(f"{name}, {place}: {what}; rename or remove one")
        seen[column] = position


def as_text(values: pa.ChunkedArray, place: Callable[[int], str]) -> pa.Array:
    """A column as text, null where blank or missing: whole numbers without a point, truth values as true and false.

    Text is kept as it stands, so ``"007"`` stays ``"007"``.

    >>> as_text(pa.chunked_array([[1.0, None, 2.5]]), by_row).to_pylist()
    ['1', None, '2.5']
    >>> as_text(pa.chunked_array([["007", " "]]), by_row).to_pylist()
    ['007', None]
    """
    values = decoded(values)
    whole: Any = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(whole, pa.ChunkedArray):  # text beyond 2 GB does not fit one piece of the small type
        whole = whole.cast(pa.large_string()).combine_chunks()
    if is_text(whole.type):
        blank = pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(whole)), 0)
        return pc.if_else(blank, pa.scalar(None, whole.type), whole)
    if pa.types.is_floating(whole.type):
        return _floats_as_text(whole)
    plain = (pa.types.is_null, pa.types.is_integer, pa.types.is_boolean, pa.types.is_temporal, pa.types.is_decimal)
    if any(is_it(whole.type) for is_it in plain):
        return whole.cast(pa.string())
    raise InputError(f"{place(0)} holds {printable(str(whole.type))} values; give one text or number per row")


def canonical(text: pa.Array) -> pa.Array:
    """The form in which ids are compared: no blanks around, and whole numbers without ``.0``.

    So ``1``, ``"1"``, ``1.0`` and ``"1.0"`` name the same node; ``"01"`` names another one. pandas writes whole numbers
    with ``.0`` as soon as one of them is missing, which is why the two are the same here.

    >>> canonical(pa.array(["1.0", " 1", "01", "1.5", "v1.0"])).to_pylist()
    ['1', '1', '01', '1.5', 'v1.0']
    """
    trimmed = pc.utf8_trim_whitespace(text)
    if not pc.any(pc.match_substring(trimmed, ".0")).as_py():  # ten times faster than the search for the whole pattern
        return trimmed
    return pc.replace_substring_regex(trimmed, WHOLE, r"\1")


def decoded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Categories as what they stand for.

    >>> decoded(pa.array(["a", "b", "a"]).dictionary_encode()).to_pylist()
    ['a', 'b', 'a']
    """
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def comparable_cells(table: DataTable, name: str) -> pa.Array | None:
    """A column in the form in which ids are compared; None of lists and the like, which name no nodes.

    >>> comparable_cells(DataTable("edges.csv", pa.table({"to": [1.0, None]}), by_row), "to").to_pylist()
    ['1', None]
    """
    try:
        return canonical(table.text(name)).cast(pa.string())
    except (InputError, pa.ArrowException):
        return None


def comparable_ids(ids: Iterable[object]) -> np.ndarray:
    """Ids in the form in which they are compared, to join tables on: see :func:`canonical`.

    >>> comparable_ids(["1.0", 1, " a "])
    array(['1', '1', 'a'], dtype=object)
    """
    return to_objects(canonical(pa.array([str(node) for node in ids], pa.string())))


def from_objects(values: list[Any], place: Callable[[int], str]) -> pa.Array:
    """Python values, each a truth value, number, text, list of numbers or None, as one column of one type.

    >>> from_objects([1, 2.5, None], by_row).to_pylist()
    [1.0, 2.5, None]
    >>> from_objects([1, "x"], by_row)
    Traceback (most recent call last):
    sharpen.errors.InputError: row 2 is the text 'x', but row 1 is a number; give all values of a column the same type
    """
    first = next((row for row, value in enumerate(values) if value is not None), None)
    if first is None:
        return pa.array(values, pa.null())
    kind = _what(values[first])
    alike = len(set(map(type, values)) - {type(None)}) == 1 and kind not in (None, "list of numbers")
    for row, value in enumerate([] if alike else values):
        if value is None:
            continue
        what = _what(value)
        if what is None:
            raise InputError(f"{place(row)} is {short(value)}; give one text or number, or a list of numbers")
        if what != kind:
            both = f"{place(row)} is the {what} {short(value)}, but {place(first)} is a {kind}"
            raise InputError(f"{both}; give all values of a column the same type")
    kinds = {"truth value": pa.bool_(), "text": pa.string(), "list of numbers": pa.list_(pa.float64())}
    try:
        if kind == "number" and any(isinstance(v, float) for v in values):
            return pa.array([None if v is None else float(v) for v in values], pa.float64())
        return pa.array(values, kinds.get(str(kind)))
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        if kind == "number":  # whole numbers too large for 64 bits are names, not amounts
            return pa.array([None if v is None else str(v) for v in values], pa.string())
        raise InputError(f"{place(first)} cannot be kept ({reason(error)}); write it as plain text") from error


def to_objects(text: pa.Array) -> np.ndarray:
    """Text as a NumPy array of str, None where null.

    >>> to_objects(pa.array(["a", None]))
    array(['a', None], dtype=object)
    """
    out = np.empty(len(text), dtype=object)
    out[:] = text.to_pylist()
    return out


def first_row(mask: pa.Array | pa.ChunkedArray | np.ndarray) -> int | None:
    """The first row where something is true, null counting as false; None if there is none.

    >>> first_row(pa.array([None, False, True])), first_row(np.array([False]))
    (2, None)
    """
    true = mask if isinstance(mask, np.ndarray) else np.asarray(pc.fill_null(mask, False))
    return int(true.argmax()) if true.any() else None


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of text.

    >>> is_text(pa.string()), is_text(pa.int64())
    (True, False)
    """
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _floats_as_text(values: pa.Array) -> pa.Array:
    numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
    safe = np.abs(numbers) < 2**53
    whole = safe & (np.where(safe, numbers, 0.5) % 1 == 0)
    if (whole | np.isnan(numbers)).all():
        return pa.array(np.where(whole, numbers, 0).astype(np.int64), mask=~whole).cast(pa.string())
    return pa.array(
        [None if np.isnan(n) else str(int(n)) if w else repr(float(n)) for n, w in zip(numbers, whole, strict=True)],
        pa.string(),
    )


def _what(value: object) -> str | None:
    if isinstance(value, bool | np.bool_):
        return "truth value"
    if isinstance(value, int | float | np.number):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list | tuple) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in value):
        return "list of numbers"
    return None
