"""Which encoding suits a column, and what it has to remember of it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow.compute as pc

from sharpen.files.column import FALSE, MOSTLY, NO_NUMBER, NUMBER, TRUE, DataColumn
from sharpen.files.dates import reads_day_first
from sharpen.files.encodings import MOST_CATEGORIES, Category, Date, Dropped, Encoding, Flag, Numeric, Sparse, fit_text

_SAME = "it is the same for every node"


def fit_encoding(column: DataColumn) -> Encoding:
    """The kind that suits a column, with what is to be remembered of it.

    >>> import pyarrow as pa
    >>> fit_encoding(DataColumn("age", pa.array(["31", "4"]), str))
    Numeric(column='age', mean=17.5, scale=13.5, indicator=False)
    >>> fit_encoding(DataColumn("name", pa.array(["Ann", "Bob", "Cleo"]), str))
    Dropped(column='name', why='almost every value is different, like a name')
    """
    missing = (column.filled if column.is_text else column.values).null_count
    if missing == len(column.values):
        return Dropped(column.name, "every value is missing")
    if column.is_bool:
        return _fit_flag(column.name, column.truths())
    if column.cast is None and column.is_dates:
        return _fit_dates(column)
    if not column.is_text or column.cast is not None or column.share(f"{NO_NUMBER}|{NUMBER}") >= MOSTLY:
        return _fit_numbers(column.name, column.numbers())  # a few words among numbers are mistakes, and named as such
    column.refuse_commas()
    distinct = pc.unique(column.filled).drop_null()
    if all(value.lower() in TRUE + FALSE for value in distinct.slice(0, 20).to_pylist()) and len(distinct) <= 20:
        return _fit_flag(column.name, column.truths())
    return _fit_names(column, len(distinct))


def _fit_numbers(name: str, values: np.ndarray) -> Encoding:
    known = values[~np.isnan(values)]
    if np.isin(known, (0, 1)).all():
        return _fit_flag(name, values)
    nonzero = known[known != 0]
    if known.size == values.size and known.min() >= 0 and known.size - nonzero.size >= MOSTLY * known.size:
        return Sparse(name, scale=float(np.sqrt(np.mean(nonzero**2))))
    return _standardised(name, values, 1e-12 * max(1.0, abs(float(known.mean()))))


def _standardised(name: str, values: np.ndarray, least: float) -> Numeric | Dropped:
    """Numbers by their mean and deviation, unless that is no more than ``least``."""
    known = values[~np.isnan(values)]
    missing, deviation = known.size < values.size, float(known.std())
    if deviation > least:
        return Numeric(name, float(known.mean()), deviation, missing)
    # What tells nodes apart is whether they have it.
    return Numeric(name, float(known.mean()), 1.0, missing) if missing else Dropped(name, _SAME)


def _fit_dates(column: DataColumn) -> Encoding:
    day_first = column.is_text and reads_day_first(column.filled)
    days = column.days(day_first)
    if np.isnan(days).all():
        return Dropped(column.name, "none of its dates is in the calendar")
    found = _standardised(column.name, days, 1e-9)
    if not isinstance(found, Numeric):
        return found
    return Date(**vars(found), day_first=day_first, unread=column.unread(days))


def _fit_flag(name: str, values: np.ndarray) -> Encoding:
    known = values[~np.isnan(values)]
    missing = known.size < values.size
    if not missing and known.min() == known.max():
        return Dropped(name, _SAME)
    return Flag(name, float(known.mean()), missing)


def _fit_names(column: DataColumn, distinct: int) -> Encoding:
    present = len(column.text) - column.text.null_count
    if distinct == 1 and present == len(column.text):
        return Dropped(column.name, _SAME)
    words = pc.mean(pc.count_substring_regex(column.text, r"\S+")).as_py()
    prose = words >= 3 and distinct > min(100, present / 2)
    if not prose and distinct <= max(20, present / 2) and distinct < max(present, 2):
        counts = Counter(column.text.drop_null().to_pylist())
        commonest = sorted(counts, key=lambda value: (-counts[value], value))
        return Category(column.name, tuple(sorted(commonest[:MOST_CATEGORIES])))
    if words >= 2 and (text := fit_text(column)).width:
        return text
    return Dropped(column.name, "it holds no words" if prose else "almost every value is different, like a name")
