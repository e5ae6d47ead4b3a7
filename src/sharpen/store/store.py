"""Where records live: one Parquet file per finished population, written whole or not at all, never changed afterwards.

::

    records/cora-gcn-sha5d41…-1f0c….parquet   one row per trial: its id, its description, its scores, what it ran on, what that cost
    traces/cora-gcn-sha9a0b…-1f0c….parquet    per epoch: losses, entropies, scores, where a study keeps them
    claims/                                   who trains what right now
    set-aside/                                what lay here and could not be trusted

A file's name ends in a checksum of its bytes and a hash of the ids in it. A file that is cut off or damaged, that does not hold
what its name says, or whose rows cannot be (a trial twice, an id that is not that of the description, a score beyond 0 to 1) is
never trusted: :meth:`Store.problems` names it, and a runner moves it to ``set-aside``, unless it is so young that it may still be
on its way in. A file that merely cannot be read at the moment proves nothing: that is an error, and nothing is moved. No record is
ever deleted; what is swept are names that begin with a dot, of writers that were killed.

A trial is trained once, with one exception: a trace that is wanted later. The run that is made for it is recorded beside the
first one, because it took time and belongs to the trace, but the first scores stay the trial's scores. Which run was first is
recorded with it, as ``rerun``, and does not depend on any clock. Two first runs, as after two stores were merged, are ordered by
what they gave, so that every machine chooses the same one. Records of before ``rerun`` are ordered by their time.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sharpen.errors import InputError, as_given
from sharpen.store.claims import Claim, claim, claims, locked
from sharpen.store.part import Part
from sharpen.store.record_files import RUN, Problem, key_of, name_of, records_table, run_of, traces_table
from sharpen.trial import Record, Trial

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

# A temporary file that is older than this has no writer any more: writing one takes a moment.
_ABANDONED_SECONDS = 3600


class StoreError(InputError):
    """The store cannot be written: no trial can be kept, whichever it is.

    >>> issubclass(StoreError, InputError)
    True
    """


class Store:
    """Records and traces in a folder; nothing is made there before something is written.

    >>> import tempfile
    >>> record = Record(Trial(dataset="toy").resolve("mine"), 0.8, 0.7, 12, "ok", 0.5, "cpu", "float32")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     store.add([record])
    ...     store.ids() == {record.trial.id}, store.frame()[["dataset", "test"]].values.tolist()
    (True, [['toy', 0.7]])
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise StoreError(f"the store {folder} is a file; name a folder with {as_given('store')}")
        self._records = Part(self.folder / "records", self._see_records, self._see_again)
        self._traces = Part(self.folder / "traces", self._see_traces, self._see_again)
        self._clear()

    def add(self, records: Sequence[Record], *, keep_traces: bool = False) -> None:
        """Writes the records of one population; those of trials that are recorded already are left out.

        Args:
            records: Of one dataset and one model.
            keep_traces: Whether to write their traces too; also for trials that are recorded already, if those have none. Where
                such a run gave something else than the recorded one, it is recorded too, for :meth:`runs`.
        """
        with self._writing(*(("records", "traces") if keep_traces else ("records",))):
            known = self.ids()
            new, untraced = [record for record in records if record.trial.id not in known], []
            if keep_traces:
                traced = self.traced_ids()
                untraced = [record for record in records if record.trial.id not in traced]
                new = [r for r in untraced if run_of(r) not in self._runs.get(r.trial.id, ())]
            if new:
                reruns = {record.trial.id: len(self._runs.get(record.trial.id, ())) for record in new}
                self._write(self._records, new, records_table(new, reruns))
            # After the records: a runner that is killed in between leaves records whose traces are missing.
            if untraced:
                self._write(self._traces, untraced, traces_table(untraced))

    def check_writable(self) -> None:
        """An error if nothing can be kept here; better known before training than after."""
        with self._writing("records"):
            pass

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Says what is wrong where the block cannot write."""
        try:
            yield
        except OSError as error:
            way = "free space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "fix that"
            raise StoreError(
                f"cannot write to the store {self.folder} ({error.strerror}); {way}, or name another with {as_given('store')}"
            ) from error

    @contextmanager
    def _writing(self, *parts: str) -> Iterator[None]:
        """Alone among all writers, with the folders there."""
        with self._failing():
            for part in (*parts, "claims"):
                (self.folder / part).mkdir(parents=True, exist_ok=True)
                if not os.access(self.folder / part, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            with locked(self.folder / "claims"):
                yield

    def ids(self) -> Set[str]:
        """The ids of all recorded trials."""
        self._records.refresh()
        return self._runs.keys()

    def traced_ids(self) -> Set[str]:
        """The ids of all trials of which a recorded run was traced."""
        self._records.refresh()
        self._traces.refresh()
        return self._traced

    # What is known without looking at rows again: by id the recorded runs, by id the runs that traces name, and the ids where the
    # two meet. Traces of before runs were told apart name none: they are those of the first.

    def _clear(self) -> None:
        self._runs: dict[str, set[str]] = {}
        self._traced_runs: dict[str, set[str | None]] = {}
        self._traced: set[str] = set()

    def _see_records(self, table: pa.Table) -> None:
        for row in table.select(["id", *RUN]).to_pylist():
            id_, run = row["id"], run_of(row)
            self._runs.setdefault(id_, set()).add(run)
            if not {run, None}.isdisjoint(self._traced_runs.get(id_, ())):
                self._traced.add(id_)

    def _see_traces(self, table: pa.Table) -> None:
        for id_, run in set(zip(table["id"].to_pylist(), table["run"].to_pylist(), strict=True)):
            self._traced_runs.setdefault(id_, set()).add(run)
            runs = self._runs.get(id_, ())
            if run in runs or (run is None and runs):
                self._traced.add(id_)

    def _see_again(self) -> None:
        self._clear()
        self._see_records(self._records.table())
        self._see_traces(self._traces.table())

    def _rows(self) -> pd.DataFrame:
        """All rows of all files, with ``run``; of a trial's the one first that counts (:func:`_in_order`)."""
        self._records.refresh(every_file=True)
        frame = self._records.table().to_pandas()
        return _in_order(frame.assign(run=[run_of(row) for row in frame[list(RUN)].to_dict("records")]))

    def _first_traced(self, rows: pd.DataFrame) -> dict[str, tuple[str, str | None]]:
        """By id, the first of the recorded runs that was traced, and how its traces name it."""
        self._traces.refresh(every_file=True)
        found: dict[str, tuple[str, str | None]] = {}
        for id_, run in zip(rows["id"], rows["run"], strict=True) if self._traced else ():
            for name in (run, None):
                if name in self._traced_runs.get(id_, ()):
                    found.setdefault(id_, (run, name))
        return found

    def runs(self) -> pd.DataFrame:
        """A table with one row per run, oldest first: as :meth:`frame`, and all that were made again for a trace too.

        This is what everything took together. The first row of a trial is its record, whose scores count. Of a trial that has
        traces, the column ``traced`` tells whether they are of this run, so that a trace can be held beside its own scores.

        >>> import tempfile
        >>> record = Record(Trial(dataset="toy").resolve("mine"), 0.8, 0.7, 12, "ok", 0.5, "cpu", "float32")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Store(folder).add([record])
        ...     Store(folder).runs()[["test", "seconds", "traced"]].values.tolist()
        [[0.7, 0.5, False]]
        """
        rows = self._rows()
        traced = {(id_, run) for id_, (run, _) in self._first_traced(rows).items()}
        own = [pair in traced for pair in zip(rows["id"], rows["run"], strict=True)] if traced else False
        return rows.drop(columns=["run", "file"]).assign(traced=own)

    def frame(self, trials: Iterable[Trial] | None = None) -> pd.DataFrame:
        """A table with one row per trial: its id, then as :func:`sharpen.to_frame`, then where the record comes from.

        With ``trials``, those of them that have a record, in this order; else all, oldest first. Should a trial have been trained
        more than once, its first record is the record.
        """
        frame = self._rows().drop(columns=["run", "file"]).drop_duplicates("id")
        frame = frame.sort_values(["created", "id"], ignore_index=True)
        if trials is None:
            return frame
        rows = {id_: row for row, id_ in enumerate(frame["id"])}
        return frame.iloc[[rows[trial.id] for trial in trials if trial.id in rows]].reset_index(drop=True)

    def traces(self, ids: Collection[str]) -> dict[str, dict[str, np.ndarray]]:
        """By id, what was traced per epoch: by name, an array of float32; trials without traces are left out.

        They are of one run of the trial: the first that was traced, which need not be the one whose scores count (:meth:`runs`).
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        traced = self._first_traced(self._rows())
        table = self._traces.table()
        wanted = pa.array(sorted(traced.keys() & set(ids)), pa.string())
        table = table.filter(pc.is_in(table["id"], wanted)).sort_by("file")
        values = table["values"].combine_chunks()
        offsets, flat = values.offsets.to_numpy(), values.values.to_numpy(zero_copy_only=False)
        columns = (table[name].to_pylist() for name in ("id", "name", "run"))
        found: dict[str, dict[str, np.ndarray]] = {}
        for row, (id_, name, run) in enumerate(zip(*columns, strict=True)):
            if run == traced[id_][1]:
                found.setdefault(id_, {}).setdefault(name, flat[offsets[row] : offsets[row + 1]])
        return found

    def claim(self, trials: Collection[Trial]) -> Claim | None:
        """Takes trials on for this process; None if another runner has some of them."""
        ids = [trial.id for trial in trials]
        with self._failing():
            return claim(self.folder / "claims", key_of(ids), ids)

    def claims(self) -> list[Claim]:
        """What runners, this process among them, have taken on."""
        try:
            return claims(self.folder / "claims")
        except OSError as error:
            raise StoreError(
                f"cannot read the claims in {self.folder} ({error.strerror}); fix that, or try again"
            ) from error

    def problems(self) -> list[Problem]:
        """The files that are not trusted, or not all of them, each with the reason."""
        for part in (self._records, self._traces):
            part.refresh(every_file=True)
        return self._records.problems() + self._traces.problems()

    def set_aside(self) -> list[Problem]:
        """Moves what is not trusted to ``set-aside``; what is young, or cannot be moved for want of permission, is left.

        Gives the problems, each with the path where its file is now.
        """
        self.problems()
        moved = [
            problem for part in (self._records, self._traces) for problem in part.set_aside(self.folder / "set-aside")
        ]
        self._sweep()
        return moved

    def _sweep(self) -> None:
        """What writers that were killed have left half-written."""
        for path in self.folder.glob("*/.*.tmp"):
            try:
                if abs(time.time() - path.stat().st_mtime) > _ABANDONED_SECONDS:
                    path.unlink()
            except OSError:
                continue

    def _write(self, part: Part, records: Sequence[Record], table: pa.Table) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        cells = {(record.trial.dataset, record.trial.model) for record in records}
        if len(cells) > 1:
            raise InputError(
                f"records of {len(cells)} cells are added at once; add those of each population by themselves"
            )
        ((dataset, model),) = cells
        cell = re.sub(r"[^\w.-]", "_", f"{dataset}-{model}").lstrip(".")[:100]  # a graph may be called anything
        buffer = pa.BufferOutputStream()
        # No statistics, no second schema: they would be most of a small file. Checksums, because a record is for long.
        settings = {
            "write_statistics": False,
            "store_schema": False,
            "write_page_checksum": True,
            "compression": "zstd",
        }
        words = [column for column in table.column_names if column not in ("values", "val", "test")]
        floats = {"values.list.element": "BYTE_STREAM_SPLIT"} if "values" in table.column_names else None
        pq.write_table(table, buffer, use_dictionary=words, column_encoding=floats, **settings)
        content = buffer.getvalue().to_pybytes()
        part.write(name_of(cell, {record.trial.id for record in records}, content), content, table)


def _in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """All rows, oldest first as far as clocks can be trusted, and those of one trial so that the first of them is its record.

    A run that found others of its trial in the store says so: ``rerun`` is how many. Of two first ones, as after two stores were
    merged, the one with the smaller ``run`` comes first, on every machine. Where there is no ``rerun``, in files of before it, the
    time decides, then the name of the file; such runs come before others of the same number.

    >>> import pandas as pd
    >>> columns = ["id", "rerun", "created", "run", "file"]
    >>> rows = pd.DataFrame([["a", 1, "2020", "x", "f"], ["a", 0, "2026", "y", "g"]], columns=columns)
    >>> _in_order(rows)["run"].tolist()
    ['y', 'x']
    """
    if not len(rows):
        return rows
    number, old = rows["rerun"].fillna(0), rows["rerun"].isna()
    rows = rows.assign(_number=number, _old=~old, _run=rows["run"].mask(old, ""))
    rows = rows.sort_values(["_number", "created", "file"], kind="stable", ignore_index=True)
    # The places of each trial's rows stay; in them, those without a number stand in the order of their times already.
    ranked = rows.sort_values(["id", "_number", "_old", "_run"], kind="stable").index
    order = np.empty(len(rows), dtype=np.int64)
    order[rows["id"].argsort(kind="stable")] = ranked
    return rows.iloc[order].drop(columns=["_number", "_old", "_run"]).reset_index(drop=True)


def add_or_rescue(store: Store, records: Sequence[Record], *, keep_traces: bool = False) -> None:
    """Adds records to a store; where that fails, to a new one elsewhere, and the error says where.

    >>> from sharpen.trial import Trial
    >>> record = Record(Trial(dataset="toy").resolve("mine"), 0.8, 0.7, 12, "ok", 0.5, "cpu", "float32")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     _ = Path(folder, "records").write_text("in the way")
    ...     add_or_rescue(store, [record])
    Traceback (most recent call last):
    sharpen.store.store.StoreError: cannot write to the store ...; the 1 run that was just trained is in ...
    """
    try:
        store.add(records, keep_traces=keep_traces)
    except StoreError as error:
        one = "the 1 run that was just trained is"
        what = one if len(records) == 1 else f"the {len(records)} runs just trained are"
        for place in dict.fromkeys((Path(tempfile.gettempdir()), Path.home(), Path.cwd())):
            try:
                other = Store(tempfile.mkdtemp(dir=place, prefix="sharpen-rescued-store-"))
                other.add(records, keep_traces=keep_traces)
            except (OSError, StoreError):
                continue
            raise StoreError(
                f"{error}; {what} in {other.folder}: copy its folders into the store once that is done"
            ) from error
        raise StoreError(f"{error}; {what} lost, since no other folder could be written either") from error
