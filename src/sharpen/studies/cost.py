"""How long a population will take: from past records where there are some, else from a formula.

The formula adds what one epoch of one member does: matrix products, passes over activations, passes over edges, the first product
with the features. Its coefficients are fitted to the tables of measured milliseconds in ``docs/performance.md`` (one H200; two CPU
cores) and meet their 72 cells within a third. Every population that was trained corrects it, the larger the more. It decides the
order of populations, how many trials make one, and whether one still fits into a time limit; never a result.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sharpen.datasets.catalog import CATALOG
from sharpen.models.registry import model_info
from sharpen.paper import setting
from sharpen.trial import Record, Trial

if TYPE_CHECKING:
    import pandas as pd

# Nanoseconds per product of a later layer, activation, edge, and product with the features.
_RATES = {
    ("cuda", "tf32"): (33e-6, 15.2e-3, 0.73e-3, 2.9e-6),
    ("cuda", "float32"): (153e-6, 17.5e-3, 1.06e-3, 2.8e-6),
    ("cpu", "float32"): (49e-3, 4.55, 1.38, 2.7e-3),
}
# And per pair of nodes and column of attention, where all nodes attend to all.
_PAIRS = {"cuda": 0.6e-3, "cpu": 0.4}
# A meta-learned λ needs two forward and three backward passes, and its losses have no fused kernel.
_META = 4.0
# What a population costs however small it is: compiling, capturing, launching. Seconds once, and per epoch; at most.
_FIXED = {"cuda": (6.0, 5e-4), "cpu": (0.05, 5e-3)}
# The first population of a process waits for what is loaded and compiled then; if it is shorter than this, it says little.
_COLD_SECONDS = 20.0

# Estimates are not exact: what is to fit into a time limit is taken to last longer by this.
CAUTION = 1.2


class Costs:
    """Estimates for one kind of device, which grow better with every record.

    Args:
        kind: ``cpu`` or ``cuda``.
        device: The device's name, as records have it; None: any of its kind, for a look from another machine.
        precision: ``float32``, ``tf32`` or ``float64``.
        frame: Past runs, those among them that were made again for a trace (:meth:`sharpen.store.Store.runs`).

    >>> trial = Trial(model="gcn", dataset="cora", lam=0.25).resolve("balanced-20-500-1000-seed123")
    >>> costs = Costs("cuda", "NVIDIA H200", "tf32")
    >>> 15 < costs.seconds([trial] * 205) < 30
    True
    """

    def __init__(self, kind: str, device: str | None, precision: str, frame: pd.DataFrame | None = None) -> None:
        self.kind, self.device, self.precision = kind, device, precision
        # Seconds that a population costs however small it is: once, and in each epoch.
        self.once, self._each = _FIXED[kind]
        self._sizes = {info.name: (info.nodes, info.edges, info.features) for info in CATALOG.values()}
        self._seen: dict[_Shape, list[_Seen]] = {}
        self._rates: dict[_Shape, float] = {}
        # How much of the fixed cost there really is: no population was ever done sooner than this part of it.
        self._share = 1.0
        self._cold = True
        if frame is not None and len(frame):
            like = (frame["device"] == "cpu") == (kind == "cpu") if device is None else frame["device"] == device
            fitting = frame[(frame["precision"] == precision) & like]
            # One row stands for its population, whose members have equal shares.
            rows: Iterable[Any] = fitting.drop_duplicates(["created", *_Shape._fields[:-1], "epochs"]).itertuples()
            for row in rows:
                self._learn(_shape(row), row.epochs, row.seconds, row.members)

    def learn(self, records: Sequence[Record]) -> None:
        """Takes a finished population into account, or a part of one that memory divides."""
        trial, cold = records[0].trial, self._cold
        self._cold = False
        if not cold or records[0].seconds * records[0].members >= _COLD_SECONDS:
            self._learn(_shape(trial), trial.epochs or 0, records[0].seconds, records[0].members)

    def _learn(self, shape: _Shape, epochs: int, seconds: float, members: int) -> None:
        if shape.dataset in self._sizes:
            seen = _Seen(epochs * members * self._formula(shape), self._fixed(epochs), seconds * members)
            self._seen.setdefault(shape, []).append(seen)
            self._share = min(self._share, seen.seconds / seen.fixed)
            self._rates.clear()

    def _fixed(self, epochs: int) -> float:
        return self.once + self._each * epochs

    def seconds(self, trials: Sequence[Trial]) -> float:
        """The time that one population of these trials will take."""
        epochs = trials[0].epochs or 0
        return self._share * self._fixed(epochs) + epochs * len(trials) * self._rate(_shape(trials[0]))

    def members_within(self, trial: Trial, seconds: float) -> int:
        """How many like this one can be trained in that time as one population; at least one.

        >>> trial = Trial(model="gcn", dataset="cora").resolve("balanced-20-500-1000-seed123")
        >>> Costs("cpu", "cpu", "float32").members_within(trial, 60.0)
        1
        """
        alone, pair = self.seconds([trial]), self.seconds([trial, trial])
        if pair <= alone:  # runs so quick that the clock saw nothing
            return sys.maxsize
        return max(1, 1 + int((seconds - alone) / (pair - alone)))

    def _rate(self, shape: _Shape) -> float:
        """Seconds of one epoch of one member: the formula, times how far it was off in this cell, else in all cells at hand."""
        if shape not in self._rates:
            every = [self._off(seen) for others in self._seen.values() for seen in others]
            ratio = _middle(every) if every else 1.0
            if own := [self._off(seen) for seen in self._seen.get(shape, ())]:
                # Small populations say less of what large ones will take: they use a device worse.
                said, doubt = sum(weight for _, weight in own), 2 * self.once
                ratio = (said * _middle(own) + doubt * ratio) / (said + doubt)
            self._rates[shape] = ratio * self._formula(shape)
        return self._rates[shape]

    def _off(self, seen: _Seen) -> tuple[float, float]:
        """How far off the formula was for a population, and how much that says: the time that it gave."""
        # Of a population that hardly took longer than what all cost, half is put down to its epochs.
        real = max(seen.seconds - self._share * seen.fixed, seen.seconds / 2)
        return real / seen.formula, seen.formula

    def _formula(self, shape: _Shape) -> float:
        nodes, edges, features = self._sizes[shape.dataset]
        model = model_info(shape.model)
        matrices = model.maps + shape.residual
        passes = shape.layers * shape.hidden * max(1.0, model.gathers)
        work = (
            nodes * shape.hidden**2 * matrices * (shape.layers - 1),
            nodes * passes * (1 if shape.norm == "none" else 2),
            (2 * edges + nodes) * passes * model.uses_graph,
            nodes * features * shape.hidden * matrices,
        )
        rates = _RATES.get((self.kind, self.precision), _RATES[self.kind, "float32"])
        dearer = (2 if self.precision == "float64" else 1) * (_META if shape.meta else 1)
        pairs = _PAIRS[self.kind] * nodes**2 * shape.layers * shape.hidden * model.all_pairs
        told = sum(rate * amount for rate, amount in zip(rates, work, strict=True))
        return 1e-9 * dearer * (model.effort * told + pairs)


class _Shape(NamedTuple):
    """What the cost of an epoch depends on."""

    dataset: str
    model: str
    layers: int
    hidden: int
    norm: str
    residual: bool
    meta: bool


class _Seen(NamedTuple):
    """A population that was trained: the time that the formula gives its epochs, what it adds for all, and what it took."""

    formula: float
    fixed: float
    seconds: float


def _middle(values: Iterable[tuple[float, float]]) -> float:
    """The median of values that have weights."""
    found = sorted(values)
    reached = np.cumsum([weight for _, weight in found])
    return found[int(np.searchsorted(reached, reached[-1] / 2))][0]


def _shape(trial: Any) -> _Shape:
    """Of a trial, or of a row of a table of records, which says NaN for None."""
    meta = trial.lam_max is not None and trial.lam_max == trial.lam_max
    given = {
        name: value for name in _Shape._fields[:-1] if (value := getattr(trial, name)) is not None and value == value
    }
    # What a model does not take, or a model of somebody's own does not say, is taken to be as the general setting has it.
    usual = {name: value for name, value in setting(None, str(trial.model)).items() if name in _Shape._fields}
    return _Shape(**{**usual, **given}, meta=meta)


def duration(seconds: float) -> str:
    """A time for people.

    >>> duration(42.4), duration(754), duration(9000), duration(1e6)
    ('42 s', '13 min', '2 h 30 min', '278 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes < 600 else f"{minutes / 60:,.0f} h"
