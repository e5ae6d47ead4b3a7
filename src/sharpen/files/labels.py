"""Labels as classes: which values mean "unknown", and whether there is something to learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharpen.errors import InputError, as_given
from sharpen.files.columns import is_number, listed
from sharpen.files.table import WHOLE, as_text, to_objects

if TYPE_CHECKING:
    from sharpen.files.source import GraphTables

UNKNOWN = (
    "nan", "na", "n/a", "n.a.", "null", "none", "?", "-", "unknown", "unlabeled", "unlabelled", "undefined", "missing", "tbd",
    "not available", "not known", "unbekannt", "k.a.", "k. a.", "keine angabe", "inconnu", "desconocido",
)  # fmt: skip


def read_labels(
    values: pa.ChunkedArray, place: Callable[[int], str], unknown: Sequence[str] | None = None
) -> tuple[np.ndarray, list[str]]:
    """The class of each node as text, None where unknown, and what had to be decided.

    Unknown is a blank or missing value, a word such as ``NA`` or ``tbd``, and -1 where the other classes are two or more
    whole numbers from 0 on. Whole numbers lose a ``.0`` if all classes are whole numbers.

    Args:
        unknown: The words that mean unknown, in any case; then no other does. None: those that commonly do.

    >>> from sharpen.files.table import by_row
    >>> read_labels(pa.chunked_array([["cat", "", "dog"]]), by_row)
    (array(['cat', None, 'dog'], dtype=object), [])
    >>> read_labels(pa.chunked_array([[0, 1, -1]]), by_row)
    (array(['0', '1', None], dtype=object), ['label -1: 1 node with it counts as unlabeled (guessed); ...'])
    >>> read_labels(pa.chunked_array([["cat", "tbd"]]), by_row, unknown=())
    (array(['cat', 'tbd'], dtype=object), [])
    """
    text = pc.utf8_trim_whitespace(as_text(values, place))
    known = set(pc.unique(text).drop_null().to_pylist())
    notes = []

    def without(word: str) -> pa.Array:
        count = pc.sum(pc.equal(text, word)).as_py()
        note = f"label {word}: {count} node{'s' * (count != 1)} with it count{'s' * (count == 1)} as unlabeled"
        way_out = f" (guessed); {as_given('unknown_labels', [])} makes it a class"
        notes.append(note + way_out * (unknown is None))
        return pc.if_else(pc.equal(text, word), pa.scalar(None, text.type), text)

    for word in sorted(known):
        if word.lower() in (UNKNOWN if unknown is None else [given.lower() for given in unknown]):
            text = without(word)
    whole = pc.replace_substring_regex(text, WHOLE, r"\1")
    numbers = set(pc.unique(whole).drop_null().to_pylist())
    if numbers and all(map(_is_whole, numbers)):
        text, others = whole, numbers - {"-1"}
        if unknown is None and numbers != others and len(others) > 1 and all(int(label) >= 0 for label in others):
            text = without("-1")
    labels = to_objects(text)
    _check_classes(labels, place)
    return labels, notes


def check_labels(tables: GraphTables) -> list[str]:
    """There are labels of at least two classes to learn from; otherwise an InputError says what is missing.

    Returns:
        A warning for each class that one node only has: it cannot be both learned from and validated on.
    """
    column = f"{tables.name}, column {label_column(tables)!r}"
    counts = Counter(label for label in tables.labels if label is not None)
    if not counts:
        raise InputError(f"{column}: every label is missing; give at least a few nodes of each class theirs")
    if counts.total() == 1:
        raise InputError(f"{column}: only one node has a label; label a few nodes of each class")
    if len(counts) == 1:
        why = "there is nothing to tell apart until nodes of a second class are labeled"
        raise InputError(f"{column}: all {counts.total()} labels are {next(iter(counts))!r}; {why}")
    return [
        f"class {label!r} has one labeled node only: it can be learned but not validated"
        for label, count in sorted(counts.items())
        if count == 1
    ]


def label_column(tables: GraphTables) -> str:
    """The column of labels, where there has to be one.

    >>> import pathlib, tempfile
    >>> from sharpen.files import read_nodes_and_edges
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "nodes.csv"
    >>> _ = path.write_text("id,Topic\\na,cats\\nb,\\n")
    >>> label_column(read_nodes_and_edges(path))
    'Topic'
    """
    if tables.label_column is None:
        what = f"no column looks like a label (it has {listed(tables.columns)})"
        raise InputError(what, place=tables.name, hint=f"name the column of classes with {as_given('label')}")
    return tables.label_column


def class_order(labels: np.ndarray) -> tuple[str, ...]:
    """The classes in order: as numbers where all are whole numbers, as text otherwise.

    >>> class_order(np.array(["10", "9", None], dtype=object))
    ('9', '10')
    """
    known = {label for label in labels if label is not None}
    whole = all(map(_is_whole, known))
    return tuple(sorted(known, key=lambda label: (int(label) if whole else 0, label)))


def _check_classes(labels: np.ndarray, place: Callable[[int], str]) -> None:
    known = [label for label in labels if label is not None]
    distinct = set(known)
    if len(distinct) <= max(20, len(known) / 2):
        return
    row = next(row for row, label in enumerate(labels) if label is not None)
    holds = f"{place(row)} holds {len(distinct)}"
    if all(map(is_number, distinct)) and not all(map(_is_whole, distinct)):
        way_out = f"name a column of classes with {as_given('label')}, or cut the numbers into ranges"
        raise InputError(f"{holds} different numbers such as {known[0]}; sharpen predicts classes: {way_out}")
    if len(distinct) == len(known):
        way_out = f"name a column in which classes repeat with {as_given('label')}"
        raise InputError(f"{holds} labels that all differ, such as {known[0]!r}; {way_out}")


def _is_whole(label: str) -> bool:
    digits = label.lstrip("+-")
    return len(label) - len(digits) <= 1 and digits.isascii() and digits.isdigit() and len(digits) < 1000
