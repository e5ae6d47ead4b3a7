"""Which code made a record."""

from __future__ import annotations

import hashlib
import subprocess
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent


@cache
def revision() -> str:
    """The commit of the running code, or, where there is no repository, git's own hash of its files.

    The latter, ``source-…``, is the beginning of what ``git rev-parse COMMIT:src/sharpen`` prints for a commit with the same files.

    >>> len(revision()) > 10
    True
    """
    commit = _git("rev-parse", "--short=12", "HEAD")
    # The package may lie in a repository that is not its own, as in a virtual environment.
    if commit and _git("ls-files", "--error-unmatch", "trial.py"):
        changed = _git("status", "--porcelain", "--", str(PACKAGE))
        return f"{commit}+changes" if changed else commit
    return f"source-{tree_hash(PACKAGE).hex()[:12]}"


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(PACKAGE), *arguments], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def tree_hash(folder: Path) -> bytes:
    """The hash that git gives a folder with these files, none of them executable; compiled files are left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("hello\\n")
    ...     tree_hash(Path(folder)).hex()
    '2e81171448eb9f2ee3821e3d447aa6b2fe3ddba1'
    """
    entries = []
    for path in folder.iterdir():
        if path.name == "__pycache__" or path.suffix == ".pyc":
            continue
        if path.is_dir():
            entries.append((f"{path.name}/", f"40000 {path.name}", tree_hash(path)))
        else:
            entries.append((path.name, f"100644 {path.name}", _git_hash("blob", path.read_bytes())))
    return _git_hash("tree", b"".join(label.encode() + b"\0" + digest for _, label, digest in sorted(entries)))


def _git_hash(kind: str, content: bytes) -> bytes:
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False).digest()
