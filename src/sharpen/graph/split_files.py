"""Splits on disk: JSON to read, or npz for large graphs; written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from sharpen.errors import InputError, told_as
from sharpen.graph.splits import Split, from_masks
from sharpen.npz import read_npz
from sharpen.whole import written_whole


def save_split(split: Split, path: str | os.PathLike[str]) -> None:
    """Write a split's name and members to a ``.npz`` or ``.json`` file, which appears whole or not at all.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "mine.json"
    >>> save_split(Split("mine", [0], [1], [2, 3]), path)
    >>> path.read_text()
    '{"name": "mine", "train": [0], "val": [1], "test": [2, 3]}'
    """
    path = Path(path)
    arrays: Any = {field: getattr(split, field).numpy() for field in ("train", "val", "test")}
    if path.suffix not in (".npz", ".json"):
        raise InputError(f"{path}: the ending {path.suffix!r} is no format for splits; end the name in .npz or .json")
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        if path.suffix == ".npz":
            np.savez(file, name=np.array(split.name), **arrays)
        else:
            content = {field: nodes.tolist() for field, nodes in arrays.items()}
            file.write(json.dumps({"name": split.name, **content}).encode())


def load_split(path: str | os.PathLike[str], name: str | None = None) -> Split:
    """Read a split from a ``.npz`` or ``.json`` file with ``train``, ``val`` (or ``valid``) and ``test``.

    Each holds node indices, or one boolean per node. Nothing in the file is executed: pickled objects are refused.

    Args:
        name: What to call the split. None: the ``name`` in the file, else the file's own name without its ending.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "mine.npz"
    >>> np.savez(path, train=[0, 1], valid=[2], test=[3])
    >>> load_split(path)
    Split('mine', train=2, val=1, test=1)
    """
    path = Path(path)
    content = _read(path)
    sets = []
    for keys in (["train"], ["val", "valid"], ["test"]):
        key = next((key for key in keys if key in content), None)
        if key is None:
            what = (
                f"{' or '.join(map(repr, keys))} is missing (found {', '.join(map(repr, content))[:200] or 'nothing'})"
            )
            raise InputError(f"{path}: {what}; add it, empty if need be")
        sets.append(content[key])
    name = name or str(content.get("name", path.stem))
    try:
        train, val, test = (np.asarray(values) for values in sets)
        num_masks = sum(array.dtype == bool for array in (train, val, test))
        if num_masks == 0:
            return Split(name, train, val, test)
        if num_masks == 3:
            return from_masks(train, val, test, name)
        raise InputError("some of train, val and test are masks and some are indices; make all three alike")
    except ValueError as error:  # InputError among them
        raise InputError(f"{path}: {error}") from error


def _read(path: Path) -> dict[str, Any]:
    way_out = "write it with save_split, or as load_split says"
    if path.suffix not in (".npz", ".json"):
        raise InputError(f"{path}: the ending {path.suffix!r} is no format for splits; give a .npz or .json file")
    if not path.exists():
        raise InputError(f"{path}: there is no such file; check the path")
    if path.suffix == ".npz":
        return {**read_npz(str(path), path, way_out=way_out)}
    with told_as(f"{path} cannot be read", way_out):
        return dict(json.loads(path.read_text(encoding="utf-8")))
