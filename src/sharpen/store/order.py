"""Which of several runs of a trial counts: by what was recorded with them, and not by the clocks of the machines that ran them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """All rows, oldest first as far as clocks can be trusted, and those of one trial so that the first of them is its record.

    A run that found others of its trial in the store says so: ``rerun`` is how many. Of two first ones, as after two stores were
    merged, the one with the smaller ``run`` comes first, on every machine. Where there is no ``rerun``, in files of before it, the
    time decides, then the name of the file; such runs come before others of the same number.

    >>> import pandas as pd
    >>> columns = ["id", "rerun", "created", "run", "file"]
    >>> rows = pd.DataFrame([["a", 1, "2020", "x", "f"], ["a", 0, "2026", "y", "g"]], columns=columns)
    >>> in_order(rows)["run"].tolist()
    ['y', 'x']
    """
    if not len(rows):
        return rows
    number = rows["rerun"].fillna(0)
    rows = rows.assign(_number=number).sort_values(["_number", "created", "file"], kind="stable", ignore_index=True)
    ids, runs, old = rows["id"].tolist(), rows["run"].tolist(), rows["rerun"].isna().tolist()
    places: dict[str, list[int]] = {}
    for place in np.flatnonzero(rows["id"].duplicated(keep=False)).tolist():
        places.setdefault(ids[place], []).append(place)
    order = np.arange(len(rows))
    for own in places.values():
        # Those without a number stand in the order of their times already; a stable sort leaves them so.
        order[own] = sorted(own, key=lambda p: (rows["_number"].iat[p], not old[p], "" if old[p] else runs[p]))
    return rows.iloc[order].drop(columns="_number").reset_index(drop=True)
