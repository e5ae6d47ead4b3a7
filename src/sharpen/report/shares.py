"""Which runs a study has to itself: many serve several studies, and their time must not be taken for each one's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sharpen.analysis.outcome import Outcome


class Share(NamedTuple):
    """Of the runs that a study shows, how many no other study shows, how many some other does, and what the first took."""

    own: int
    shared: int
    own_seconds: float


def run_seconds(outcome: Outcome) -> dict[str, float]:
    """The trials whose records a study shows, and what each took; one that was made again counts with both.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> run_seconds(outcome(load_study("universal"), "paper"))
    {}
    """
    return {run.id: run.seconds for cell in outcome.cells for side in cell.sides.values() for run in side.runs}


def shares(rows: Sequence[tuple[str, Mapping[str, float]]]) -> list[Share]:
    """What every row has to itself; a row names its study, which may have several, and the seconds of its runs.

    >>> shares([("main", {"a": 1.5, "b": 2.0}), ("universal", {"b": 2.0, "c": 3.0}), ("universal", {"c": 3.0})])
    [Share(own=1, shared=1, own_seconds=1.5), Share(own=1, shared=1, own_seconds=3.0), Share(own=1, shared=0, own_seconds=3.0)]
    """
    serves = Counter(id for _, id in {(study, id) for study, runs in rows for id in runs})
    own = [[id for id in runs if serves[id] == 1] for _, runs in rows]
    return [
        Share(len(ids), len(runs) - len(ids), sum(runs[id] for id in ids))
        for ids, (_, runs) in zip(own, rows, strict=True)
    ]


def was_run(outcome: Outcome, share: Share) -> bool:
    """Whether a study was run: runs that others needed alone do not make it one, unless they complete a cell.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> was_run(outcome(load_study("universal"), "paper"), Share(0, 0, 0.0))
    False
    """
    return bool(outcome.complete) or share.own > 0
