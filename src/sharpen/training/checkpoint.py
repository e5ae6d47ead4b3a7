"""Where a long training stands, and the finished runs of a command that is not: safetensors files, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sharpen.errors import InputError
from sharpen.trial import RESULTS, Record, Trial
from sharpen.whole import written_whole

_SCALARS = (*RESULTS, "versions", "members", "metrics")
_ENDING = ".finished.safetensors"


def checkpoint_folder(results: Path, trials: Sequence[Trial]) -> Path:
    """Where one command keeps its checkpoints, in the folder of its results: by its trials, so that others have others.

    >>> checkpoint_folder(Path("out"), [Trial(lam=0)]) == checkpoint_folder(Path("out"), [Trial(lam=1)])
    False
    """
    return results / "checkpoints" / _digest(trials)


def forget_checkpoints(folder: Path) -> None:
    """Removes what one command kept, once its results are written.

    >>> import tempfile
    >>> results = Path(tempfile.mkdtemp())
    >>> one, other = (checkpoint_folder(results, [Trial(lam=lam)]) for lam in (0, 1))
    >>> one.mkdir(parents=True), other.mkdir(parents=True)
    (None, None)
    >>> forget_checkpoints(one)
    >>> one.exists(), other.exists()
    (False, True)
    >>> forget_checkpoints(other)
    >>> list(results.iterdir())
    []
    """
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # those of other commands
        folder.parent.rmdir()


def checkpoint_path(folder: Path, trials: Sequence[Trial]) -> Path:
    """The file of a population: its name is a hash of its trials.

    >>> checkpoint_path(Path("kept"), [Trial()]) == checkpoint_path(Path("kept"), [Trial()])
    True
    """
    return folder / f"{_digest(trials)}.safetensors"


def _digest(trials: Sequence[Trial]) -> str:
    return hashlib.sha256("/".join(trial.id for trial in trials).encode()).hexdigest()[:24]


def members_kept(folder: Path, trials: Sequence[Trial]) -> int:
    """How many of the trials were trained together when the first of them left a checkpoint; 0 if none did.

    How many fit depends on the memory that is free, and the names of checkpoints depend on who trained together: to go on, the same
    trials have to come together again.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> trials = [Trial(seed=seed) for seed in range(5)]
    >>> checkpoint_path(folder, trials[:3]).touch()
    >>> members_kept(folder, trials), members_kept(folder, trials[1:])
    (3, 0)
    """
    sizes = range(len(trials), 0, -1)
    return next((size for size in sizes if checkpoint_path(folder, trials[:size]).exists()), 0)


def write_decision(path: Path, value: Any) -> None:
    """Something that was decided by what was free at the time, so that it stays decided; anything that JSON holds.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "batching.json"
    >>> write_decision(path, ["clusters-32-4", "too large"])
    >>> read_decision(path)
    ['clusters-32-4', 'too large']
    """
    _write(path, json.dumps(value).encode())


def read_decision(path: Path) -> Any:
    """What was decided; None if nothing was."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); remove it to start anew") from None


def write_checkpoint(path: Path, state: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Tensors and what they are, beside the old file until they are complete, then in its place.

    >>> import torch
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "kept.safetensors"
    >>> write_checkpoint(path, {"w": torch.ones(2)}, {"nodes": 7})
    >>> read_checkpoint(path, {"nodes": 7})[0]["w"].tolist()
    [1.0, 1.0]
    >>> read_checkpoint(path, {"nodes": 8})
    Traceback (most recent call last):
    sharpen.errors.InputError: ...kept.safetensors was written for another training (nodes 7, now 8); give another
    folder, or remove it
    """
    from safetensors.torch import save

    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
    _write(path, save(tensors, {"about": json.dumps(about)}))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.write(data)


def read_checkpoint(path: Path, about: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a checkpoint that was written for the same thing, and all that is written about them."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            written = json.loads(file.metadata()["about"])
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping, whatever it looks like
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is not a checkpoint of sharpen ({error}); remove it to start anew") from None
    for key, value in about.items():
        if written.get(key) != value:
            what = f"{key} {written.get(key)}, now {value}"
            raise InputError(f"{path} was written for another training ({what}); give another folder, or remove it")
    return state, written


def keep_records(folder: Path, records: Sequence[Record], about: Mapping[str, Any]) -> None:
    """Writes the records of a population, with class scores and traces, and what they depend on; whole or not at all.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> keep_records(folder, [Record(Trial(seed=3), 0.8, 0.7, 1, "ok", 0.5, "cpu", "float32")], {"graph": "a"})
    >>> [record.test for record in kept_records(folder, {"graph": "a"}).values()], kept_records(folder, {"graph": "b"})
    ([0.7], {})
    """
    arrays: dict[str, Any] = {
        f"traces.{name}": np.stack([record.traces[name] for record in records]) for name in records[0].traces
    }
    if all(record.logits is not None for record in records):
        arrays["logits"] = np.stack([record.logits for record in records if record.logits is not None])
    scalars = [
        {name: getattr(record, name) for name in _SCALARS} | {"trial": asdict(record.trial)} for record in records
    ]
    path = checkpoint_path(folder, [record.trial for record in records]).with_suffix(_ENDING)
    state = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in arrays.items()}
    write_checkpoint(path, state, {**about, "records": scalars})


def kept_records(folder: Path, about: Mapping[str, Any]) -> dict[str, Record]:
    """The records that were kept for the same thing, by the ids of their trials; what cannot be read is as if it were not there."""
    found: dict[str, Record] = {}
    for path in sorted(folder.glob(f"*{_ENDING}")):
        try:
            arrays, written = read_checkpoint(path, about)
            records = [
                Record(
                    **{name: each[name] for name in _SCALARS},
                    trial=Trial(**each["trial"]),
                    traces={name[7:]: value[r].numpy() for name, value in arrays.items() if name.startswith("traces.")},
                    logits=arrays["logits"][r].numpy() if "logits" in arrays else None,
                )
                for r, each in enumerate(written["records"])
            ]
        except (InputError, KeyError, TypeError, ValueError, IndexError):
            continue
        found |= {record.trial.id: record for record in records}
    return found
