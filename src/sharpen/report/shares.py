"""Which runs a study has to itself: many serve several studies, and their time must not be taken for each one's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from sharpen.studies.outcome import Outcome


def run_ids(outcome: Outcome) -> frozenset[str]:
    """The trials whose records a study shows.

    >>> import pandas as pd
    >>> from sharpen.studies import load_study
    >>> from sharpen.studies.outcome import outcome
    >>> len(run_ids(outcome(load_study("universal"), "paper", pd.DataFrame())))
    0
    """
    return frozenset(run.id for cell in outcome.cells for side in cell.sides.values() for run in side.runs)


def shared_counts(rows: Sequence[tuple[str, Collection[str]]]) -> list[int]:
    """Of the runs of every row, how many another study shows too; a row names its study, which may have several.

    >>> shared_counts([("main", {"a", "b"}), ("universal", {"b", "c"}), ("universal", {"c"})])
    [1, 1, 0]
    """
    serves = Counter(id for _, id in {(study, id) for study, ids in rows for id in ids})
    return [sum(serves[id] > 1 for id in ids) for _, ids in rows]


def was_run(outcome: Outcome, shared: int) -> bool:
    """Whether a study was run: runs that others needed alone do not make it one, unless they complete a cell.

    >>> import pandas as pd
    >>> from sharpen.studies import load_study
    >>> from sharpen.studies.outcome import outcome
    >>> was_run(outcome(load_study("universal"), "paper", pd.DataFrame()), shared=0)
    False
    """
    return bool(outcome.complete) or len(run_ids(outcome)) > shared
