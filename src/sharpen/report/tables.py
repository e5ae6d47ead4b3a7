r"""Tables of results: one model, written as Markdown, CSV or LaTeX.

What stands in a table are values that know how they look (:mod:`sharpen.report.cells`). CSV keeps the numbers themselves.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sharpen.errors import InputError
from sharpen.report.cells import Value


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

    >>> from sharpen.report.cells import Value
    >>> columns = (Column("dataset", "dataset"), Column("gain", "gain", "right"))
    >>> toy = Table("Toy", columns, (("Cora", Value.gain(1.0, (-1, 3), 4)),))
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
                places = f"{len(row)} places for {len(self.columns)} columns"
                raise InputError(f"row {index} of table {self.title!r} has {places}; give one each")


def to_markdown(table: Table) -> str:
    """The table as GitHub and most others read it; what a user wrote cannot break out of its place.

    >>> from sharpen.report.cells import Value
    >>> print(to_markdown(Table("A|B", (Column("a", "a<b"),), ((Value.reason("not run yet"),),), notes=("n is 5.",))))
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
    rows = (
        [markdown_text(title) for title in titles],
        *([_markdown_place(place) for place in row] for row in table.rows),
    )
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    rule = f"|{'|'.join(marks[column.align] for column in table.columns)}|"
    notes = ["\\\n".join(map(markdown_text, table.notes)), ""] if table.notes else []
    return "\n".join([f"**{markdown_text(table.title)}**", "", head, rule, *body, "", *notes])


def to_csv(table: Table) -> str:
    """The numbers of the table, unrounded, one column per number.

    >>> from sharpen.report.cells import Value
    >>> columns = (Column("dataset", "dataset"), Column("gain", "gain"))
    >>> print(to_csv(Table("Toy", columns, (("cora", Value.gain(1.0, (-1.0, 3.0), 4)), ("cs", Value.reason("not run yet"))))))
    dataset,gain_difference,gain_low,gain_high,gain_n,gain_reason
    cora,1,-1,3,4,
    cs,,,,,not run yet
    <BLANKLINE>
    """
    rows = [
        {
            (column.key, f"{column.key}_{name}".strip("_")): number
            for column, place in zip(table.columns, row, strict=True)
            for value in values(place)
            for name, number in value.numbers.items()
        }
        for row in table.rows
    ]
    names: dict[tuple[str, str], None] = {}
    for column in table.columns:  # numbers of one column stand together, whichever row brings them
        own = dict.fromkeys((column.key, f"{column.key}_{number}".strip("_")) for number in column.numbers)
        own |= dict.fromkeys(name for row in rows for name in row if name[0] == column.key)
        names |= own or {(column.key, column.key): None}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(name for _, name in names)
    writer.writerows([_plain(row.get(name)) for name in names] for row in rows)
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
    body = [f"{' & '.join(latex_text(column.title) for column in table.columns)} \\\\", r"\midrule"]
    for index, row in enumerate(table.rows):
        places = (_latex_place(place, column.align) for place, column in zip(row, table.columns, strict=True))
        body += [r"\midrule"] * (index in table.rules) + [f"{' & '.join(places)} \\\\"]
    notes = r"\\".join(map(latex_text, table.notes))
    note = rf"  \par\smallskip\begin{{minipage}}{{\linewidth}}\footnotesize {notes}\end{{minipage}}"
    return "\n".join(
        [
            r"\begin{table}[p]",
            r"  \centering",
            rf"  \caption{{{latex_text(table.title)}}}",
            *([rf"  \label{{{label}}}"] if label else []),
            r"  \small",
            r"  \sbox0{%",
            rf"    \begin{{tabular}}{{{''.join(column.align[0] for column in table.columns)}}}",
            r"      \toprule",
            *(f"      {line}" for line in [*_latex_groups(table.columns), *body]),
            r"      \bottomrule",
            r"    \end{tabular}}%",
            r"  \ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi",
            *([note] if table.notes else []),
            r"\end{table}",
            "",
        ]
    )


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
    return "".join(
        _LATEX.get(c) or (c if c.isascii() or "À" <= c <= "ſ" else f"U+{ord(c):04X}") for c in " ".join(text.split())
    )


_COMMANDS = ["pm", "times", "le", "ge", "cdot", "to", "lambda", "Delta", "delta", "sigma", "star", "surd"]
_LATEX = {
    **{c: f"\\{c}" for c in "%&#$_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    '"': "''",
    **{c: f"${c}$" for c in "<>|"},
    "[": "{[}",  # after a line break it would be read as an optional argument
    "]": "{]}",
    **{c: rf"$\{name}$" for c, name in zip("±×≤≥·→λΔδσ★√", _COMMANDS, strict=True)},
    **{"−": "$-$", "²": "$^2$", "–": "--", "—": "---", "…": r"\dots{}", "’": "'", "“": "``", "”": "''", "\u00a0": "~"},
}


def values(place: Place) -> tuple[Value, ...]:
    """What stands in a place, as values.

    >>> [value.text for value in values("Cora")], values(None)
    (['Cora'], ())
    """
    if isinstance(place, str):
        return (Value.words(place),)
    return place if isinstance(place, tuple) else () if place is None else (place,)


def _markdown_place(place: Place) -> str:
    marked = ((value.text, "**" if value.bold else "*" if value.muted else "") for value in values(place))
    return "<br>".join(f"{mark}{markdown_text(text)}{mark}" if text else "" for text, mark in marked)


def _latex_groups(columns: Sequence[Column]) -> list[str]:
    if not any(column.group for column in columns):
        return []
    spans = [(group, len([*own])) for group, own in itertools.groupby(column.group for column in columns)]
    ends = itertools.accumulate(width for _, width in spans)
    titles = (rf"\multicolumn{{{width}}}{{c}}{{{latex_text(group)}}}" for group, width in spans)
    rules = (
        rf"\cmidrule(lr){{{end - width + 1}-{end}}}" for (group, width), end in zip(spans, ends, strict=True) if group
    )
    return [" & ".join(titles) + r" \\", "".join(rules)]


def _latex_place(place: Place, align: str) -> str:
    lines = []
    for value in values(place):
        text = latex_text(value.text)
        mark = r"\textbf{\boldmath " if value.bold else r"{\footnotesize\itshape " if value.muted else ""
        lines.append(f"{mark}{text}}}" if mark else text)
    if len(lines) < 2:
        return "".join(lines)
    stacked = r"\\".join(lines)
    return rf"\begin{{tabular}}[t]{{@{{}}{align[0]}@{{}}}}{stacked}\end{{tabular}}"


def _plain(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
