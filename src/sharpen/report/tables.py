r"""Tables of results: one model, written as Markdown, CSV or LaTeX.

What stands in a table is a value that knows what it is: a score, a gain, a number from elsewhere, the reason why there is none. How
it looks is decided here and once: percent with two decimals, differences with their sign, intervals in brackets, bold where the
interval excludes zero. CSV keeps the numbers themselves.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from sharpen.errors import InputError


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
        return Line(number(self.mean) + _spread(self.sd) + _n(self.n, self.tell_n))

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
        return Line(self.variant if self.lam is None else f"λ = {self.lam:g}".replace("-", "−"))

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


@dataclass(frozen=True)
class Column:
    """A column: the key of its numbers in CSV, its title, where its text stands, and a heading over several columns.

    >>> Column("gcn", "GCN", "center", group="baseline").key
    'gcn'
    """

    key: str
    title: str
    align: Literal["left", "center", "right"] = "left"
    group: str = ""


# One value, or several that stand below each other.
Place = Value | tuple[Value, ...] | str | None


@dataclass(frozen=True)
class Table:
    """Rows of values under columns, with a title and notes.

    Args:
        title: one sentence or less.
        columns: their keys and titles.
        rows: one place per column: a value, several below each other, a word, or None.
        notes: what a reader must know to read it.
        rules: indices of the rows that a line parts from those above.

    >>> toy = Table("Toy", (Column("dataset", "dataset"), Column("gain", "gain", "right")), (("Cora", Gain(1.0, (-1, 3), 4)),))
    >>> print(to_markdown(toy))
    **Toy**
    <BLANKLINE>
    | dataset | gain |
    |:---|---:|
    | Cora | +1.00 [−1.00, +3.00] (n = 4) |
    <BLANKLINE>
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Place, ...], ...]
    notes: tuple[str, ...] = ()
    rules: tuple[int, ...] = field(default=())

    def __post_init__(self) -> None:
        for index, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise InputError(
                    f"row {index} of table {self.title!r} has {len(row)} places for {len(self.columns)} columns; give one each"
                )


def number(value: float, decimals: int = 2) -> str:
    """A number with a real minus sign, and no minus sign on zero.

    >>> number(84.545), number(-0.001), number(-1.5, 1)
    ('84.55', '0.00', '−1.5')
    """
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if not text.strip("-0.") else text.replace("-", "−")


def signed(value: float, decimals: int = 2) -> str:
    """A difference: always with a sign, except zero.

    >>> signed(1.2), signed(-3.8), signed(0.001)
    ('+1.20', '−3.80', '0.00')
    """
    text = number(value, decimals)
    return text if text.startswith("−") or not text.strip("0.") else f"+{text}"


def to_markdown(table: Table) -> str:
    """The table as GitHub and most others read it; what a user wrote cannot break out of its place.

    >>> print(to_markdown(Table("A|B", (Column("a", "a<b"),), ((Reason("not run yet"),),), notes=("n is 5.",))))
    **A\\|B**
    <BLANKLINE>
    | a&lt;b |
    |:---|
    | *not run yet* |
    <BLANKLINE>
    n is 5.
    <BLANKLINE>
    """
    marks = {"left": ":---", "center": ":---:", "right": "---:"}
    titles = (f"{column.group}: {column.title}" if column.group else column.title for column in table.columns)
    out = [f"**{markdown_text(table.title)}**", ""]
    out.append(_markdown_row(map(markdown_text, titles)))
    out.append("|" + "|".join(marks[column.align] for column in table.columns) + "|")
    for row in table.rows:
        out.append(_markdown_row("<br>".join(map(_markdown_line, _lines(place))) for place in row))
    out.append("")
    if table.notes:
        out += ["\\\n".join(map(markdown_text, table.notes)), ""]
    return "\n".join(out)


def to_csv(table: Table) -> str:
    """The numbers of the table, unrounded, one column per number.

    >>> columns = (Column("dataset", "dataset"), Column("gain", "gain"))
    >>> print(to_csv(Table("Toy", columns, (("cora", Gain(1.0, (-1.0, 3.0), 4)), ("cs", Reason("not run yet"))))))
    dataset,gain_difference,gain_low,gain_high,gain_n,gain_reason
    cora,1,-1,3,4,
    cs,,,,,not run yet
    <BLANKLINE>
    """
    rows = [_csv_fields(table.columns, row) for row in table.rows]
    names: dict[str, None] = {}
    for column in table.columns:  # numbers of one column stand together, whichever row brings them
        own = dict.fromkeys(name for fields in rows for name, of in fields if of == column.key)
        names |= own or {column.key: None}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for fields in rows:
        values = {name: _plain(value) for (name, _), value in fields.items()}
        writer.writerow([values.get(name, "") for name in names])
    return out.getvalue()


def to_latex(table: Table, label: str | None = None) -> str:
    r"""The table as a LaTeX float; it needs the packages ``booktabs`` and ``graphicx``.

    Places with several values are small tables of their own, and what is wider than the line is scaled down to it.

    >>> print(to_latex(Table("Gain of λ", (Column("d", "dataset"),), (("a_b",),)), label="tab:toy"))
    \begin{table}[p]
      \centering
      \caption{Gain of $\lambda$}
      \label{tab:toy}
      \small
      \sbox0{%
        \begin{tabular}{l}
          \toprule
          dataset \\
          \midrule
          a\_b \\
          \bottomrule
        \end{tabular}}%
      \ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi
    \end{table}
    <BLANKLINE>
    """
    aligned = "".join({"left": "l", "center": "c", "right": "r"}[column.align] for column in table.columns)
    out = [r"\begin{table}[p]", r"  \centering", rf"  \caption{{{latex_text(table.title)}}}"]
    if label:
        out.append(rf"  \label{{{label}}}")
    out += [r"  \small", r"  \sbox0{%", rf"    \begin{{tabular}}{{{aligned}}}", r"      \toprule"]
    out += [f"      {line}" for line in _latex_groups(table.columns)]
    out += [
        "      " + " & ".join(latex_text(column.title) for column in table.columns) + r" \\",
        r"      \midrule",
    ]
    for index, row in enumerate(table.rows):
        if index in table.rules:
            out.append(r"      \midrule")
        places = (_latex_place(place, column.align) for place, column in zip(row, table.columns, strict=True))
        out.append("      " + " & ".join(places) + r" \\")
    out += [
        r"      \bottomrule",
        r"    \end{tabular}}%",
        r"  \ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi",
    ]
    if table.notes:
        notes = r"\\".join(latex_text(note) for note in table.notes)
        out.append(rf"  \par\smallskip\begin{{minipage}}{{\linewidth}}\footnotesize {notes}\end{{minipage}}")
    out += [r"\end{table}", ""]
    return "\n".join(out)


def latex_document(tables: Iterable[str]) -> str:
    r"""A document of LaTeX floats that compiles as it is; each float can be copied into another one.

    >>> print(latex_document([]).splitlines()[0])
    \documentclass{article}
    """
    return "\n".join(
        [
            r"\documentclass{article}",
            r"\usepackage[a4paper,margin=15mm]{geometry}",
            r"\usepackage{booktabs}",
            r"\usepackage{graphicx}",
            r"\begin{document}",
            "",
            *(f"{table}\\clearpage\n" for table in tables),
            r"\end{document}",
            "",
        ]
    )


def markdown_text(text: str) -> str:
    r"""Words that mean nothing but themselves in Markdown, in one line.

    >>> print(markdown_text("a|b <i> *c*"))
    a\|b &lt;i> \*c\*
    """
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    text = "".join(f"\\{c}" if c in r"\|*_`" else c for c in text)
    return text.replace("](", "]\\(").replace("][", "]\\[")  # the two ways to write a link


def latex_text(text: str) -> str:
    r"""Words that mean nothing but themselves in LaTeX; a character that its fonts lack is named by its code.

    >>> print(latex_text("50 % of λ_0 ± 3"))
    50 \% of $\lambda$\_0 $\pm$ 3
    """
    return "".join(map(_latex_character, " ".join(text.split())))


_LATEX = {
    **{c: f"\\{c}" for c in "%&#$_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    '"': "''",
    **{c: f"${c}$" for c in "<>|"},
    "[": "{[}",  # after a line break it would be read as an optional argument
    "]": "{]}",
    **{"−": "$-$", "±": r"$\pm$", "×": r"$\times$", "≤": r"$\le$", "≥": r"$\ge$", "·": r"$\cdot$", "→": r"$\to$"},
    **{
        "λ": r"$\lambda$",
        "Δ": r"$\Delta$",
        "δ": r"$\delta$",
        "σ": r"$\sigma$",
        "²": "$^2$",
        "★": r"$\star$",
        "√": r"$\surd$",
    },
    **{"–": "--", "—": "---", "…": r"\dots{}", "’": "'", "“": "``", "”": "''", "\u00a0": "~"},
}


def _latex_character(c: str) -> str:
    if c in _LATEX:
        return _LATEX[c]
    return c if c.isascii() or "À" <= c <= "ſ" else f"U+{ord(c):04X}"


def _lines(place: Place) -> list[Line]:
    if place is None:
        return []
    if isinstance(place, str):
        return [Line(place)]
    return [value.line() for value in (place if isinstance(place, tuple) else (place,))]


def _markdown_row(places: Iterable[str]) -> str:
    return "| " + " | ".join(places) + " |"


def _markdown_line(line: Line) -> str:
    mark = "**" if line.bold else "*" if line.muted else ""
    return f"{mark}{markdown_text(line.text)}{mark}" if line.text else ""


def _latex_groups(columns: Sequence[Column]) -> list[str]:
    if not any(column.group for column in columns):
        return []
    spans: list[tuple[str, int]] = []
    for column in columns:
        if spans and spans[-1][0] == column.group:
            spans[-1] = column.group, spans[-1][1] + 1
        else:
            spans.append((column.group, 1))
    titles, rules, first = [], [], 1
    for group, width in spans:
        titles.append(rf"\multicolumn{{{width}}}{{c}}{{{latex_text(group)}}}")
        if group:
            rules.append(rf"\cmidrule(lr){{{first}-{first + width - 1}}}")
        first += width
    return [" & ".join(titles) + r" \\", "".join(rules)]


def _latex_place(place: Place, align: str) -> str:
    lines = [_latex_line(line) for line in _lines(place)]
    if len(lines) < 2:
        return "".join(lines)
    stacked = r"\\".join(lines)
    return rf"\begin{{tabular}}[t]{{@{{}}{align[0]}@{{}}}}{stacked}\end{{tabular}}"


def _latex_line(line: Line) -> str:
    text = latex_text(line.text)
    return (
        rf"\textbf{{\boldmath {text}}}" if line.bold else rf"{{\footnotesize\itshape {text}}}" if line.muted else text
    )


def _csv_fields(columns: Sequence[Column], row: Sequence[Place]) -> dict[tuple[str, str], object]:
    """Every number of a row by its name, and the column it belongs to."""
    fields: dict[tuple[str, str], object] = {}
    for column, place in zip(columns, row, strict=True):
        if place is None:
            continue
        values = place if isinstance(place, tuple) else (Text(place) if isinstance(place, str) else place,)
        for value in values:
            for name, content in value.fields().items():
                fields[f"{column.key}_{name}".strip("_"), column.key] = content
    return fields


def _plain(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _spread(sd: float | None) -> str:
    return "" if sd is None else f" ± {number(sd)}"


def how_many(runs: int, splits: int | None = None) -> str:
    """A number of runs; where splits have several each, how many splits.

    >>> how_many(20, 20), how_many(5, 1), how_many(20, 10)
    ('n = 20', 'n = 5', '20 runs on 10 splits')
    """
    return f"{runs} runs on {splits} splits" if splits is not None and 1 < splits < runs else f"n = {runs}"


def _n(n: int | None, tell: bool) -> str:
    return f" (n = {n})" if tell and n is not None else ""
