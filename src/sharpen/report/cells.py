"""What can stand in a table: values that know how they look and which numbers they hold.

A score, a gain, a number from elsewhere, the reason why there is none. How it looks is decided here and once: percent with two
decimals, differences with their sign, intervals in brackets, bold where the interval excludes zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Value:
    """One line in a place of a table.

    Args:
        text: what a person reads.
        numbers: what a program reads, by name: CSV has them unrounded.
        bold, muted: how the text looks.
        tone: ``gain`` or ``loss`` where it surely is one.

    >>> Value("+1.20", {"difference": 1.2}, bold=True).text
    '+1.20'
    """

    text: str
    numbers: Mapping[str, Any]
    bold: bool = False
    muted: bool = False
    tone: str = ""

    @classmethod
    def score(cls, mean: float, sd: float | None, n: int | None = None, *, tell_n: bool = True) -> Value:
        """A mean over n runs with its standard deviation, in percent.

        Args:
            mean, sd: in percent; an ``sd`` of None was not given, or one run has none.
            n: over so many runs.
            tell_n: whether the line says n; leave it out only where the row or the caption does.

        >>> Value.score(84.5, 0.86, 5).text
        '84.50 ± 0.86 (n = 5)'
        """
        told = f" (n = {n})" if tell_n and n is not None else ""
        return cls(number(mean) + _spread(sd) + told, {"mean": mean, "sd": sd, "n": n})

    @classmethod
    def gain(
        cls,
        difference: float,
        interval: tuple[float, float] | None,
        n: int | None = None,
        *,
        tell_n: bool = True,
        decimals: int = 2,
        splits: int | None = None,
    ) -> Value:
        """A difference in points with its interval; bold where that excludes zero.

        Args:
            difference: in points.
            interval: its two ends; None where there are too few pairs.
            n: over so many pairs.
            tell_n: whether the line says n.
            decimals: two for points; more for what is not in percent.
            splits: on so many splits, where splits have several pairs each.

        >>> Value.gain(1.2, (0.31, 2.09), 5).text, Value.gain(1.2, (0.31, 2.09), 5).bold
        ('+1.20 [+0.31, +2.09] (n = 5)', True)
        >>> Value.gain(1.2, (0.31, 2.09), 20, splits=10).text
        '+1.20 [+0.31, +2.09] (20 runs on 10 splits)'
        """
        low, high = interval or (None, None)
        within = "" if interval is None else f" [{signed(interval[0], decimals)}, {signed(interval[1], decimals)}]"
        told = f" ({how_many(n, splits)})" if tell_n and n is not None else ""
        numbers = {"difference": difference, "low": low, "high": high, "n": n}
        numbers |= {} if splits is None else {"splits": splits}
        sure = interval is not None and not interval[0] <= 0 <= interval[1]
        # What reads as zero is neither gain nor loss.
        tone = ("gain" if difference > 0 else "loss") if sure and round(difference, decimals) != 0 else ""
        return cls(signed(difference, decimals) + within + told, numbers, bold=sure, tone=tone)

    @classmethod
    def quartiles(cls, median: float, lower: float, upper: float) -> Value:
        """Median and quartiles of differences; no interval of a mean, and never bold.

        >>> Value.quartiles(0.5, -0.25, 1).text
        '+0.50 [−0.25, +1.00]'
        """
        text = f"{signed(median)} [{signed(lower)}, {signed(upper)}]"
        return cls(text, {"median": median, "lower": lower, "upper": upper})

    @classmethod
    def up_down(cls, up: int, down: int, of: int) -> Value:
        """In how many of some cells an interval lies above zero, in how many below.

        >>> Value.up_down(2, 1, 10).text
        '2 up, 1 down of 10'
        """
        return cls(f"{up} up, {down} down of {of}", {"up": up, "down": down, "of": of}, muted=True)

    @classmethod
    def interval(cls, low: float, high: float) -> Value:
        """Two ends of a difference, in points.

        >>> Value.interval(-0.5, 1).text
        '[−0.50, +1.00]'
        """
        return cls(f"[{signed(low)}, {signed(high)}]", {"low": low, "high": high})

    @classmethod
    def quoted(
        cls, source: str, value: float, sd: float | None = None, *, difference: bool = False, gain: float | None = None
    ) -> Value:
        """A number of someone else's: a score, with its gain where that is given, or a difference if ``difference`` says so.

        >>> Value.quoted("paper", 84.54, 0.86).text, Value.quoted("paper", -3.8, 0.97, difference=True).text
        ('paper 84.54 ± 0.86', 'paper −3.80 ± 0.97')
        >>> Value.quoted("paper", 85.74, 0.54, gain=1.2).text
        'paper 85.74 ± 0.54, +1.20'
        """
        text = f"{source} {(signed if difference else number)(value)}{_spread(sd)}".strip()
        if gain is None:
            return cls(text, {"": value, "sd": sd}, muted=True)
        return cls(f"{text}, {signed(gain)}", {"": value, "sd": sd, "gain": gain}, muted=True)

    @classmethod
    def ranked(cls, mean: float, sd: float | None, rank: int, *, ours: bool = False) -> Value:
        """A score and its rank among others; bold if it is ours.

        >>> Value.ranked(85.74, 0.54, 2, ours=True).text
        '85.74 ± 0.54 (2nd)'
        """
        ending = {1: "st", 2: "nd", 3: "rd"}.get(rank % 10 if rank not in (11, 12, 13) else 0, "th")
        text = f"{number(mean)}{_spread(sd)} ({rank}{ending})"
        return cls(text, {"mean": mean, "sd": sd, "rank": rank}, bold=ours)

    @classmethod
    def number(cls, value: float | None, decimals: int = 2, *, sign: bool = False) -> Value:
        """Any other number, with as many decimals as it deserves; None leaves the place empty.

        >>> Value.number(0.03125, 3).text, Value.number(None).text
        ('0.031', '')
        """
        if value is None or math.isnan(value):
            return cls("", {"": None})
        return cls((signed if sign else number)(value, decimals), {"": value})

    @classmethod
    def chance(cls, p: float | None) -> Value:
        """A p-value.

        >>> Value.chance(0.0312).text, Value.chance(1e-9).text
        ('0.0312', '< 0.0001')
        """
        found = cls.number(p, 4)
        return found if p is None or not p < 0.0001 else cls("< 0.0001", found.numbers)

    @classmethod
    def words(cls, text: str, *, key: str | None = None, bold: bool = False, muted: bool = False) -> Value:
        """Plain words; in CSV their key, where a program knows them by another name.

        >>> Value.words("Cora", key="cora").text
        'Cora'
        """
        return cls(text, {"": text if key is None else key}, bold=bold, muted=muted)

    @classmethod
    def choice(cls, variant: str, lam: float | None = None, val: float | None = None) -> Value:
        """What validation chose, and with which mean validation score, in percent.

        >>> Value.choice("ts-0.35", lam=0.35, val=84.2).text
        'λ = 0.35'
        """
        return cls(variant if lam is None else f"λ = {brief(lam)}", {"": variant, "lam": lam, "val": val})

    @classmethod
    def reason(cls, text: str) -> Value:
        """Why there is no number.

        >>> Value.reason("not run yet").muted
        True
        """
        return cls(text, {"reason": text}, muted=True)


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
