"""The page of studies: the paper's tables with ours beside them, and everything behind every number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sharpen.analysis.curves import Curve, lambda_curves
from sharpen.analysis.dynamics import Traces, dynamics
from sharpen.analysis.outcome import Cost, Outcome
from sharpen.analysis.steps import offset_steps, retune_steps
from sharpen.report.cells import signed
from sharpen.report.missing import missing_lams
from sharpen.report.page.charts import chapter, choice, facts, section, words
from sharpen.report.page.document import Page
from sharpen.report.page.sheets import gain_sheet, sheet
from sharpen.report.page.study_charts import (
    difference_chart,
    dynamics_charts,
    glass_charts,
    lambda_charts,
    offset_charts,
    ranking_charts,
    retune_charts,
)
from sharpen.report.shares import Share, run_seconds, shares, was_run
from sharpen.report.special_tables import dynamics_table, retuned_table, shown_rankings
from sharpen.report.study import (
    Sheet,
    comparison_sheet,
    is_about_lam,
    leading_contrasts,
    scored_names,
    shown_contrasts,
    study_sheet,
)
from sharpen.report.study_tables import details, minus, score_grid
from sharpen.report.tally import Tally, contrast_words, tally
from sharpen.studies.cost import duration
from sharpen.studies.plan import Cell
from sharpen.studies.spec import Study

PROTOCOLS = {
    "paired": "paired protocol: 20 splits or seeds",
    "paper": "the paper's protocol: its splits and runs",
    "ablation": "the split of the paper's ablations",
}


@dataclass(frozen=True)
class Part:
    """One study under one protocol.

    Args:
        study: Which.
        outcome: What its records say; of a study that reads another one's records, what those say.
        traces: Of its runs, where they were kept.

    >>> import pandas as pd
    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> study = load_study("universal")
    >>> Part(study, outcome(study, "paper", pd.DataFrame())).traces is None
    True
    """

    study: Study
    outcome: Outcome
    traces: Traces | None = None

    @cached_property
    def curves(self) -> list[Curve]:
        """The scores of its cells over λ."""
        return [] if self.study.reads is not None else lambda_curves(self.outcome)


def study_page(parts: Sequence[Part], costs: Sequence[Cost], command: str) -> Page:
    """The page of one study or of many.

    Args:
        parts: In the order in which to show them; those of one study follow each other.
        costs: What all records together took.
        command: What made the page.

    >>> import pandas as pd
    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> study = load_study("universal")
    >>> page = study_page([Part(study, outcome(study, p, pd.DataFrame())) for p in ("paper", "paired")], [], "")
    >>> [view["name"] for view in page.chapters[0]["views"]]
    ['paired protocol: 20 splits or seeds', "the paper's protocol: its splits and runs"]
    """
    known = _curves(parts)
    share = {id(part): own for part, own in zip(parts, _shares(parts), strict=True)}
    chapters = []
    for study in {part.study.name: part.study for part in parts}.values():
        own = {part.outcome.protocol: part for part in parts if part.study.name == study.name}
        ordered = [own[name] for name in PROTOCOLS if name in own] + [
            own[name] for name in own if name not in PROTOCOLS
        ]
        views = {_protocol_words(study, p.outcome.protocol): _sections(p, known, share[id(p)]) for p in ordered}
        shown = next((i for i, part in enumerate(ordered) if part.outcome.complete), 0)
        chapters.append(chapter(study.title, study.about or "", views, name=study.name, shown=shown))
    leading = _leading(parts)
    return Page(
        kind="sharpen study report",
        headline=_headline(leading),
        below=[
            "Differences are between runs on the same split with the same seed; their intervals are 95 % t intervals. λ is chosen "
            "by validation scores, and test scores have no part in it. A cell gains or loses where its interval excludes zero; "
            "after correction (Holm's, for being several) where its corrected p is below 0.05.",
            *_without_results(parts),
        ],
        tiles=_tiles(parts, leading, costs),
        chapters=chapters,
        command=command,
        opened=list({part.study.name: None for part in parts}).index(leading.study.name),
    )


def _protocol_words(study: Study, protocol: str) -> str:
    if study.runs is not None:
        return f"{protocol} protocol: {study.runs} runs a variant"
    return PROTOCOLS.get(protocol, protocol)


def _leading(parts: Sequence[Part]) -> Part:
    """What the headline is about: the first study that compares something, under its strictest protocol with results.

    Of studies of which some have no results yet, the first that has.
    """
    comparing = [part for part in parts if part.study.compare and part.study.reads is None] or list(parts)
    leader = next((part for part in comparing if part.outcome.complete), comparing[0])
    first = [part for part in comparing if part.study.name == leader.study.name]
    order = {name: i for i, name in enumerate(PROTOCOLS)}
    return min(first, key=lambda p: (not p.outcome.complete, order.get(p.outcome.protocol, len(order))))


def _headline(part: Part) -> str:
    if not part.study.compare or part.study.reads is not None:
        return f"{part.study.title}."
    counts = _leading_tally(part)
    if counts is None:
        return f"{_opening(part.study)} no cell has all its pairs yet."
    return (
        f"{_opening(part.study)} {counts.words}. {signed(counts.median)} points in the median "
        f"({contrast_words(part.outcome, part.study.compare[0])}, {part.outcome.protocol} protocol)."
    )


def _opening(study: Study) -> str:
    return study.title if study.title.endswith("?") else f"{study.title}:"


def _leading_tally(part: Part) -> Tally | None:
    """Over the cells of the first comparison, if it has one."""
    if not part.study.compare or part.study.reads is not None:
        return None
    return tally(effect for _, effect in part.outcome.effects(part.study.compare[0].name))


def _without_results(parts: Sequence[Part]) -> list[str]:
    """Which studies of several have no complete cell yet."""
    ready = {part.study.title for part in parts if part.outcome.complete}
    lacking: dict[str, str] = {}
    for part in parts:
        if part.study.reads is None and part.study.title not in ready:
            lams = missing_lams(part.outcome, part.curves)
            lacking[part.study.title] = f"{part.study.title} ({lams})" if lams else part.study.title
    return [f"Without a complete cell yet: {', '.join(lacking.values())}."] if lacking and ready else []


def _tiles(parts: Sequence[Part], leading: Part, costs: Sequence[Cost]) -> list[tuple[str, str]]:
    studies = {part.study.name for part in parts}
    ready = {part.study.name for part, share in zip(parts, _shares(parts), strict=True) if was_run(part.outcome, share)}
    cells = leading.outcome.cells
    runs, seconds = sum(cost.runs for cost in costs), sum(cost.seconds for cost in costs)
    devices = ", ".join(dict.fromkeys(cost.device for cost in costs))
    tiles = []
    if (counts := _leading_tally(leading)) is not None:
        tiles.append((f"{counts.gains} of {counts.cells}", f"cells gain{counts.after}; {counts.losing}"))
    if len(studies) > 1:
        tiles.append((f"{len(ready)} of {len(studies)}", "studies have results"))
    tiles.append((f"{leading.outcome.complete} of {len(cells)}", f"cells are complete ({leading.study.title})"))
    tiles.append((f"{runs:,}", "training runs"))
    if costs:
        tiles.append((duration(seconds), f"on {devices}"))
    return tiles


def _shares(parts: Sequence[Part]) -> list[Share]:
    """What every part has to itself; what reads another study's records has no runs."""
    return shares([(p.study.name, {} if p.study.reads is not None else run_seconds(p.outcome)) for p in parts])


def _curves(parts: Sequence[Part]) -> dict[str, dict[Cell, tuple[Curve, str]]]:
    """By protocol and cell, the longest λ curve that any study has, and that study."""
    found: dict[str, dict[Cell, tuple[Curve, str]]] = {}
    for part in parts:
        own = found.setdefault(part.outcome.protocol, {})
        for curve in part.curves:
            cell = Cell(curve.dataset, curve.model)
            if cell not in own or len(curve.points) > len(own[cell][0].points):
                own[cell] = (curve, part.study.name)
    return found


def _sections(part: Part, known: Mapping[str, Mapping[Cell, tuple[Curve, str]]], share: Share) -> list[dict[str, Any]]:
    study, outcome = part.study, part.outcome
    if study.reads is not None:
        report = comparison_sheet(study, outcome)
        ranked = ranking_charts(shown_rankings(study, outcome))
        sections = [section("What it found", words(report.findings))]
        sections.append(
            choice("Ours among published methods", ranked, text="By test score; an order of means, and no test.")
        )
        sections.append(section("Tables", *(sheet(table) for table in report.tables)))
    else:
        report = study_sheet(outcome, part.traces)
        sections = [section("What it found", words(report.findings))] if report.findings else []
        sections += _tables(part, report, known.get(outcome.protocol, {}))
        sections += _figures(part)
    if report.missing:
        sections.append(section("What is missing, and why", words(report.missing)))
    own = f"; {share.own:,} of its own, {share.shared:,} that other studies here show too"
    entries = [("runs", report.progress + (own if share.shared else "")), ("time of all of them", report.cost)]
    entries += [("time of its own", duration(share.own_seconds))] if share.own and share.shared else []
    entries += [("where records come from", report.provenance)]
    entries += [("what the paper leaves open", study.leaves_open)] if study.leaves_open else []
    entries += [("datasets", ", ".join(study.datasets)), ("models", ", ".join(study.models))]
    sections.append(section("How this was made", facts([(name, text) for name, text in entries if text])))
    return sections


def _tables(part: Part, report: Sheet, curves: Mapping[Cell, tuple[Curve, str]]) -> list[dict[str, Any]]:
    """The paper's layout: one view for each comparison; of a study of λ itself, its own tables."""
    study, outcome = part.study, part.outcome
    if is_about_lam(outcome, part.curves):
        return [section("Tables", *(sheet(table) for table in report.tables))]
    own_curves = dict(curves) | {Cell(curve.dataset, curve.model): (curve, study.name) for curve in part.curves}
    shown = shown_contrasts(outcome)
    views = {minus(contrast.name): [gain_sheet(outcome, contrast, own_curves)] for contrast in shown}
    known = [any(effect.difference is not None for _, effect in outcome.effects(contrast.name)) for contrast in shown]
    for name in scored_names(outcome):
        views[f"scores of {name}"] = [sheet(score_grid(outcome, name))]
        known.append(any(cell.sides[name].n for cell in outcome.cells))
    if (chosen := retuned_table(outcome)) is not None:
        views["what was chosen"] = [sheet(chosen)]
    detailed = details(outcome, leading_contrasts(study), only_pairs=True)
    if detailed.rows:
        views["every number"] = [sheet(detailed)]
    text = "The score, what it gains, and the 95 % interval, bold where it excludes zero."
    if study.published is not None:
        text = f"Ours above, the paper's below: t{text[1:]}"
    # What has numbers is seen first: the scores of a baseline, where the grid that is compared with it is not run yet.
    return [choice("The table", views, text=text, shown=known.index(True) if any(known) else 0)]


def _figures(part: Part) -> list[dict[str, Any]]:
    outcome = part.outcome
    sections = []
    found = dynamics(outcome, part.traces) if part.traces is not None else []
    # What is traced is what the study is about: test scores stand in its tables.
    if not found and not is_about_lam(outcome, part.curves):
        views = {
            minus(contrast.name): [chart]
            for contrast in shown_contrasts(outcome)
            if (chart := difference_chart(outcome, contrast.name)) is not None
        }
        if views:
            sections.append(choice("All differences", views))
    if part.curves:
        text = "The gain over λ = 0, mean over runs. Losses of three times the largest gain and more leave the picture."
        if lams := missing_lams(outcome, part.curves):
            text += f" Missing: {lams}."
        sections.append(section("What λ does", *glass_charts(part.curves), *lambda_charts(part.curves), text=text))
    if found:
        text = "Mean entropy in the training step of each epoch. Line: median over runs; band: least to largest."
        sections.append(choice("Entropy during training", dynamics_charts(found), text=text))
        sections.append(section("The gap of all cells", sheet(dynamics_table(found, "Mean over all epochs"))))
    if offsets := offset_steps(outcome):
        text = "The gain of (λ* + δ, −λ* + δ) over δ = 0, paired, with 95 % intervals."
        sections.append(section("Offsets between the two weights", *offset_charts(offsets), text=text))
    if retuned := retune_steps(outcome):
        text = "Mean paired gain in points over the setting as it is; a star is what validation chooses."
        sections.append(section("Learning rate and dropout", *retune_charts(retuned), text=text))
    return sections
