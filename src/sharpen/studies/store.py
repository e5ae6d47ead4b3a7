"""Where records live: one Parquet file per finished population, written whole or not at all, never changed afterwards.

::

    records/cora-gcn-1f0c….parquet   one row per trial: its id, its description, its scores, what it ran on and what that cost
    traces/cora-gcn-1f0c….parquet    per epoch: losses, entropies, scores, where a study keeps them
    claims/                          who trains what right now
    set-aside/                       what lay here and could not be trusted

A file's name ends in a hash of the ids in it. A file that cannot be read, or that does not hold what its name says, is never
trusted: :meth:`Store.problems` names it, and a runner moves it to ``set-aside``. Nothing is ever deleted.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import numpy as np

from sharpen.errors import InputError
from sharpen.revision import revision
from sharpen.studies.claims import Claim, claim, claims, locked, make_visible
from sharpen.trial import Record, Trial

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

RESULTS = ("val", "test", "best_epoch", "status", "seconds", "device", "precision")
PROVENANCE = ("versions", "revision", "created", "members")
_RESULT_TYPES = {
    "id": str,
    **dict.fromkeys(("val", "test", "seconds"), float),
    **dict.fromkeys(("best_epoch", "members"), int),
    **dict.fromkeys(("status", "device", "precision", "versions", "revision", "created"), str),
}
# A temporary file that is older than this has no writer any more: writing one takes a moment.
_ABANDONED_SECONDS = 3600


@dataclass(frozen=True)
class Problem:
    """A file that is not trusted, and why.

    >>> Problem(Path("records/a.parquet"), "it is cut off").reason
    'it is cut off'
    """

    path: Path
    reason: str


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
        self._seen: dict[Path, tuple[tuple[int, int, int], pa.Table | Problem]] = {}

    def add(self, records: Sequence[Record], *, keep_traces: bool = False) -> None:
        """Writes the records of one population; those of trials that are recorded already are left out.

        Args:
            records: Of one dataset and one model.
            keep_traces: Whether to write their traces too; also for trials that are recorded already, if those have none.
        """
        for part in ("records", "traces", "claims") if keep_traces else ("records", "claims"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        with locked(self.folder / "claims"):
            if keep_traces:
                # Before the records: a trial that is recorded has its traces.
                known = self.traced_ids()
                untraced = [record for record in records if record.trial.id not in known]
                self._write("traces", untraced, _traces_table)
            known = self.ids()
            self._write("records", [record for record in records if record.trial.id not in known], _records_table)

    def ids(self) -> set[str]:
        """The ids of all recorded trials."""
        return {id_ for table in self._tables("records") for id_ in table["id"].to_pylist()}

    def traced_ids(self) -> set[str]:
        """The ids of all trials whose traces are kept."""
        return {id_ for table in self._tables("traces") for id_ in table["id"].to_pylist()}

    def frame(self, trials: Iterable[Trial] | None = None) -> pd.DataFrame:
        """A table with one row per trial: its id, then as :func:`sharpen.to_frame`, then where the record comes from.

        Args:
            trials: Those to give, in this order, those without a record left out. None: all, oldest first.
        """
        import pyarrow as pa

        tables = self._tables("records")
        table = pa.concat_tables(tables) if tables else _schema("records").empty_table()
        frame = table.to_pandas()
        # Should two runners ever have trained the same trial, then the first record is the record.
        frame = frame.sort_values(["created", "id"], kind="stable").drop_duplicates("id").reset_index(drop=True)
        if trials is None:
            return frame
        rows = {id_: row for row, id_ in enumerate(frame["id"])}
        return frame.iloc[[rows[trial.id] for trial in trials if trial.id in rows]].reset_index(drop=True)

    def traces(self, ids: Collection[str]) -> dict[str, dict[str, np.ndarray]]:
        """By id, what was traced per epoch: by name, an array of float32; trials without traces are left out."""
        found: dict[str, dict[str, np.ndarray]] = {}
        for table in self._tables("traces"):
            values = table["values"].combine_chunks()
            offsets, flat = values.offsets.to_numpy(), values.values.to_numpy(zero_copy_only=False)
            for row, (id_, name) in enumerate(zip(table["id"].to_pylist(), table["name"].to_pylist(), strict=True)):
                if id_ in ids:
                    found.setdefault(id_, {}).setdefault(name, flat[offsets[row] : offsets[row + 1]])
        return found

    def claim(self, trials: Collection[Trial]) -> Claim | None:
        """Takes trials on for this process; None if another runner has some of them."""
        try:
            return claim(self.folder / "claims", _key(trial.id for trial in trials), [trial.id for trial in trials])
        except OSError as error:
            raise InputError(
                f"cannot write to the store {self.folder} ({error.strerror}); name another with --store"
            ) from error

    def claims(self) -> list[Claim]:
        """What runners, this process among them, have taken on."""
        return claims(self.folder / "claims")

    def problems(self) -> list[Problem]:
        """The files that are not trusted, each with the reason."""
        found = [self._look(path) for part in ("records", "traces") for path in self._files(part)]
        return [problem for problem in found if isinstance(problem, Problem)]

    def set_aside(self) -> list[Problem]:
        """Moves what is not trusted to ``set-aside``; what could not be moved, for want of permission, is left.

        Gives the problems, each with the path where its file is now.
        """
        moved = []
        for problem in self.problems():
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
        found = (self._look(path) for path in self._files(part))
        return [table for table in found if not isinstance(table, Problem)]

    def _look(self, path: Path) -> pa.Table | Problem:
        """What a file holds; read once, as long as it does not change."""
        try:
            stat = path.stat()
        except OSError as error:
            return Problem(path, f"it cannot be read ({error.strerror})")
        stamp = (stat.st_size, stat.st_mtime_ns, stat.st_ino)
        if path not in self._seen or self._seen[path][0] != stamp:
            self._seen[path] = (stamp, _read(path))
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
        name = f"{dataset}-{model}-{_key(record.trial.id for record in records)}.parquet"
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
        target = self.folder / part / name
        temporary = target.with_name(f".{name}.{secrets.token_hex(4)}.tmp")
        try:
            with open(temporary, "xb") as file:
                file.write(buffer.getvalue())
                file.flush()
                os.fsync(file.fileno())
            make_visible(temporary, target)
            _sync_folder(target.parent)
        except FileExistsError:  # untrusted, or its ids would be known: set aside when a runner next starts
            raise InputError(
                f"{target} is in the way and cannot be trusted; move it away, or run again to have it set aside"
            ) from None
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise InputError(
                f"cannot write to the store {self.folder} ({error.strerror}); free space, or name another"
            ) from error


def _key(ids: Iterable[str]) -> str:
    """A short name for a set of trials."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()[:16]


def _schema(part: str) -> pa.Schema:
    import pyarrow as pa

    kinds = {str: pa.string(), int: pa.int32(), float: pa.float64(), bool: pa.bool_()}
    if part == "traces":
        columns = {"id": pa.string(), "name": pa.string(), "values": pa.list_(pa.float32())}
    else:
        results = (*RESULTS, *PROVENANCE)
        columns = {"id": pa.string()} | {name: kinds[kind] for name, kind in _trial_types().items()}
        columns |= {name: kinds[_RESULT_TYPES[name]] for name in results}
    return pa.schema(list(columns.items()))


def _trial_types() -> dict[str, type]:
    """The type of every field of a trial, ``None`` aside."""
    hints = get_type_hints(Trial)
    return {f.name: next(kind for kind in (get_args(hints[f.name]) or (hints[f.name],))) for f in fields(Trial)}


def _records_table(records: Sequence[Record]) -> pa.Table:
    import pyarrow as pa

    created = datetime.now(UTC).isoformat(timespec="milliseconds")
    rows = [
        asdict(record.trial)
        | {name: getattr(record, name) for name in RESULTS}
        | {
            "id": record.trial.id,
            "versions": json.dumps(record.versions, sort_keys=True),
            "revision": revision(),
            "created": created,
            "members": len(records),
        }
        for record in records
    ]
    return pa.Table.from_pylist(rows, schema=_schema("records"))


def _traces_table(records: Sequence[Record]) -> pa.Table:
    import pyarrow as pa

    rows = [
        {"id": record.trial.id, "name": name, "values": np.asarray(values, dtype=np.float32)}
        for record in records
        for name, values in record.traces.items()
    ]
    return pa.Table.from_pylist(rows, schema=_schema("traces"))


def _read(path: Path) -> pa.Table | Problem:
    """The table in a file, or why it is not one of ours."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    part = path.parent.name
    schema = _schema(part)
    if path.suffix != ".parquet" or not path.is_file():
        return Problem(path, "it is not a Parquet file")
    try:
        table = pq.read_table(path, page_checksum_verification=True, partitioning=None)
    except (OSError, pa.ArrowException) as error:
        return Problem(path, f"it is cut off or damaged ({str(error).splitlines()[0]})")
    unknown = [name for name in table.column_names if name not in schema.names]
    missing = [name for name in schema.names if name not in table.column_names and name not in _trial_types()]
    if unknown or missing:
        wrong = [f"without {name}" for name in missing[:3]] + [f"with {name}" for name in unknown[:3]]
        return Problem(path, f"it does not hold {part} of this version ({', '.join(wrong)})")
    if not path.stem.endswith(f"-{_key(set(table['id'].to_pylist()))}"):
        return Problem(path, "it does not hold the trials that its name says")
    try:
        return _completed(table, schema).cast(schema)
    except (pa.ArrowException, ValueError, TypeError) as error:
        return Problem(path, f"its values are not those of {part} ({str(error).splitlines()[0]})")


def _completed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the fields that trials have got since it was written, at their defaults, and the ids that they have now."""
    import pyarrow as pa

    added = [f for f in fields(Trial) if f.name in schema.names and f.name not in table.column_names]
    for f in added:
        column = pa.array([f.default] * len(table), type=schema.field(f.name).type)
        table = table.append_column(f.name, column)
    table = table.select(schema.names)
    if added:
        rows: list[Mapping[str, Any]] = table.select(list(_trial_types())).to_pylist()
        table = table.set_column(0, "id", pa.array([Trial(**row).id for row in rows]))
    return table


def _sync_folder(folder: Path) -> None:
    """Makes a new name in a folder survive a loss of power."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
