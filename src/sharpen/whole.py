"""Files that appear whole or not at all: written beside their place, and moved there once they are complete and on disk."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of ``path`` when the block ends; if the block fails, nothing changes there.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_whole(Path(folder, "size")) as file:
    ...         _ = file.write(b"3")
    ...     [place.name for place in Path(folder).iterdir()]
    ['size']
    """
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def text_bytes(text: str) -> bytes:
    """Text as UTF-8; half a character, as in the name of a file that is not text, is written as its number.

    >>> text_bytes("n\\udcff.csv")
    b'n\\\\udcff.csv'
    """
    return text.encode("utf-8", "backslashreplace")


def json_bytes(content: Any) -> bytes:
    """JSON as a file holds it, for people to read as well.

    >>> json_bytes([1])
    b'[\\n  1\\n]'
    """
    return text_bytes(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))
