"""The report of a study of the number of labels: gain against labels, where classes are emptied, calibration, and the rule."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sharpen.advice import first_choice
from sharpen.analysis.outcome import Outcome
from sharpen.analysis.rates import RateCurve, RatePoint, Rule, Verdict, derive_rule, halves, judge, merged, rate_curves
from sharpen.evaluation import paired_difference
from sharpen.report.blocks import FOUND, MISSING, Block, Charts, Layout, Report, Sentences, Tables
from sharpen.report.cells import Value, signed
from sharpen.report.charts import Chart, axis, lines, series
from sharpen.report.names import cell_title, dataset_title, model_title, plural
from sharpen.report.study_tables import details, own_score
from sharpen.report.tables import Column, Place, Table
from sharpen.studies.protocol import rate_of
from sharpen.studies.spec import Contrast, Study

EPOCHS = {"last epoch": "test_last", "epoch by validation": "test"}
"""Which score is shown, by what to call it: those without validation labels have the first alone."""
QUALITY = {
    "macro_f1": "macro-F1",
    "ece": "ECE",
    "log_loss": "log-loss",
    "brier": "Brier score",
    "ece_scaled": "ECE, scaled",
    "log_loss_scaled": "log-loss, scaled",
    "brier_scaled": "Brier score, scaled",
}
"""What else is compared, and what to call it; scaled: after temperature scaling on validation labels."""
_COLORS = ("blue", "vermilion", "green", "pink", "amber", "sky", "wine", "olive", "ink")
# A collapse loses tens of points; what lies below leaves the picture, and the table has it.
_LOWEST, _HIGHEST = -40.0, 20.0
# What a rule may not be made of: it knows more than the number of labels.
_KNOWS_MORE = "prior"

_Scored = Mapping[str, Sequence[Outcome]]


def rates_report(scored: _Scored) -> Report:
    """The report of a study over all numbers of labels: outcomes of its protocols by :data:`EPOCHS` and :data:`QUALITY`."""
    outcomes = scored["test"]
    whole, study = merged(outcomes), outcomes[0].study
    curves = {name: rate_curves(scored[score]) for name, score in EPOCHS.items()}
    last = curves["last epoch"]
    models = dict.fromkeys(curve.model for own in curves.values() for curve in own)
    tables = {
        f"{model_title(model)}, {epoch}": _rate_table(epoch, study, scored[score], curves[epoch], model)
        for epoch, score in EPOCHS.items()
        for model in models
        if any(curve.model == model for curve in curves[epoch])
    }
    findings = [*_gain_sentences(last), *_collapse_sentences(last), *_rule_sentences(study, last)]
    calibration = _quality_table(study, scored)
    blocks: list[Block] = [Sentences(FOUND, tuple(findings))] if findings else []
    if last:
        blocks += [_gain_charts(study, curves, models), Tables("Gain by number of labels", tables)]
    if calibration.rows:
        blocks.append(Tables("Calibration", {"all": calibration}))
    short = sum(cell.reason is not None for cell in whole.cells)
    if short:
        lacking = f"{short} of {len(whole.cells)} cells have no run yet, over all numbers of labels."
        blocks.append(Sentences(MISSING, (lacking,)))
    return Report(study=study, outcome=whole, blocks=tuple(blocks), data=details(whole))


def _variants(study: Study) -> list[str]:
    return [contrast.variant for contrast in study.compare if contrast.against == study.baseline]


def _by_variant(curves: Sequence[RateCurve]) -> dict[str, list[tuple[RateCurve, RatePoint]]]:
    found: dict[str, list[tuple[RateCurve, RatePoint]]] = {}
    for curve in curves:
        found.setdefault(curve.variant, []).extend((curve, point) for point in curve.points)
    return found


def _gain_sentences(curves: Sequence[RateCurve]) -> list[str]:
    """What every variant gains at few and at many labels for each class, over all cells, at the last epoch."""
    told = []
    for variant, points in _by_variant(curves).items():
        parts = []
        for name, low, high in (("1 to 2", 1, 2), ("3 to 10", 3, 10), ("20 to 50", 20, 50)):
            own = [p.gain for _, p in points if p.rate.kind == "few" and low <= p.rate.number <= high]
            if own:
                below = f"({sum(gain < 0 for gain in own)} of {len(own)} below zero)"
                parts.append(f"{signed(float(np.mean(own)))} at {name} labels per class {below}")
        if parts:
            told.append(f"{variant}, last epoch, mean gain in points over cells: {'; '.join(parts)}.")
    return told


def _collapse_sentences(curves: Sequence[RateCurve]) -> list[str]:
    """Where classes are emptied, by variant."""
    told = []
    for variant, points in _by_variant(curves).items():
        hit = [(curve, point) for curve, point in points if point.collapsed]
        worst = sorted(hit, key=lambda pair: -pair[1].collapsed / max(1, pair[1].finished))[:5]
        named = ", ".join(
            f"{cell_title(curve.dataset, curve.model)} at {point.rate.words} ({point.collapsed} of {point.finished} runs)"
            for curve, point in worst
        )
        if hit:
            count = sum(point.collapsed for _, point in hit)
            told.append(
                f"{variant} empties classes by the last epoch in {count} {plural('run', count)} of {len(hit)} "
                f"{plural('cell', len(hit))}: {named}{' and others' if len(hit) > len(worst) else ''}."
            )
    return told


def _rule_sentences(study: Study, curves: Sequence[RateCurve]) -> list[str]:
    """The rule that half of the graphs gives, and what it does on the other half; the other way round; and the rule in use."""
    own = [name for name in _variants(study) if _KNOWS_MORE not in study.variants[name].fields]
    told = []
    for chosen_on, tested_on in (halves(study), halves(study)[::-1]):
        found = derive_rule(curves, chosen_on, own)
        tested = None if found is None else judge(found.rule, curves, tested_on)
        if tested is not None and tested.cells:
            seen = {curve.dataset for curve in curves}
            whose = ", ".join(dataset_title(name) for name in chosen_on if name in seen)
            told.append(f"The rule of {whose}: {_verdict(tested, 'the other graphs')}")
    used = _rule_in_use(study, curves)
    if used is not None and (tested := judge(used, curves, study.datasets)).cells:
        told.append(f"The rule in use, that of lam = auto: {_verdict(tested, 'all graphs')}")
    return told


def _verdict(tested: Verdict, where: str) -> str:
    rule = tested.rule
    lost = ", ".join(
        f"{cell_title(dataset, model)} at {rate} ({signed(gain)})"
        for (dataset, model, rate), gain in tested.losses.items()
    )
    return (
        f"{rule.few} up to {rule.threshold:g} labels per class, {rule.many} beyond. On {where}: {signed(tested.gain)} points in "
        f"the mean of {tested.cells} cells, {signed(tested.few_gain)} at 3 to 10 labels per class; "
        f"{f'it loses on {lost}' if lost else 'it loses nowhere'}."
    )


def _rule_in_use(study: Study, curves: Sequence[RateCurve]) -> Rule | None:
    """What :func:`sharpen.first_choice` says, in the variants of the study; None if it has no such variants."""
    named = {
        (fields.get("lam"), fields.get("balance", 0.0)): name
        for name, fields in ((name, study.variants[name].fields) for name in _variants(study))
        if not {*fields} & {"lam_labeled", _KNOWS_MORE}
    }
    numbers = sorted({point.labels for curve in curves for point in curve.points})
    few = [labels for labels in numbers if first_choice(labels) == first_choice(numbers[0])]
    try:
        return Rule(named[first_choice(numbers[0])], named[first_choice(numbers[-1])], few[-1])
    except (KeyError, IndexError):
        return None


def _gain_charts(study: Study, curves: Mapping[str, Sequence[RateCurve]], models: Iterable[str]) -> Charts:
    """Gain against the number of labels, one chart for each graph, a line for each variant; a view for each model and epoch."""
    color = dict(zip(_variants(study), _COLORS, strict=False))
    views: dict[str, Sequence[Chart | None]] = {}
    for (epoch, own), model in itertools.product(curves.items(), models):
        of_model = [curve for curve in own if curve.model == model]
        by_graph = {name: [curve for curve in of_model if curve.dataset == name] for name in study.datasets}
        drawn = [_chart(cell_title(name, model), few, of_model, color) for name, few in by_graph.items() if few]
        if drawn:
            views[f"{model_title(model)}, {epoch}"] = drawn
    on_paper = tuple(name for name in views if name.endswith("last epoch"))
    return Charts(
        "Gain against the number of labels",
        views,
        text="The gain over plain training on the same draws, in points, with its 95 % t interval. Losses of more than "
        f"{-_LOWEST:g} points leave the picture: there classes are emptied.",
        layout=Layout("label-rates", (2.6, 2.0), columns=4, legend=True, views=on_paper),
    )


def _chart(title: str, own: Sequence[RateCurve], all_: Sequence[RateCurve], color: Mapping[str, str]) -> Chart:
    """The curves of one graph, on the axes that all graphs with its kind of rates share."""
    kind = own[0].points[0].rate.kind
    alike = [point for curve in all_ for point in curve.points if point.rate.kind == kind]
    numbers = sorted({point.rate.number for point in alike})
    ends = [end for point in alike for end in point.ends]
    drawn = [
        series(
            curve.variant,
            color.get(curve.variant, "grey"),
            [point.rate.number for point in curve.points],
            [point.gain for point in curve.points],
            low=[point.ends[0] for point in curve.points],
            high=[point.ends[1] for point in curve.points],
            **({} if len(curve.points) > 1 else {"points": True}),
        )
        for curve in own
    ]
    ends_of_x = {"min": numbers[0], "max": numbers[-1]} if len(numbers) > 1 else {}
    ticks = [[number, str(number)] for number in numbers]
    label = "labels per class" if kind == "few" else "labeled nodes (%)"
    x = axis(label, decimals=0, symlog=1, ticks=ticks, **ends_of_x)
    y = axis("gain (points)", decimals=1, min=max(_LOWEST, min(ends) - 0.5), max=min(_HIGHEST, max(ends) + 0.5))
    return lines(title, x, y, drawn, zero=True, height=220)


def _rate_table(
    epoch: str, study: Study, outcomes: Sequence[Outcome], curves: Sequence[RateCurve], model: str
) -> Table:
    """A row for each graph and number of labels: plain training's score, then the gain of every variant over it."""
    own = [curve for curve in curves if curve.model == model]
    gains = {(curve.dataset, curve.variant, point.rate): point for curve in own for point in curve.points}
    variants = [name for name in _variants(study) if any(name == variant for _, variant, _ in gains)]
    assert study.baseline is not None  # a study with comparisons has one
    plain = {
        (cell.dataset, rate): cell.sides[study.baseline]
        for told in outcomes
        for cell in told.cells
        if cell.model == model and study.baseline in cell.sides and (rate := rate_of(told.protocol)) is not None
    }
    rows: list[tuple[Place, ...]] = [
        (
            dataset_title(dataset),
            rate.words,
            own_score(side),
            *(_gain(gains.get((dataset, variant, rate)), side.n) for variant in variants),
        )
        for dataset in study.datasets
        for rate in sorted({rate for name, rate in plain if name == dataset})
        if (side := plain[dataset, rate]).n  # runs of before the last epoch was kept have no score there
    ]
    columns = [
        Column("graph", "graph"),
        Column("rate", "labels"),
        Column("plain", f"{study.baseline} (%)", "right"),
        *(Column(name, name, "right") for name in variants),
    ]
    note = (
        "Score with its standard deviation over n draws; gains in points, paired on as many unless they say otherwise, with 95 % t "
        "intervals, bold where they exclude zero."
    )
    return Table(f"{study.title}: {model_title(model)}, {epoch}", tuple(columns), tuple(rows), notes=(note,))


def _gain(point: RatePoint | None, draws: int) -> Value | None:
    return None if point is None else Value.gain(point.gain, point.interval, point.n, tell_n=point.n != draws)


def _quality_table(study: Study, scored: _Scored) -> Table:
    """Calibration and macro-F1 at the selected epoch: the difference of every comparison, mean and interval over cells."""
    names = [name for name in QUALITY if name in scored]

    def place(contrast: Contrast, name: str) -> Value | None:
        effects = [effect for told in scored[name] for _, effect in told.effects(contrast.name)]
        differences = [effect.difference.difference for effect in effects if effect.difference is not None]
        if not differences:
            return None
        mean = paired_difference(differences, [0.0] * len(differences), resamples=0)
        return Value.gain(mean.difference, mean.t_interval, mean.n, tell_n=False)

    found = {contrast.name: [place(contrast, name) for name in names] for contrast in study.compare}
    rows = [(name, *places) for name, places in found.items() if any(places)]
    columns = [Column("contrast", "comparison"), *(Column(name, QUALITY[name], "right") for name in names)]
    note = (
        "Differences × 100, mean over cells and numbers of labels with the 95 % t interval over them; below zero is better for all "
        "but macro-F1. Scaled: after temperature scaling on validation labels."
    )
    return Table(f"{study.title}: calibration at the selected epoch", tuple(columns), tuple(rows), notes=(note,))
