"""Delimited text as people have it, in one form: UTF-8, no comments above the table, one character between cells.

Lines keep their numbers: a comment becomes a blank line, which the parsers skip.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from dataclasses import replace

from sharpen.files.columns import is_number
from sharpen.files.content import Content

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_SAMPLE = 2**15
_COMMENT = re.compile(rb"(?:\xef\xbb\xbf)?[#%]")
_GLUED = re.compile(rb"(?:\xef\xbb\xbf)?[#%][^\s#%]")  # no blank after the mark
_PIECE = 2**24


def tidied(content: Content) -> tuple[Content, list[str]]:
    r"""The same table as UTF-8 text with tabs for runs of blanks and without comments above it; and what was guessed.

    >>> content, notes = tidied(Content("edges.txt", "csv", b"# a graph\n1 2\n2  3\n"))
    >>> content.data, notes
    (b'\n1\t2\n2\t3\n', ['edges.txt: 1 line of comments above the table is skipped', 'edges.txt: cells are separated by ...'])
    >>> tidied(Content("nodes.csv", "csv", b"id,label\nJos\xe9,a\n"))[0].data.decode()
    'id,label\nJosé,a\n'
    """
    notes: list[str] = []
    content = _without_comments(_in_utf8(content, notes), notes)
    if _is_separated_by_blanks(content):
        lean = re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", content.data)
        content = replace(content, data=re.sub(rb"[ \t]+", b"\t", lean))
        notes.append(f"{content.name}: cells are separated by blanks (guessed)")
    return content, notes


def first_bad_byte(data: bytes) -> int | None:
    r"""Where bytes stop being UTF-8; None if they are.

    >>> first_bad_byte(b"id\nJos\xe9\n"), first_bad_byte(b"id\n")
    (6, None)
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), _PIECE):  # in pieces, so that the check needs little memory
        held = len(decoder.getstate()[0])
        try:
            decoder.decode(data[start : start + _PIECE], final=start + _PIECE >= len(data))
        except UnicodeDecodeError as error:
            return start - held + error.start
    return None


def sniff_delimiter(content: Content) -> str:
    r"""The delimiter that splits the first rows into the same number of cells, more than one; by default that of the kind.

    >>> sniff_delimiter(Content("nodes.csv", "csv", b"id;name\n1;a,b\n2;c\n"))
    ';'
    """
    usual = "\t" if content.kind == "tsv" else ","
    candidates = [usual, *(d for d in DELIMITERS if d != usual)]
    sample = content.data[:_SAMPLE].decode("utf-8-sig", errors="ignore")
    headers = {}
    for delimiter in candidates:
        try:
            rows = [row for row in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter) if row]
        except csv.Error:
            continue
        if len(content.data) > _SAMPLE:
            rows = rows[:-1] or rows  # the last one may be cut
        headers[delimiter] = len(rows[0]) if rows else 0
        if headers[delimiter] > 1 and all(len(row) == len(rows[0]) for row in rows):
            return delimiter
    return max(headers, key=lambda d: headers[d], default=usual)  # uneven rows are named when they are parsed


def _in_utf8(content: Content, notes: list[str]) -> Content:
    data, at = content.data, None
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if not utf16 and (b"\0" in data or (at := first_bad_byte(data)) is None):
        return content
    try:
        text = data.decode("utf-16" if utf16 else "cp1252")
    except UnicodeDecodeError:
        return content  # damaged: refused when it is checked
    if at is None:
        notes.append(f"{content.name}: read as UTF-16")
    else:
        word = re.search(r"[^\W\d_]*" + re.escape(bytes([data[at]]).decode("cp1252")) + r"[^\W\d_]*", text)
        wrong = f"{word.group()!r} looks" if word and word.group().isprintable() else "letters look"
        way_out = f"if {wrong} wrong, save it as UTF-8"
        notes.append(f"{content.name} is not UTF-8: read as Windows-1252 (guessed); {way_out}")
    return replace(content, data=text.encode())


def _without_comments(content: Content, notes: list[str]) -> Content:
    """Leaves out lines above the table that begin with # or %; a last one that names the columns is the header."""
    if not _COMMENT.match(content.data.lstrip()[:4]):
        return content
    lines = content.data.splitlines(keepends=True)
    above = itertools.takewhile(lambda line: not line.strip() or _COMMENT.match(line), lines)
    count = len(list(above))
    if count == len(lines):
        return content  # nothing but such lines: names that begin with # rather than comments
    while not lines[count - 1].strip():
        count -= 1
    rest = replace(content, data=b"".join(lines[count:]))
    header = _header_in(lines[count - 1], rest)
    kept = count if header is None else count - 1
    comments = [line for line in lines[:kept] if line.strip()]
    if any(_is_row(line, rest) for line in comments):
        return content
    skipped = len(comments)
    lines[:kept] = [re.sub(rb"[^\r\n]+", b"", line) for line in lines[:kept]]
    if skipped:
        are = "s of comments above the table are" if skipped > 1 else " of comments above the table is"
        notes.append(f"{content.name}: {skipped} line{are} skipped")
    if header is not None:
        lines[kept] = header
        notes.append(f"{content.name}: line {kept + 1} names the columns, after a mark for comments")
    return replace(content, data=b"".join(lines))


def _cells(line: bytes, like: Content) -> list[str]:
    text = line.decode("utf-8-sig", errors="ignore").strip("\r\n")
    if _is_separated_by_blanks(like):
        return text.split()
    return next(iter(csv.reader([text], delimiter=sniff_delimiter(like))), [])


def _header_in(line: bytes, rest: Content) -> bytes | None:
    """The line without its mark, if it has as many cells as the first row, and is a header where that is none."""
    if _is_separated_by_blanks(rest):
        return None  # any words would do
    bare = re.sub(rb"^(?:\xef\xbb\xbf)?[#%]+[ \t]*", b"", line)
    names, cells = _cells(bare, rest), _first_row(rest)
    if len(names) != len(cells) or len(names) < 2 or any(is_number(name) for name in names):
        return None
    return bare if _GLUED.match(line) or any(is_number(cell) for cell in cells) else None


def _is_row(line: bytes, rest: Content) -> bool:
    """Whether a line that begins with # is more like a row of the table: no blank after the mark, and as many cells."""
    return _GLUED.match(line) is not None and len(_cells(line, rest)) == len(_first_row(rest)) > 1


def _first_row(content: Content) -> list[str]:
    return _cells(next(line for line in content.data.splitlines() if line.strip()), content)


def _is_separated_by_blanks(content: Content) -> bool:
    """Whether no other delimiter splits the first rows, and blanks split all alike."""
    sample = content.data[:_SAMPLE]
    rows = [row for row in sample.decode("utf-8-sig", errors="ignore").splitlines() if row.strip()]
    if len(content.data) > _SAMPLE:
        rows = rows[:-1] or rows  # the last one may be cut
    if not rows or b'"' in sample or any(mark in rows[0] for mark in ",;|"):
        return False
    by_tabs = {len(row.split("\t")) for row in rows}
    by_blanks = {len(row.split()) for row in rows}
    return len(by_blanks) == 1 and max(by_blanks) > 1 and (len(by_tabs) > 1 or max(by_tabs) == 1)
