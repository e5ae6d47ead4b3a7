"""Where records live: one Parquet file per finished population, written whole or not at all, never changed afterwards.

::

    records/cora-gcn-1f0c….parquet   one row per trial: its id, its description, its scores, what it ran on and what that cost
    traces/cora-gcn-1f0c….parquet    per epoch: losses, entropies, scores, where a study keeps them
    claims/                          who trains what right now
    set-aside/                       what lay here and could not be trusted

A file's name ends in a hash of the ids in it. A file that is cut off or damaged, that does not hold what its name says, or whose
rows cannot be (a trial twice, an id that is not that of the description, a score beyond 0 to 1) is
never trusted: :meth:`Store.problems` names it, and a runner moves it to ``set-aside``, unless it is so young that it may still
be on its way in. A file that merely cannot be read at the moment proves nothing: that is an error, and nothing is moved. No
record is ever deleted; what is swept are names that begin with a dot, of writers that were killed.

A trial is trained once, with one exception: a trace that is wanted later. The run that is made for it is recorded beside the
first one, because it took time and belongs to the trace, but the first scores stay the trial's scores.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sharpen.errors import InputError
from sharpen.store.claims import Claim, claim, claims, locked, make_visible
from sharpen.store.record_files import (
    RUN,
    Content,
    Problem,
    key_of,
    read_file,
    records_table,
    run_of,
    schema_of,
    traces_table,
)
from sharpen.trial import Record, Trial

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

# A file that changed within this time may still be on its way in from elsewhere.
SETTLED_SECONDS = 60
# A temporary file that is older than this has no writer any more: writing one takes a moment.
_ABANDONED_SECONDS = 3600


class StoreError(InputError):
    """The store cannot be written: no trial can be kept, whichever it is.

    >>> issubclass(StoreError, InputError)
    True
    """


class Store:
    """Records and traces in a folder; nothing is made there before something is written.

    Args:
        folder: Where.

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
            raise StoreError(f"the store {folder} is a file; name a folder with --store")
        self._seen: dict[Path, tuple[tuple[int, int, int], Content]] = {}

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
                traced, runs = self.traced_ids(), set(self._runs())
                untraced = [record for record in records if record.trial.id not in traced]
                new = [record for record in untraced if (record.trial.id, run_of(record)) not in runs]
            self._write("records", new, records_table)
            # After the records: a runner that is killed in between leaves records whose traces are missing.
            self._write("traces", untraced, traces_table)

    def check_writable(self) -> None:
        """An error if nothing can be kept here; better known before training than after."""
        with self._writing("records"):
            pass

    @contextmanager
    def _writing(self, *parts: str) -> Iterator[None]:
        """Alone among all writers, with the folders there."""
        try:
            for part in (*parts, "claims"):
                (self.folder / part).mkdir(parents=True, exist_ok=True)
                if not os.access(self.folder / part, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            with locked(self.folder / "claims"):
                yield
        except OSError as error:
            way = (
                "free space, or name another"
                if error.errno in (errno.ENOSPC, errno.EDQUOT)
                else "mend that, or name another"
            )
            raise StoreError(
                f"cannot write to the store {self.folder} ({error.strerror}); {way} with --store"
            ) from error

    def ids(self) -> set[str]:
        """The ids of all recorded trials."""
        return {id_ for table in self._tables("records") for id_ in table["id"].to_pylist()}

    def traced_ids(self) -> set[str]:
        """The ids of all trials of which a recorded run was traced."""
        return set(self._traced_runs())

    def _runs(self) -> list[tuple[str, str]]:
        """The recorded runs, the first ones first: the id of the trial, and what tells one run of it from another."""
        rows = self._rows()[["id", *RUN]].to_dict("records")
        return [(row["id"], run_of(row)) for row in rows]

    def _traced_runs(self) -> dict[str, tuple[str, str | None]]:
        """By id, the first of the recorded runs that was traced, and how its traces name it."""
        tables = [table for table in self._tables("traces") if len(table)]
        traced = {pair for t in tables for pair in zip(t["id"].to_pylist(), t["run"].to_pylist(), strict=True)}
        found: dict[str, tuple[str, str | None]] = {}
        for id_, run in self._runs() if traced else ():
            # Traces of before runs were told apart name none: they are those of the first.
            for name in (run, None):
                if (id_, name) in traced:
                    found.setdefault(id_, (run, name))
        return found

    def _rows(self) -> pd.DataFrame:
        """All rows of all files, the first one first: by the time of recording, then by the name of the file."""
        import pyarrow as pa

        tables = self._tables("records")
        table = pa.concat_tables(tables) if tables else schema_of("records").empty_table()
        return table.to_pandas().sort_values("created", kind="stable", ignore_index=True)

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
        traced = {(id_, run) for id_, (run, _) in self._traced_runs().items()}
        return self._rows().assign(traced=[run in traced for run in self._runs()] if traced else False)

    def frame(self, trials: Iterable[Trial] | None = None) -> pd.DataFrame:
        """A table with one row per trial: its id, then as :func:`sharpen.to_frame`, then where the record comes from.

        Should a trial have been trained more than once, its first record is the record.

        Args:
            trials: Those to give, in this order, those without a record left out. None: all, oldest first.
        """
        frame = self._rows().drop_duplicates("id").sort_values(["created", "id"], ignore_index=True)
        if trials is None:
            return frame
        rows = {id_: row for row, id_ in enumerate(frame["id"])}
        return frame.iloc[[rows[trial.id] for trial in trials if trial.id in rows]].reset_index(drop=True)

    def traces(self, ids: Collection[str]) -> dict[str, dict[str, np.ndarray]]:
        """By id, what was traced per epoch: by name, an array of float32; trials without traces are left out.

        They are of one run of the trial: the first that was traced, which need not be the one whose scores count (:meth:`runs`).
        """
        found: dict[str, dict[str, np.ndarray]] = {}
        traced = self._traced_runs()
        for table in self._tables("traces"):
            values = table["values"].combine_chunks()
            offsets, flat = values.offsets.to_numpy(), values.values.to_numpy(zero_copy_only=False)
            columns = (table[name].to_pylist() for name in ("id", "name", "run"))
            for row, (id_, name, run) in enumerate(zip(*columns, strict=True)):
                if id_ in ids and id_ in traced and run == traced[id_][1]:
                    found.setdefault(id_, {}).setdefault(name, flat[offsets[row] : offsets[row + 1]])
        return found

    def claim(self, trials: Collection[Trial]) -> Claim | None:
        """Takes trials on for this process; None if another runner has some of them."""
        try:
            return claim(self.folder / "claims", key_of(trial.id for trial in trials), [trial.id for trial in trials])
        except OSError as error:
            raise StoreError(
                f"cannot write to the store {self.folder} ({error.strerror}); mend that, or name another with --store"
            ) from error

    def claims(self) -> list[Claim]:
        """What runners, this process among them, have taken on."""
        try:
            return claims(self.folder / "claims")
        except OSError as error:
            raise StoreError(
                f"cannot read the claims in {self.folder} ({error.strerror}); mend that, or try again"
            ) from error

    def problems(self) -> list[Problem]:
        """The files that are not trusted, or not all of them, each with the reason."""
        found = [self._look(path).problem for part in ("records", "traces") for path in self._files(part)]
        return [problem for problem in found if problem is not None]

    def set_aside(self) -> list[Problem]:
        """Moves what is not trusted to ``set-aside``; what is young, or cannot be moved for want of permission, is left.

        Gives the problems, each with the path where its file is now.
        """
        moved = []
        for problem in self.problems():
            if problem.usable or _age(problem.path) < SETTLED_SECONDS:
                moved.append(problem)
                continue
            part = problem.path.parent.name
            target = self.folder / "set-aside" / f"{part}-{problem.path.name}"
            while target.exists():
                target = target.with_name(f"{part}-{secrets.token_hex(2)}-{problem.path.name}")
            try:
                target.parent.mkdir(exist_ok=True)
                os.rename(problem.path, target)
            except FileNotFoundError:  # another runner was faster
                continue
            except OSError:
                target = problem.path
            moved.append(Problem(target, problem.reason))
        self._sweep()
        return moved

    def _sweep(self) -> None:
        """What writers that were killed have left half-written."""
        for path in self.folder.glob("*/.*.tmp"):
            try:
                if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                    path.unlink()
            except OSError:
                continue

    def _files(self, part: str) -> list[Path]:
        try:
            return sorted(path for path in (self.folder / part).iterdir() if not path.name.startswith("."))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise InputError(
                f"cannot read the store {self.folder} ({error.strerror}); name another with --store"
            ) from error

    def _tables(self, part: str) -> list[pa.Table]:
        found = (self._look(path).table for path in self._files(part))
        return [table for table in found if table is not None]

    def _look(self, path: Path) -> Content:
        """What a file holds; read once, as long as it does not change."""
        try:
            found = path.stat()
            stamp = (found.st_size, found.st_mtime_ns, found.st_ino)
            if path not in self._seen or self._seen[path][0] != stamp:
                self._seen[path] = (stamp, read_file(path))
        except FileNotFoundError:  # set aside by another runner this moment
            return Content()
        except OSError as error:  # which says something about this moment, and nothing about the file
            raise InputError(
                f"cannot read {path} ({error.strerror}); nothing was moved: mend that, or try again"
            ) from error
        return self._seen[path][1]

    def _write(self, part: str, records: Sequence[Record], to_table: Any) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not records:
            return
        cells = {(record.trial.dataset, record.trial.model) for record in records}
        if len(cells) > 1:
            raise InputError(
                f"records of {len(cells)} cells are added at once; add those of each population by themselves"
            )
        ((dataset, model),) = cells
        cell = re.sub(r"[^\w.-]", "_", f"{dataset}-{model}").lstrip(".")[:100]  # a graph may be called anything
        key = key_of(record.trial.id for record in records)
        buffer = pa.BufferOutputStream()
        table = to_table(records)
        # No statistics, no second schema: they would be most of a small file. Checksums, because a record is for long.
        pq.write_table(
            table,
            buffer,
            compression="zstd",
            write_statistics=False,
            store_schema=False,
            write_page_checksum=True,
            use_dictionary=[column for column in table.column_names if column not in ("values", "val", "test")],
            column_encoding={"values.list.element": "BYTE_STREAM_SPLIT"} if part == "traces" else None,
        )
        target = self.folder / part / f"{cell}-{key}.parquet"
        # One that is in the way is not trusted, or its ids would be known; it is for a runner that starts to set it aside.
        while target.exists():
            target = target.with_name(f"{cell}-{secrets.token_hex(2)}-{key}.parquet")
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            with open(temporary, "xb") as file:
                file.write(buffer.getvalue())
                file.flush()
                os.fsync(file.fileno())
            make_visible(temporary, target)
            _sync_folder(target.parent)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def _age(path: Path) -> float:
    """Seconds since a file last changed."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _sync_folder(folder: Path) -> None:
    """Makes a new name in a folder survive a loss of power."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
