"""The leaderboard of the field as sentences, tables and a chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sharpen.analysis.leaderboard import Leaderboard, MeanRanks, Standing, leaderboards, mean_ranks
from sharpen.analysis.outcome import Outcome
from sharpen.report.blocks import FOUND, Block, Report, Sentences, Tables
from sharpen.report.cells import Value, number
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
    near = {model: tested and rank - best <= found.critical for model, rank in found.ranks.items()}
    some = not all(near.values())  # where none can be told from the best, a column has nothing to say
    rows: list[tuple[Place, ...]] = []
    for model, rank in found.ranks.items():
        marked: tuple[Place, ...] = ("yes" if near[model] else "",) if some else ()
        rows.append((model_title(model), Value.number(rank), *marked))
    columns = [Column("method", "method"), Column("rank", "mean rank", "right")]
    columns += [Column("near", "not told from the best")] if some else []
    note = "With one graph nothing is tested."
    if tested:
        none = "" if some else "; none of these can be told from the best"
        note = f"Two mean ranks that differ by more than {found.critical:.2f} differ at 5 % (Nemenyi){none}."
    return Table(f"Mean ranks over {found.graphs} graphs", tuple(columns), tuple(rows), notes=(note,))


def gains_table(boards: Sequence[Leaderboard]) -> Table:
    """Does sharpening help this method: a row for each, a column for each graph; the largest mean gain first.

    >>> gains_table([Leaderboard("cora", (Standing("gcn", 84.5, 0.5, 10, rank=1),))]).rows
    ()
    """
    found = {
        board.dataset: {model: gain for model, (_, gain) in board.gains.items()} for board in boards if board.gains
    }
    models = dict.fromkeys(model for own in found.values() for model in own)
    mean = {
        model: float(np.mean([own[model].difference for own in found.values() if model in own])) for model in models
    }

    def place(model: str, graph: str) -> Place:
        gain = found[graph].get(model)
        return None if gain is None else Value.gain(gain.difference, gain.t_interval, gain.n, tell_n=False)

    return Table(
        "Does sharpening help?",
        (Column("method", "method"), *(Column(graph, dataset_title(graph), "right") for graph in found)),
        tuple(
            (model_title(model), *(place(model, graph) for graph in found))
            for model in sorted(mean, key=mean.__getitem__, reverse=True)
        ),
        notes=("Sharpened − plain, paired on the draws, with 95 % t intervals; bold where they exclude zero.",),
    )


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
        more = f", and {tied} more may be" if tied else ""
        left = f" (no score yet: {board.waiting})" if board.waiting else ""
        told.append(
            f"{dataset_title(board.dataset)}: {model_title(first.model)} is first of {1 + len(others)}{left}{more}."
        )
    return [*told, *_order_sentences(run), *_gain_sentences(run)]


def _order_sentences(run: Sequence[Leaderboard]) -> list[str]:
    """How much of the published order survives."""
    known = [(board, board.agreement) for board in run if board.agreement is not None]
    if not known:
        return []
    parts = []
    for board, agreement in known:
        count, (top, here, _) = len(board.moves), min(board.moves, key=lambda move: move[2])
        name, now, before = max(board.moves, key=lambda move: move[1] - move[2])
        fell = f"; {model_title(name)} falls from {before} to {now}" if now > before and name != top else ""
        parts.append(
            f"{dataset_title(board.dataset)} {agreement:.2f} (of {count} published methods the first, {model_title(top)}, is "
            f"{here} here{fell})"
        )
    told = "; ".join(parts)
    return [f"The published order, by Kendall's τ (1 is the same order, 0 none): {told}."]


def _gain_sentences(run: Sequence[Leaderboard]) -> list[str]:
    """Whom sharpening helps."""
    by_graph = {board.dataset: [effect for effect, _ in board.gains.values()] for board in run if board.gains}
    gains = [effect for effects in by_graph.values() for effect in effects]
    if not gains:
        return []
    parts = []
    for graph, effects in by_graph.items():
        verdicts = [effect.verdict for effect in effects]
        parts.append(
            f"{dataset_title(graph)} {verdicts.count('gain')} gain, {verdicts.count('loss')} lose of {len(verdicts)}"
        )
    sure = [e for e in gains if e.verdict != "unclear" and e.corrected_p is not None and e.corrected_p < 0.05]
    up = sum(gain.verdict == "gain" for gain in sure)
    told = [
        f"Sharpening (95 % t interval): {'; '.join(parts)}. Corrected over the {len(gains)} pairs (Holm), {up} gain and "
        f"{len(sure) - up} lose."
    ]
    if firsts := [(board, max(board.sharpened, key=board.sharpened.__getitem__)) for board in run if board.sharpened]:
        named = (f"{dataset_title(b.dataset)} {model_title(m)} ({number(b.sharpened[m])})" for b, m in firsts)
        told.append(f"Sharpened, the first is: {', '.join(named)}.")
    if leaning := [f"{dataset_title(b.dataset)} {number(b.leaning)}" for b in run if b.leaning is not None]:
        told.append(
            f"Who scores less without it changes more with it where Spearman's ρ of both is near −1: {', '.join(leaning)}."
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
        own.append(Tables("Over graphs", {"ranks": ranks_table(mean_ranks(boards)), "gains": gains_table(boards)}))
    return replace(report, blocks=(*own, *(block for block in report.blocks if block.title != FOUND)))
