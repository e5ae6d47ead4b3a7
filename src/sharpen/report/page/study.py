"""The page of studies: the paper's tables with ours beside them, and everything behind every number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sharpen.analysis.curves import Curve
from sharpen.analysis.provenance import Cost
from sharpen.report.blocks import MISSING, SCORES, Block, Report, Sentences, Tables
from sharpen.report.cells import signed
from sharpen.report.missing import missing_lams
from sharpen.report.page.document import Page
from sharpen.report.page.sections import chapter, choice, facts, section, words
from sharpen.report.page.sheets import gain_sheet, sheet
from sharpen.report.shares import Share, shares, was_run
from sharpen.report.tally import Tally, contrast_words, tally
from sharpen.studies.cost import duration
from sharpen.studies.plan import Cell
from sharpen.studies.protocol import ALL, rate_of, runs
from sharpen.studies.spec import Study

_Curves = Mapping[Cell, tuple[Curve, str]]

_PROTOCOLS = {
    "paired": "paired protocol: 20 splits or seeds",
    "paper": "the paper's protocol: its splits and runs",
    "ablation": "the split of the paper's ablations",
    "published": "each method on the split that it was published with",
}


def study_page(reports: Sequence[Report], costs: Sequence[Cost], command: str) -> Page:
    """The page of one study or of many.

    Args:
        reports: In the order in which to show them; those of one study follow each other.
        costs: What all records together took.
        command: What made the page.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> from sharpen.report.study import study_report
    >>> study = load_study("universal")
    >>> reports = [study_report(outcome(study, protocol)) for protocol in ("paper", "paired")]
    >>> [view["name"] for view in study_page(reports, [], "").chapters[0]["views"]]
    ['paired protocol: 20 splits or seeds', "the paper's protocol: its splits and runs"]
    """
    known, own_shares = _curves(reports), shares([(report.study.name, report.runs) for report in reports])
    shared = dict(zip((report.name for report in reports), own_shares, strict=True))
    chapters = []
    for study in {report.study.name: report.study for report in reports}.values():
        own = {report.protocol: report for report in reports if report.study.name == study.name}
        ordered = [own[name] for name in sorted(own, key=_strictness)]
        views = {
            _protocol_words(study, report.protocol): _sections(report, known[report.protocol], shared[report.name])
            for report in ordered
        }
        shown = next((i for i, report in enumerate(ordered) if report.outcome.complete), 0)
        chapters.append(chapter(study.title, study.about or "", views, name=study.name, shown=shown))
    leading = _leading(reports)
    ready = {r.study.name for r, share in zip(reports, own_shares, strict=True) if was_run(r.outcome, share)}
    return Page(
        kind="sharpen study report",
        headline=_headline(leading),
        below=[
            "Differences are between runs on the same split with the same seed; their intervals are 95 % t intervals. λ is chosen "
            "by validation scores, and test scores have no part in it. A cell gains or loses where its interval excludes zero; "
            "after correction for multiple comparisons (Holm's) where its corrected p-value is below 0.05.",
            *_without_results(reports),
        ],
        tiles=_tiles(reports, leading, costs, len(ready)),
        chapters=chapters,
        command=command,
        opened=list({report.study.name: None for report in reports}).index(leading.study.name),
    )


def _strictness(protocol: str) -> int:
    """The place of a protocol among all, the strictest first; one of a study's own comes last."""
    return list(_PROTOCOLS).index(protocol) if protocol in _PROTOCOLS else len(_PROTOCOLS)


def _protocol_words(study: Study, protocol: str) -> str:
    if (rate := rate_of(protocol)) is not None:
        return rate.words
    if protocol == ALL:
        return "every number of labels"
    if study.runs:
        counts = sorted({len(runs(dataset, protocol, study.runs.get(dataset))) for dataset in study.datasets})
        return f"{protocol} protocol: {' or '.join(map(str, counts))} runs a variant"
    return _PROTOCOLS.get(protocol, protocol)


def _leading(reports: Sequence[Report]) -> Report:
    """What the headline is about: the first study that compares something, under its strictest protocol with results.

    Of studies of which some have no results yet, the first that has.
    """
    comparing = [report for report in reports if report.study.compare and report.study.reads is None] or list(reports)
    leader = next((report for report in comparing if report.outcome.complete), comparing[0])
    first = [report for report in comparing if report.study.name == leader.study.name]
    return min(first, key=lambda report: (not report.outcome.complete, _strictness(report.protocol)))


def _headline(report: Report) -> str:
    counts, study = _leading_tally(report), report.study
    if not _compares(report):
        return f"{study.title}."
    opening = study.title if study.title.endswith("?") else f"{study.title}:"
    if counts is None:
        return f"{opening} no cell has all its pairs yet."
    return (
        f"{opening} {counts.words}. {signed(counts.median)} points in the median "
        f"({contrast_words(report.outcome, study.compare[0])}, {report.protocol} protocol)."
    )


def _compares(report: Report) -> bool:
    """Whether it has a first comparison; not over numbers of labels, which are no cells of one table."""
    return bool(report.study.compare) and report.study.reads is None and report.protocol != ALL


def _leading_tally(report: Report) -> Tally | None:
    """Over the cells of the first comparison, if it has one."""
    if not _compares(report):
        return None
    return tally(effect for _, effect in report.outcome.effects(report.study.compare[0].name))


def _without_results(reports: Sequence[Report]) -> list[str]:
    """Which studies of several have no complete cell yet."""
    ready = {report.study.title for report in reports if report.outcome.complete}
    lacking: dict[str, str] = {}
    for report in reports:
        if report.study.reads is None and report.study.title not in ready:
            lams = missing_lams(report.outcome, report.curves)
            lacking[report.study.title] = f"{report.study.title} ({lams})" if lams else report.study.title
    return [f"Without a complete cell yet: {', '.join(lacking.values())}."] if lacking and ready else []


def _tiles(reports: Sequence[Report], leading: Report, costs: Sequence[Cost], ready: int) -> list[tuple[str, str]]:
    studies = {report.study.name for report in reports}
    cells, counts = leading.outcome.cells, _leading_tally(leading)
    complete = (f"{leading.outcome.complete} of {len(cells)}", f"cells are complete ({leading.study.title})")
    if leading.protocol == ALL:
        known = sum(cell.reason is None for cell in cells)
        complete = (f"{known} of {len(cells)}", "cells, each a graph, a model and a number of labels, have runs")
    tiles = [
        (f"{counts.gains} of {counts.cells}", f"cells gain{counts.after}; {counts.losing}") if counts else None,
        (f"{ready} of {len(studies)}", "studies have results") if len(studies) > 1 else None,
        complete,
        (f"{sum(cost.runs for cost in costs):,}", "training runs"),
    ]
    if costs:
        devices = ", ".join(dict.fromkeys(cost.device for cost in costs))
        tiles.append((duration(sum(cost.seconds for cost in costs)), f"on {devices}"))
    return [tile for tile in tiles if tile is not None]


def _curves(reports: Sequence[Report]) -> dict[str, dict[Cell, tuple[Curve, str]]]:
    """By protocol and cell, the longest λ curve that any study has, and that study."""
    found: dict[str, dict[Cell, tuple[Curve, str]]] = {}
    for report in reports:
        own = found.setdefault(report.protocol, {})
        for curve in report.curves:
            cell = Cell(curve.dataset, curve.model)
            if cell not in own or len(curve.points) > len(own[cell][0].points):
                own[cell] = (curve, report.study.name)
    return found


def _sections(report: Report, known: _Curves, share: Share) -> list[dict[str, Any]]:
    study = report.study
    own_curves = dict(known) | {Cell(curve.dataset, curve.model): (curve, study.name) for curve in report.curves}
    sections = [made for block in report.blocks if (made := _section(block, report, own_curves)) is not None]
    own = f"; {share.own:,} of its own, {share.shared:,} that other studies here show too" if share.shared else ""
    entries = {
        "runs": report.progress + own,
        "time of all of them": report.cost,
        "time of its own": duration(share.own_seconds) if share.own and share.shared else "",
        "where records come from": report.provenance,
        "what the paper leaves open": study.leaves_open,
        "datasets": ", ".join(study.datasets),
        "models": ", ".join(study.models),
    }
    return [
        *sections,
        section("Settings and versions", facts([(name, text) for name, text in entries.items() if text])),
    ]


def _section(block: Block, report: Report, curves: _Curves) -> dict[str, Any] | None:
    """A block of the report as a section of the page; None if it is only for paper."""
    if isinstance(block, Sentences):
        title = f"{block.title}, and why" if block.title == MISSING else block.title
        return section(title, words(block.lines))
    if isinstance(block, Tables):
        views = {}
        for name, table in block.views.items():
            contrast = block.contrasts.get(name)
            views[name] = [
                sheet(table, one_line=name.startswith(SCORES))
                if contrast is None
                else gain_sheet(table, contrast, report.outcome, curves)
            ]
    elif block.on_page:
        views = {name: [chart for chart in charts if chart is not None] for name, charts in block.views.items()}
    else:
        return None
    if block.apart:
        return choice(block.title, views, text=block.text, shown=block.shown if isinstance(block, Tables) else 0)
    return section(block.title, *(chart for own in views.values() for chart in own), text=block.text)
