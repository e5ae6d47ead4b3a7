"""A fitted model as one safetensors file: weights as tensors, everything else as JSON in its header. Nothing is executed."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from sharpen.errors import InputError
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.fitted import Fitted, Voters

FORMAT = "sharpen-1"


def save_fitted(path: str | os.PathLike[str], fitted: Fitted, header: dict[str, Any]) -> None:
    """Writes a fitted model; the file appears whole or not at all.

    Args:
        path: Where to.
        fitted: The model.
        header: What else is needed to use it: parameters, classes, preprocessing; anything that JSON holds.
    """
    path = Path(path)
    tensors = {
        f"{g}.{name}": np.stack([own[name] for own in group.weights])
        for g, group in enumerate(fitted.voters)
        for name in group.weights[0]
    }
    voters = [asdict(group.candidate) | {"temperatures": group.temperatures} for group in fitted.voters]
    own = {
        "voters": voters,
        "temperature": fitted.temperature,
        "num_features": fitted.num_features,
        "num_classes": fitted.num_classes,
        "report": fitted.report,
    }
    text = json.dumps({"fitted": own, **header}, ensure_ascii=False, allow_nan=False)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(save(tensors, metadata={"format": FORMAT, "sharpen": text}))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def load_fitted(path: str | os.PathLike[str]) -> tuple[Fitted, dict[str, Any]]:
    """Reads what :func:`save_fitted` wrote: the model, and the rest of the header."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; give the model that fit has saved")
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping, only keys()
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: is no model file ({error}); give the model that fit has saved") from None
    if metadata.get("format") != FORMAT:
        raise InputError(
            f"{path}: is a safetensors file, but not a model of this library; give the model that fit has saved"
        )
    try:
        header = json.loads(metadata["sharpen"])
        own = header.pop("fitted")
        voters = []
        for g, group in enumerate(own["voters"]):
            stacked = {name.split(".", 1)[1]: value for name, value in tensors.items() if name.startswith(f"{g}.")}
            members = len(next(iter(stacked.values())))
            weights = [{name: value[r, ...] for name, value in stacked.items()} for r in range(members)]
            candidate = Candidate(group["model"], group["lam"], group["balance"], group["smooth"])
            voters.append(Voters(candidate, [float(t) for t in group["temperatures"]], weights))
        fitted = Fitted(voters, float(own["temperature"]), own["num_features"], own["num_classes"], own["report"])
    except (KeyError, TypeError, ValueError, IndexError, StopIteration, AttributeError) as error:
        raise InputError(f"{path}: its header is damaged ({error!r}); save the model again") from None
    return fitted, header
