"""Predictions as a file that appears whole or not at all, and in which no spreadsheet finds a formula.

A spreadsheet runs a cell that begins with ``=``, ``+``, ``-`` or ``@``, and some take off blanks and marks that do not print before
they look. In CSV, text that begins so (or with a tab or line end, or with apostrophes before any of these) gets an apostrophe in
front; :func:`read_predictions` takes it off again, so nothing is lost. Numbers are not touched, and Parquet needs no such care.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pandas as pd

from sharpen.errors import InputError
from sharpen.files.columns import listed
from sharpen.files.content import read_file
from sharpen.files.delimited import read_delimited
from sharpen.files.typed import read_parquet
from sharpen.whole import written_whole

# Blanks, and what does not print: a byte-order mark, zero-width and directional marks, controls.
_UNSEEN = r"[\s\x00-\x1f\x7f-\xa0\xad\u180e\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ufff9-\ufffb]*"
_START = rf"(?:[\t\r\n]|{_UNSEEN}[=+\-@＝＋－＠])"
_FORMULA = re.compile(rf"'*{_START}")
_GUARDED = re.compile(rf"'+{_START}")


def guard(text: str) -> str:
    """Text that a spreadsheet will not run.

    >>> guard("=1+1"), guard("'=1"), guard("it's"), guard("-5")
    ("'=1+1", "''=1", "it's", "'-5")
    >>> guard(" =1+1"), guard("\\ufeff=1"), guard(" - ")
    ("' =1+1", "'\\ufeff=1", "' - ")
    """
    return "'" + text if _FORMULA.match(text) else text


def _unguard(text: str) -> str:
    """What :func:`guard` was given.

    >>> [_unguard(guard(text)) for text in ("=1+1", "'=1", "it's", "'")]
    ['=1+1', "'=1", "it's", "'"]
    """
    return text[1:] if _GUARDED.match(text) else text


def check_output(path: Path | str) -> Path:
    """A place to write predictions to: CSV or Parquet, in a folder that exists; checked before hours of training.

    >>> check_output("predictions.xlsx")
    Traceback (most recent call last):
    sharpen.errors.InputError: predictions.xlsx: predictions are written as .csv or .parquet; change the ending
    """
    path = Path(path)
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"{path}: predictions are written as .csv or .parquet; change the ending")
    if path.is_dir():
        raise InputError(f"{path} is a directory; give a file name in it")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; make it first")
    return path


def write_predictions(path: Path | str, frame: pd.DataFrame) -> None:
    """Write a table as CSV or Parquet, by the ending of the name; what stood there is replaced in one step.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_predictions(folder / "predictions.csv", pd.DataFrame({"id": ["=a"], "probability": [0.5]}))
    >>> (folder / "predictions.csv").read_text()
    '"id","probability"\\n"\\'=a",0.5\\n'
    >>> read_predictions(folder / "predictions.csv").to_dict("list")
    {'id': ['=a'], 'probability': ['0.5']}
    """
    path = check_output(path)
    try:
        with written_whole(path) as file:
            if path.suffix.lower() == ".csv":
                # not the least quoting: a cell with a carriage return alone would go without
                guarded = pd.DataFrame({guard(str(name)): _guarded(values) for name, values in frame.items()})
                guarded.to_csv(file, index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
            else:
                frame.to_parquet(file, index=False)
    except OSError as error:
        way_out = "free some space or choose another folder"
        raise InputError(f"{path} cannot be written ({error.strerror}); {way_out}") from error


def _guarded(values: pd.Series) -> pd.Series:
    if pd.api.types.is_numeric_dtype(values):
        return values
    return values.map(lambda cell: guard(cell) if isinstance(cell, str) else cell)


def read_predictions(path: Path | str) -> pd.DataFrame:
    """The table that :func:`write_predictions` wrote: from CSV all of it as text, apostrophes taken off."""
    content = read_file(path)
    if content.kind not in ("csv", "tsv", "parquet"):
        way_out = "give the .csv or .parquet file that was written"
        raise InputError(f"{content.name} is not a table of predictions; {way_out}")
    if content.kind == "parquet":
        frame = read_parquet(content).columns.to_pandas()
    else:
        cells = read_delimited(content).columns.to_pydict()
        columns = {_unguard(name): list(map(_unguard, column)) for name, column in cells.items()}
        frame = pd.DataFrame(columns, dtype=object)
    if "id" not in frame.columns:
        raise InputError(f"{content.name} has no column 'id' (it has {listed(list(frame.columns))}); give predictions")
    return frame
