"""The charts of a study: differences of all cells, entropy during training, steps around a setting, ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sharpen.analysis.dynamics import Dynamics
from sharpen.analysis.outcome import CellOutcome, Effect, Outcome
from sharpen.analysis.ranking import SHARPENED, Entry, Ranking
from sharpen.analysis.steps import Step
from sharpen.errors import InputError
from sharpen.models.registry import model_info
from sharpen.report.blocks import Charts, Layout
from sharpen.report.cells import Value, brief, signed
from sharpen.report.charts import (
    Chart,
    axis,
    cell_grid,
    forest,
    forest_row,
    lines,
    model_series,
    rounded,
    series,
    thinned,
)
from sharpen.report.names import cell_title, dataset_title, model_title, plural, span
from sharpen.report.special_tables import measure_words
from sharpen.report.study_tables import kept_setting
from sharpen.report.tally import contrast_words
from sharpen.studies.plan import Cell
from sharpen.studies.spec import Contrast


def difference_charts(outcome: Outcome, contrasts: Sequence[Contrast]) -> Charts | None:
    """All differences of some comparisons with their intervals, and the paper's beside them; None if there are none.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> empty = outcome(load_study("universal"), "paper")
    >>> difference_charts(empty, empty.study.compare) is None
    True
    """
    ready = [c for c in contrasts if any(effect.difference is not None for _, effect in outcome.effects(c.name))]
    if not ready:
        return None
    views = {contrast_words(outcome, contrast): [_differences(outcome, contrast)] for contrast in ready}
    first, (chart, *_) = next(iter(views.items()))
    groups = len({row["group"] for row in chart["rows"]})
    height = 0.235 * (len(chart["rows"]) + 0.5 * groups) + 0.6
    return Charts(
        "All differences",
        views,
        text=_differences_text(outcome, ready[0], several=len(ready) > 1),
        layout=Layout("differences", (7.2, height), views=(first,), legend=True),
    )


def _differences(outcome: Outcome, contrast: Contrast) -> Chart:
    effects = outcome.effects(contrast.name)
    rows = [_difference(cell, effect, outcome) for cell, effect in effects if effect.difference is not None]
    legend: list[Chart] = [
        {"name": "filled: the interval excludes zero", "color": "ink"},
        {"name": "open: it does not", "color": "ink", "open": True},
    ]
    if any(row["partly"] for row in rows):
        legend.append({"name": "dotted: only part was run", "color": "ink", "open": True})
    if any(row["quoted"] is not None for row in rows):
        legend.append({"name": "what the paper says", "quoted": True})
    unit = f"test score, {contrast_words(outcome, contrast)} (percentage points)"
    return forest("", rows, unit, zero=True, legend=legend)


def _difference(cell: CellOutcome, effect: Effect, outcome: Outcome) -> Chart:
    d = effect.difference
    assert d is not None  # only cells with a difference are shown
    on = f" on {effect.splits} splits" if d.n < effect.n else ""
    notes = [f"{effect.n} pairs{on}, {d.wins} won, {d.ties} tied, {d.losses} lost"]
    notes += [effect.reason] if effect.reason else []
    notes += [f"paper: {signed(effect.published)}"] if effect.published is not None else []
    kept = kept_setting(cell, effect, outcome.study)
    said = f", {effect.n} of {effect.planned} runs" if effect.partial else f", {kept}" if kept else ""
    n = f"n = {effect.n} of {effect.planned}" if effect.partial else f"n = {d.n}"
    sure = effect.verdict in ("gain", "loss") and not effect.partial
    return forest_row(
        dataset_title(cell.dataset),
        model_title(cell.model),
        model_info(cell.model).color,
        d.difference,
        d.t_interval,
        quoted=effect.published,
        sure=sure,
        strong=sure,
        partly=effect.partial,
        text=Value.gain(d.difference, d.t_interval, tell_n=False).text + said,
        tail=f"{model_title(cell.model):>4}  {signed(d.difference):>6}  {kept or n}",
        notes=notes,
        marker=model_info(cell.model).marker,
    )


def _differences_text(outcome: Outcome, contrast: Contrast, *, several: bool) -> str:
    effects = [effect for _, effect in outcome.effects(contrast.name)]
    shown = [effect for effect in effects if effect.difference is not None]
    whole = [effect.difference.n for effect in shown if effect.difference is not None and not effect.partial]
    text = (
        f"{outcome.study.title}, {outcome.protocol} protocol. Mean of paired differences on the same splits and seeds with 95 % t "
        f"interval; {span(whole or [0])} pairs (or splits, where those have several runs) per complete cell; filled where the "
        "interval excludes zero. An interval that goes on beyond the axes ends in an arrow."
    )
    if partly := len(shown) - len(whole):
        text += f" Dotted: {partly} {plural('cell', partly)} of which only part was run."
    if missing := len(effects) - len(shown):
        text += f" {missing} {'cell is' if missing == 1 else 'cells are'} not shown: the table says why."
    return f"{text} Counts are those of {contrast_words(outcome, contrast)}." if several else text


def entropy_charts(cells: Sequence[Dynamics]) -> Charts:
    """By cell: entropy of labeled and unlabeled predictions during training, and their gap."""
    shannon = any(cell.measure == "shannon" for cell in cells)
    return Charts(
        f"{'Shannon entropy' if shannon else 'Entropy'} during training",
        {cell_title(cell.dataset, cell.model): _entropies(cell) for cell in cells},
        text=f"Mean {measure_words(cells)} of labeled (H_L) and unlabeled (H_U) predictions in the training step of each "
        "epoch, dropout on. Line: the median over runs, which one run that collapses for a while does not move; band: from the "
        "lowest run to the highest. H_L and H_U of a cell have one scale, the gap its own. "
        f"{span([len(cell.baseline.labeled) for cell in cells])} runs per cell, the same splits and seeds for both.",
        layout=Layout("shannon" if shannon else "entropy", (2.4, 1.65), legend=True),
    )


def _entropies(cell: Dynamics) -> list[Chart]:
    epochs = thinned(cell.epochs)
    # Both entropies on one scale: what is to be seen is that they differ.
    sides = (cell.baseline, cell.sharpened)
    top = 1.05 * float(max(np.max(values) for side in sides for values in (side.labeled, side.unlabeled)))
    charts = []
    for what, title in (("labeled", "H_L"), ("unlabeled", "H_U"), ("gap", "H_L − H_U")):
        curves = []
        for side, color in ((cell.sharpened, "blue"), (cell.baseline, "grey")):
            values = getattr(side, what)[:, epochs]
            spread = {"low": values.min(0), "high": values.max(0)} if len(values) > 1 else {}
            curves.append(series(side.name, color, epochs, np.median(values, axis=0), dash=color == "grey", **spread))
        unit = axis("gap", decimals=3) if what == "gap" else axis("mean entropy", decimals=3, min=0, max=round(top, 5))
        charts.append(lines(title, axis("epoch", decimals=0, air=0.01), unit, curves, zero=what == "gap"))
    return charts


def offset_charts(found: Mapping[Cell, Sequence[Step]]) -> Charts:
    """The gain of moving both weights by δ (:func:`sharpen.analysis.steps.offset_steps`), one chart for each dataset.

    >>> steps = [Step(delta, 0.0, delta, (delta - 1, delta + 1), chosen=delta == 0) for delta in (-0.05, 0.0, 0.05)]
    >>> offset_charts({("cora", "gcn"): steps}).views[""][0]["series"][0]["notes"]
    ['', 'chosen by validation', '']
    """
    deltas = sorted({step.x for steps in found.values() for step in steps})
    ticks = [[delta, _signed_tick(delta)] for delta in deltas]
    charts = []
    for dataset in dict.fromkeys(dataset for dataset, _ in found):
        curves = [_offsets(model, sorted(steps)) for (name, model), steps in found.items() if name == dataset]
        x, y = axis("offset δ", name="δ =", decimals=2, ticks=ticks), axis("gain (points)", decimals=2)
        charts.append(lines(dataset_title(dataset), x, y, curves, zero=True, height=220))
    return Charts(
        "Offsets between the two weights",
        {"": charts},
        text="Paired difference of the test score to δ = 0 at (λ* + δ, −λ* + δ), with 95 % t interval. Filled: the δ that "
        "validation chooses; of equals it is the smallest change. Panels differ in scale; of a model without marks the table "
        "says why.",
        layout=Layout("offsets", (2.3, 1.9), columns=4, legend=True, share="x"),
    )


def _offsets(model: str, steps: Sequence[Step]) -> Chart:
    ends = [step.interval or (np.nan, np.nan) for step in steps]
    return model_series(
        model,
        [step.x for step in steps],
        [step.gain for step in steps],
        low=[low for low, _ in ends],
        high=[high for _, high in ends],
        points=True,
        marker=model_info(model).marker,
        filled=[step.chosen for step in steps],
        notes=["chosen by validation" if step.chosen else "" for step in steps],
    )


def retune_charts(found: Mapping[Cell, Sequence[Step]]) -> Charts:
    """The gain of every learning rate and dropout around the setting (:func:`sharpen.analysis.steps.retune_steps`), a map per cell.

    >>> steps = [Step(x, y, x * y, None, chosen=x == 2) for x in (1.0, 2.0) for y in (0.0, 0.1)]
    >>> retune_charts({("cora", "gcn"): steps}).views["Cora"][0]["values"]
    [[0.0, 0.0], [0.1, 0.2]]
    """
    if not found:
        raise InputError("no cell has runs around its setting yet; run the study first, see sharpen study status")
    # The far corners may diverge or collapse; the colours serve the middle.
    limit = max(0.2, float(np.quantile([abs(step.gain) for steps in found.values() for step in steps], 0.9)))
    return Charts(
        "Learning rate and dropout",
        cell_grid({(dataset, model): _heat(dataset, model, steps, limit) for (dataset, model), steps in found.items()}),
        text="Mean paired difference of the test score, in points, to the setting as it is (circle). Star: what validation "
        f"chooses. Colours end at ±{limit:.1f} points.",
        layout=Layout("retuning", (2.3, 1.75)),
        apart=False,
    )


def _heat(dataset: str, model: str, steps: Sequence[Step], limit: float) -> Chart:
    xs, ys = sorted({step.x for step in steps}), sorted({step.y for step in steps})
    by_place = {(step.x, step.y): step for step in steps}
    return {
        "kind": "heat",
        "title": cell_title(dataset, model),
        "columns": [f"×{x:g}" for x in xs],
        "rows": [_signed_tick(y) for y in ys],
        "values": [rounded((by_place[x, y].gain if (x, y) in by_place else np.nan for x in xs), 4) for y in ys],
        "marks": [["★" if (x, y) in by_place and by_place[x, y].chosen else "" for x in xs] for y in ys],
        "own": [ys.index(0.0), xs.index(1.0)] if (1.0, 0.0) in by_place else None,
        "limit": limit,
        "down": "dropout",
        "across": "learning rate",
        "unit": "gain of the test score (points)",
    }


def ranking_charts(found: Sequence[Ranking]) -> Charts:
    """By dataset: all methods by their score, ours in colour.

    >>> entries = (Entry("GCN+TS", 85.7, 0.5, ours=True, rank=1), Entry("Other", 85.0, 0.5, ours=False, rank=2))
    >>> [row["name"] for row in ranking_charts([Ranking("cora", entries)]).views["Cora"][0]["rows"]]
    ['1. GCN+TS', '2. Other']
    """
    ours = [ranking for ranking in found if ranking.best_of_ours is not None]
    entries = [entry for ranking in ours for entry in ranking.entries if entry.ours and entry.rank is not None]
    sharpened = any(entry.method.endswith(SHARPENED) for entry in entries)
    kinds = "black without sharpening, blue with λ by validation" if sharpened else "all without sharpening"
    names = tuple(dataset_title(ranking.dataset) for ranking in ours)
    most = max((sum(entry.rank is not None for entry in ranking.entries) for ranking in ours), default=0)
    return Charts(
        "Ours among published methods",
        {dataset_title(ranking.dataset): [_ranks(ranking)] for ranking in found},
        text=f"Mean and standard deviation. Filled: ours, {kinds}. Open: other methods as published, on partly other splits, "
        "without pairing; an arrow: further to the left. Scales begin where the scores of a panel do. An order of means, and no "
        f"test.{_left_out(found)}",
        layout=Layout("ranking", (3.3, 0.165 * most + 0.7), columns=3, views=names) if ours else None,
    )


def _ranks(ranking: Ranking) -> Chart:
    legend: list[Chart] = [
        {"name": "ours, without sharpening", "color": "ink"},
        {"name": "ours, with λ by validation", "color": "blue"},
        {"name": "published by others, on partly other splits", "color": "grey", "open": True},
        {"name": "the paper's own number for ours", "quoted": True},
    ]
    rows = [_rank(entry, entry.mean) for entry in ranking.entries if entry.mean is not None]
    start = ranking.left_end if rows else None
    return forest("", rows, "test score (%), ± standard deviation", legend=legend, **{"from": start})


def _rank(entry: Entry, mean: float) -> Chart:
    sharp = entry.method.endswith(SHARPENED)
    notes = ["ours" if entry.ours else "as published"]
    notes += [f"the paper: {entry.paper:.2f}"] if entry.paper is not None else []
    return forest_row(
        "",
        entry.method if entry.rank is None else f"{entry.rank}. {entry.method}",
        "grey" if not entry.ours else "blue" if sharp else "ink",
        mean,
        None if entry.sd is None else (mean - entry.sd, mean + entry.sd),
        quoted=entry.paper,
        sure=entry.ours,
        strong=entry.ours,
        text=Value.score(mean, entry.sd).text,
        notes=notes,
        marker="s" if entry.ours and sharp else "o",
    )


def _left_out(rankings: Sequence[Ranking]) -> str:
    """Which datasets have no score of ours, and why."""
    why: dict[str, list[str]] = {}
    for ranking in rankings:
        if ranking.best_of_ours is None:
            reasons = (entry.reason for entry in ranking.entries if entry.ours and entry.reason)
            why.setdefault(next(reasons, "no score of ours"), []).append(dataset_title(ranking.dataset))
    return "".join(f" Left out ({reason}): {', '.join(names)}." for reason, names in why.items())


def _signed_tick(value: float) -> str:
    return f"+{brief(value)}" if value > 0 else brief(value)
