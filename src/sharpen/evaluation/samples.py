"""What every statistic here starts from: checked scores, their spread, t-intervals and p-values."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from sharpen.errors import InputError

Floats = NDArray[np.float64]
Interval = tuple[float, float]


def checked_scores(values: ArrayLike, name: str) -> Floats:
    """Scores as an array: a list of at least one, all finite."""
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1 or scores.size == 0:
        raise InputError(f"has shape {scores.shape}; give a list of at least one score", field=name)
    if not np.isfinite(scores).all():
        problem = "holds a score that is not finite; leave diverged runs out, see sharpen.evaluation.pair"
        raise InputError(problem, field=name)
    return scores


def spread(scores: Floats) -> float | None:
    """The standard deviation (n − 1); None of one score."""
    if scores.size < 2:
        return None
    # The mean of equal numbers may round, which would leave a spread of 1e-17.
    return float(scores.std(ddof=1)) if np.ptp(scores) > 0 else 0.0


def t_interval_of(mean: float, error: float, freedom: float, level: float) -> Interval:
    """A mean with its t-interval."""
    half = float(stats.t.ppf((1 + level) / 2, freedom)) * error
    return mean - half, mean + half


def t_p_value(mean: float, error: float, freedom: float) -> float:
    """The two-sided p-value of a mean against zero."""
    return float(2 * stats.t.sf(abs(mean) / error, freedom))


def welch(difference: float, sd_a: float, n_a: int, sd_b: float, n_b: int, level: float) -> tuple[Interval, float]:
    """Welch's interval and p-value of a difference of two means."""
    variance_a, variance_b = sd_a**2 / n_a, sd_b**2 / n_b
    error = float(np.sqrt(variance_a + variance_b))
    freedom = (variance_a + variance_b) ** 2 / (variance_a**2 / (n_a - 1) + variance_b**2 / (n_b - 1))
    return t_interval_of(difference, error, freedom, level), t_p_value(difference, error, freedom)
