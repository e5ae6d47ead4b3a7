r"""Tables of results: one model, written as Markdown, CSV or LaTeX.

What stands in a table are values that know how they look (:mod:`sharpen.report.cells`). CSV keeps the numbers themselves.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sharpen.errors import InputError
from sharpen.report.cells import Line, Text, Value


@dataclass(frozen=True)
class Column:
    """A column: the key of its numbers in CSV, its title, where its text stands, and a heading over several columns.

    Args:
        key: of its numbers in CSV.
        title: for people.
        align: where its text stands.
        group: a heading over several columns.
        numbers: the names of its numbers in CSV, so that these have the same columns whatever is there; empty: those that its
            values bring.

    >>> Column("gcn", "GCN", "center", group="baseline").key
    'gcn'
    """

    key: str
    title: str
    align: Literal["left", "center", "right"] = "left"
    group: str = ""
    numbers: tuple[str, ...] = ()


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

    >>> from sharpen.report.cells import Gain
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


def to_markdown(table: Table) -> str:
    """The table as GitHub and most others read it; what a user wrote cannot break out of its place.

    >>> from sharpen.report.cells import Reason
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

    >>> from sharpen.report.cells import Gain, Reason
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
        own = dict.fromkeys(_csv_name(column.key, number) for number in column.numbers)
        own |= dict.fromkeys(name for fields in rows for name, of in fields if of == column.key)
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
                fields[_csv_name(column.key, name), column.key] = content
    return fields


def _csv_name(key: str, number: str) -> str:
    return f"{key}_{number}".strip("_")


def _plain(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
