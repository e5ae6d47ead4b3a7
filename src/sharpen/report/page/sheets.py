"""Tables of a study for the page: the same tables that Markdown and LaTeX have, and what each cell holds when it is opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sharpen.analysis.curves import Curve
from sharpen.analysis.outcome import CellOutcome, Effect, Outcome
from sharpen.analysis.runs import pairs_of_runs
from sharpen.report.cells import Chance, Gain, Score, number, signed
from sharpen.report.charts import Chart, dots, paired_row
from sharpen.report.lambda_charts import curve_chart
from sharpen.report.names import cell_title, shortened
from sharpen.report.page.sections import facts
from sharpen.report.tables import Place, Table, latex_document, to_csv, to_latex, to_markdown
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
    >>> toy = Table("Toy", (Column("dataset", "dataset"), Column("gain", "gain")), (("Cora", Gain(1.0, (0.5, 1.5), 4)),))
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
    if place is None:
        return []
    if isinstance(place, str):
        return [{"text": shortened(place)}]
    found = []
    for value in place if isinstance(place, tuple) else (place,):
        line = value.line()
        entry: dict[str, Any] = {"text": shortened(line.text)}
        entry |= {name: True for name in ("bold", "muted") if getattr(line, name)}
        # What may as well be chance is neither gain nor loss.
        if isinstance(value, Gain) and value.sure and round(value.difference, value.decimals) != 0:
            entry["tone"] = "gain" if value.difference > 0 else "loss"
        found.append(entry)
    return found


def _one_line(place: Place) -> list[dict[str, Any]]:
    """A place of several lines as one: the score and what it gains, or the first; all lines go with it.

    >>> from sharpen.report.cells import Score
    >>> _one_line((Score(85.6, 0.46), Gain(0.76, (-0.1, 1.62))))[0]["text"], _one_line("Cora")[0]["text"]
    ('85.60', 'Cora')
    """
    lines = _place(place)
    if len(lines) < 2 or not isinstance(place, tuple):
        return lines
    score = next((value for value in place if isinstance(value, Score)), None)
    gain = next(((i, value) for i, value in enumerate(place) if isinstance(value, Gain)), None)
    shown = lines[0] if score is None else {"text": number(score.mean)}
    if gain is not None:
        shown |= {"gain": signed(gain[1].difference), "sure": gain[1].sure}
        shown |= {"tone": lines[gain[0]]["tone"]} if "tone" in lines[gain[0]] else {}
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
    models = [column.key for column in table.columns[1:]]
    details: list[list[dict[str, Any] | None]] = []
    for row in table.rows:
        dataset = str(row[0][0].fields()[""])  # type: ignore[index, union-attr]  # the first place names the dataset
        own = [cells.get(Cell(dataset, model)) for model in models]
        details.append([None, *(None if cell is None else _detail(cell, contrast, outcome, curves) for cell in own)])
    return sheet(table, details, one_line=True)


def _detail(
    cell: CellOutcome, contrast: Contrast, outcome: Outcome, curves: Mapping[Cell, tuple[Curve, str]]
) -> dict[str, Any] | None:
    effect = cell.effect(contrast.name)
    found = curves.get(Cell(cell.dataset, cell.model))
    charts: list[dict[str, Any]] = []
    if effect.difference is not None:
        charts.append(_pairs(cell, effect, contrast_words(outcome, contrast)))
    if found is not None:
        source = "" if found[1] == outcome.study.name else f"From the study {found[1]}."
        charts.append(curve_chart(found[0], note=source))
    if not charts:
        return None
    charts.append(facts(_facts(cell, effect)))
    return {"title": f"{cell_title(cell.dataset, cell.model)}: {contrast_words(outcome, contrast)}", "charts": charts}


def _pairs(cell: CellOutcome, effect: Effect, words: str) -> Chart:
    pairs, _ = pairs_of_runs(cell.sides[effect.contrast.variant], cell.sides[effect.contrast.against])
    scores = ((a.split, a.seed, b.test or 0.0, a.test or 0.0) for a, b in pairs)
    row = paired_row(words, _gain(effect).line().text, scores, effect.difference)
    return dots("Its runs, pair by pair", [row], "points of test score")


def _gain(effect: Effect) -> Gain:
    d = effect.difference
    assert d is not None  # only where there are pairs
    return Gain(d.difference, d.t_interval, effect.n, splits=effect.splits)


def _facts(cell: CellOutcome, effect: Effect) -> list[tuple[str, str]]:
    d = effect.difference
    if d is None:
        return [("why there is no difference", effect.reason or "no pairs")]
    side = cell.sides[effect.contrast.variant]
    entries = [("difference", _gain(effect).line().text)]
    if d.bootstrap_interval is not None:
        entries.append(("bootstrap (BCa) 95 %", "[{}, {}]".format(*(signed(end) for end in d.bootstrap_interval))))
    entries += [
        (name, Chance(p).line().text)
        for name, p in (("p (t)", d.t_p), ("p (Holm)", effect.corrected_p), ("p (Wilcoxon)", d.wilcoxon_p))
        if p is not None
    ]
    entries.append(("won / tied / lost", f"{d.wins} / {d.ties} / {d.losses}"))
    if effect.glass is not None:
        entries.append(("Glass's Δ", signed(effect.glass)))
    if side.variant is not None and side.variant != side.name:
        entries.append(("chosen by validation", side.variant))
    if effect.published is not None:
        entries.append(("the paper's difference", signed(effect.published)))
    if effect.consistency is not None and effect.consistency.consistent is not None:
        entries.append(
            ("consistent with it (weak where spreads are wide)", "yes" if effect.consistency.consistent else "no")
        )
    return entries + ([("note", effect.reason)] if effect.reason else [])
