"""The report of a study: one Markdown page, one CSV, one LaTeX document, and figures, all from its outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from sharpen.analysis.curves import Curve, lambda_curves, on_lambda_curve
from sharpen.analysis.dynamics import Dynamics, Traces, dynamics
from sharpen.analysis.outcome import Outcome
from sharpen.analysis.ranking import Ranking
from sharpen.analysis.steps import offset_steps, retune_steps
from sharpen.report import figures
from sharpen.report.missing import missing_lams, missing_lines
from sharpen.report.names import dataset_title
from sharpen.report.shares import run_seconds, shares
from sharpen.report.special_tables import (
    dynamics_table,
    lambda_table,
    ranking_data,
    ranking_table,
    retuned_table,
    shown_rankings,
)
from sharpen.report.study_tables import (
    HETEROPHILOUS,
    details,
    gain_grid,
    score_data,
    score_grid,
)
from sharpen.report.study_text import (
    agreement_sentence,
    band_sentences,
    cost_sentence,
    gain_sentences,
    gap_sentence,
    provenance_sentence,
    sentences,
)
from sharpen.report.tables import Table, latex_document, markdown_text, to_csv, to_latex, to_markdown
from sharpen.studies.cost import duration
from sharpen.studies.spec import Contrast, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# So many comparisons have a table in the paper's layout; of more, the first alone if it is of a choice, which the rest lead to.
MOST_GRIDS = 4


@dataclass(frozen=True)
class Sheet:
    """The report of one study under one protocol, not yet written.

    Args:
        name: of its files, such as ``main-paper``.
        title: for people.
        findings: what it found, in sentences.
        tables: in the order of the page, the paper's layout first.
        data: the table whose numbers the CSV holds.
        missing, cost, provenance: sentences on what is not there, what it took, where it comes from.
        runs: the trials whose records it shows, with their seconds, if it is not another study's report that shows them.
        figures: what draws each, by name; drawn only when asked for.
    """

    name: str
    title: str
    study: Study
    protocol: str
    findings: tuple[str, ...]
    tables: tuple[Table, ...]
    data: Table
    missing: tuple[str, ...] = ()
    cost: str = ""
    provenance: str = ""
    progress: str = ""
    runs: Mapping[str, float] = field(default_factory=dict, repr=False)
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict, repr=False)


def study_sheet(outcome: Outcome, traces: Traces | None = None) -> Sheet:
    """The report of a study that has trials of its own.

    Args:
        outcome: what its records say.
        traces: of its runs, where they were kept.

    >>> import pandas as pd
    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> sheet = study_sheet(outcome(load_study("universal"), "paper", pd.DataFrame()))
    >>> sheet.name, sheet.findings[0]
    ('universal-paper', 'ts-0.25 − baseline: no cell has all its pairs yet.')
    """
    study = outcome.study
    curves = lambda_curves(outcome)
    is_curve = is_about_lam(outcome, curves)
    trajectories = dynamics(outcome, traces) if traces is not None else []
    tables = [score_grid(outcome, name) for name in scored_names(outcome)]
    contrasts = leading_contrasts(study)
    if is_curve:
        tables.append(lambda_table(curves, f"{study.title}: Glass's Δ by λ, {outcome.protocol} protocol"))
    else:
        tables += [gain_grid(outcome, contrast) for contrast in shown_contrasts(outcome)]
    if trajectories:
        tables.append(dynamics_table(trajectories, f"{study.title}: the gap, {outcome.protocol} protocol"))
    if (chosen := retuned_table(outcome)) is not None:
        tables.append(chosen)
    data = details(outcome) if study.compare else score_data(outcome)
    if study.compare and not is_curve:
        detailed = details(outcome, contrasts, only_pairs=True)
        tables += [detailed] if detailed.rows else []
    limit = outcome.max_epochs
    quick = [] if limit is None else [f"At most {limit} epochs a run: a quick look, and no result of the study."]
    findings = [gap_sentence(trajectories)] if trajectories else []
    if is_curve:
        findings += band_sentences(curves, missing_lams(outcome, curves))
    else:
        findings += gain_sentences(outcome, [contrast.name for contrast in contrasts], MOST_GRIDS)
    if outcome.protocol == "paper":
        findings += [agreement_sentence(outcome, name) for name in outcome.names if _published(outcome, name)]
    return Sheet(
        name=f"{study.name}-{outcome.protocol}",
        title=study.title,
        study=study,
        protocol=outcome.protocol,
        findings=(*quick, *findings),
        tables=tuple(tables),
        data=data,
        missing=tuple(missing_lines(outcome)),
        cost=cost_sentence(outcome.costs),
        provenance=provenance_sentence(outcome.provenance),
        progress=f"{outcome.finished:,} of {outcome.planned:,}",
        runs=run_seconds(outcome),
        figures=_figures(outcome, curves, trajectories, is_curve),
    )


def leading_contrasts(study: Study) -> tuple[Contrast, ...]:
    """The comparisons that are told: all, or of many the first, if it is of a choice among the others.

    >>> from sharpen.studies import load_study
    >>> [contrast.name for contrast in leading_contrasts(load_study("offset"))]
    ['best-offset - ts-tuned']
    """
    if len(study.compare) > MOST_GRIDS and study.compare[0].variant in study.choose:
        return study.compare[:1]
    return study.compare


def shown_contrasts(outcome: Outcome) -> tuple[Contrast, ...]:
    """Those of them that have a table in the paper's layout: of many the first that have complete cells, if any has.

    >>> import pandas as pd
    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> empty = outcome(load_study("lambda-curves"), "paper", pd.DataFrame(), datasets=["cora"], models=["gcn"])
    >>> [contrast.name for contrast in shown_contrasts(empty)]
    ['ts--1 - baseline']
    """
    told = leading_contrasts(outcome.study)
    if len(told) <= MOST_GRIDS:
        return told
    ready = [c for c in told if any(effect.complete for _, effect in outcome.effects(c.name))]
    return tuple(ready[:MOST_GRIDS]) or told[:1]


def is_about_lam(outcome: Outcome, curves: Sequence[Curve]) -> bool:
    """Whether a study is one of λ itself: many comparisons, of which none stands out, all between points of λ curves.

    >>> import pandas as pd
    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> is_about_lam(outcome(load_study("lambda-curves"), "paper", pd.DataFrame()), [])
    False
    """
    contrasts = outcome.study.compare
    if not curves or len(contrasts) <= MOST_GRIDS or leading_contrasts(outcome.study) != contrasts:
        return False
    names = {name for contrast in contrasts for name in contrast}
    return all(name in outcome.study.variants for name in names) and all(
        on_lambda_curve(cell, name, outcome.study)
        for cell in outcome.cells
        for name in names
        if cell.sides[name].trial is not None
    )


def scored_names(outcome: Outcome) -> list[str]:
    """The variants and choices whose scores have a table of their own.

    Those that the paper has a score for, and those that neither a comparison nor a choice names; scores that stand beside their
    gains aside.

    >>> import pandas as pd
    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> scored_names(outcome(load_study("main"), "paper", pd.DataFrame()))
    ['baseline']
    """
    study = outcome.study
    beside = {contrast.variant for contrast in leading_contrasts(study)[:MOST_GRIDS]}
    named = {name for contrast in study.compare for name in contrast}
    named |= {name for candidates in study.choose.values() for name in candidates}
    return [name for name in outcome.names if name not in beside and (name not in named or _published(outcome, name))]


def comparison_sheet(study: Study, main: Outcome) -> Sheet:
    """The report of a study that ranks the scores of another one among published ones.

    >>> import pandas as pd
    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> sheet = comparison_sheet(load_study("comparison"), outcome(load_study("main"), "paper", pd.DataFrame()))
    >>> sheet.findings
    ('No score of ours is there to rank yet.',)
    """
    found = shown_rankings(study, main)
    groups = [[r for r in found if (r.dataset in HETEROPHILOUS) is kind] for kind in (False, True)]
    names = ("homophilous graphs", "heterophilous graphs")
    tables = [
        ranking_table(group, f"{study.title}: {name}, {main.protocol} protocol")
        for group, name in zip(groups, names, strict=True)
        if group
    ]
    drawn: dict[str, Callable[[], Figure]] = {}
    if any(ranking.best_of_ours for ranking in found):
        drawn["ranking"] = partial(figures.ranking_figure, found)
    return Sheet(
        name=f"{study.name}-{main.protocol}",
        title=study.title,
        study=study,
        protocol=main.protocol,
        findings=tuple(_rank_sentences(found)),
        tables=tuple(tables),
        data=ranking_data(found),
        cost=f"it has no runs of its own; it reads those of {main.study.name}.",
        provenance=provenance_sentence(main.provenance),
        progress=f"reads {main.study.name}",
        figures=drawn,
    )


def sheet_markdown(sheet: Sheet, figure_folder: str | None = None) -> str:
    """The page of a study.

    Args:
        sheet: what to write.
        figure_folder: where its figures are, seen from the page; None if they were not drawn.

    >>> import pandas as pd
    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> page = sheet_markdown(study_sheet(outcome(load_study("arxiv"), "paper", pd.DataFrame())))
    >>> page.splitlines()[0]
    '# ogbn-arxiv (arxiv, paper protocol)'
    """
    study = sheet.study
    parts = [f"# {markdown_text(sheet.title)} ({markdown_text(study.name)}, {sheet.protocol} protocol)", ""]
    parts += [markdown_text(study.about), ""] if study.about else []
    parts += (
        ["## What it found", "", sentences(markdown_text(line) for line in sheet.findings), ""]
        if sheet.findings
        else []
    )
    if figure_folder is not None:
        for name in sheet.figures:
            parts += [f"![{markdown_text(sheet.title)}: {name}]({figure_folder}/{sheet.name}-{name}.png)", ""]
    parts += ["## Tables", "", *(to_markdown(table) for table in sheet.tables)]
    if sheet.missing:
        parts += ["## What is missing", "", sentences(markdown_text(line) for line in sheet.missing), ""]
    parts += ["## Where it comes from", ""]
    facts = [
        f"Runs: {sheet.progress}.",
        f"Training time: {sheet.cost} A run that serves several studies counts in each.",
    ]
    facts += [sheet.provenance] if sheet.provenance else []
    facts += [f"What the paper leaves open: {study.leaves_open}"] if study.leaves_open else []
    parts += [sentences(markdown_text(fact) for fact in facts), ""]
    return "\n".join(parts)


def sheet_csv(sheet: Sheet) -> str:
    """Every number of the study, one row per cell and comparison.

    >>> import pandas as pd
    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> sheet = study_sheet(outcome(load_study("arxiv"), "paper", pd.DataFrame(), models=["gcn"]))
    >>> print(sheet_csv(sheet)[:68])
    dataset,model,comparison,against_mean,against_sd,against_n,against_p
    """
    return to_csv(sheet.data)


def sheet_latex(sheet: Sheet) -> str:
    r"""The tables in the paper's layout, as a document that compiles as it is.

    >>> import pandas as pd
    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> sheet_latex(study_sheet(outcome(load_study("arxiv"), "paper", pd.DataFrame()))).splitlines()[2]
    '\\usepackage{booktabs}'
    """
    grids = [table for table in sheet.tables if len(table.columns) <= 10]
    return latex_document(to_latex(table, f"tab:{sheet.name}-{i + 1}") for i, table in enumerate(grids))


def index_markdown(sheets: Sequence[Sheet], total: str) -> str:
    """The list of all reports, what each found, and what all of it took.

    >>> index_markdown([], "nothing yet.").splitlines()[0]
    '# Results'
    """
    parts = [
        "# Results",
        "",
        "Made by `sharpen study report` from the records in `store/`; `make results` makes it anew. Every page has its",
        "tables as CSV and LaTeX beside it; [page.html](page.html) has all of it to look at.",
        "",
        "| study | protocol | runs | of its own | what it found | time, with shared runs | of its own |",
        "|:---|:---|:---|---:|:---|:---|---:|",
    ]
    for sheet, share in zip(sheets, shares([(sheet.study.name, sheet.runs) for sheet in sheets]), strict=True):
        own, took = (f"{share.own:,}", duration(share.own_seconds)) if sheet.runs else ("", "")
        found = markdown_text(sheet.findings[0]) if sheet.findings else ""
        parts.append(
            f"| [{markdown_text(sheet.title)}]({sheet.name}.md) | {sheet.protocol} | {sheet.progress} | {own} | {found} | "
            f"{markdown_text(sheet.cost)} | {took} |"
        )
    parts += [
        "",
        "Of its own: runs that no other study shows, and the time they took. The time before it is that of all runs of the row,",
        "those that other studies needed anyway too: these times do not add up.",
        "",
        f"All records together, each run once: {markdown_text(total)}",
        "",
    ]
    return "\n".join(parts)


def _published(outcome: Outcome, name: str) -> bool:
    return any(cell.sides[name].published is not None for cell in outcome.cells)


def _figures(
    outcome: Outcome, curves: Sequence[Curve], trajectories: Sequence[Dynamics], is_curve: bool
) -> dict[str, Callable[[], Figure]]:
    """What can be drawn from what is there; a figure without data is not made."""
    drawn: dict[str, Callable[[], Figure]] = {}
    first = next((contrast.name for contrast in outcome.study.compare), "")
    # What is traced is what the study is about: test scores stand in its tables.
    if not is_curve and not trajectories and any(effect.difference is not None for _, effect in outcome.effects(first)):
        drawn["differences"] = partial(figures.forest_figure, outcome, first)
    missing = missing_lams(outcome, curves)
    if curves:
        drawn["curves"] = partial(figures.lambda_panels, curves, missing)
    if sum(bool(curve.zero.sd) for curve in curves) > 2:  # what is said of many cells needs some
        drawn["glass"] = partial(figures.glass_figure, curves, missing)
        drawn["improvements"] = partial(figures.improvements_figure, curves, missing)
    if trajectories:
        drawn["entropy"] = partial(figures.entropy_figure, trajectories)
    if offsets := offset_steps(outcome):
        drawn["offsets"] = partial(figures.offset_figure, offsets)
    if retuned := retune_steps(outcome):
        drawn["retuning"] = partial(figures.retune_figure, retuned)
    return drawn


def _rank_sentences(found: Sequence[Ranking]) -> list[str]:
    """The place of our best entry on every dataset."""
    best = [(ranking, ranking.best_of_ours) for ranking in found]
    places = [
        f"{dataset_title(ranking.dataset)} {' of '.join(map(str, ranking.place(entry)))} ({entry.method})"
        for ranking, entry in best
        if entry is not None
    ]
    if not places:
        return ["No score of ours is there to rank yet."]
    ours = [entry for ranking, entry_ in best if entry_ is not None for entry in ranking.entries if entry.ours]
    scored = sum(entry.rank is not None for entry in ours)
    lines = [f"Our best entry among other people's methods: {', '.join(places)}."]
    if scored < len(ours):
        lines.append(
            f"On these datasets {len(ours) - scored} of our {len(ours)} entries have no score yet and no rank."
        )
    return lines
