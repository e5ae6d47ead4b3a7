"""Dates as numbers: days since 1970, read as they are commonly written."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

_TIME = (
    r"(?:[T ](?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,][0-9]+)?)?"
    r"(?: ?(?:Z|UTC|(?P<ahead>[+-][0-9]{2}):?(?P<ahead_minute>[0-9]{2})))?)?"
)
_YEAR_FIRST = rf"^(?P<year>[0-9]{{4}})[-/.](?P<one>[0-9]{{1,2}})[-/.](?P<other>[0-9]{{1,2}}){_TIME}$"
_YEAR_LAST = rf"^(?P<one>[0-9]{{1,2}})[-/.](?P<other>[0-9]{{1,2}})[-/.](?P<year>[0-9]{{4}}){_TIME}$"
# This year stands for no end, not for a day: one such date would dwarf the differences of all others.
NEVER = float(np.datetime64("9999-01-01").astype(np.int64))
DATE = re.sub(r"\?P<\w+>", "", f"{_YEAR_FIRST}|{_YEAR_LAST}")


def days_of_text(text: pa.Array, day_first: bool) -> np.ndarray:
    """Days since 1970 of dates as text, with the time of day as a fraction; NaN where it is no date.

    >>> days_of_text(pa.array(["1970-01-02", "3.1.1970 12:00", "1970-02-30", None]), day_first=True).tolist()
    [1.0, 2.5, nan, nan]
    """
    series = pd.Series(text.to_pylist(), dtype=object).astype("string")
    days = np.full(len(series), np.nan)
    for pattern, order in ((_YEAR_FIRST, False), (_YEAR_LAST, day_first)):
        parts = series.str.extract(pattern)
        found = parts["year"].notna().to_numpy()
        if not found.any():
            continue
        numbers = parts[found].astype("Float64").fillna(0).astype(np.float64)
        month, day = ("other", "one") if order else ("one", "other")
        whole = _days(*(numbers[name].to_numpy(dtype=np.int64) for name in ("year", month, day)))
        ahead = numbers["ahead"] + np.copysign(numbers["ahead_minute"] / 60, numbers["ahead"])
        hours = numbers["hour"] + numbers["minute"] / 60 + numbers["second"] / 3600 - ahead
        days[found] = whole + hours.to_numpy() / 24
    return days


def _days(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> np.ndarray:
    """Days since 1970 of dates of any year, NaN where the calendar has no such day.

    >>> _days(np.array([1970, 1600, 1970, 0]), np.array([2, 2, 2, 0]), np.array([1, 29, 30, 0])).tolist()
    [31.0, -135081.0, nan, nan]
    """
    start = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    date = start.astype("datetime64[D]") + (day - 1)
    there = (month >= 1) & (month <= 12) & (day >= 1) & (date.astype("datetime64[M]") == start)
    return np.where(there, date.astype(np.int64), np.nan)


def reads_day_first(text: pa.Array) -> bool:
    """Whether ``3/4/2020`` is the third of April: a first number above 12 says so, a second one above 12 says not; otherwise
    slashes are read as in the United States, points and dashes as in Europe.

    >>> reads_day_first(pa.array(["3/4/2020", "13/4/2020"])), reads_day_first(pa.array(["3/4/2020"]))
    (True, False)
    """
    parts = pd.Series(text.to_pylist(), dtype=object).astype("string").str.extract(_YEAR_LAST)
    first, second = (parts[name].dropna().astype(int) for name in ("one", "other"))
    if (first > 12).any() != (second > 12).any():
        return bool((first > 12).any())
    return not pc.any(pc.match_substring(text, "/")).as_py()


def days_of_times(values: pa.Array) -> np.ndarray:
    """The same of values that are dates or timestamps by type.

    >>> import datetime
    >>> days_of_times(pa.array([datetime.date(1970, 1, 3), None])).tolist()
    [2.0, nan]
    """
    times = values.cast(pa.timestamp("us", tz=getattr(values.type, "tz", None)), safe=False)
    numbers = times.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(numbers / 86_400e6, dtype=np.float64)


def seconds_of(values: pa.Array) -> pa.Array:
    """Times of day and durations as seconds, null where missing.

    >>> seconds_of(pa.array([1500, None], pa.duration("ms"))).to_pylist()
    [1.5, None]
    """
    kind = values.type
    per_second = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
    whole = values.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
    return pc.divide(whole.cast(pa.float64(), safe=False), per_second)
