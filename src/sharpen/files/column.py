"""One column of a node table, read as numbers, truth values or text, whichever the encoding asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharpen.errors import InputError, as_given, short, told_as
from sharpen.files.columns import NUMBER
from sharpen.files.dates import DATE, NEVER, days_of_text, days_of_times, seconds_of
from sharpen.files.decimals import COMMA_NUMBER, SEPARATED_BY, with_points
from sharpen.files.table import as_text, first_row, is_text

if TYPE_CHECKING:
    from sharpen.files.source import GraphTables

NO_NUMBER = r"(?i)^[+-]?(nan|inf|infinity)$"
_DECIMAL_COMMA = r"^[+-]?[0-9]+,[0-9]+$"
MOSTLY = 0.8
_MISSING = pa.array(["", "na", "n/a", "null", "none", "?"])
TRUE = ("true", "t", "yes", "y")
FALSE = ("false", "f", "no", "n")


@dataclass(frozen=True)
class DataColumn:
    """Values of one column and the words for each of its cells.

    Args:
        name: Of the column.
        values: In the order of the rows.
        place: From a row to the words for its cell.
        comma: Whether its numbers are written with a decimal comma.
        delimiter: What separates the cells of the file, where something does.

    >>> column = DataColumn("age", pa.array(["31", "", "4"]), lambda row: f"nodes.csv line {row + 2}, column 'age'")
    >>> column.numbers()
    array([31., nan,  4.])
    """

    name: str
    values: pa.Array
    place: Callable[[int], str]
    comma: bool = False
    delimiter: str | None = None

    @property
    def way_out(self) -> str:
        """How to do without this column."""
        return f"leave the column out with {as_given('ignore', [self.name])}"

    @property
    def is_text(self) -> bool:
        """Whether the values carry no type but text."""
        return is_text(self.values.type)

    @property
    def is_bool(self) -> bool:
        """Whether the values are truth values by type."""
        return bool(pa.types.is_boolean(self.values.type))

    @cached_property
    def text(self) -> pa.Array:
        """The values as text without blanks around, null where missing."""
        return pc.utf8_trim_whitespace(as_text(self.values, self.place))

    @cached_property
    def filled(self) -> pa.Array:
        """The values as text, null where missing or a word for it, such as NA."""
        missing = pc.is_in(pc.utf8_lower(self.text), value_set=_MISSING.cast(self.text.type))
        return pc.if_else(missing, pa.scalar(None, self.text.type), self.text)

    @cached_property
    def cast(self) -> pa.Array | None:
        """The values as Arrow numbers, null where missing; None if some are no numbers."""
        text = with_points(self.filled) if self.comma else self.filled
        if pa.types.is_time(self.values.type) or pa.types.is_duration(self.values.type):
            return seconds_of(self.values)
        try:
            return (text if self.is_text else self.values).cast(pa.float64())
        except pa.ArrowException:
            return None

    def share(self, regex: str) -> float:
        """The share of the values present that match.

        >>> DataColumn("age", pa.array(["31", "", "x"]), str).share(NUMBER)
        0.5
        """
        present = len(self.filled) - self.filled.null_count
        matches = pc.sum(pc.match_substring_regex(self.filled, regex)).as_py() or 0
        return matches / present if present else 0.0

    def first(self, regex: str, matching: bool = True) -> int | None:
        """The first row whose value is present and matches (or does not)."""
        matches = pc.match_substring_regex(self.filled, regex)
        return first_row(matches if matching else pc.invert(matches))

    @property
    def is_dates(self) -> bool:
        """Whether the values are dates, by type or nearly all of them by how they are written."""
        kind = self.values.type
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            return True
        return self.is_text and self.share(DATE) > 0.9

    def days(self, day_first: bool) -> np.ndarray:
        """Dates as days since 1970, NaN where missing, no date, or of the year 9999.

        Args:
            day_first: How to read ``3/4/2020``, as :func:`sharpen.files.dates.reads_day_first` says.
        """
        typed = pa.types.is_temporal(self.values.type)
        days = days_of_times(self.values) if typed else days_of_text(self.filled, day_first)
        return np.where(days < NEVER, days, np.nan)

    def unread(self, values: np.ndarray) -> str:
        """How many values stand there that were read as missing, with the first of them; empty if none.

        >>> DataColumn("born", pa.array(["1970-01-02", "soon", ""]), str).unread(np.array([1.0, np.nan, np.nan]))
        "1 is no date, such as 'soon'"
        """
        lost = self.filled.is_valid().to_numpy(zero_copy_only=False) & np.isnan(values)
        if not lost.any():
            return ""
        count = int(lost.sum())
        return f"{count:,} {'is' if count == 1 else 'are'} no date, such as {short(str(self.filled[int(np.argmax(lost))]))}"

    def numbers(self) -> np.ndarray:
        """The values as numbers (float64), NaN where missing; an InputError names the first that is none."""
        array = self.cast
        if array is None:
            raise self._no_number(self.first(NUMBER, matching=False) or 0)
        numbers = np.array(array.to_numpy(zero_copy_only=False), dtype=np.float64)
        present = ~array.is_null().to_numpy(zero_copy_only=False)
        # The square of a larger one is infinite.
        if (row := first_row(present & ~(np.abs(numbers) < 1e150))) is not None:
            kind = "not a number (NaN)" if np.isnan(numbers[row]) else "infinite or too large"
            way_out = f"leave the cell blank if the value is unknown, or {self.way_out}"
            raise InputError(f"{self.place(row)} is {kind}; {way_out}")
        return numbers

    def truths(self) -> np.ndarray:
        """The values as 1 (true) and 0 (false), NaN where missing; an InputError names the first that is neither."""
        if self.is_bool:
            return np.array(self.values.cast(pa.int8()).cast(pa.float64()).to_numpy(zero_copy_only=False))
        if self.cast is not None:
            return self.numbers()
        lower = pc.utf8_lower(self.filled)
        yes, no = (np.asarray(pc.is_in(lower, pa.array(words, lower.type))) for words in (TRUE, FALSE))
        missing = np.asarray(lower.is_null())
        if (row := first_row(~(yes | no | missing))) is not None:
            what = f"{self.place(row)} is {self.filled[row].as_py()!r}, but was true or false when the model was fitted"
            raise InputError(what, hint="write true or false, or leave the cell blank")
        return np.where(missing, np.nan, yes.astype(np.float64))

    def refuse_commas(self) -> None:
        """An InputError if most values are numbers with commas, which are not read as decimal ones for all that."""
        separated = self.delimiter in SEPARATED_BY
        row = self.first(_DECIMAL_COMMA)
        if row is None or self.share(COMMA_NUMBER if separated else _DECIMAL_COMMA) <= MOSTLY:
            return
        why = "with a comma in the number"
        if separated:
            stray = self.first(COMMA_NUMBER, matching=False)
            if stray is not None:
                what = f"{self.place(stray)} is {short(self.text[stray].as_py())}"
                way_out = f"write it like them, leave the cell blank if it is unknown, or {self.way_out}"
                raise InputError(f"{what}, while the other values are numbers with decimal commas; {way_out}")
            why = "with a comma that may mark decimals or thousands"
        value = self.text[row].as_py()
        way_out = f"write it with a point ({value.replace(',', '.')}) or without separators, or {self.way_out}"
        raise InputError(f"{self.place(row)} is {value!r}, {why}; {way_out}")

    def _no_number(self, row: int) -> InputError:
        good = pc.match_substring_regex(self.filled, f"{NO_NUMBER}|{NUMBER}")
        more = pc.sum(pc.invert(good)).as_py() - 1 if self.is_text else 0
        others = f" ({more} more value{'s' * (more > 1)} like it)" if more > 0 else ""
        return InputError(
            f"{self.place(row)} is {short(self.text[row].as_py())}{others}, while the other values are numbers; write a number, "
            f"leave the cell blank if it is unknown, or {self.way_out}"
        )


def column_of(tables: GraphTables, name: str) -> DataColumn:
    """A column of the features of a graph, by name."""
    way_out = f"give all the same type, or leave the column out with {as_given('ignore', [name])}"
    with told_as(f"{tables.name}, column {name!r} holds values of several types", way_out):
        values = pa.array(tables.frame[name], from_pandas=True)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return DataColumn(name, values, partial(tables.place, column=name), name in tables.decimal_commas, tables.delimiter)
