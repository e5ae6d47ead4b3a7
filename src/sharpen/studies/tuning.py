"""Settings by number: the same tuning for every method.

Configuration 0 of a method on a graph is the one that its authors published (or, where they published none, their default); the
others are drawn from their grid, the same ones every time (:mod:`sharpen.models.zoo.settings`). A study names one by its number,
or asks for the ``chosen`` one: that of ``own/field-chosen.csv``, which validation on the draws of the protocol ``tuning`` decided.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import Any

from sharpen.errors import InputError
from sharpen.models.zoo.settings import settings_of

CHOSEN = "chosen"
_MOST = 16


def configuration(dataset: str, model: str, which: int | str) -> dict[str, Any]:
    """The fields of a trial that a configuration sets.

    >>> configuration("cora", "fsgnn", 0)["dropout"], configuration("cora", "gcn", 0)
    (0.6, {})
    >>> configuration("cora", "my_net.py:Net", 0)
    Traceback (most recent call last):
    sharpen.errors.InputError: configuration is 0, but my_net.py:Net has no published settings; leave configuration out for it
    """
    known = settings_of(model)
    if known is None:
        problem = f"configuration is {which}, but {model} has no published settings; leave configuration out for it"
        raise InputError(problem)
    number = chosen(dataset, model) if which == CHOSEN else int(which)
    if number is None:
        raise InputError(f"configuration is {CHOSEN}, but none is chosen for {dataset} {model}; tune it first")
    found = known.configurations(dataset, _MOST)
    if not 0 <= number < len(found):
        raise InputError(f"configuration is {number}, but {model} has {len(found)} of them; give 0 to {len(found) - 1}")
    return found[number]


def chosen(dataset: str, model: str) -> int | None:
    """The number of the configuration that validation chose; None if nothing was chosen yet.

    >>> chosen("cora", "my_net.py:Net") is None
    True
    """
    return _table().get((dataset, model))


@cache
def _table() -> dict[tuple[str, str], int]:
    file = files("sharpen.studies").joinpath("own", "field-chosen.csv")
    with file.open(encoding="utf-8") as lines:
        return {(row["dataset"], row["model"]): int(row["configuration"]) for row in csv.DictReader(lines)}
