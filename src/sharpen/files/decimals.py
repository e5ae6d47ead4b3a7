"""Numbers written with a decimal comma, as spreadsheets in much of Europe write them: ``3632,98`` or ``1.234,5``.

They are looked for only where cells are separated by semicolon or tab, and a column is taken for such numbers only as a
whole: one mark that stands for thousands here and for decimals there would change numbers a thousandfold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

SEPARATED_BY = (";", "\t")
_GROUPED = r"[1-9][0-9]{0,2}(\.[0-9]{3})+"
_EXPONENT = r"([eE][+-]?[0-9]+)?"
COMMA_NUMBER = rf"^[+-]?([0-9]+|{_GROUPED}|([0-9]*|{_GROUPED}),[0-9]+){_EXPONENT}$"
_BY_THOUSANDS = r"^[+-]?[1-9][0-9]{0,2},[0-9]{3}$"
_BOTH_MARKS = r"\..*(\.|,)"


def reading(text: pa.Array, *, known: bool = False) -> Literal["decimals", "unclear"] | None:
    """What the marks of a column are: ``decimals``, ``unclear`` if they may as well mark thousands, None if neither.

    Points alone are unclear as well: they mark thousands only in a file that elsewhere has decimal commas.

    Args:
        known: Whether the column is known to have decimal commas, so that only the values have to fit.

    >>> reading(pa.array(["3,5", "12", None])), reading(pa.array(["1.234,5", "2.345"]))
    ('decimals', 'decimals')
    >>> reading(pa.array(["1,250", "999"])), reading(pa.array(["1,5", "2.345"])), reading(pa.array(["12", "x"]))
    ('unclear', 'unclear', None)
    >>> reading(pa.array(["2.345", "12"])), reading(pa.array(["1,250"]), known=True), reading(pa.array(["2.34"]), known=True)
    ('unclear', 'decimals', None)
    """
    comma = pc.match_substring(text, ",")
    some_comma, some_point = pc.any(comma).as_py(), pc.any(pc.match_substring(text, ".")).as_py()
    if not (some_comma or some_point):
        return None
    if not pc.all(pc.match_substring_regex(text, COMMA_NUMBER)).as_py():
        return None
    if not some_comma:
        return "unclear"
    if some_point:  # points mark thousands for certain if a comma or another point follows one
        clear = pc.any(pc.match_substring_regex(text, _BOTH_MARKS)).as_py()
    else:
        clear = not pc.all(pc.match_substring_regex(pc.filter(text, comma), _BY_THOUSANDS)).as_py()
    return "decimals" if known or clear else "unclear"


def decimal_commas(columns: Mapping[str, pa.Array], known: Sequence[str] = ()) -> list[str]:
    """The columns whose commas are decimal ones; one that is clear settles those of the same file that are not.

    >>> decimal_commas({"price": pa.array(["1,250"])}), decimal_commas({"price": pa.array(["1,250"]), "age": pa.array(["3,5"])})
    ([], ['price', 'age'])
    """
    found = {name: reading(text, known=name in known) for name, text in columns.items()}
    return [name for name, what in found.items() if what] if "decimals" in found.values() else []


def with_points(text: pa.Array) -> pa.Array:
    """Numbers with decimal commas as all others are written.

    >>> with_points(pa.array(["1.234,5", "-3,25e2", None])).to_pylist()
    ['1234.5', '-3.25e2', None]
    """
    return pc.replace_substring(pc.replace_substring(text, ".", ""), ",", ".")
