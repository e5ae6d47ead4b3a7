"""The leaderboard of the field as sentences, tables and a chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sharpen.analysis.leaderboard import Leaderboard, MeanRanks, Standing, leaderboards, mean_ranks
from sharpen.analysis.outcome import Outcome
from sharpen.report.blocks import FOUND, Block, Report, Sentences, Tables
from sharpen.report.cells import Value
from sharpen.report.names import dataset_title, model_title
from sharpen.report.study import study_report
from sharpen.report.tables import Column, Place, Table


def board_table(board: Leaderboard) -> Table:
    """One graph: every method with its score, its rank and the interval of it, its published place, its time, its gain.

    >>> board = Leaderboard("cora", (Standing("gcn", 84.5, 0.5, 10, rank=1, low=1, high=2, seconds=1.5), Standing("mlp")))
    >>> from sharpen.report.tables import values
    >>> [value.text for place in board_table(board).rows[0][:3] for value in values(place)]
    ['GCN', '84.50 ± 0.50', '1 (1–2)']
    """
    titles = {
        "score": "test score",
        "rank": "rank (95 %)",
        "published": "published",
        "place": "place there",
        "seconds": "s per run",
        "gain": "sharpened − plain",
    }
    return Table(
        dataset_title(board.dataset),
        (Column("method", "method"), *(Column(key, title, "right") for key, title in titles.items())),
        tuple(_row(one) for one in board.standings),
        notes=(
            "Ranks by mean score on the same draws; in brackets the 95 % interval over resampled draws. Published: as the paper "
            "cites it, on partly other splits; the place is among the methods of this table that are in it.",
        ),
    )


def _row(one: Standing) -> tuple[Place, ...]:
    cited: Place = None if one.published is None else Value.number(one.published)
    if one.mean is None:
        return (model_title(one.model), Value.reason(one.reason or "not run yet"), None, cited, None, None, None)
    effect = one.gain.difference if one.gain is not None else None
    return (
        model_title(one.model),
        Value.score(one.mean, one.sd),
        str(one.rank) if one.low is None else f"{one.rank} ({one.low}–{one.high})",
        cited,
        None if one.place is None else str(one.place),
        None if one.seconds is None else Value.number(one.seconds),
        None if effect is None else Value.gain(effect.difference, effect.t_interval, effect.n),
    )


def ranks_table(found: MeanRanks) -> Table:
    """Mean ranks over graphs, the best first; those within the critical difference of the best are marked."""
    best, tested = min(found.ranks.values(), default=0.0), not math.isnan(found.critical)
    rows = tuple(
        (model_title(model), Value.number(rank), "yes" if tested and rank - best <= found.critical else "")
        for model, rank in found.ranks.items()
    )
    columns = (
        Column("method", "method"),
        Column("rank", "mean rank", "right"),
        Column("near", "not told from the best"),
    )
    note = "With one graph nothing is tested."
    if tested:
        note = f"Two mean ranks that differ by more than {found.critical:.2f} differ at 5 % (Nemenyi)."
    return Table(f"Mean ranks over {found.graphs} graphs", columns, rows, notes=(note,))


def board_sentences(boards: Sequence[Leaderboard]) -> list[str]:
    """What the boards say, in a few sentences; one that says so if nothing was run.

    >>> board_sentences([Leaderboard("cora", (Standing("gcn", reason="not run yet"),))])
    ['The study has not been run yet: no method has a score on these draws.']
    """
    run = [board for board in boards if board.ranked]
    if not run:
        return ["The study has not been run yet: no method has a score on these draws."]
    pairs = sum(len(board.ranked) for board in run)
    told = [f"{pairs:,} pairs of a method and a graph have a score, on {len(run)} of {len(boards)} graphs."]
    for board in run:
        first, *others = board.ranked
        tied = sum(one.low == 1 for one in others)
        more = f"; {tied} more may be" if tied else ""
        told.append(f"{dataset_title(board.dataset)}: {model_title(first.model)} is first of {1 + len(others)}{more}.")
    taus = [board.agreement for board in run if board.agreement is not None]
    if taus:
        told.append(
            f"The order agrees with the published one by Kendall's τ = {np.median(taus):.2f} (the median of {len(taus)} graphs; "
            "1 is the same order, 0 none)."
        )
    gains = [one.gain for board in run for one in board.ranked if one.gain is not None and one.gain.difference]
    if gains:
        verdicts = [effect.verdict for effect in gains]
        told.append(
            f"Sharpening: of {len(gains)} pairs, {verdicts.count('gain')} gain, {verdicts.count('loss')} lose, "
            f"{verdicts.count('unclear')} show no clear difference (95 % t interval)."
        )
    return told


def field_report(outcome: Outcome) -> Report:
    """The report of a study of the field: its leaderboards, then what every study shows of plain and sharpened.

    >>> from sharpen.analysis.outcome import outcome
    >>> from sharpen.studies import load_study
    >>> field_report(outcome(load_study("field"), "paired")).findings
    ('The study has not been run yet: no method has a score on these draws.',)
    """
    report, boards = study_report(outcome), leaderboards(outcome)
    own: list[Block] = [Sentences(FOUND, tuple(board_sentences(boards)))]
    if run := [board for board in boards if board.ranked]:
        own.append(Tables("The leaderboard", {dataset_title(board.dataset): board_table(board) for board in run}))
        own.append(Tables("Over graphs", {"ranks": ranks_table(mean_ranks(boards))}))
    return replace(report, blocks=(*own, *(block for block in report.blocks if block.title != FOUND)))
