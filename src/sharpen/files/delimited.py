"""CSV and TSV: the delimiter found, every cell kept as text, and lines counted as a text editor counts them.

Cells are parsed by Arrow, in a second for ten million of them. Whenever something is wrong, Python's own csv module goes
over the file once more, because it knows the line on which each row begins.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from sharpen.errors import InputError, reason
from sharpen.files.content import Content, read_file
from sharpen.files.plain_text import DELIMITERS, first_bad_byte, sniff_delimiter, tidied
from sharpen.files.table import DataTable, by_row, check_names
from sharpen.limits import check_columns

_BLOCK = 2**26
_BEFORE_HEADER = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*")
_LINE_END = re.compile(rb"[\r\n]")


def read_delimited(content: Content, is_header: Callable[[list[str]], bool] = lambda cells: True) -> DataTable:
    r"""The table in a CSV or TSV file.

    Args:
        content: The file; encodings, comments and blanks between cells are seen to (:mod:`sharpen.files.plain_text`).
        is_header: Whether the first row names the columns. If not, they are ``source``, ``target``, ``column_3`` and so on.

    >>> table = read_delimited(Content("nodes.csv", "csv", b'id;age\n"a;b";3\n\nc;4\n'))
    >>> table.columns.to_pydict()
    {'id': ['a;b', 'c'], 'age': ['3', '4']}
    >>> read_delimited(Content("edges.csv", "csv", b"1,2\n2,3\n"), lambda cells: False).columns.to_pydict()
    {'source': ['1', '2'], 'target': ['2', '3']}
    >>> read_delimited(Content("nodes.csv", "csv", b"id,age\na,3\nb,4,5\n"))
    Traceback (most recent call last):
    sharpen.errors.InputError: nodes.csv line 3 has 3 cells, but the header has 2 (separated by comma); ...
    """
    content, notes = tidied(content)
    check_text(content)
    delimiter = sniff_delimiter(content)
    rows = _parse(content, delimiter)
    names = [str(rows.column(i)[0].as_py()).strip() for i in range(rows.num_columns)]
    headed = is_header(names)
    table = rows.slice(1) if headed else rows
    if not headed:
        names = ["source", "target", *(f"column_{i}" for i in range(3, len(names) + 1))][: len(names)]
        notes.append(f"{content.name}: no header; the first two columns are the ends of edges (guessed)")
    if delimiter != ("\t" if content.kind == "tsv" else ",") and not any("separated by" in note for note in notes):
        notes.append(f"{content.name}: cells are separated by {DELIMITERS[delimiter]} (guessed)")
    # The row numbers that pandas writes unless told not to.
    if names[0] == "" and len(names) > 1 and table.column(0).to_pylist() == list(map(str, range(table.num_rows))):
        table, names = table.remove_column(0), names[1:]
        notes.append(f"{content.name}: the first column has no name and counts the rows: left out")
    check_names(content.name, names, "line 1" if content.data[:1] not in b"\r\n" else "the header")
    locate = line_finder(content.name, lambda again: _records(tidied(again)[0].data, delimiter), first=-headed)
    return DataTable(content.name, table.rename_columns(names), locate, tuple(notes), delimiter)


def check_text(content: Content) -> None:
    r"""The bytes are text in UTF-8, or an InputError says where they are not.

    >>> check_text(Content("nodes.csv", "csv", b"id\nJos\xe9\n"))
    Traceback (most recent call last):
    sharpen.errors.InputError: nodes.csv line 2 is not UTF-8 text (byte 0xe9); save the file as UTF-8, ...
    """
    data = content.data
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{content.name} is in UTF-16; save it as UTF-8 (in a spreadsheet: CSV UTF-8)")
    zero = data.find(b"\0")
    at = zero if zero >= 0 else first_bad_byte(data)
    if at is None:
        return
    before = data[:at].replace(b"\r\n", b"\n")
    breaks = before.count(b"\n") + before.count(b"\r")
    line = f"{content.name} line {breaks + 1}"
    if at == zero:
        way_out = f"save the table as {'JSON lines' if content.kind == 'jsonl' else 'CSV'} in UTF-8"
        raise InputError(f"{line} holds a NUL byte, so it is no text; {way_out}")
    way_out = "save the file as UTF-8, for instance with: iconv -f WINDOWS-1252 -t UTF-8"
    raise InputError(f"{line} is not UTF-8 text (byte 0x{data[at]:02x}); {way_out}")


def _parse(content: Content, delimiter: str) -> pa.Table:
    uneven: list[Any] = []

    def remember(row: Any) -> str:
        uneven.append(row)
        return "skip"

    _check_width(content, delimiter)
    header = next(_records(content.data, delimiter), (1, [""]))[1]
    text = {f"f{i}": pa.string() for i in range(len(header))}
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(content.data),
            arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK, autogenerate_column_names=True),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=remember),
            arrow_csv.ConvertOptions(column_types=text, null_values=[], strings_can_be_null=False),
        )
    except pa.ArrowException as error:
        what, way_out = "holds only blank lines", "write it again, with a header line and rows"
        if "Empty CSV" not in str(error):
            _check_quotes(content, delimiter)
            what, way_out = f"is not a readable table ({reason(error)})", "export it again as CSV in UTF-8"
        raise InputError(f"{content.name} {what}; {way_out}") from error
    if uneven or table.num_columns != len(header):
        _check_quotes(content, delimiter)
        raise _uneven_error(content, delimiter, uneven)
    if b'"' in content.data and any(pc.any(pc.match_substring(cells, "\n")).as_py() for cells in table.columns):
        _check_quotes(content, delimiter)
    return table


def _check_width(content: Content, delimiter: str) -> None:
    """Refuses a header of too many cells before any of them is made."""
    start = _BEFORE_HEADER.match(content.data).end()  # type: ignore[union-attr]  # which may be empty
    end = _LINE_END.search(content.data, start)
    cells = 1 + content.data.count(delimiter.encode(), start, end.start() if end else len(content.data))
    check_columns(content.name, cells)


def _check_quotes(content: Content, delimiter: str) -> None:
    """A quote that is never closed swallows the rows after it; Arrow takes them for one long cell."""
    start = 1
    reader = csv.reader(_lines(content.data), delimiter=delimiter, strict=True)
    try:
        for _ in reader:
            start = reader.line_num + 1
    except csv.Error as error:
        if "field limit" in str(error) and start == reader.line_num:
            return
        what = f"{content.name} line {start}: a quotation mark is never closed or stands inside a cell"
        raise InputError(what, hint='write it doubled (""), with the whole cell in quotation marks') from error


def _uneven_error(content: Content, delimiter: str, uneven: list[Any]) -> InputError:
    word = DELIMITERS[delimiter]
    widths = [(line, len(row)) for line, row in _records(content.data, delimiter)]
    header = widths[0][1] if widths else 0
    wrong = {line: width for line, width in widths if width != header}
    if not wrong:
        number = uneven[0].number if uneven else 1
        return InputError(
            f"{content.name} row {number} does not have {header} cells; fix it, or export the table again"
        )
    first, *others = wrong
    some = ", ".join(map(str, others[:5])) + ", ..." * (len(others) > 5)
    more = f", and so have {len(others)} more lines ({some})" if others else ""
    what = f"line {first} has {wrong[first]} cells, but the header has {header} (separated by {word}){more}"
    way_out = f"fix that line, or put cells that hold a {word} in quotation marks"
    return InputError(f"{content.name} {what}; {way_out}")


def _lines(data: bytes) -> Iterator[str]:
    return iter(io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", errors="replace", newline=""))


def _records(data: bytes, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each row that is not blank, with the line on which it begins."""
    reader = csv.reader(_lines(data), delimiter=delimiter)
    start = 1
    try:
        for row in reader:
            if row:
                yield start, row
            start = reader.line_num + 1
    except csv.Error:  # a cell beyond the module's limit of 128 kB: what follows cannot be counted
        return


def line_finder(
    name: str, rows: Callable[[Content], Iterator[tuple[int, Any]]], first: int = 0
) -> Callable[[int], str]:
    """What gives the words for a row: its line, or its number if the file is gone or changed since.

    The file is read again for it: lines are asked for at most once, to report an error. The first row is number ``first``, −1
    if it is the header.
    """

    def locate(row: int) -> str:
        try:
            begins = rows(read_file(name))
        except InputError:
            return by_row(row)
        lines = (f"line {line}" for number, (line, _) in enumerate(begins, start=first) if number == row)
        return next(lines, by_row(row))

    return locate
