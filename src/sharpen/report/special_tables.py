"""The tables of single studies: what λ does, entropy during training, ranks among published methods, retuned settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sharpen.analysis.curves import Band, Curve, glass_bands
from sharpen.analysis.dynamics import Dynamics
from sharpen.analysis.outcome import NOT_RUN, Outcome, same_but
from sharpen.analysis.ranking import Entry, Ranking, rankings
from sharpen.paper import retuned
from sharpen.report.cells import Value, number
from sharpen.report.names import counted_model, dataset_title, model_title
from sharpen.report.tables import Column, Place, Table
from sharpen.studies.spec import Study

# λ at which the effect is told in a table; the figures have all.
_TOLD_LAMS = (-1.0, -0.5, -0.25, -0.1, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


def lambda_table(curves: Sequence[Curve], title: str) -> Table:
    """What λ does to each model: Glass's Δ over datasets, and how many cells surely gain or lose.

    >>> from sharpen.analysis.curves import Point
    >>> points = tuple(Point(lam, 80 + lam, 1.0, 5, lam, (lam - 1, lam + 1), lam) for lam in (0.0, 0.25, 0.5, 2.0))
    >>> table = lambda_table([Curve("cora", "gcn", "accuracy", points, 5)], "Effect of λ")
    >>> [value.text for value in table.rows[-1][1]]
    ['+2.00 [+2.00, +2.00]', '1 up, 0 down of 1']
    """
    own: dict[tuple[str, str], Band] = {}  # the key and the title of a column
    for band in glass_bands(curves):
        own[band.model, counted_model(band.model, len(band.datasets))] = band
        if (whole := band.whole) is not None:
            own[f"{band.model}_whole", f"{model_title(band.model)} ({len(whole.datasets)} with every λ)"] = whole
    by_cell = {(curve.model, curve.dataset): curve for curve in curves}

    def place(band: Band, lam: float) -> Place:
        at = band.index(lam)
        if at is None:
            return Value.reason("not run for all")
        found = [by_cell[band.model, dataset].at(lam) for dataset in band.datasets]
        ends = [point.interval for point in found if point is not None and point.interval is not None]
        sure = Value.up_down(sum(low > 0 for low, _ in ends), sum(high < 0 for _, high in ends), len(ends))
        return Value.quartiles(band.median[at], band.lower[at], band.upper[at]), sure

    rows: list[tuple[Place, ...]] = [
        (Value.words(number(lam), key=f"{lam:g}"), *(place(band, lam) for band in own.values()))
        for lam in _TOLD_LAMS
        if any(band.index(lam) is not None for band in own.values())
    ]
    return Table(
        title=title,
        columns=(Column("lam", "λ", "right"), *(Column(key, name, "center") for key, name in own)),
        rows=tuple(rows),
        notes=(
            "Glass's Δ over datasets: median [first quartile, third quartile]. Below it: in how many cells the 95 % t "
            "interval of the paired difference to λ = 0 lies above or below zero, uncorrected.",
        ),
    )


def measure_words(cells: Sequence[Dynamics]) -> str:
    """Which entropy it is."""
    shannon = any(cell.measure == "shannon" for cell in cells)
    return "Shannon entropy, in nats," if shannon else "Tsallis entropy of order 2"


def dynamics_table(cells: Sequence[Dynamics], title: str) -> Table:
    """The gap H_L − H_U averaged over epochs, without and with sharpening, paired."""
    rows: tuple[tuple[Place, ...], ...] = tuple(
        (
            Value.words(dataset_title(cell.dataset), key=cell.dataset),
            Value.words(model_title(cell.model), key=cell.model),
            Value.number(float(cell.epochs), 0),
            *(
                Value.number(float(np.mean(getattr(side, what))), 3)
                for what in ("labeled", "unlabeled", "gap")
                for side in (cell.baseline, cell.sharpened)
            ),
            Value.gain(cell.gap.difference, cell.gap.t_interval, cell.gap.n, decimals=3),
            Value.number(100 * cell.above, 1),
        )
        for cell in cells
    )
    before, after = (cells[0].baseline.name, cells[0].sharpened.name) if cells else ("λ = 0", "λ = 0.25")
    groups = (("labeled", "H_L"), ("unlabeled", "H_U"), ("gap", "gap"))
    sides = (("baseline", before), ("sharpened", after))
    columns = (
        Column("dataset", "dataset"),
        Column("model", "model"),
        Column("epochs", "epochs", "right"),
        *(Column(f"{key}_{side}", name, "right", group=group) for key, group in groups for side, name in sides),
        Column("change", "change of the gap", "right"),
        Column("above", "epochs above (%)", "right"),
    )
    return Table(
        title=title,
        columns=columns,
        rows=rows,
        notes=(
            f"Mean {measure_words(cells)} over all epochs, training mode. Gap: H_L − H_U; its change is paired on "
            "split and seed, with the 95 % t interval, bold where it excludes zero. Epochs above: "
            "where the mean gap is larger with sharpening.",
        ),
    )


def ranking_table(rankings: Sequence[Ranking], title: str) -> Table:
    """Methods down, datasets across: every score with its rank on the dataset, ours in bold with the paper's below.

    >>> from sharpen.analysis.ranking import Entry
    >>> entries = (Entry("Other", 85.0, 0.5, ours=False, rank=1), Entry("GCN+TS", None, None, ours=True, reason="not run yet"))
    >>> [row[1].text for row in ranking_table([Ranking("cora", entries)], "Ranks").rows[:1]]
    ['85.00 ± 0.50 (1st)']
    """
    methods: dict[str, dict[str, Entry]] = {}
    for ranking in rankings:
        for entry in ranking.entries:
            methods.setdefault(entry.method, {})[ranking.dataset] = entry

    def order(method: str) -> tuple[bool, float, str]:
        """Others first, then by mean rank."""
        ranks = [entry.rank for entry in methods[method].values() if entry.rank is not None]
        return method in ours, float(np.mean(ranks)) if ranks else np.inf, method

    def place(entry: Entry | None) -> Place:
        if entry is None:
            return None
        if entry.mean is None:
            value = Value.reason(entry.reason or "no score")
        elif entry.rank is None:
            value = Value.score(entry.mean, entry.sd)
        else:
            value = Value.ranked(entry.mean, entry.sd, entry.rank, ours=entry.ours)
        return value if entry.paper is None else (value, Value.quoted("paper", entry.paper, entry.paper_sd))

    ours = {method for method, entries in methods.items() if any(entry.ours for entry in entries.values())}
    ordered = sorted(methods, key=order)
    others = len(methods) - len(ours)
    return Table(
        title=title,
        columns=(
            Column("method", "method"),
            *(Column(r.dataset, dataset_title(r.dataset), "center") for r in rankings),
        ),
        rows=tuple(
            (Value.words(name, bold=name in ours), *(place(methods[name].get(r.dataset)) for r in rankings))
            for name in ordered
        ),
        notes=(
            "In brackets: the rank on the dataset among the published methods and ours. Scores of other methods are "
            "cited as the paper prints them, on partly other splits and without pairing: an order of means, and no "
            "test. Ours in bold, +TS with λ by validation; empty: not published. No ranks where none of ours has a score.",
        ),
        rules=(others,) if ours and others else (),
    )


def ranking_data(rankings: Sequence[Ranking]) -> Table:
    """The same, one row per method and dataset; what CSV files hold.

    >>> from sharpen.analysis.ranking import Entry
    >>> data = ranking_data([Ranking("cora", (Entry("Other", 85.0, 0.5, ours=False, rank=1),))])
    >>> [column.key for column in data.columns]
    ['dataset', 'method', 'ours', 'score', 'rank', 'paper']
    """
    numbers = {"score": ("mean", "sd", "n", "reason"), "paper": ("", "sd")}
    keys = ("dataset", "method", "ours", "score", "rank", "paper")
    rows: list[tuple[Place, ...]] = [
        (
            ranking.dataset,
            entry.method,
            "yes" if entry.ours else "no",
            Value.reason(entry.reason or "no score")
            if entry.mean is None
            else Value.score(entry.mean, entry.sd, entry.n),
            None if entry.rank is None else str(entry.rank),
            None if entry.paper is None else Value.quoted("", entry.paper, entry.paper_sd),
        )
        for ranking in rankings
        for entry in ranking.entries
    ]
    return Table("Ranking", tuple(Column(key, key, numbers=numbers.get(key, ())) for key in keys), tuple(rows))


def shown_rankings(study: Study, main: Outcome) -> list[Ranking]:
    """Our scores among published ones; where none of ours has a score, the published ones without ranks among themselves.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> cora = shown_rankings(load_study("comparison"), outcome(load_study("main"), "paper"))[0]
    >>> {entry.rank for entry in cora.entries}
    {None}
    """
    return [
        ranking
        if ranking.best_of_ours is not None
        else replace(ranking, entries=tuple(replace(entry, rank=None) for entry in ranking.entries))
        for ranking in rankings(study, main)
    ]


def retuned_table(outcome: Outcome) -> Table | None:
    """Learning rate and dropout as they are, as validation chooses them, and as the paper's authors did; None for other studies.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> table = retuned_table(outcome(load_study("retune"), "paper", datasets=["cora"], models=["gcn"]))
    >>> [place.text for place in table.rows[0]]
    ['Cora', 'GCN', '0.001', '0.7', 'not run yet', '', '0.001', '0.65']
    """
    name = next((name for name in outcome.study.choose if _chooses_settings(outcome, name)), None)
    if name is None:
        return None
    rows: list[tuple[Place, ...]] = []
    for cell in outcome.cells:
        own, chosen = cell.sides[outcome.study.baseline or ""].trial, cell.sides[name]
        if own is None:
            continue
        picked: tuple[Place, ...] = (Value.reason(chosen.reason or NOT_RUN), Value.words(""))
        if chosen.trial is not None:
            picked = _setting((chosen.trial.lr, chosen.trial.dropout))
        rows.append(
            (
                Value.words(dataset_title(cell.dataset), key=cell.dataset),
                Value.words(model_title(cell.model), key=cell.model),
                *_setting((own.lr, own.dropout)),
                *picked,
                *_setting(retuned(cell.dataset, cell.model) or (None, None)),
            )
        )
    groups = (("own", "as it is"), ("chosen", "ours, by validation"), ("paper", "the paper's"))
    settings = (("lr", "learning rate"), ("dropout", "dropout"))
    columns = (
        Column("dataset", "dataset"),
        Column("model", "model"),
        *(Column(f"{key}_{of}", title, "right", group=group) for key, group in groups for of, title in settings),
    )
    return Table(f"{outcome.study.title}: what was chosen, {outcome.protocol} protocol", columns, tuple(rows))


def _chooses_settings(outcome: Outcome, name: str) -> bool:
    """Whether a choice is among learning rates and dropouts around the baseline, and nothing else."""
    found = False
    for cell in outcome.cells:
        own = cell.sides[outcome.study.baseline or ""].trial if outcome.study.baseline else None
        trials = [trial for c in outcome.study.choose[name] if (trial := cell.sides[c].trial) is not None]
        if own is None or not trials:
            continue
        if not all(same_but(trial, own, "lr", "dropout") for trial in trials):
            return False
        found |= any(trial != own for trial in trials) and len({(t.lr, t.dropout) for t in trials}) > 1
    return found


def _setting(values: tuple[float | None, float | None]) -> tuple[Value, ...]:
    return tuple(Value.words("" if value is None else f"{value:g}") for value in values)
