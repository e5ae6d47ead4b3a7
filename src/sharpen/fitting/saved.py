"""A fitted model as one safetensors file: weights as tensors, everything else as JSON in its header. Nothing is executed.

The header holds a checksum of the whole file, itself aside: a model with a single flipped bit is refused. Older formats are read:
in ``sharpen-6`` all runs counted the same and had weights of the same shapes; ``sharpen-5`` had no checksum.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from sharpen.batching import Batching
from sharpen.errors import InputError
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.ensemble import Ensemble, Part
from sharpen.fitting.fitted import Fitted

_FORMAT = "sharpen-7"
_OLDER, _WITHOUT_CHECKSUM = ("sharpen-5", "sharpen-6"), "sharpen-5"
_BLANK = "0" * 64
_MOST_EMPTY = 10**6


def save_fitted(path: str | os.PathLike[str], fitted: Fitted, header: dict[str, Any]) -> None:
    """Writes a fitted model; the file appears whole or not at all.

    Args:
        path: Where to.
        fitted: The model.
        header: What else is needed to use it: parameters, classes, preprocessing; anything that JSON holds.
    """
    path = Path(path)
    held = _distinct_weights(fitted.ensemble)
    tensors = {}
    for g, weights in enumerate(held):
        for name in weights[0]:
            arrays = [own[name] for own in weights]
            if len({array.shape for array in arrays}) == 1:
                tensors[f"{g}.{name}"] = np.stack(arrays)
            else:  # trees of different sizes
                tensors |= {f"{g}:{r}.{name}": array for r, array in enumerate(arrays)}
    if fitted.known.size:
        tensors["known"] = fitted.known
    own = {
        "ensemble": _describe(fitted.ensemble, held),
        "without_labels": fitted.without_labels and _describe(fitted.without_labels, held),
        "graph_id": fitted.graph_id,
        "num_features": fitted.num_features,
        "num_classes": fitted.num_classes,
        "report": fitted.report,
        "cuts": fitted.cuts,
    }
    text = json.dumps({"fitted": own, **header}, ensure_ascii=False, allow_nan=False)
    # Half a character, as in the name of a file that is not text, becomes what JSON writes for it.
    text = text.encode("utf-8", "backslashreplace").decode()
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        content = save(tensors, metadata={"checksum": _BLANK, "format": _FORMAT, "sharpen": text})
        checksum = hashlib.sha256(content).hexdigest()
        with open(part, "wb") as file:
            file.write(content.replace(_entry(_BLANK), _entry(checksum), 1))
            file.flush()
            os.fsync(file.fileno())
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
            for name in file.keys():  # noqa: SIM118  # no mapping, only keys()
                shape = file.get_slice(name).get_shape()
                if 0 in shape and max(shape) > _MOST_EMPTY:  # an axis of length 0 lets another have any length
                    raise damaged(path, ValueError(f"its tensor {name[:40]!r} has the shape {shape}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except InputError:
        raise
    except Exception:  # besides its own, those of a header that is no text, or of a type that NumPy does not have
        raise InputError(
            f"{path}: is not a model that sharpen saved, or is damaged; give the model.safetensors of sharpen fit first"
        ) from None
    if metadata.get("format", "").startswith("sharpen-") and metadata["format"] not in (_FORMAT, *_OLDER):
        raise InputError(
            f"{path}: was saved by another version of this library (format {metadata['format']}, here {_FORMAT}); fit again"
        )
    if metadata.get("format") not in (_FORMAT, *_OLDER):
        raise InputError(
            f"{path}: is a safetensors file, but not a model of this library; give the model that fit has saved"
        )
    if metadata["format"] != _WITHOUT_CHECKSUM or "checksum" in metadata:  # one bit makes a 5 of a 7
        _check_whole(path, metadata.get("checksum", ""))
    try:
        header = json.loads(metadata["sharpen"])
        own = header.pop("fitted")
        known = tensors.pop("known", np.empty(0, dtype=np.int64))
        weights = _weights(tensors)
        fitted = Fitted(
            _ensemble(own["ensemble"] if "ensemble" in own else own["jury"], weights),
            own["without_labels"] and _ensemble(own["without_labels"], weights),
            known,
            own["graph_id"],
            own["num_features"],
            own["num_classes"],
            own["report"],
            own["cuts"],
        )
        _check(fitted)
    except (LookupError, TypeError, ValueError, OverflowError, StopIteration, AttributeError, RecursionError) as error:
        raise damaged(path, error) from None
    return fitted, header


def _weights(tensors: dict[str, np.ndarray]) -> dict[int, list[dict[str, np.ndarray]]]:
    """What every run has learnt, by the number of its part."""
    found: dict[int, dict[int, dict[str, np.ndarray]]] = {}
    for key, value in tensors.items():
        place, name = key.split(".", 1)
        g, _, run = place.partition(":")
        # An array still, where it holds one number.
        rows = {int(run): value} if run else {r: value[r, ...] for r in range(len(value))}
        for r, array in rows.items():
            found.setdefault(int(g), {}).setdefault(r, {})[name] = array
    for part, own in found.items():
        if sorted(own) != list(range(len(own))) or len({frozenset(arrays) for arrays in own.values()}) != 1:
            raise ValueError(f"the runs of part {part} have not all the same arrays")
    return {part: [own[r] for r in range(len(own))] for part, own in found.items()}


def _entry(checksum: str) -> bytes:
    """The checksum as it stands in the header."""
    return f'"checksum":"{checksum}"'.encode()


def _check_whole(path: Path, checksum: str) -> None:
    """Refuses a file that is not, to the bit, as it was written."""
    content = path.read_bytes()
    if hashlib.sha256(content.replace(_entry(checksum), _entry(_BLANK), 1)).hexdigest() != checksum:
        raise damaged(path, ValueError("its content does not match its checksum"))


def damaged(path: str | os.PathLike[str], error: Exception) -> InputError:
    """The sentence for a model file that holds what :func:`save_fitted` would not have written.

    >>> print(damaged("m.safetensors", KeyError("jury")))
    m.safetensors: is damaged (KeyError('jury')); save the model again, or fit again
    """
    reason = str(error) if type(error) is ValueError else repr(error)
    return InputError(f"{path}: is damaged ({reason[:300]}); save the model again, or fit again")


def _check(fitted: Fitted) -> None:
    """Refuses numbers that nothing can be predicted with, as a ValueError that says which."""
    for name, least in (("num_features", 1), ("num_classes", 2)):
        value = getattr(fitted, name)
        if type(value) is not int or value < least:
            raise ValueError(f"{name} is {value!r}")
    if not isinstance(fitted.report, dict) or not isinstance(fitted.graph_id, str):
        raise ValueError("its report or its graph_id is of another type")
    for model, cut in fitted.cuts.items():
        if cut is not None:
            Batching.parse(cut)
        if not isinstance(model, str):
            raise ValueError(f"cuts has {model!r}")
    _check_ensemble(fitted.ensemble, fitted.num_classes)
    if fitted.ensemble.uses_labels != (fitted.without_labels is not None):
        raise ValueError("it does not say what predicts where no label is known")
    if fitted.without_labels is not None:
        _check_ensemble(fitted.without_labels, fitted.num_classes)
        if any(part.candidate.spread for part in fitted.without_labels.parts):
            raise ValueError("what predicts where no label is known would spread labels")
    known = fitted.known
    if known.ndim != 1 or known.dtype.kind != "i":
        raise ValueError(f"known holds {known.dtype} values of shape {known.shape}")
    if known.size and not (known.min() >= -1 and known.max() < fitted.num_classes):
        raise ValueError(f"known holds class {known.max()}, but there are {fitted.num_classes}")


def _check_ensemble(ensemble: Ensemble, num_classes: int) -> None:
    for temperature in (ensemble.temperature, 1.0 if ensemble.isolated is None else ensemble.isolated):
        if not ensemble.parts or not (math.isfinite(temperature) and temperature > 0):
            raise ValueError(f"it has {len(ensemble.parts)} candidates at temperature {temperature}")
    if not (math.isfinite(ensemble.caution) and ensemble.caution >= 0):
        raise ValueError(f"caution is {ensemble.caution}")
    factors = (1.0,) * num_classes if ensemble.factors is None else ensemble.factors
    if len(factors) != num_classes or not all(math.isfinite(factor) and factor > 0 for factor in factors):
        raise ValueError(f"factors of its {num_classes} classes are {factors}")
    shares = [part.share for part in ensemble.parts]
    if not all(math.isfinite(share) and share > 0 for share in shares) or abs(sum(shares) - 1) > 1e-6:
        raise ValueError(f"its candidates have shares {shares}")
    for part in ensemble.parts:
        candidate = part.candidate
        numbers = all(isinstance(value, int | float) for value in (candidate.lam, candidate.balance))
        if not numbers or not isinstance(candidate.model, str) or type(candidate.spread) is not bool:
            raise ValueError(f"a candidate is {candidate!r}")
        opinions = 1 + candidate.spread
        if len(part.counts) != opinions or not all(math.isfinite(c) and c >= 0 for c in part.counts):
            raise ValueError(f"its {opinions} opinions of {candidate.name} count {part.counts}")
        if not part.weights:
            raise ValueError(f"{candidate.name} has no weights")
        for run in part.weights:
            for name, value in run.items():
                if value.dtype.kind not in "fiub":
                    raise ValueError(f"weights {name} hold {value.dtype} values")
                if not np.isfinite(value).all():
                    raise ValueError(f"weights {name} are not all finite")


def _distinct_weights(ensemble: Ensemble) -> list[list[dict[str, np.ndarray]]]:
    """The weights of all parts, once each: candidates may share them and differ in what is done to predictions."""
    return list({id(part.weights[0]): part.weights for part in ensemble.parts}.values())


def _describe(ensemble: Ensemble, held: Sequence[list[dict[str, np.ndarray]]]) -> dict[str, Any]:
    """An ensemble but for its weights, which are among those held."""
    place = {id(weights[0]): g for g, weights in enumerate(held)}
    parts = [
        asdict(part.candidate) | {"share": part.share, "counts": part.counts, "weights": place[id(part.weights[0])]}
        for part in ensemble.parts
    ]
    return {
        "parts": parts,
        "temperature": ensemble.temperature,
        "isolated": ensemble.isolated,
        "caution": ensemble.caution,
        "factors": ensemble.factors,
    }


def _ensemble(description: dict[str, Any], weights: dict[int, list[dict[str, np.ndarray]]]) -> Ensemble:
    older = "voters" in description  # every run counted the same
    entries = description["voters"] if older else description["parts"]
    total = sum(len(weights[entry["weights"]]) for entry in entries)
    parts = []
    for entry in entries:
        candidate, own = (
            Candidate(*(entry[f] for f in ("model", "lam", "balance", "spread"))),
            weights[entry["weights"]],
        )
        share = len(own) / total if older else float(entry["share"])
        parts.append(Part(candidate, share, [float(count) for count in entry["counts"]], own))
    isolated, factors = description["lonely" if older else "isolated"], description.get("factors")
    caution = float(description.get("caution", 0.0))  # models that were saved before there was any
    more = isolated and float(isolated), caution, factors and tuple(map(float, factors))
    return Ensemble(parts, float(description["temperature"]), *more)
