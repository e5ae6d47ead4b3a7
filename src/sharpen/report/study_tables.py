"""The tables of a study: the paper's layout with ours in it, and every number of every cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sharpen.analysis.curves import on_lambda_curve
from sharpen.analysis.outcome import CellOutcome, Effect, Outcome
from sharpen.analysis.runs import Side
from sharpen.datasets.catalog import CATALOG
from sharpen.evaluation.paired import FEWEST_BOOTSTRAPPED
from sharpen.paper import lambda_star
from sharpen.report.cells import Value, how_many, number
from sharpen.report.names import dataset_title, minus, model_title, plural, span
from sharpen.report.tables import Column, Place, Table
from sharpen.report.tally import contrast_words, side_words
from sharpen.studies.spec import Contrast, Study

_READING = (
    "Scores: mean ± standard deviation over runs, in %. Differences: paired on the same splits and seeds, in points, "
    "with the 95 % t interval; bold where it excludes zero. n: runs per variant; where several splits have several runs "
    "each, those of a split are averaged before anything is tested. On one split an interval speaks of other seeds, not of other "
    "splits."
)
_COMBINED = "Combined sd: √(our sd² + the paper's sd²); named where the two means are more than two of them apart."
_CHOSEN = "λ (or the named setting) is selected by the mean validation score of the cell; test scores are not used."


def score_grid(outcome: Outcome, name: str) -> Table:
    """The scores of one variant or choice, datasets down and models across, the paper's below ours.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> empty = outcome(load_study("main"), "paper", datasets=["cora"], models=["gcn"])
    >>> [value.text for value in score_grid(empty, "baseline").rows[0][1]]
    ['not run yet', 'paper 84.54 ± 0.86']
    """

    def place(cell: CellOutcome) -> list[Value | None]:
        side, apart = cell.sides[name], None
        distance = None if side.consistency is None else side.consistency.distance
        if distance is not None and abs(distance) > 2:
            where = "above" if distance > 0 else "below"
            apart = Value.words(f"{number(abs(distance), 1)} combined sd {where}", bold=True)
        return [_score(side, cell.planned), _chosen(cell, side, outcome.study), _paper("paper", side), apart]

    compared = any(cell.sides[name].consistency is not None for cell in outcome.cells)
    return _grid(outcome, f"scores of {side_words(outcome, name)}", name, place, (_COMBINED,) * compared)


def gain_grid(outcome: Outcome, contrast: Contrast) -> Table:
    """One comparison in the paper's layout: the variant's score, what it gains, what was chosen, and what the paper says.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> empty = outcome(load_study("test-only"), "paired", datasets=["cora"], models=["gcn"])
    >>> [value.text for value in gain_grid(empty, empty.study.compare[0]).rows[0][1]]
    ['not run yet', 'paper −3.84 ± 0.70']
    """

    def place(cell: CellOutcome) -> list[Value | None]:
        effect, side = cell.effect(contrast.name), cell.sides[contrast.variant]
        score = None if effect.difference is None else _score(side, cell.planned)
        # Of what changes nothing the reason says so already.
        kept = kept_setting(cell, effect, outcome.study) is not None
        said = _paper("paper", side, effect.published)
        if said is None and effect.published is not None:
            said = Value.quoted("paper", effect.published, effect.published_sd, difference=True)
        return [score, *_gain(effect), None if kept else _chosen(cell, side, outcome.study), said]

    return _grid(outcome, contrast_words(outcome, contrast), contrast.variant, place)


def details(outcome: Outcome, contrasts: Iterable[Contrast] | None = None, *, only_pairs: bool = False) -> Table:
    """Every comparison of every cell with all that is known of it, one row each; what CSV files hold.

    Args:
        outcome: what to show.
        contrasts: those to show; None: all.
        only_pairs: leave out cells that have no pairs, and columns that no cell fills; else the columns are always the same.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> empty = outcome(load_study("universal"), "paper", datasets=["cora"])
    >>> len(details(empty).rows)
    3
    """
    wanted = tuple(outcome.study.compare if contrasts is None else contrasts)
    pairs = [pair for contrast in wanted for pair in outcome.effects(contrast.name)]
    shown = [(cell, effect) for cell, effect in pairs if effect.difference is not None or not only_pairs]
    rows = [_detail(cell, effect, outcome.study) for cell, effect in shown]
    kept = list(_DETAILS)
    if only_pairs:
        filled = {name for row in rows for name, place in row.items() if place is not None}
        kept = [name for name in kept if name in filled and (name != "comparison" or len(wanted) > 1)]
    notes = [_READING, _tests_note([outcome.effects(contrast.name) for contrast in wanted])]
    if any(row.get("consistent") is not None for row in rows):
        notes.append(
            "Consistent: zero lies within Welch's 95 % interval of our mean difference minus the paper's, given both "
            "spreads and both numbers of runs; the paper's spread is that of both sides together, as if they were independent. "
            "Where it is wide nearly any difference is consistent, and it says little."
        )
    what = contrast_words(outcome, wanted[0]) if len(wanted) == 1 else "every comparison"
    return Table(
        title=f"{outcome.study.title}: {what}, in detail, {outcome.protocol} protocol",
        columns=tuple(_DETAILS[name] for name in kept),
        rows=tuple(tuple(row.get(name) for name in kept) for row in rows),
        notes=tuple(notes),
    )


def _tests_note(families: Sequence[Sequence[tuple[CellOutcome, Effect]]]) -> str:
    """How the tests of a table are to be read, and over how many cells each was corrected."""
    sizes = {sum(effect.corrected_p is not None for _, effect in family) for family in families} - {0}
    over = span(sizes)
    return (
        f"Holm: corrected over {over} complete {plural('cell', 1 if sizes == {1} else 2)}, one comparison at a time; a cell whose "
        "differences are all zero counts with p = 1. Wilcoxon: signed-rank test of the pairs. Bootstrap: not given below "
        f"{FEWEST_BOOTSTRAPPED} pairs, where it is little more than their range. Glass's Δ: the difference in standard deviations "
        "of the side it is against."
    )


def score_data(outcome: Outcome) -> Table:
    """Every score of a study that compares nothing, one row per cell and variant; what CSV files hold.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> len(score_data(outcome(load_study("universal"), "paper", datasets=["cora"])).rows)
    6
    """
    numbers = {"score": _SCORE, "paper": _QUOTED}
    keys = ("dataset", "model", "variant", "score", "val", "paper", "note")
    rows: list[tuple[Place, ...]] = [
        (
            cell.dataset,
            cell.model,
            name,
            own_score(side),
            None if side.val is None else Value.number(side.val),
            _paper("", side),
            side.reason,
        )
        for cell in outcome.cells
        for name, side in cell.sides.items()
    ]
    columns = tuple(Column(key, key, numbers=numbers.get(key, ())) for key in keys)
    return Table(f"{outcome.study.title}: scores", columns, tuple(rows))


_SCORE, _QUOTED, _GAIN = ("mean", "sd", "n"), ("", "sd"), ("difference", "low", "high", "n", "splits")
_DETAILS = {
    column.key: column
    for column in (
        Column("dataset", "dataset"),
        Column("model", "model"),
        Column("comparison", "comparison"),
        Column("against", "against", "right", numbers=_SCORE),
        Column("against_paper", "paper", "right", numbers=_QUOTED),
        Column("variant", "variant", "right", numbers=_SCORE),
        Column("variant_paper", "paper", "right", numbers=_QUOTED),
        Column("chosen", "chosen", numbers=("", "lam", "val")),
        Column("lambda_star", "paper's λ*", "right"),
        Column("gain", "difference", "right", numbers=_GAIN),
        Column("bootstrap", "bootstrap (BCa) 95 % CI", "right", numbers=("low", "high")),
        Column("p", "p (t)", "right"),
        Column("p_holm", "p (Holm)", "right"),
        Column("p_wilcoxon", "p (Wilcoxon)", "right"),
        Column("wins", "win/tie/loss", "center"),
        Column("glass", "Glass's Δ", "right"),
        Column("paper", "paper's difference", "right", numbers=_QUOTED),
        Column("consistent", "consistent"),
        Column("note", "note"),
    )
}


def _detail(cell: CellOutcome, effect: Effect, study: Study) -> dict[str, Place]:
    d, ours = effect.difference, None if effect.consistency is None else effect.consistency.consistent
    side, against = cell.sides[effect.contrast.variant], cell.sides[effect.contrast.against]
    choice = _choice(cell, side, study)
    is_lam = choice is not None and choice.numbers["lam"] is not None
    star = lambda_star(cell.dataset, cell.model) if is_lam else None
    said, spread = effect.published, effect.published_sd
    row: dict[str, Place] = {
        "dataset": Value.words(dataset_title(cell.dataset), key=cell.dataset),
        "model": Value.words(model_title(cell.model), key=cell.model),
        "comparison": Value.words(minus(effect.contrast.name), key=effect.contrast.name),
        "against": own_score(against),
        "against_paper": _paper("", against),
        "variant": own_score(side),
        "variant_paper": _paper("", side),
        "chosen": choice,
        "lambda_star": None if star is None else Value.number(star),
        "paper": None if said is None else Value.quoted("", said, spread, difference=True),
        "consistent": {True: "yes", False: "no", None: None}[ours],
        "note": effect.reason,
    }
    if d is not None:
        row |= {
            "gain": Value.gain(d.difference, d.t_interval, effect.n, splits=effect.splits),
            "bootstrap": None if d.bootstrap_interval is None else Value.interval(*d.bootstrap_interval),
            "p": Value.chance(d.t_p),
            "p_holm": Value.chance(effect.corrected_p),
            "p_wilcoxon": Value.chance(d.wilcoxon_p),
            "wins": f"{d.wins}/{d.ties}/{d.losses}",
            "glass": Value.number(effect.glass, sign=True),
        }
    return row


def _grid(
    outcome: Outcome,
    words: str,
    name: str,
    place: Callable[[CellOutcome], list[Value | None]],
    notes: tuple[str, ...] = (),
) -> Table:
    """A table of all cells in the paper's layout, about a variant or choice of this name."""
    study, cells = outcome.study, {(cell.dataset, cell.model): cell for cell in outcome.cells}
    models = [m for m in study.models if any(model == m for _, model in cells)]
    datasets = [d for d in study.datasets if any(dataset == d for dataset, _ in cells)]
    planned = {dataset: how_many(cell.planned, cell.splits) for (dataset, _), cell in cells.items()}
    shown = {cell: tuple(value for value in place(told) if value is not None) for cell, told in cells.items()}
    unlike = [is_heterophilous(dataset) for dataset in datasets]
    return Table(
        title=f"{study.title}: {words}, {outcome.protocol} protocol",
        columns=(Column("dataset", "dataset"), *(Column(m, model_title(m), "center") for m in models)),
        rows=tuple(
            (
                (Value.words(dataset_title(dataset), key=dataset), Value.words(planned[dataset], muted=True)),
                *(shown.get((dataset, model)) for model in models),
            )
            for dataset in datasets
        ),
        notes=(_READING, *notes, *(_CHOSEN,) * (name in study.choose)),
        rules=tuple(i for i in range(1, len(datasets)) if unlike[i] and not unlike[i - 1]),
    )


def is_heterophilous(dataset: str) -> bool:
    """Whether a dataset is known to be heterophilous.

    >>> is_heterophilous("squirrel"), is_heterophilous("cora"), is_heterophilous("mine")
    (True, False, False)
    """
    return dataset in CATALOG and CATALOG[dataset].heterophilous


def own_score(side: Side, planned: int | None = None) -> Value | None:
    """Mean, spread and number of a side's runs, which is not told where it is as planned; nothing without a score."""
    return None if side.mean is None else Value.score(side.mean, side.sd, side.n, tell_n=side.n != planned)


def _score(side: Side, planned: int) -> Value:
    return own_score(side, planned) or Value.reason(side.reason or "no score")


def _gain(effect: Effect) -> tuple[Value, ...]:
    d = effect.difference
    if d is None:
        return (Value.reason(effect.reason or "no pairs"),)
    value = Value.gain(d.difference, d.t_interval, effect.n, tell_n=effect.n != effect.planned)
    return (value, Value.reason(effect.reason)) if effect.reason else (value,)


def _choice(cell: CellOutcome, side: Side, study: Study) -> Value | None:
    """What validation chose, if there was something to choose: λ where only that differs, else the variant's name."""
    if side.variant is None or side.variant == side.name or side.trial is None:
        return None
    only_lam = all(on_lambda_curve(cell, name, study) for name in study.choose[side.name])
    return Value.choice(side.variant, side.trial.lam if only_lam else None, side.val)


def _chosen(cell: CellOutcome, side: Side, study: Study) -> Value | None:
    choice = _choice(cell, side, study)
    return None if choice is None else Value.words(choice.text, muted=True)


def _paper(source: str, side: Side, gain: float | None = None) -> Value | None:
    said = side.published
    return None if said is None or said.mean is None else Value.quoted(source, said.mean, said.sd, gain=gain)


def kept_setting(cell: CellOutcome, effect: Effect, study: Study) -> str | None:
    """That validation chose the very side a choice is compared with, in two words; None if it did not.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> empty = outcome(load_study("main"), "paper", datasets=["cora"], models=["gcn"])
    >>> kept_setting(empty.cells[0], empty.cells[0].effects[0], empty.study) is None
    True
    """
    side = cell.sides[effect.contrast.variant]
    if side.variant is None or side.variant != cell.sides[effect.contrast.against].variant:
        return None
    choice = _choice(cell, side, study)
    return None if choice is None else f"{choice.text} chosen"
