"""Files of one command that appear together, whole, or not at all; and that are not lost when their folder cannot hold them.

Files are written beside their folder first. A folder that is new takes them in one step. In one that holds something already they
are moved in one by one: should the process be killed between two of them, the next command that writes to that folder moves the
rest. What a killed process left unfinished is swept by the next command too.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from sharpen.errors import InputError

_Files = Mapping[str, Callable[[Path], object]]

_PROBE = bytes(2**20)
_UNFINISHED = re.compile(r"\.(writing|written)-([0-9a-f]{8})-(\d+)-")
_ABANDONED_SECONDS = 24 * 3600


def make_folder(folder: Path, names: Collection[str] = ()) -> None:
    """Make sure, before any training, that results can be written: that the folder can be made, that there is room for a
    megabyte, and that no folder stands where a file should be.

    >>> with tempfile.TemporaryDirectory() as parent:
    ...     make_folder(Path(parent) / "new", ["page.html"])
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(_PROBE)
            file.flush()
            os.fsync(file.fileno())
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot write to --out {folder} ({why}); give another folder") from error
    for name in names:
        if (folder / name).is_dir():
            what = f"{folder / name} is a directory, where a file is to be written"
            raise InputError(what, hint="remove it, or give another --out")
    _clean_up(folder)


@contextmanager
def output_folder(folder: Path, names: Collection[str] = ()) -> Iterator[Path]:
    """A folder that can be written to, made if need be; if the block fails, what was made for it and is empty goes again.

    >>> with tempfile.TemporaryDirectory() as parent, output_folder(Path(parent, "new")) as folder:
    ...     folder.is_dir()
    True
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    make_folder(folder, names)
    try:
        yield folder
    except BaseException:  # Ctrl-C too
        for path in made:
            with suppress(OSError):  # not empty, or another process was quicker
                path.rmdir()
        raise


def write_together(folder: Path, files: _Files) -> None:
    """Write files under temporary names and move them to their places once all are written.

    Where that fails, they are written to a folder of their own instead, and the error says which.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_together(Path(folder), {"a.txt": lambda path: path.write_text("whole")})
    ...     os.listdir(folder)
    ['a.txt']
    """
    try:
        _write_all(folder, files)
    except (OSError, InputError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot write to {folder} ({why}); {_rescued(folder, files)}") from error
    except Exception:  # a fault of this program must not cost what took hours
        print(f"sharpen: the results could not all be made; {_rescued(folder, files)}", file=sys.stderr)
        raise


def _write_all(folder: Path, files: _Files) -> None:
    unfinished = _unfinished(folder)
    try:
        for name, write in files.items():
            write(unfinished / name)
            with open(unfinished / name, "rb") as file:
                os.fsync(file.fileno())
        os.chmod(unfinished, folder.stat().st_mode & 0o7777)
        if unfinished.parent == folder.parent and not any(folder.iterdir()):
            with suppress(OSError):  # a mount, a link, the current folder
                os.rename(unfinished, folder)
                return
        for name in files:
            if (folder / name).is_dir():
                raise IsADirectoryError(21, f"{name} is a directory")
        written = folder / unfinished.name.replace(".writing-", ".written-")
        os.rename(unfinished, written)  # from here on they will all appear, whatever happens to this process
        unfinished = written
        _move_in(written, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _unfinished(folder: Path) -> Path:
    """A new folder beside the given one, or in it, on the same file system; its name says whose it is and for what."""
    prefix = f".writing-{_host()}-{os.getpid()}-"
    folder = folder.absolute()
    if not any(folder.iterdir()) and folder.parent.stat().st_dev == folder.stat().st_dev:
        with suppress(OSError):
            return Path(tempfile.mkdtemp(dir=folder.parent, prefix=prefix))
    return Path(tempfile.mkdtemp(dir=folder, prefix=prefix))


def _move_in(written: Path, folder: Path) -> None:
    for path in sorted(written.iterdir()):
        os.replace(path, folder / path.name)


def _clean_up(folder: Path) -> None:
    """Ends what killed processes began: moves in what was written to the end, and removes the rest."""
    for place in {folder.absolute(), folder.absolute().parent}:
        with suppress(OSError):
            for path in place.iterdir():
                found = _UNFINISHED.match(path.name)
                if found is None or not path.is_dir() or _lives(found[2], int(found[3]), path):
                    continue
                with suppress(OSError):
                    if found[1] == "written":
                        _move_in(path, place)
                    shutil.rmtree(path, ignore_errors=True)


def _lives(host: str, pid: int, path: Path) -> bool:
    """Whether the process that writes there may still do so."""
    if host != _host():
        return abs(time.time() - path.stat().st_mtime) < _ABANDONED_SECONDS
    try:
        with suppress(PermissionError):  # another user's
            os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _host() -> str:
    from sharpen.store.claims import this_host

    return hashlib.sha256(this_host().encode()).hexdigest()[:8]


def _rescued(folder: Path, files: _Files) -> str:
    """Writes what can be written to the first other place that takes it; the words for where it is."""
    tried = []
    for place in dict.fromkeys((Path.cwd(), Path(tempfile.gettempdir()), Path.home())):
        try:
            target = Path(tempfile.mkdtemp(dir=place, prefix=f"sharpen-rescued-{folder.name[:40]}-"))
        except OSError as error:
            tried.append(f"{place} ({error.strerror})")
            continue
        kept = []
        for name, write in files.items():
            try:
                write(target / name)
                kept.append(name)
            except Exception as error:  # whichever it is, the other files come first
                tried.append(f"{target / name} ({error})")
                with suppress(OSError):
                    (target / name).unlink()
        if kept:
            rest = sorted(set(files) - set(kept))
            missing = f", but not {', '.join(rest)}" if rest else ""
            return f"the results are in {target} instead ({', '.join(kept)}{missing}); move them where you want them"
        shutil.rmtree(target, ignore_errors=True)
    return f"nor can they be written elsewhere: {'; '.join(tried)[:400]}. Free space, and run the command again"
