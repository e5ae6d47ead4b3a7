"""Where a benchmark file lies on this machine, and how it gets there.

A file has one place below a data folder, the same in every folder. It is looked for in the folder that the user names
(an argument, else the variable ``SHARPEN_DATA``), then in the per-user cache. If it is in neither, it is downloaded
into the cache: a folder that the user named is only ever read. A download is written beside its place under another
name and moved there once it is complete and is what was asked for, so that a file in its place is always a whole file: by
its checksum where that is known, else by what it holds. The page with which a network asks for a password never gets there.
No more is downloaded than a file can have, and not from an address without encryption where one with it was asked for.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from sharpen.errors import InputError, called, told_as
from sharpen.whole import written_whole

Folder: TypeAlias = str | os.PathLike[str] | None

WAY_OUT = "put the published file in its place, or remove it to have it downloaded"
"""What to do about a file that is not the published one."""
_CHUNK = 1 << 16
# A server that is slower than this, in bytes a second, is not worth waiting for.
_PATIENCE_SECONDS, _LEAST_RATE = 120.0, 1000.0


@dataclass(frozen=True)
class RemoteFile:
    """One file of a benchmark: its place below a data folder, and where it comes from.

    Args:
        path: place below a data folder, with forward slashes.
        url: where it is published.
        sha256: checksum of the published bytes, or None where they are not known.
        holds: where they are not, and the file is an archive (``.zip``, ``.npz``): the members that it must have.
        most: the most bytes that it can have.

    >>> RemoteFile("wikics/raw/data.json", "https://example.org/data.json").path
    'wikics/raw/data.json'
    """

    path: str
    url: str
    sha256: str | None = None
    holds: tuple[str, ...] = ()
    most: int = 64 * 2**20


def cache_folder() -> Path:
    """The per-user folder for downloads: ``sharpen`` below ``XDG_CACHE_HOME``, else below what the platform uses.

    >>> cache_folder().name
    'sharpen'
    """
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        base = Path(xdg)
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path.home() / ".cache"
    return base / "sharpen"


def data_folders(root: Folder = None) -> tuple[Path, ...]:
    """The folders that are searched, in order: the one that the user names, if any, then the cache.

    >>> data_folders(".") == (Path("."), cache_folder())
    True
    >>> data_folders("no/such/folder")
    Traceback (most recent call last):
    sharpen.errors.InputError: the data folder no/such/folder (argument root) does not exist; name an existing folder,
    or none to use the cache ...sharpen
    """
    named, origin = (root, "argument root") if root is not None else (os.environ.get("SHARPEN_DATA"), "SHARPEN_DATA")
    if not named:
        return (cache_folder(),)
    if not Path(named).is_dir():
        way_out = f"name an existing folder, or none to use the cache {cache_folder()}"
        raise InputError(f"the data folder {named} ({origin}) does not exist; {way_out}")
    return (Path(named), cache_folder())


def find_folder(files: Sequence[RemoteFile], root: Folder = None) -> Path | None:
    """The data folder that holds ``files`` (of the first, if they lie in different ones), or None if one is missing.

    >>> find_folder([RemoteFile("no/such/file", "https://example.org/file")]) is None
    True
    """
    held = [next((f for f in data_folders(root) if (f / file.path).is_file()), None) for file in files]
    return held[0] if None not in held else None


def find_file(file: RemoteFile, root: Folder = None) -> Path | None:
    """Where ``file`` lies on this machine, or None. Nothing is downloaded.

    >>> find_file(RemoteFile("no/such/file", "https://example.org/file")) is None
    True
    """
    folder = find_folder([file], root)
    return None if folder is None else folder / file.path


def get_file(file: RemoteFile, root: Folder = None) -> Path:
    """Where ``file`` lies on this machine; it is downloaded into the cache first if it lies nowhere.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.npz").write_bytes(b"...")
    ...     get_file(RemoteFile("a.npz", "https://example.org/a.npz"), root=folder).name
    'a.npz'
    """
    return find_file(file, root) or download(file, cache_folder())


def read_verified(file: RemoteFile, root: Folder = None) -> bytes:
    """The bytes of ``file``, after a look at their checksum: for formats that run code when they are read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.pickle").write_bytes(b"...")
    ...     read_verified(RemoteFile("a.pickle", "https://example.org/a.pickle", sha256="ab5a"), root=folder)
    Traceback (most recent call last):
    sharpen.errors.InputError: ...a.pickle is not the file that https://example.org/a.pickle publishes (its SHA-256 is
    ab5df625bc76dbd4e163bed2dd888df828f90159bb93556525c31821b6541d46, expected ab5a); put the published file in its
    place, or remove it to have it downloaded
    """
    place = get_file(file, root)
    content = place.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        why = f"its SHA-256 is {found}, expected {file.sha256}"
        raise InputError(f"{place} is not the file that {file.url} publishes ({why}); {WAY_OUT}")
    return content


def download(file: RemoteFile, folder: Path) -> Path:
    """Download ``file`` to its place below ``folder`` with a progress bar; it appears there whole or not at all.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     download(RemoteFile("a.npz", "http://127.0.0.1:9/a.npz"), Path(folder))
    Traceback (most recent call last):
    sharpen.errors.InputError: http://127.0.0.1:9/a.npz could not be downloaded (...); get that file by other means and
    put it at ...a.npz, or at a.npz below the folder that folder or SHARPEN_DATA names
    """
    target = folder / file.path
    with told_as(f"cannot write to the cache {folder}", "set XDG_CACHE_HOME to a folder that can be written", OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(target) as out:
            why = _fetch(file, out)
            if why is not None:
                way_out = (
                    f"get that file by other means and put it at {target}, or at {file.path} below the folder that"
                )
                where = f"{called('folder')} or SHARPEN_DATA names"
                raise InputError(f"{file.url} could not be downloaded ({why}); {way_out} {where}")
    return target


def _fetch(file: RemoteFile, out: BinaryIO) -> str | None:
    """Copies what is served to ``out``; why it is not what was asked for, None if it is."""
    try:
        found = _copy(file, out)
        out.flush()
    # ValueError: an address that is none, a length that is no number, or a redirection to one.
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if type(error) is urllib.error.URLError else error
        return str(cause) or type(error).__name__
    if file.sha256 is None:
        return _why_foreign(file, Path(out.name))
    return None if file.sha256 == found else f"its SHA-256 is {found}, expected {file.sha256}"


class _Encrypted(urllib.request.HTTPRedirectHandler):
    """Follows a redirection, unless it leads from an encrypted connection to one that is not."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str) -> Any:
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise ConnectionError(f"it redirects to {newurl[:200]}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _copy(file: RemoteFile, out: IO[bytes]) -> str:
    """Copy what is served to ``out``; its SHA-256. An end before the announced length is an error, and so is too much."""
    digest, received, start = hashlib.sha256(), 0, time.monotonic()
    request = urllib.request.Request(file.url, headers={"User-Agent": "sharpen"})
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    opener = urllib.request.build_opener(_Encrypted)
    with (
        opener.open(request, timeout=60) as response,
        Progress(*columns, console=Console(stderr=True)) as progress,
    ):
        announced = response.headers.get("Content-Length")
        if announced and not (announced.isascii() and announced.isdigit() and len(announced) < 20):
            raise ConnectionError(f"the server announces {announced[:40]!r} bytes")
        length = int(announced) if announced else None
        task = progress.add_task(f"Downloading {file.url.rsplit('/', 1)[-1]}", total=length)
        if length is not None and length > file.most:
            raise ConnectionError(f"the server announces {length} bytes, but the file has at most {file.most}")
        while chunk := response.read(_CHUNK):
            received += len(chunk)
            if received > file.most:
                raise ConnectionError(f"the server sends more than the {file.most} bytes that the file can have")
            if time.monotonic() - start > _PATIENCE_SECONDS and received < _LEAST_RATE * (time.monotonic() - start):
                raise ConnectionError(f"the server sent {received} bytes in {time.monotonic() - start:.0f} seconds")
            out.write(chunk)
            digest.update(chunk)
            progress.update(task, completed=received)
    if length is not None and received != length:
        raise ConnectionError(f"the connection ended after {received} of {length} bytes")
    return digest.hexdigest()


def _why_foreign(file: RemoteFile, path: Path) -> str | None:
    """Why a file whose checksum nobody knows is not what was asked for; None if it may be."""
    with open(path, "rb") as opened:
        if opened.read(512).lstrip().lower().startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
            return "what came is a web page: does this network ask for a login?"
    if not file.holds:
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            damaged = archive.testzip()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, EOFError, zlib.error):
        return "what came is not an archive"
    for missing in (name for name in file.holds if name not in names):
        return f"what came is an archive without {missing}"
    return f"its member {damaged} is damaged" if damaged else None
