"""From the records of a study to its report: which sentences, tables and charts it has."""

from __future__ import annotations

from collections.abc import Sequence

from sharpen.analysis.curves import Curve, glass_bands, lambda_curves, on_lambda_curve
from sharpen.analysis.dynamics import Dynamics, Traces, dynamics
from sharpen.analysis.outcome import Outcome
from sharpen.analysis.ranking import Ranking
from sharpen.analysis.steps import offset_steps, retune_steps
from sharpen.report.blocks import FOUND, MISSING, SCORES, Block, Report, Sentences, Tables
from sharpen.report.lambda_charts import curve_charts, gain_charts, glass_charts, improvement_charts
from sharpen.report.missing import missing_lams, missing_lines, untraced_line
from sharpen.report.names import dataset_title
from sharpen.report.special_tables import (
    dynamics_table,
    lambda_table,
    ranking_data,
    ranking_table,
    retuned_table,
    shown_rankings,
)
from sharpen.report.study_charts import difference_charts, entropy_charts, offset_charts, ranking_charts, retune_charts
from sharpen.report.study_tables import details, gain_grid, is_heterophilous, score_data, score_grid
from sharpen.report.study_text import (
    agreement_sentence,
    band_sentences,
    collapse_sentences,
    gain_sentences,
    gap_sentence,
)
from sharpen.report.tally import contrast_words, side_words
from sharpen.studies.spec import Contrast, Study

# So many comparisons have a table in the paper's layout; of more, the first alone if it is of a choice, which the rest lead to.
_MOST_GRIDS = 4


def study_report(outcome: Outcome, traces: Traces | None = None) -> Report:
    """The report of a study that has trials of its own, from its records and, where they were kept, its traces.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> report = study_report(outcome(load_study("universal"), "paper"))
    >>> report.name, report.findings[0]
    ('universal-paper', 'λ = 0.25 against plain training: no cell has all its pairs yet.')
    """
    study = outcome.study
    curves = lambda_curves(outcome)
    is_curve = _is_about_lam(outcome, curves)
    trajectories = dynamics(outcome, traces) if traces is not None else []
    in_shannon = dynamics(outcome, traces, "shannon") if traces is not None else []
    findings = _findings(outcome, curves, trajectories, is_curve)
    findings[1:1] = [f"In Shannon's measure: {gap_sentence(in_shannon)}"] if in_shannon else []
    blocks: list[Block] = [Sentences(FOUND, tuple(findings))] if findings else []
    if trajectories:
        gap = dynamics_table(trajectories, f"{study.title}: the gap, {outcome.protocol} protocol")
        gaps = {"gap": gap}
        if in_shannon:
            title = f"{study.title}: the gap in Shannon's measure, {outcome.protocol} protocol"
            gaps["gap in Shannon's measure"] = dynamics_table(in_shannon, title)
        charts = [entropy_charts(cells) for cells in (trajectories, in_shannon) if cells]
        blocks += [*charts, Tables("The gap of all cells", gaps)]
    blocks.append(_tables(outcome, curves, is_curve))
    # What is traced is what the study is about: test scores stand in its tables.
    if not is_curve and not trajectories and (drawn := difference_charts(outcome, _shown_contrasts(outcome))):
        blocks.append(drawn)
    blocks += _lambda_charts(curves, missing_lams(outcome, curves))
    if offsets := offset_steps(outcome):
        blocks.append(offset_charts(offsets))
    if retuned := retune_steps(outcome):
        blocks.append(retune_charts(retuned))
    missing = missing_lines(outcome) + (untraced_line(outcome, trajectories) if traces is not None else [])
    if missing:
        blocks.append(Sentences(MISSING, tuple(missing)))
    data = details(outcome) if study.compare else score_data(outcome)
    return Report(study, outcome, tuple(blocks), data, curves=tuple(curves))


def _findings(outcome: Outcome, curves: Sequence[Curve], trajectories: Sequence[Dynamics], is_curve: bool) -> list[str]:
    limit = outcome.max_epochs
    found = [] if limit is None else [f"At most {limit} epochs a run: a quick look, and no result of the study."]
    found += [gap_sentence(trajectories)] if trajectories else []
    if is_curve:
        found += band_sentences(curves, missing_lams(outcome, curves))
    else:
        found += gain_sentences(outcome, [contrast.name for contrast in _leading_contrasts(outcome.study)], _MOST_GRIDS)
    found += collapse_sentences(outcome)
    if outcome.protocol == "paper":
        found += [agreement_sentence(outcome, name) for name in outcome.names if _published(outcome, name)]
    return found


def _tables(outcome: Outcome, curves: Sequence[Curve], is_curve: bool) -> Tables:
    """The paper's layout, one table for each comparison, and the scores that stand beside no gain; then every number."""
    study, views = outcome.study, {}
    known: list[bool] = []  # whether a table has numbers
    shown = () if is_curve else _shown_contrasts(outcome)
    contrasts = {contrast_words(outcome, contrast): contrast for contrast in shown}
    for name, contrast in contrasts.items():
        views[name] = gain_grid(outcome, contrast)
        known.append(any(effect.difference is not None for _, effect in outcome.effects(contrast.name)))
    for name in _scored_names(outcome):
        views[f"{SCORES}{side_words(outcome, name)}"] = score_grid(outcome, name)
        known.append(any(cell.sides[name].n for cell in outcome.cells))
    if is_curve:
        views["Glass's Δ"] = lambda_table(curves, f"{study.title}: Glass's Δ by λ, {outcome.protocol} protocol")
    if (chosen := retuned_table(outcome)) is not None:
        views["what was chosen"] = chosen
    if is_curve:
        return Tables("Tables", views, apart=False)
    if study.compare and (detailed := details(outcome, _leading_contrasts(study), only_pairs=True)).rows:
        views["every number"] = detailed
    text = (
        "The score and what it gains, bold where the 95 % interval excludes zero. Point at a cell for the interval, the λ"
        f"{' and what the paper has' if study.published is not None else ''}; click it for its runs."
    )
    # What has numbers is seen first: the scores of a baseline, where the grid that is compared with it is not run yet.
    return Tables("The table", views, text, known.index(True) if any(known) else 0, contrasts=contrasts)


def _lambda_charts(curves: Sequence[Curve], missing: str | None) -> list[Block]:
    """What can be drawn from what is there; of nothing, no chart."""
    if not curves:
        return []
    many = sum(bool(curve.zero.sd) for curve in curves) > 2  # what is said of many cells on paper needs some
    blocks: list[Block] = [glass_charts(curves, missing, on_paper=many)] if glass_bands(curves) else []
    blocks += [gain_charts(curves, missing), curve_charts(curves, missing)]
    return [*blocks, improvement_charts(curves, missing)] if many else blocks


def _leading_contrasts(study: Study) -> tuple[Contrast, ...]:
    """The comparisons that are told: all, or of many the first, if it is of a choice among the others.

    >>> from sharpen.studies import load_study
    >>> [contrast.name for contrast in _leading_contrasts(load_study("offset"))]
    ['best-offset - ts-tuned']
    """
    if len(study.compare) > _MOST_GRIDS and study.compare[0].variant in study.choose:
        return study.compare[:1]
    return study.compare


def _shown_contrasts(outcome: Outcome) -> tuple[Contrast, ...]:
    """Those of them that have a table in the paper's layout: of many the first that have complete cells, if any has.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> empty = outcome(load_study("lambda-curves"), "paper", datasets=["cora"], models=["gcn"])
    >>> [contrast.name for contrast in _shown_contrasts(empty)]
    ['ts--1 - baseline']
    """
    told = _leading_contrasts(outcome.study)
    if len(told) <= _MOST_GRIDS:
        return told
    ready = [c for c in told if any(effect.complete for _, effect in outcome.effects(c.name))]
    return tuple(ready[:_MOST_GRIDS]) or told[:1]


def _is_about_lam(outcome: Outcome, curves: Sequence[Curve]) -> bool:
    """Whether a study is one of λ itself: many comparisons, of which none stands out, all between points of λ curves.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> _is_about_lam(outcome(load_study("lambda-curves"), "paper"), [])
    False
    """
    contrasts = outcome.study.compare
    if not curves or len(contrasts) <= _MOST_GRIDS or _leading_contrasts(outcome.study) != contrasts:
        return False
    names = {name for contrast in contrasts for name in contrast}
    return all(name in outcome.study.variants for name in names) and all(
        on_lambda_curve(cell, name, outcome.study)
        for cell in outcome.cells
        for name in names
        if cell.sides[name].trial is not None
    )


def _scored_names(outcome: Outcome) -> list[str]:
    """The variants and choices whose scores have a table of their own.

    Those that the paper has a score for, and those that neither a comparison nor a choice names; scores that stand beside their
    gains aside.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> _scored_names(outcome(load_study("main"), "paper"))
    ['baseline']
    """
    study = outcome.study
    beside = {contrast.variant for contrast in _leading_contrasts(study)[:_MOST_GRIDS]}
    named = {name for contrast in study.compare for name in contrast}
    named |= {name for candidates in study.choose.values() for name in candidates}
    return [name for name in outcome.names if name not in beside and (name not in named or _published(outcome, name))]


def ranking_report(study: Study, main: Outcome) -> Report:
    """The report of a study that ranks the scores of another one among published ones.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> ranking_report(load_study("comparison"), outcome(load_study("main"), "paper")).findings
    ('No score of ours is there to rank yet.',)
    """
    found, tables = shown_rankings(study, main), {}
    for name, unlike in (("homophilous graphs", False), ("heterophilous graphs", True)):
        if own := [ranking for ranking in found if is_heterophilous(ranking.dataset) is unlike]:
            tables[name] = ranking_table(own, f"{study.title}: {name}, {main.protocol} protocol")
    sentences = Sentences(FOUND, tuple(_rank_sentences(found)))
    blocks = (sentences, ranking_charts(found), Tables("Tables", tables, apart=False))
    return Report(study=study, outcome=main, blocks=blocks, data=ranking_data(found))


def _published(outcome: Outcome, name: str) -> bool:
    return any(cell.sides[name].published is not None for cell in outcome.cells)


def _rank_sentences(found: Sequence[Ranking]) -> list[str]:
    """The place of our best entry on every dataset."""
    best = [(ranking, entry) for ranking in found if (entry := ranking.best_of_ours) is not None]
    places = [
        f"{dataset_title(ranking.dataset)} {' of '.join(map(str, ranking.place(entry)))} ({entry.method})"
        for ranking, entry in best
    ]
    if not places:
        return ["No score of ours is there to rank yet."]
    ours = [entry for ranking, _ in best for entry in ranking.entries if entry.ours]
    lines, without = (
        [f"Our best entry among other people's methods: {', '.join(places)}."],
        [e for e in ours if e.rank is None],
    )
    if without:
        lines.append(f"On these datasets {len(without)} of our {len(ours)} entries have no score yet and no rank.")
    return lines
