r"""How one column becomes numbers: a class per kind, each with what it learned from the fitted table and nothing else.

==============  ====================================================================================================
``Numeric``     :math:`(x - \text{mean}) / \text{deviation}`; a missing one becomes 0, and 1 in a column beside it
``Sparse``      mostly zeros: :math:`x / r` with r the root mean square of the rest, so that zeros stay zeros
``Flag``        true and false, or numbers 0 and 1: as 1 and 0
``Date``        days since 1970, as a number
``Category``    one column per value; an unseen or missing value is 0 in all of them
``FreeText``    words and their counts, hashed, weighted by rarity (TF-IDF), rows of length 1
``Dropped``     nothing, and why
==============  ====================================================================================================
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from sharpen.files.column import DataColumn
from sharpen.files.table import first_row

Block: TypeAlias = "np.ndarray | scipy.sparse.csc_array"
MOST_CATEGORIES = 256
_BUCKETS = 4096


class _Numbers:
    """A column of numbers, beside which another may say where one is missing; a missing one counts as the mean."""

    column: str
    mean: float
    indicator: bool

    @property
    def width(self) -> int:
        return 1 + self.indicator

    def _missing(self, values: np.ndarray, notes: list[str], becomes: str = "the mean") -> np.ndarray:
        missing = np.isnan(values)
        if missing.any() and not self.indicator:
            nodes = _nodes(int(missing.sum()))
            notes.append(f"{self.column}: {nodes} without a value, though none was when fitted ({becomes})")
        return missing

    def _standardised(self, values: np.ndarray, scale: float, notes: list[str]) -> np.ndarray:
        missing = self._missing(values, notes)
        return np.stack([np.where(missing, 0.0, (values - self.mean) / scale), missing], axis=1)[:, : self.width]

    def _described(self, what: str) -> str:
        return f"{self.column}: {what}" + ("; missing ones become the mean and are marked" if self.indicator else "")


@dataclass(frozen=True)
class Numeric(_Numbers):
    """A number, standardised.

    >>> number = Numeric("age", mean=30.0, scale=10.0, indicator=True)
    >>> number.encode(DataColumn("age", pa.array(["20", ""]), str), []).tolist()
    [[-1.0, 0.0], [0.0, 1.0]]
    """

    kind: ClassVar[str] = "number"
    column: str
    mean: float
    scale: float
    indicator: bool

    def encode(self, column: DataColumn, notes: list[str]) -> Block:
        return self._standardised(column.numbers(), self.scale, notes)

    def describe(self) -> str:
        return self._described(f"number, mean {self.mean:.4g}, deviation {self.scale:.4g}")


@dataclass(frozen=True)
class Sparse(_Numbers):
    """A number that is mostly 0, scaled but not shifted.

    >>> Sparse("word", scale=2.0).encode(DataColumn("word", pa.array(["0", "4"]), str), []).toarray().tolist()
    [[0.0], [2.0]]
    """

    kind: ClassVar[str] = "sparse"
    indicator = False
    column: str
    scale: float

    def encode(self, column: DataColumn, notes: list[str]) -> Block:
        values = column.numbers()
        return _columns(np.where(self._missing(values, notes, "0"), 0.0, values / self.scale))

    def describe(self) -> str:
        return self._described(f"number, mostly 0, divided by {self.scale:.4g}")


@dataclass(frozen=True)
class Flag(_Numbers):
    """True or false as 1 or 0.

    >>> Flag("old", mean=0.5, indicator=False).encode(DataColumn("old", pa.array(["yes", "no"]), str), []).toarray().tolist()
    [[1.0], [0.0]]
    """

    kind: ClassVar[str] = "flag"
    column: str
    mean: float
    indicator: bool

    def encode(self, column: DataColumn, notes: list[str]) -> Block:
        values = column.truths()
        missing = self._missing(values, notes)
        return _columns(np.where(missing, self.mean, values), *[missing] * self.indicator)

    def describe(self) -> str:
        return self._described(f"true or false, true for {self.mean:.0%}")


@dataclass(frozen=True)
class Date(Numeric):
    """A date, as days, standardised.

    >>> date = Date("born", mean=1.0, scale=2.0, indicator=True, day_first=False)
    >>> date.encode(DataColumn("born", pa.array(["1970-01-02", "1970-01-04", ""]), str), []).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """

    kind: ClassVar[str] = "date"
    day_first: bool
    unread: str = ""

    def encode(self, column: DataColumn, notes: list[str]) -> Block:
        days = column.days(self.day_first)
        unread = column.unread(days)
        if unread:
            notes.append(f"{self.column}: {unread}; read as missing")
        return self._standardised(days, self.scale, notes)

    def describe(self) -> str:
        mean = np.datetime64(round(self.mean), "D")
        return self._described(
            f"date, as days; {mean} in the mean, deviation {self.scale:.4g} days{'; ' * bool(self.unread)}{self.unread}"
        )


@dataclass(frozen=True)
class Category:
    """One of several names, each its own column.

    >>> Category("city", values=("Oslo", "Rome")).encode(DataColumn("city", pa.array(["Rome", "Bonn"]), str), []).toarray()
    array([[0., 1.],
           [0., 0.]])
    """

    kind: ClassVar[str] = "category"
    column: str
    values: tuple[str, ...]

    @property
    def width(self) -> int:
        return len(self.values)

    def encode(self, column: DataColumn, notes: list[str]) -> Block:
        found = pc.index_in(column.text, value_set=pa.array(self.values, column.text.type))
        unseen = pc.and_(found.is_null(), column.text.is_valid())
        if (row := first_row(unseen)) is not None:
            example = f"such as {column.text[row].as_py()!r} (0 in every column)"
            nodes = _nodes(pc.sum(unseen).as_py())
            notes.append(f"{self.column}: {nodes} with a value that is not encoded, {example}")
        number = np.asarray(found.fill_null(-1))
        rows = np.flatnonzero(number >= 0)
        shape = (len(number), len(self.values))
        return scipy.sparse.csc_array((np.ones(rows.size), (rows, number[rows])), shape=shape)

    def describe(self) -> str:
        return f"{self.column}: category, {len(self.values)} values"


@dataclass(frozen=True)
class FreeText:
    """Words, hashed to buckets; a bucket seen in few rows weighs more.

    >>> text = fit_text(DataColumn("title", pa.array(["a graph", "a tree", "some graph or tree"]), str))
    >>> text.encode(DataColumn("title", pa.array(["graph graph tree"]), str), []).toarray().round(2).tolist()
    [[0.45, 0.89]]
    """

    kind: ClassVar[str] = "text"
    column: str
    buckets: tuple[int, ...]
    idf: tuple[float, ...]

    @property
    def width(self) -> int:
        return len(self.buckets)

    def encode(self, column: DataColumn, notes: list[str]) -> Block:
        from sklearn.preprocessing import normalize

        counts = _word_counts(column)[:, list(self.buckets)]
        weighted = scipy.sparse.csr_array(counts @ scipy.sparse.diags_array(np.array(self.idf)))
        return scipy.sparse.csc_array(normalize(weighted))

    def describe(self) -> str:
        count = len(self.buckets)
        return f"{self.column}: text, {count} hashed word{'s' * (count != 1)} weighted by rarity"


@dataclass(frozen=True)
class Dropped:
    """A column that is left out.

    >>> Dropped("country", why="it is the same for every node").describe()
    'country: left out, it is the same for every node'
    """

    kind: ClassVar[str] = "dropped"
    column: str
    why: str

    width: ClassVar[int] = 0

    def encode(self, column: DataColumn, notes: list[str]) -> Block:
        return np.zeros((len(column.values), 0))

    def describe(self) -> str:
        return f"{self.column}: left out, {self.why}"


Encoding: TypeAlias = Numeric | Sparse | Flag | Date | Category | FreeText | Dropped
_KINDS: dict[str, Any] = {cls.kind: cls for cls in (Numeric, Sparse, Flag, Date, Category, FreeText, Dropped)}


def to_dict(encoding: Encoding) -> dict[str, Any]:
    """An encoding as JSON can hold it.

    >>> to_dict(Sparse("word", scale=2.0))
    {'kind': 'sparse', 'column': 'word', 'scale': 2.0}
    """
    values = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(encoding).items()}
    return {"kind": encoding.kind, **values}


def from_dict(description: dict[str, Any]) -> Encoding:
    """The encoding that :func:`to_dict` described.

    >>> from_dict({"kind": "sparse", "column": "word", "scale": 2.0})
    Sparse(column='word', scale=2.0)
    """
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in description.items()}
    encoding: Encoding = _KINDS[str(values.pop("kind"))](**values)
    for each in fields(encoding):
        value = getattr(encoding, each.name)
        if not _CAN_BE[str(each.type)](value):
            raise ValueError(f"{each.name} of column {encoding.column!r} is {value!r}"[:200])
    if getattr(encoding, "scale", 1) == 0:
        raise ValueError(f"scale of column {encoding.column!r} is 0")
    if isinstance(encoding, FreeText) and not (
        len(encoding.buckets) == len(encoding.idf) and all(0 <= bucket < _BUCKETS for bucket in encoding.buckets)
    ):
        raise ValueError(f"the words of column {encoding.column!r} do not fit together")
    return encoding


def is_finite(value: object) -> bool:
    """Whether something read from JSON is a number to reckon with.

    >>> is_finite(2), is_finite(True), is_finite(float("nan")), is_finite("2")
    (True, False, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


# What the fields of encodings, by their types, may hold.
_CAN_BE: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "float": is_finite,
    "tuple[str, ...]": lambda value: isinstance(value, tuple) and all(isinstance(v, str) for v in value),
    "tuple[int, ...]": lambda value: isinstance(value, tuple) and all(type(v) is int for v in value),
    "tuple[float, ...]": lambda value: isinstance(value, tuple) and all(map(is_finite, value)),
}


def fit_text(column: DataColumn) -> FreeText:
    """Text with the rarity of its words: buckets that two rows or more share, :math:`1 + \\log((1 + N) / (1 + n_b))`.

    >>> fit_text(DataColumn("title", pa.array(["a graph", "a graph", "one"]), str)).idf
    (1.2876820724517808,)
    """
    counts = _word_counts(column)
    rows = np.bincount(counts.indices, minlength=_BUCKETS)
    used = np.flatnonzero(rows >= 2)
    if used.size == 0:
        used = np.flatnonzero(rows)
    idf = 1 + np.log((1 + counts.shape[0]) / (1 + rows[used]))
    return FreeText(column.name, tuple(used.tolist()), tuple(idf.tolist()))


def words_of_buckets(column: DataColumn) -> dict[int, Counter[str]]:
    """The words of a column and how often each occurs, by the bucket that they are hashed to.

    >>> list(words_of_buckets(DataColumn("title", pa.array(["a graph", "graph"]), str)).values())
    [Counter({'graph': 2})]
    """
    hashing, count = _hashing(), Counter[str]()
    analyze = hashing.build_analyzer()
    for text in column.text.to_pylist():
        count.update(analyze(text or ""))
    found: dict[int, Counter[str]] = {}
    for word, bucket in zip(count, hashing.transform(count).indices.tolist() if count else (), strict=True):
        found.setdefault(bucket, Counter())[word] = count[word]
    return found


def _word_counts(column: DataColumn) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(_hashing().transform([text or "" for text in column.text.to_pylist()]))


def _hashing() -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(n_features=_BUCKETS, alternate_sign=False, norm=None, dtype=np.float64)


def _columns(*values: np.ndarray) -> scipy.sparse.csc_array:
    return scipy.sparse.csc_array(np.stack(values, axis=1).astype(np.float64))


def _nodes(count: int) -> str:
    return f"{count} node{'s' * (count != 1)}"
