"""One folder of a store, ``records`` or ``traces``: what its files hold, read once each, and which of them cannot be trusted.

Whoever writes does so under the lock of the store, and counts it: a file beside the lock grows by a byte. So whether something
changed is told by two numbers, that count and the time of the folder, and a store of 100,000 files is not listed for every
population. Files that come in by other ways, such as a copy, change the folder's time too; should its clock be too coarse for
that, they are found within a few seconds.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sharpen.errors import InputError
from sharpen.store.claims import make_visible
from sharpen.store.record_files import Content, Problem, read_file, schema_of

if TYPE_CHECKING:
    import pyarrow as pa

# A file that changed within this time may still be on its way in from elsewhere.
SETTLED_SECONDS = 60
# However little seems to have changed, the folder is listed again after this time.
_LIST_AGAIN_SECONDS = 5.0
# So many small tables are kept as one: by itself each takes 20 kB.
_BLOCK_FILES = 256

Stamp = tuple[int, int, int]


class _Known(NamedTuple):
    """What is known of a file: when it was read, and what is wrong with it."""

    stamp: Stamp
    problem: Problem | None


class Part:
    """The files of one folder.

    Args:
        folder: Where they are; need not exist.
        on_table: Is given the table of every file that comes in.
        on_loss: Is called when rows are gone with their file.

    >>> part = Part(Path("no/such/folder"), lambda table: None, lambda: None)
    >>> part.refresh()
    >>> part.problems(), part.table().num_rows
    ([], 0)
    """

    def __init__(self, folder: Path, on_table: Callable[[pa.Table], None], on_loss: Callable[[], None]) -> None:
        self.folder, self._writes = folder, folder.parent / "claims" / f".{folder.name}-writes"
        self._on_table, self._on_loss = on_table, on_loss
        self._known: dict[str, _Known] = {}
        self._doubtful: set[str] = set()
        self._tables: dict[str, pa.Table] = {}
        self._blocks: list[tuple[set[str], pa.Table]] = []
        self._sign: tuple[int, int] | None = None
        self._listed = 0.0

    def refresh(self, *, every_file: bool = False) -> None:
        """Takes in what is new, and forgets what is gone.

        Args:
            every_file: Whether to look also at files that were trusted, which may have been damaged since.
        """
        sign = self._signature()
        fresh = sign is not None and sign == self._sign and time.monotonic() - self._listed < _LIST_AGAIN_SECONDS
        if fresh and not every_file and not self._doubtful:
            return
        names = self._names()
        self._forget(self._known.keys() - names)
        for name in sorted(names if every_file else (names - self._known.keys()) | (names & self._doubtful)):
            self._look(name)
        self._sign, self._listed = sign, time.monotonic()

    def problems(self) -> list[Problem]:
        """What is wrong with files, in the order of their names."""
        return [known.problem for _, known in sorted(self._known.items()) if known.problem is not None]

    def table(self) -> pa.Table:
        """The rows of all files that are trusted, in no order that means anything; ``file`` is the name of each one's file."""
        import pyarrow as pa

        schema = schema_of(self.folder.name).append(pa.field("file", pa.string()))
        tables = [*(block for _, block in self._blocks), *(_named(name, table) for name, table in self._tables.items())]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def write(self, name: str, content: bytes, table: pa.Table) -> None:
        """Writes a file, whole or not at all. The store must be locked, and this part fresh.

        Args:
            name: Of the file.
            content: Of the file.
            table: What it holds.
        """
        target = self.folder / name
        # One that is in the way is not trusted, or its ids would be known; it is for a runner that starts to set it aside.
        while target.exists():
            target = target.with_name(f"{secrets.token_hex(2)}-{name}")
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            with open(temporary, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            make_visible(temporary, target)
            with open(self._writes, "ab", buffering=0) as count:
                count.write(b".")
            _sync_folder(self.folder)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        with suppress(OSError):  # then it is found in the folder the next time
            self._take(target.name, _stamp(target), Content(table))
            self._sign = self._signature()

    def set_aside(self, folder: Path) -> list[Problem]:
        """Moves what is not trusted to a folder; what is young, or cannot be moved for want of permission, is left.

        Gives the problems, each with the path where its file is now.
        """
        moved = []
        for problem in self.problems():
            if problem.usable or _age(problem.path) < SETTLED_SECONDS:
                moved.append(problem)
                continue
            part = self.folder.name
            target = folder / f"{part}-{problem.path.name}"
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
        return moved

    def _signature(self) -> tuple[int, int] | None:
        try:
            return os.stat(self.folder).st_mtime_ns, os.stat(self._writes).st_size
        except OSError:
            return None

    def _names(self) -> set[str]:
        try:
            return {name for name in os.listdir(self.folder) if not name.startswith(".")}
        except (FileNotFoundError, NotADirectoryError):
            return set()
        except OSError as error:
            raise InputError(
                f"cannot read the store {self.folder.parent} ({error.strerror}); name another with --store"
            ) from error

    def _look(self, name: str) -> None:
        """Reads a file, unless it has not changed since it was read."""
        path = self.folder / name
        try:
            stamp = _stamp(path)
            before = self._known.get(name)
            if before is not None and before.stamp == stamp:
                return
            content = read_file(path)
        except FileNotFoundError:  # set aside by another runner this moment
            return
        except OSError as error:  # which says something about this moment, and nothing about the file
            raise InputError(
                f"cannot read {path} ({error.strerror}); nothing was moved: fix that, or try again"
            ) from error
        self._forget({name} if before is not None else set())
        self._take(name, stamp, content)

    def _take(self, name: str, stamp: Stamp, content: Content) -> None:
        self._known[name] = _Known(stamp, content.problem)
        if content.problem is not None:
            self._doubtful.add(name)
        if content.table is None:
            return
        self._tables[name] = content.table
        self._on_table(content.table)
        if len(self._tables) >= _BLOCK_FILES:
            self._blocks.append((set(self._tables), _joined(self._tables)))
            self._tables = {}

    def _forget(self, names: set[str]) -> None:
        """Files that are gone, or no longer what they were."""
        import pyarrow as pa
        import pyarrow.compute as pc

        self._doubtful -= names
        for name in names:
            self._known.pop(name, None)
        held = [name for name in names if self._tables.pop(name, None) is not None]
        for place, (block_names, block) in enumerate(self._blocks):
            if gone := block_names & names:
                left = block.filter(pc.invert(pc.is_in(block["file"], pa.array(sorted(gone)))))
                self._blocks[place] = (block_names - gone, left)
                held += gone
        if held:
            self._on_loss()


def _named(name: str, table: pa.Table) -> pa.Table:
    import pyarrow as pa

    return table.append_column(pa.field("file", pa.string()), pa.repeat(pa.scalar(name, pa.string()), len(table)))


def _joined(tables: dict[str, pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables([_named(name, table) for name, table in tables.items()]).combine_chunks()


def _stamp(path: Path) -> Stamp:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


def _age(path: Path) -> float:
    """Seconds since a file last changed; a time that is yet to come is one of a clock that was wrong, and as long ago."""
    try:
        return abs(time.time() - path.stat().st_mtime)
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
