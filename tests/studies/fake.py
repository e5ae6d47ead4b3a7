"""Records that no one trained: planned by the real plan, with scores that are known beforehand."""

import hashlib
from collections.abc import Callable

import numpy as np
import pandas as pd

from sharpen.studies import Study, plan
from sharpen.trial import Record, Trial, to_frame


def chance(*words: object) -> float:
    """A number from 0 to 1 that depends on the words alone."""
    return int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:6], "big") / 2**48


def flat(trial: Trial) -> float:
    """No effect of anything."""
    return 0.0


def bump(trial: Trial) -> float:
    """A gain that grows up to λ = 0.5 and falls off, in points; what is not symmetric loses a little."""
    gain = 3 * trial.lam - 3 * trial.lam**2
    return gain - 2 * abs((trial.lam_labeled or 0) + trial.lam) - 5 * abs((trial.dropout or 0) - 0.5) - abs(trial.q - 2)


def score(trial: Trial, effect: Callable[[Trial], float], what: str) -> float:
    """A level of the cell, a shift of the split that all variants share, noise of the run, and the effect."""
    level = 80 + 10 * chance(trial.dataset, trial.model) - 25 * (trial.model == "mlp")
    shift = 4 * chance(trial.dataset, trial.split, what) - 2
    noise = 1.2 * chance(trial.id, what) - 0.6
    return (level + shift + noise + effect(trial)) / 100


def records(
    study: Study,
    protocol: str,
    effect: Callable[[Trial], float] = bump,
    keep: Callable[[Trial], bool] = lambda trial: True,
    diverged: Callable[[Trial], bool] = lambda trial: False,
    **only: object,
) -> pd.DataFrame:
    """The frame that a store would give for a study, or for the part of it that ``keep`` lets through."""
    trials = {
        trial.id: trial
        for cell in plan(study, protocol, **only)
        for variant in cell.trials.values()
        for trial in variant
        if keep(trial)
    }
    made = [
        Record(
            trial=trial,
            val=float("nan") if diverged(trial) else score(trial, effect, "val"),
            test=float("nan") if diverged(trial) else score(trial, effect, "test"),
            best_epoch=-1 if diverged(trial) else 7,
            status="diverged" if diverged(trial) else "ok",
            seconds=0.5,
            device="NVIDIA H200",
            precision="tf32",
        )
        for trial in trials.values()
    ]
    frame = to_frame(made)
    frame.insert(0, "id", list(trials))
    return frame.assign(
        versions='{"torch": "2.11.0"}', revision="0123456789ab", created="2026-11-15T10:00:00+00:00", members=205
    )


def traces(frame: pd.DataFrame, epochs: int = 60) -> dict[str, dict[str, np.ndarray]]:
    """Entropies that fall during training, those of unlabeled nodes faster with λ; in Shannon's measure twice as large."""
    found = {}
    epoch = np.arange(epochs)
    for id, lam in zip(frame["id"], frame["lam"], strict=True):
        wobble = 0.02 * np.sin(epoch / 3 + 6 * chance(id))
        found[id] = {
            "entropy_labeled": (0.8 * np.exp(-epoch / 15) + 0.05 + wobble).astype(np.float32),
            "entropy_unlabeled": (0.8 * np.exp(-epoch * (1 + lam) / 25) + 0.2 - 0.4 * lam).astype(np.float32),
        }
        found[id] |= {f"shannon_{part}": 2 * found[id][f"entropy_{part}"] for part in ("labeled", "unlabeled")}
    return found
