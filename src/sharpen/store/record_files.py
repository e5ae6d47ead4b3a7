"""The files of a store: what their columns are, how records become rows, and what it takes for a file to be trusted.

A file's name ends in a checksum of its bytes and in a hash of the ids in it, as ``cora-gcn-sha5d41…-1f0c….parquet``. A file that
differs from its checksum in a single bit is damaged. Files of before checksums have none in their names; of those, everything that
can be checked is: pages, columns, ids, and the range of every number.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sharpen.errors import printable
from sharpen.revision import revision
from sharpen.trial import LAST, METRICS, RESULTS, Record, id_of, row_of, trial_types

if TYPE_CHECKING:
    import pyarrow as pa

_PROVENANCE = ("versions", "revision", "created", "members", "rerun")
_RESULT_TYPES = {
    "id": str,
    **dict.fromkeys(("val", "test", "seconds", *METRICS, *LAST), float),
    **dict.fromkeys(("best_epoch", "members", "rerun"), int),
    **dict.fromkeys(("status", "device", "precision", "versions", "revision", "created", "way", "model_digest"), str),
}
RUN = ("device", "precision", "best_epoch", "val", "test")
# Columns that files of earlier versions lack, and that are null there. All others have always been written: a file without one of
# them is damaged.
_LATER = ("lam_max", "batching", "model_args", "prior", "run", "rerun", "way", "model_digest", *METRICS, *LAST)
_CHECKSUM = re.compile(r"-sha([0-9a-f]{16})-[0-9a-f]{16}\.parquet$")
_MOST_SECONDS = 1e9  # thirty years


@dataclass(frozen=True)
class Problem:
    """What is wrong with a file; and whether what it holds is trusted all the same, and read.

    >>> Problem(Path("records/a.parquet"), "it is cut off").line
    'Not trusted, because it is cut off: records/a.parquet'
    """

    path: Path
    reason: str
    usable: bool = False

    @property
    def line(self) -> str:
        """A line for people."""
        return f"{'Read in part' if self.usable else 'Not trusted'}, because {self.reason}: {self.path}"


def run_of(record: Any) -> str:
    """What tells one run of a trial from another, of a record or of a row: where it ran, and what it gave."""
    values = [record[name] if isinstance(record, dict) else getattr(record, name) for name in RUN]
    text = " ".join(f"{value:.12g}" if isinstance(value, float) else str(value) for value in values)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def key_of(ids: Iterable[str]) -> str:
    """A short name for a set of trials."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()[:16]


def name_of(cell: str, ids: Iterable[str], content: bytes) -> str:
    """The name of a file: the cell, a checksum of the bytes, and a hash of the ids.

    >>> name_of("cora-gcn", ["a", "b"], b"...")
    'cora-gcn-shaab5df625bc76dbd4-7e18f737311b2dc3.parquet'
    """
    return f"{cell}-sha{_checksum(content)}-{key_of(ids)}.parquet"


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@cache
def schema_of(part: str) -> pa.Schema:
    import pyarrow as pa

    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    if part == "traces":
        columns = {"id": pa.string(), "run": pa.string(), "name": pa.string(), "values": pa.list_(pa.float32())}
    else:
        results = (*RESULTS, *METRICS, *LAST, *_PROVENANCE)
        columns = {"id": pa.string()} | {name: kinds[kind] for name, kind in trial_types().items()}
        columns |= {name: kinds[_RESULT_TYPES[name]] for name in results}
    return pa.schema(list(columns.items()))


def records_table(records: Sequence[Record], reruns: Mapping[str, int]) -> pa.Table:
    """Records as rows; ``reruns`` says, by id, how many runs of the trial were recorded before."""
    import pyarrow as pa

    created = datetime.now(UTC).isoformat(timespec="milliseconds")
    rows = [
        row_of(record)
        | {
            "id": record.trial.id,
            "versions": json.dumps(record.versions, sort_keys=True),
            "revision": revision(),
            "created": created,
            "members": record.members,
            "rerun": reruns.get(record.trial.id, 0),
        }
        for record in records
    ]
    return pa.Table.from_pylist(rows, schema=schema_of("records"))


def traces_table(records: Sequence[Record]) -> pa.Table:
    import pyarrow as pa

    rows = [
        {"id": record.trial.id, "run": run_of(record), "name": name, "values": np.asarray(values, dtype=np.float32)}
        for record in records
        for name, values in record.traces.items()
    ]
    return pa.Table.from_pylist(rows, schema=schema_of("traces"))


class Content(NamedTuple):
    """What a file holds, as far as it is trusted, and what is wrong with it."""

    table: pa.Table | None = None
    problem: Problem | None = None


def read_file(path: Path) -> Content:
    """The table in a file, or why it is not one of ours; an :class:`OSError` if that cannot be told."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def bad(reason: str) -> Content:
        return Content(problem=Problem(path, reason))

    part = path.parent.name
    schema = schema_of(part)
    if path.suffix != ".parquet" or not stat.S_ISREG(path.stat().st_mode):
        return bad("it is not a Parquet file")
    content = path.read_bytes()  # all of it, so that what fails from here on is the file's own fault
    checksum = _CHECKSUM.search(path.name)
    if checksum and checksum[1] != _checksum(content):
        return bad("it is cut off or damaged (its checksum is not the one in its name)")
    try:
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        table = file.read(use_threads=False)
    except (
        Exception
    ) as error:  # what a damaged footer leads to is not documented: text that is no text, sizes without end
        return bad(f"it is cut off or damaged ({_first_line(error)})")
    known, found = schema.names, table.column_names
    unknown = [name for name in found if name not in known]
    missing = [name for name in known if name not in found]
    if lost := [name for name in missing if name not in _LATER]:
        return bad(f"it does not hold {part} of this version (without {', '.join(lost[:3])})")
    if unknown and not checksum:  # a later version would have written one
        return bad(f"it holds columns that no version writes ({', '.join(map(printable, unknown[:3]))})")
    try:
        if not table.schema.equals(schema):
            for name in missing:  # of `_LATER`: null, which is no part of ids
                table = table.append_column(name, pa.nulls(len(table), schema.field(name).type))
            table = table.select(known).cast(schema)
        if not checksum:
            table.validate(full=True)
    except Exception as error:  # such as text that is no text, in values that no page checksum covers
        return bad(f"its values are not those of {part} ({_first_line(error)})")
    ids = set(table["id"].to_pylist())
    if None in ids or not path.stem.endswith(f"-{key_of(ids)}"):
        return bad("it does not hold the trials that its name says")
    if part == "records" and (reason := _why_foreign(table, described=not unknown)):
        return bad(reason)
    if unknown:
        reason = f"another version wrote it ({', '.join(map(printable, unknown[:3]))} left out)"
        return Content(table, Problem(path, reason, usable=True))
    return Content(table)


def _first_line(error: Exception) -> str:
    return printable((str(error).splitlines() or [type(error).__name__])[0][:200])


def _why_foreign(table: pa.Table, described: bool) -> str | None:
    """Why rows are not records as a runner writes them; None if they are. Only where trials are described can their ids be told."""
    ids = table["id"].to_pylist()
    if len(set(ids)) < len(ids):
        return "it holds a trial twice"
    if described:
        rows = table.select(list(trial_types())).to_pylist()
        wrong = [id_ for id_, row in zip(ids, rows, strict=True) if id_ != id_of(row)]
        if wrong:
            return f"{len(wrong)} of its {len(ids)} trials are not those of their ids, such as {wrong[0]}"
    status = table["status"].to_pylist()
    if None in status or table["created"].null_count:
        return "it holds a record without a status or a time"
    diverged = np.array(status) == "diverged"
    seconds = table["seconds"].to_numpy()
    if not np.all((seconds >= 0) & (seconds < _MOST_SECONDS)):
        return "it holds a record whose seconds are not a time that training takes"
    for name in ("val", "test"):
        scores = table[name].to_numpy()
        # A NaN is not within either: only a run that diverged has none.
        if not np.all((scores >= 0) & (scores <= 1 + 1e-9) | np.isnan(scores) & diverged):
            return f"it holds a {name} score that is not from 0 to 1"
    return None
