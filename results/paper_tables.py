"""Blocks of the evidence that hold the paper's tables and figures remade: cell by cell, beside its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from coverage import TEN
from split_story import Found

from sharpen.analysis.curves import lambda_curves
from sharpen.analysis.dynamics import Traces, dynamics
from sharpen.analysis.outcome import NOT_RUN, Outcome
from sharpen.analysis.provenance import costs
from sharpen.analysis.ranking import rankings
from sharpen.report.cells import Value
from sharpen.report.missing import missing_lams
from sharpen.report.names import cell_title, dataset_title, minus
from sharpen.report.shares import run_seconds, shares, was_run
from sharpen.report.special_tables import dynamics_table, lambda_table
from sharpen.report.study_tables import gain_grid, own_score
from sharpen.report.study_text import (
    agreement,
    agreement_sentence,
    band_sentences,
    cost_sentence,
    gain_sentence,
    gap_sentence,
    sentences,
)
from sharpen.report.tables import Column, Place, Table, to_markdown
from sharpen.report.tally import tally
from sharpen.studies import Study, list_studies, load_study
from sharpen.studies.cost import duration

# What the paper says about each comparison, in the order of the paper.
COMPARISONS = {
    "main": "λ by validation improves on plain training",
    "main-five": "λ by validation, one of five, improves on plain training",
    "universal": "λ = 0.25 improves on plain training without tuning",
    "labeled-term": "without the labeled term it is worse",
    "offset": "moving both weights by an offset does not help",
    "entropy-order": "Shannon's entropy does about as well as Gini's",
    "meta-lambda": "a meta-learned λ is worse than a fixed one",
    "test-only": "sharpening test nodes only is worse",
    "retune-nine": "retuning learning rate and dropout, nine of 25 settings, adds little",
}


def tallies(found: Found) -> str:
    """One row per comparison of the paper: its mean difference and ours over the same cells, those that it gives a number for."""
    rows: list[tuple[Place, ...]] = []
    for name, claim in COMPARISONS.items():
        for protocol in _protocols(found, name):
            outcome = found(name, protocol)
            contrast = outcome.study.compare[0].name
            everywhere = [e for _, e in outcome.effects(contrast)]
            counts = tally(everywhere)
            if counts is None:
                rows.append((claim, minus(contrast), protocol, Value.reason(_so_far(outcome)), *[None] * 5))
                continue
            both = [
                (e.difference.difference, e.published)
                for e in everywhere
                if e.complete and e.difference is not None and e.published is not None
            ]
            diverged = sum(e.diverged > 0 for e in everywhere)
            rows.append(
                (
                    claim,
                    minus(contrast),
                    protocol,
                    str(counts.cells) + (f" ({diverged} more diverged)" if diverged else ""),
                    str(len(both)),
                    Value.number(float(np.mean([ours for ours, _ in both])) if both else None, sign=True),
                    Value.number(float(np.mean([paper for _, paper in both])) if both else None, sign=True),
                    f"{counts.gains} / {counts.unclear} / {counts.losses}",
                    f"{counts.corrected_gains} / {counts.corrected_losses}",
                )
            )
    columns = (
        Column("claim", "the paper says"),
        Column("comparison", "comparison"),
        Column("protocol", "protocol"),
        Column("cells", "cells", "right"),
        Column("published", "of them published", "right"),
        Column("ours", "ours, mean", "right"),
        Column("paper", "paper, mean", "right"),
        Column("verdicts", "gain / unclear / loss", "center"),
        Column("holm", "after Holm: gain / loss", "center"),
    )
    notes = (
        "Cells: those that have all their pairs; where runs diverged they are not counted. Means: over those of them for which the "
        "paper gives a difference, in points. Gain and loss: cells whose 95 % t interval of the paired difference excludes zero; "
        "after Holm: corrected over the cells of the row.",
    )
    return to_markdown(Table("What the paper says, and what pairs say", columns, tuple(rows), notes))


def baselines(main: Outcome) -> str:
    """How many of the paper's baselines we meet, in the cells of the ten graphs."""
    own = _only(main, TEN)
    within, beyond, open_ = agreement(own, "baseline")
    lines = [agreement_sentence(own, "baseline")]
    rows: list[tuple[Place, ...]] = []
    distances = []
    for cell in own.cells:
        side = cell.sides["baseline"]
        said, found = side.published, side.consistency
        if said is None or said.mean is None or found is None or found.distance is None:
            continue
        distances.append(abs(found.distance))
        rows.append(
            (
                cell_title(cell.dataset, cell.model),
                own_score(side),
                Value.quoted("", said.mean, said.sd),
                Value.number(found.difference, sign=True),
                Value.number(found.distance, 1, sign=True),
            )
        )
    if distances:
        lines.append(
            f"Median distance {np.median(distances):.2f} combined standard deviations; the aim is at most two in 36 of the "
            f"{len(within) + len(beyond) + len(open_)} cells."
        )
    if open_:
        lines.append(f"Not run: {', '.join(cell_title(cell.dataset, cell.model) for cell in open_)}.")
    if not rows:
        return sentences(lines)
    columns = (
        Column("cell", "cell"),
        Column("ours", "ours", "right"),
        Column("paper", "paper", "right"),
        Column("difference", "difference, points", "right"),
        Column("distance", "in combined sd", "right"),
    )
    table = to_markdown(Table("Plain training, ours and the paper's, paper protocol", columns, tuple(rows)))
    return f"{sentences(lines)}\n\n{table.strip()}"


def comparison(found: Found, name: str) -> str:
    """One of the paper's comparisons under every protocol that has complete cells, these in the paper's layout."""
    parts = []
    for protocol in _protocols(found, name):
        outcome = found(name, protocol)
        contrast = outcome.study.compare[0]
        parts.append(f"{protocol} protocol: {gain_sentence(outcome, contrast.name)}")
        # Also those with diverged runs: their cells say so.
        shown = tuple(c.dataset for c, e in outcome.effects(contrast.name) if e.finished == e.planned and e.difference)
        if shown:  # how to read it stands at the top of the text
            parts.append(to_markdown(replace(gain_grid(_only(outcome, shown), contrast), notes=())))
    return "\n\n".join(part.strip() for part in parts)


def curves(found: Found) -> str:
    """Glass's Δ over λ, and the range in which its median is not negative."""
    parts = []
    for protocol in ("paper", "paired"):
        outcome = found("lambda-curves", protocol)
        drawn = lambda_curves(outcome)
        # Of another study's few values there is no curve: what they say stands there.
        if not any(effect.complete for _, effect in outcome.effects("ts--0.5 - baseline")) or not drawn:
            continue
        parts += [
            sentences(band_sentences(drawn, missing_lams(outcome, drawn))),
            to_markdown(lambda_table(drawn, f"Glass's Δ by λ, {protocol} protocol")),
        ]
    return "\n\n".join(part.strip() for part in parts) or "Not run yet."


def entropies(outcome: Outcome, traces: Callable[[Outcome], Traces]) -> str:
    """Whether the gap H_L − H_U is larger with sharpening, cell by cell."""
    traced = traces(outcome)
    titles = {"gini": "Entropy gap during training", "shannon": "The same in Shannon's measure, as the paper writes it"}
    parts = []
    for measure, title in titles.items():
        if cells := dynamics(outcome, traced, measure):
            parts += [gap_sentence(cells), to_markdown(dynamics_table(cells, title)).strip()]
    return "\n\n".join(parts) or "Not run yet."


def ranks(study: Study, main: Outcome) -> str:
    """Where our best entry stands among published scores, with and without sharpening."""
    columns = (
        Column("dataset", "dataset"),
        Column("plain", "our best without sharpening", "right"),
        Column("sharp", "our best with λ by validation", "right"),
        Column("first", "best published", "right"),
        Column("of", "other methods", "right"),
    )
    rows: list[tuple[Place, ...]] = []
    for ranking in rankings(study, main):
        scored = [entry for entry in ranking.entries if entry.mean is not None]
        kinds = [
            next((e for e in scored if e.ours and e.method.endswith("+TS") is sharp), None) for sharp in (False, True)
        ]
        others = [e for e in scored if not e.ours]
        if not any(kinds):
            continue
        rows.append(
            (
                dataset_title(ranking.dataset),
                *(
                    Value.reason(NOT_RUN) if e is None else f"{e.method} {e.mean:.2f}, place {ranking.place(e)[0]}"
                    for e in kinds
                ),
                f"{others[0].method} {others[0].mean:.2f}" if others else None,
                str(len(others)),
            )
        )
    if not rows:
        return "Not run yet."
    notes = ("After ours: its place among the other methods alone; our own entries do not count against each other.",)
    return to_markdown(Table("Places by mean score; other methods as published", columns, tuple(rows), notes))


def cost(found: Found, frame: pd.DataFrame, reported: Callable[[Study], Sequence[str]]) -> str:
    """What every study took under each protocol, and all of them together."""
    outcomes = [found(study.name, p) for study in list_studies() if study.reads is None for p in reported(study)]
    rows: list[tuple[Place, ...]] = []
    found_shares = shares([(outcome.study.name, run_seconds(outcome)) for outcome in outcomes])
    for outcome, share in zip(outcomes, found_shares, strict=True):
        if not was_run(outcome, share):
            continue
        rows.append(
            (
                outcome.study.title,
                outcome.protocol,
                f"{outcome.finished:,} of {outcome.planned:,}",
                duration(sum(c.seconds for c in outcome.costs)),
                f"{share.own:,}",
                duration(share.own_seconds),
                ", ".join(dict.fromkeys(f"{c.device} ({c.precision})" for c in outcome.costs)),
            )
        )
    if not rows:
        return "Not run yet."
    keys = ("study", "protocol", "runs", "time", "runs of its own", "their time", "device")
    columns = tuple(Column(key, key) for key in keys)
    notes = (
        f"All together, a run that serves several studies counted once: {cost_sentence(costs(frame))} Training only: reading data "
        "and looking for how many runs fit at once are not in it.",
    )
    return to_markdown(Table("Time that training took", columns, tuple(rows), notes))


def _protocols(found: Found, name: str) -> list[str]:
    """The protocols under which a study has complete cells, the paired one first; if none has, the study's first."""
    study = load_study(name)
    wanted: list[str] = [protocol for protocol in ("paired", "paper") if protocol in study.protocols]
    ready = [p for p in wanted if found(name, p).complete]
    return ready or list(study.protocols[:1])


def _so_far(outcome: Outcome) -> str:
    """How much of a study without a complete cell is there."""
    if not outcome.finished:
        return NOT_RUN
    return f"no cell complete yet, {outcome.finished:,} of {outcome.planned:,} runs"


def _only(outcome: Outcome, datasets: tuple[str, ...]) -> Outcome:
    return replace(outcome, cells=tuple(cell for cell in outcome.cells if cell.dataset in datasets))
