"""What can stand in a table: values that know what they are, and how each looks.

A score, a gain, a number from elsewhere, the reason why there is none. How it looks is decided here and once: percent with two
decimals, differences with their sign, intervals in brackets, bold where the interval excludes zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Line:
    """One line of text in a place of a table.

    >>> Line("+1.20", bold=True).text
    '+1.20'
    """

    text: str
    bold: bool = False
    muted: bool = False


class Value(Protocol):
    """What can stand in a table: its line, and its numbers by name."""

    def line(self) -> Line: ...

    def fields(self) -> Mapping[str, object]: ...


@dataclass(frozen=True)
class Score:
    """A mean over n runs with its standard deviation, in percent.

    Args:
        mean, sd: in percent; an ``sd`` of None was not given, or one run has none.
        n: over so many runs.
        tell_n: whether the line says n; leave it out only where the row or the caption does.

    >>> Score(84.5, 0.86, 5).line().text
    '84.50 ± 0.86 (n = 5)'
    """

    mean: float
    sd: float | None
    n: int | None = None
    tell_n: bool = True

    def line(self) -> Line:
        told = f" (n = {self.n})" if self.tell_n and self.n is not None else ""
        return Line(number(self.mean) + _spread(self.sd) + told)

    def fields(self) -> Mapping[str, object]:
        return {"mean": self.mean, "sd": self.sd, "n": self.n}


@dataclass(frozen=True)
class Gain:
    """A difference in points with its interval; bold where that excludes zero.

    Args:
        difference: in points.
        interval: its two ends; None where there are too few pairs.
        n: over so many pairs.
        tell_n: whether the line says n.
        decimals: two for points; more for what is not in percent.
        splits: on so many splits, where splits have several pairs each.

    >>> Gain(1.2, (0.31, 2.09), 5).line()
    Line(text='+1.20 [+0.31, +2.09] (n = 5)', bold=True, muted=False)
    >>> Gain(1.2, (0.31, 2.09), 20, splits=10).line().text
    '+1.20 [+0.31, +2.09] (20 runs on 10 splits)'
    """

    difference: float
    interval: tuple[float, float] | None
    n: int | None = None
    tell_n: bool = True
    decimals: int = 2
    splits: int | None = None

    @property
    def sure(self) -> bool:
        """Whether the interval excludes zero."""
        return self.interval is not None and not self.interval[0] <= 0 <= self.interval[1]

    def line(self) -> Line:
        text = signed(self.difference, self.decimals)
        if self.interval is not None:
            low, high = (signed(end, self.decimals) for end in self.interval)
            text += f" [{low}, {high}]"
        told = f" ({how_many(self.n, self.splits)})" if self.tell_n and self.n is not None else ""
        return Line(text + told, bold=self.sure)

    def fields(self) -> Mapping[str, object]:
        low, high = self.interval or (None, None)
        found: dict[str, object] = {"difference": self.difference, "low": low, "high": high, "n": self.n}
        return found if self.splits is None else found | {"splits": self.splits}


@dataclass(frozen=True)
class Quartiles:
    """Median and quartiles of differences; no interval of a mean, and never bold.

    >>> Quartiles(0.5, -0.25, 1).line()
    Line(text='+0.50 [−0.25, +1.00]', bold=False, muted=False)
    """

    median: float
    lower: float
    upper: float

    def line(self) -> Line:
        return Line(f"{signed(self.median)} [{signed(self.lower)}, {signed(self.upper)}]")

    def fields(self) -> Mapping[str, object]:
        return {"median": self.median, "lower": self.lower, "upper": self.upper}


@dataclass(frozen=True)
class UpDown:
    """In how many of some cells an interval lies above zero, in how many below.

    >>> UpDown(2, 1, 10).line().text
    '2 up, 1 down of 10'
    """

    up: int
    down: int
    of: int

    def line(self) -> Line:
        return Line(f"{self.up} up, {self.down} down of {self.of}", muted=True)

    def fields(self) -> Mapping[str, object]:
        return {"up": self.up, "down": self.down, "of": self.of}


@dataclass(frozen=True)
class Interval:
    """Two ends of a difference, in points.

    >>> Interval(-0.5, 1).line().text
    '[−0.50, +1.00]'
    """

    low: float
    high: float

    def line(self) -> Line:
        return Line(f"[{signed(self.low)}, {signed(self.high)}]")

    def fields(self) -> Mapping[str, object]:
        return {"low": self.low, "high": self.high}


@dataclass(frozen=True)
class Quoted:
    """A number of someone else's: a score, with its gain where that is given, or a difference if ``difference`` says so.

    >>> Quoted("paper", 84.54, 0.86).line().text, Quoted("paper", -3.8, 0.97, difference=True).line().text
    ('paper 84.54 ± 0.86', 'paper −3.80 ± 0.97')
    >>> Quoted("paper", 85.74, 0.54, gain=1.2).line().text
    'paper 85.74 ± 0.54, +1.20'
    """

    source: str
    value: float
    sd: float | None = None
    difference: bool = False
    gain: float | None = None

    def line(self) -> Line:
        text = (signed if self.difference else number)(self.value) + _spread(self.sd)
        if self.gain is not None:
            text += f", {signed(self.gain)}"
        return Line(f"{self.source} {text}".strip(), muted=True)

    def fields(self) -> Mapping[str, object]:
        return {"": self.value, "sd": self.sd} | ({} if self.gain is None else {"gain": self.gain})


@dataclass(frozen=True)
class Ranked:
    """A score and its rank among others; bold if it is ours.

    >>> Ranked(85.74, 0.54, 2, ours=True).line().text
    '85.74 ± 0.54 (2nd)'
    """

    mean: float
    sd: float | None
    rank: int
    ours: bool = False

    def line(self) -> Line:
        ending = {1: "st", 2: "nd", 3: "rd"}.get(self.rank % 10 if self.rank not in (11, 12, 13) else 0, "th")
        return Line(f"{number(self.mean)}{_spread(self.sd)} ({self.rank}{ending})", bold=self.ours)

    def fields(self) -> Mapping[str, object]:
        return {"mean": self.mean, "sd": self.sd, "rank": self.rank}


@dataclass(frozen=True)
class Number:
    """Any other number, with as many decimals as it deserves; None leaves the place empty.

    >>> Number(0.03125, 3).line().text, Number(None).line().text
    ('0.031', '')
    """

    value: float | None
    decimals: int = 2
    sign: bool = False

    def line(self) -> Line:
        if self.value is None or math.isnan(self.value):
            return Line("")
        return Line((signed if self.sign else number)(self.value, self.decimals))

    def fields(self) -> Mapping[str, object]:
        return {"": None if self.value is None or math.isnan(self.value) else self.value}


@dataclass(frozen=True)
class Chance:
    """A p-value.

    >>> Chance(0.0312).line().text, Chance(1e-9).line().text
    ('0.0312', '< 0.0001')
    """

    p: float | None

    def line(self) -> Line:
        if self.p is None or math.isnan(self.p):
            return Line("")
        return Line("< 0.0001" if self.p < 0.0001 else f"{self.p:.4f}")

    def fields(self) -> Mapping[str, object]:
        return {"": None if self.p is None or math.isnan(self.p) else self.p}


@dataclass(frozen=True)
class Text:
    """Plain words; in CSV their key, where a program knows them by another name.

    >>> Text("Cora", key="cora").line().text
    'Cora'
    """

    text: str
    bold: bool = False
    muted: bool = False
    key: str | None = None

    def line(self) -> Line:
        return Line(self.text, bold=self.bold, muted=self.muted)

    def fields(self) -> Mapping[str, object]:
        return {"": self.text if self.key is None else self.key}


@dataclass(frozen=True)
class Choice:
    """What validation chose, and with which mean validation score, in percent.

    >>> Choice("ts-0.35", lam=0.35, val=84.2).line().text
    'λ = 0.35'
    """

    variant: str
    lam: float | None = None
    val: float | None = None

    def line(self) -> Line:
        return Line(self.variant if self.lam is None else f"λ = {brief(self.lam)}")

    def fields(self) -> Mapping[str, object]:
        return {"": self.variant, "lam": self.lam, "val": self.val}


@dataclass(frozen=True)
class Reason:
    """Why there is no number.

    >>> Reason("not run yet").line()
    Line(text='not run yet', bold=False, muted=True)
    """

    text: str

    def line(self) -> Line:
        return Line(self.text, muted=True)

    def fields(self) -> Mapping[str, object]:
        return {"reason": self.text}


def number(value: float, decimals: int = 2) -> str:
    """A number with a real minus sign, and no minus sign on zero.

    >>> number(84.545), number(-0.001), number(-1.5, 1)
    ('84.55', '0.00', '−1.5')
    """
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if not text.strip("-0.") else text.replace("-", "−")


def brief(value: float) -> str:
    """A number with as many decimals as it needs, such as a λ, with a real minus sign.

    >>> brief(0.25), brief(-1.0)
    ('0.25', '−1')
    """
    return f"{value:g}".replace("-", "−")


def signed(value: float, decimals: int = 2) -> str:
    """A difference: always with a sign, except zero.

    >>> signed(1.2), signed(-3.8), signed(0.001)
    ('+1.20', '−3.80', '0.00')
    """
    text = number(value, decimals)
    return text if text.startswith("−") or not text.strip("0.") else f"+{text}"


def _spread(sd: float | None) -> str:
    return "" if sd is None else f" ± {number(sd)}"


def how_many(runs: int, splits: int | None = None) -> str:
    """A number of runs; where splits have several each, how many splits.

    >>> how_many(20, 20), how_many(5, 1), how_many(20, 10)
    ('n = 20', 'n = 5', '20 runs on 10 splits')
    """
    return f"{runs} runs on {splits} splits" if splits is not None and 1 < splits < runs else f"n = {runs}"
