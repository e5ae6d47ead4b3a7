"""Tables of a study for the page: the same tables that Markdown and LaTeX have, and what each cell holds when it is opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sharpen.analysis.curves import Curve
from sharpen.analysis.outcome import CellOutcome, Effect, Outcome
from sharpen.analysis.runs import pairs_of_runs
from sharpen.report.cells import Value, number, signed
from sharpen.report.charts import dots, paired_row
from sharpen.report.lambda_charts import curve_chart
from sharpen.report.names import cell_title, shortened
from sharpen.report.page.sections import facts
from sharpen.report.tables import Place, Table, latex_document, to_csv, to_latex, to_markdown, values
from sharpen.report.tally import contrast_words
from sharpen.studies.plan import Cell
from sharpen.studies.spec import Contrast


def sheet(
    table: Table, details: list[list[dict[str, Any] | None]] | None = None, *, one_line: bool = False
) -> dict[str, Any]:
    """A table with its exports.

    Args:
        table: What to show.
        details: For each row and column what the place opens to, if anything.
        one_line: Whether a place shows its score and gain only, and the rest where somebody points at it.

    >>> from sharpen.report.tables import Column
    >>> toy = Table("Toy", (Column("dataset", "dataset"), Column("gain", "gain")), (("Cora", Value.gain(1.0, (0.5, 1.5), 4)),))
    >>> sheet(toy)["rows"][0][1]
    [{'text': '+1.00 [+0.50, +1.50] (n = 4)', 'bold': True, 'tone': 'gain'}]
    """
    return {
        "kind": "sheet",
        "title": table.title,
        "wide": True,
        "columns": [{"title": column.title, "align": column.align, "group": column.group} for column in table.columns],
        "rows": [[(_one_line if one_line else _place)(place) for place in row] for row in table.rows],
        "rules": list(table.rules),
        "notes": list(table.notes),
        "details": details,
        "exports": {
            "Markdown": to_markdown(table),
            "CSV": to_csv(table),
            "LaTeX": latex_document([to_latex(table, "tab:sharpen")]),
        },
    }


def _place(place: Place) -> list[dict[str, Any]]:
    looks = ("bold", "muted", "tone")
    return [
        {"text": shortened(value.text)} | {name: said for name in looks if (said := getattr(value, name))}
        for value in values(place)
    ]


def _one_line(place: Place) -> list[dict[str, Any]]:
    """A place of several lines as one: the score and what it gains, or the first; all lines go with it.

    >>> _one_line((Value.score(85.6, 0.46), Value.gain(0.76, (-0.1, 1.62))))[0]["text"], _one_line("Cora")[0]["text"]
    ('85.60', 'Cora')
    """
    lines, found = _place(place), values(place)
    if len(lines) < 2:
        return lines
    score = next((value for value in found if "mean" in value.numbers), None)
    gain = next((value for value in found if "difference" in value.numbers), None)
    shown = lines[0] if score is None else {"text": number(score.numbers["mean"])}
    if gain is not None:
        shown |= {"gain": signed(gain.numbers["difference"]), "sure": gain.bold}
        shown |= {"tone": gain.tone} if gain.tone else {}
    return [shown | {"more": [line["text"] for line in lines]}]


def gain_sheet(
    table: Table, contrast: Contrast, outcome: Outcome, curves: Mapping[Cell, tuple[Curve, str]]
) -> dict[str, Any]:
    """One comparison in the paper's layout; every cell that has pairs opens to its λ curve and its runs.

    Args:
        table: What :func:`sharpen.report.study_tables.gain_grid` makes of a comparison.
        contrast, outcome: Which.
        curves: By cell, its scores over λ, and the study they come from.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> empty = outcome(load_study("universal"), "paper", datasets=["cora"], models=["gcn"])
    >>> from sharpen.report.study_tables import gain_grid
    >>> table = gain_grid(empty, empty.study.compare[0])
    >>> gain_sheet(table, empty.study.compare[0], empty, {})["rows"][0][1][0]["text"]
    'not run yet'
    """
    cells = {Cell(cell.dataset, cell.model): cell for cell in outcome.cells}
    details: list[list[dict[str, Any] | None]] = []
    for row in table.rows:
        dataset = values(row[0])[0].numbers[""]
        own = [cells.get(Cell(dataset, column.key)) for column in table.columns[1:]]
        details.append([None, *(None if cell is None else _detail(cell, contrast, outcome, curves) for cell in own)])
    return sheet(table, details, one_line=True)


def _detail(
    cell: CellOutcome, contrast: Contrast, outcome: Outcome, curves: Mapping[Cell, tuple[Curve, str]]
) -> dict[str, Any] | None:
    effect, words = cell.effect(contrast.name), contrast_words(outcome, contrast)
    curve, source = curves.get(Cell(cell.dataset, cell.model), (None, ""))
    gain, charts = _gain(effect), []
    if gain is not None:
        pairs, _ = pairs_of_runs(*(cell.sides[name] for name in contrast))
        scores = ((a.split, a.seed, b.test or 0.0, a.test or 0.0) for a, b in pairs)
        row = paired_row(words, gain.text, scores, effect.difference)
        charts.append(dots("Its runs, pair by pair", [row], "points of test score"))
    if curve is not None:
        charts.append(curve_chart(curve, note="" if source == outcome.study.name else f"From the study {source}."))
    if not charts:
        return None
    return {
        "title": f"{cell_title(cell.dataset, cell.model)}: {words}",
        "charts": [*charts, facts(_facts(cell, effect))],
    }


def _gain(effect: Effect) -> Value | None:
    d = effect.difference
    return None if d is None else Value.gain(d.difference, d.t_interval, effect.n, splits=effect.splits)


def _facts(cell: CellOutcome, effect: Effect) -> list[tuple[str, str]]:
    d, gain = effect.difference, _gain(effect)
    if d is None or gain is None:
        return [("why there is no difference", effect.reason or "no pairs")]
    side, ends, found = cell.sides[effect.contrast.variant], d.bootstrap_interval, effect.consistency
    consistent = None if found is None else found.consistent
    entries = {
        "difference": gain.text,
        "bootstrap (BCa) 95 %": None if ends is None else Value.interval(*ends).text,
        "p (t)": Value.chance(d.t_p).text,
        "p (Holm)": Value.chance(effect.corrected_p).text,
        "p (Wilcoxon)": Value.chance(d.wilcoxon_p).text,
        "won / tied / lost": f"{d.wins} / {d.ties} / {d.losses}",
        "Glass's Δ": Value.number(effect.glass, sign=True).text,
        "chosen by validation": None if side.variant == side.name else side.variant,
        "the paper's difference": Value.number(effect.published, sign=True).text,
        "consistent with it (weak where spreads are wide)": {True: "yes", False: "no", None: None}[consistent],
        "note": effect.reason,
    }
    return [(name, text) for name, text in entries.items() if text]
