"""One folder of a store, ``records`` or ``traces``: what its files hold, read once each, and which of them cannot be trusted.

Whoever writes does so under the lock of the store, and first says so: a file beside the lock holds the names of all files that were
written, or were about to be. So whether something changed is told by two numbers, the length of that file and the time of the
folder, and what changed by its last lines: a store of 100,000 files is not listed for every population, also not where several
runners write to it. Files that come in by other ways, such as a copy, change the folder's time alone, and it is listed; should
its clock be too coarse for that, or others write at the same moment, they are found within a few seconds.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sharpen.errors import InputError, as_given
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
_LONGEST_LINE = 1024

_Stamp = tuple[int, int, int]


class Part:
    """The files of one folder: ``on_table`` is given what comes in, ``on_loss`` is called when rows are gone with their file.

    >>> part = Part(Path("no/such/folder"), lambda table: None, lambda: None)
    >>> part.refresh()
    >>> part.problems(), part.table().num_rows
    ([], 0)
    """

    def __init__(self, folder: Path, on_table: Callable[[pa.Table], None], on_loss: Callable[[], None]) -> None:
        self.folder, self._writes = folder, folder.parent / "claims" / f".{folder.name}-writes"
        self._on_table, self._on_loss = on_table, on_loss
        # Of each file when it was read, and what is wrong with it.
        self._known: dict[str, tuple[_Stamp, Problem | None]] = {}
        self._doubtful: set[str] = set()
        self._announced: set[str] = set()
        self._tables: dict[str, pa.Table] = {}
        self._blocks: list[tuple[set[str], pa.Table]] = []
        self._sign: tuple[int, int] | None = None
        self._listed = 0.0

    def refresh(self, *, every_file: bool = False) -> None:
        """Takes in what is new, and forgets what is gone; looks also at files that were trusted, if asked for every one."""
        sign = self._signature()
        due = every_file or sign is None or time.monotonic() - self._listed >= _LIST_AGAIN_SECONDS
        announced = None if due else self._since(sign)
        if announced is not None:
            self._announced |= announced
            look = self._announced | self._doubtful
        else:
            # Its writer may be about to make it visible; those before have ended, because each has the lock to itself.
            self._announced |= set(self._written(sign[1] - _LONGEST_LINE, sign[1])[-1:]) if sign else set()
            names = self._names()
            self._forget(self._known.keys() - names)
            look = names if every_file else (names - self._known.keys()) | (names & self._doubtful)
            self._listed = time.monotonic()
        for name in sorted(look):
            self._look(name)
        self._announced -= self._known.keys()  # a name stays if its writer did not live to make the file visible
        self._sign = sign

    def _since(self, sign: tuple[int, int] | None) -> set[str] | None:
        """The files that were announced since the last look; None if only a look at the folder can tell what changed."""
        if sign is None or self._sign is None:
            return None
        if sign == self._sign:
            return set()
        names = self._written(self._sign[1], sign[1])
        # Earlier versions wrote a dot for each file, and no name.
        return set(names) if names and not any(name.startswith(".") for name in names) else None

    def _written(self, start: int, end: int) -> list[str]:
        """The lines between two places of the file that holds the names of what was written."""
        try:
            with open(self._writes, "rb") as file:
                file.seek(max(0, start))
                return file.read(max(0, end - max(0, start))).decode("utf-8", "replace").split("\n")[:-1]
        except OSError:
            return []

    def problems(self) -> list[Problem]:
        """What is wrong with files, in the order of their names."""
        return [problem for _, (_, problem) in sorted(self._known.items()) if problem is not None]

    def table(self) -> pa.Table:
        """The rows of all files that are trusted, in no order that means anything; ``file`` is the name of each one's file."""
        import pyarrow as pa

        schema = schema_of(self.folder.name).append(pa.field("file", pa.string()))
        tables = [*(block for _, block in self._blocks), *self._single()]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def _single(self) -> list[pa.Table]:
        """The tables that are not in a block yet, with the names of their files."""
        import pyarrow as pa

        file = pa.field("file", pa.string())
        every = self._tables.items()
        return [table.append_column(file, pa.repeat(pa.scalar(name, pa.string()), len(table))) for name, table in every]

    def write(self, name: str, content: bytes, table: pa.Table) -> None:
        """Writes a file, whole or not at all. The store must be locked, and this part fresh."""
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
            # Before it can be seen: whoever reads that file later than it is written knows of it, however its writer ends.
            with open(self._writes, "ab", buffering=0) as names:
                names.write(f"{target.name}\n".encode())
            make_visible(temporary, target)
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
                f"cannot read the store {self.folder.parent} ({error.strerror}); name another with {as_given('store')}"
            ) from error

    def _look(self, name: str) -> None:
        """Reads a file, unless it has not changed since it was read."""
        path = self.folder / name
        try:
            stamp = _stamp(path)
            before = self._known.get(name)
            if before is not None and before[0] == stamp:
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

    def _take(self, name: str, stamp: _Stamp, content: Content) -> None:
        import pyarrow as pa

        self._known[name] = (stamp, content.problem)
        if content.problem is not None:
            self._doubtful.add(name)
        if content.table is None:
            return
        self._tables[name] = content.table
        self._on_table(content.table)
        if len(self._tables) >= _BLOCK_FILES:
            self._blocks.append((set(self._tables), pa.concat_tables(self._single()).combine_chunks()))
            self._tables = {}

    def _forget(self, names: set[str]) -> None:
        """Files that are gone, or no longer what they were."""
        import pyarrow as pa
        import pyarrow.compute as pc

        self._doubtful -= names
        for name in names:
            self._known.pop(name, None)
        held = {name for name in names if self._tables.pop(name, None) is not None}
        for place, (block_names, block) in enumerate(self._blocks):
            if gone := block_names & names:
                left = block.filter(pc.invert(pc.is_in(block["file"], pa.array(sorted(gone)))))
                self._blocks[place] = (block_names - gone, left)
                held |= gone
        if held:
            self._on_loss()


def _stamp(path: Path) -> _Stamp:
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
