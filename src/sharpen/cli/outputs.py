"""Files of one command that appear together, whole, or not at all."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from sharpen.errors import InputError


def make_folder(folder: Path) -> None:
    """Make sure, before any training, that results can be written.

    >>> with tempfile.TemporaryDirectory() as parent:
    ...     make_folder(Path(parent) / "new")
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"cannot write to --out {folder} ({error.strerror}); give another folder") from error


@contextmanager
def output_folder(folder: Path) -> Iterator[Path]:
    """A folder that can be written to, made if need be; if the block fails, what was made for it and is empty goes again.

    >>> with tempfile.TemporaryDirectory() as parent, output_folder(Path(parent, "new")) as folder:
    ...     folder.is_dir()
    True
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    make_folder(folder)
    try:
        yield folder
    except BaseException:  # Ctrl-C too
        for path in made:
            with suppress(OSError):  # not empty, or another process was quicker
                path.rmdir()
        raise


def write_together(folder: Path, files: Mapping[str, Callable[[Path], object]]) -> None:
    """Write files under temporary names and move them to their places once all are written.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_together(Path(folder), {"a.txt": lambda path: path.write_text("whole")})
    ...     os.listdir(folder)
    ['a.txt']
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as unfinished:
        for name, write in files.items():
            write(Path(unfinished, name))
            with open(Path(unfinished, name), "rb") as file:
                os.fsync(file.fileno())
        for name in files:
            os.replace(Path(unfinished, name), folder / name)
