"""What a study's file gives as the value of a field: one, several, or one that depends on the cell."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, TypeVar

from sharpen.errors import InputError
from sharpen.paper import lambda_star, setting
from sharpen.studies.tuning import CHOSEN
from sharpen.studies.yaml_source import Source, Where
from sharpen.trial import Trial

_RUNS = "every variant has the runs of the protocol; leave it out, or give their number as runs"
_CELLS = "every variant has the cells of the study; name those under datasets and models"
_ELSEWHERE = {"split": _RUNS, "seed": _RUNS, "dataset": _CELLS, "model": _CELLS, "λ": "write it as lam"}
# What a variant may set: the rest of a trial comes from its cell and its run.
_FIELDS = (*(f.name for f in fields(Trial) if f.name not in _ELSEWHERE), "configuration")
_FLAGS = ("residual", "input_linear", "sharpen_val")
_WORDS = ("norm", "batching", "prior")
_WHOLE = ("layers", "hidden", "epochs", "configuration")
# What a value may start from, and the fields that are of its kind.
_BASES = {
    "lambda_star": ("lam", "lam_labeled", "lam_max", "balance"),
    **{name: (name,) for name in ("lr", "dropout", "weight_decay", "hidden", "layers", "epochs")},
}
_MOST_VARIANTS = 2_000
_T = TypeVar("_T")
# Dropout of 1 would leave nothing; steps around a setting stay in this range.
_MOST_DROPOUT = 0.95


@dataclass(frozen=True)
class Relative:
    """A value that depends on the cell: the paper's ``of`` times ``times`` plus ``plus``.

    >>> Relative("lambda_star", plus=0.05).of_cell("lam", "cora", "gcn")
    1.4
    """

    of: str
    times: float = 1.0
    plus: float = 0.0

    def of_cell(self, field: str, dataset: str, model: str) -> float | int:
        """The value of a field in a cell, as that field can be set: dropout below 1, layers and the like whole."""
        base = lambda_star(dataset, model) if self.of == "lambda_star" else setting(dataset, model)[self.of]
        if base is None:
            problem = f"the paper gives no lambda_star for {dataset} {model}; leave that cell out, or give a number"
            raise InputError(problem)
        # Rounded, so that 1.35 + 0.05 is the number 1.4 that a person would write, and the same trial.
        value = round(base * self.times + self.plus, 12)
        if field == "dropout":
            return min(max(value, 0.0), _MOST_DROPOUT)
        # What is less than one is no number of layers: it stays, and a trial refuses it.
        return round(value) if field in _WHOLE and value >= 1 else value


Value: TypeAlias = float | int | bool | str | Relative


def fields_of(source: Source, where: Where, given: Any) -> dict[str, Any]:
    """The fields of a trial that a mapping sets, each of which a variant may set.

    >>> source = Source("trial: {seed: 1}", "mine.yaml")
    >>> fields_of(source, ("trial",), source.content["trial"])
    Traceback (most recent call last):
    sharpen.errors.InputError: mine.yaml, line 1: there is no field 'seed' here: every variant has the runs of the protocol; ...
    """
    found = source.mapping(where, given)
    for name in found:
        if name in _ELSEWHERE:
            raise source.fail((*where, name), f"there is no field {name!r} here: {_ELSEWHERE[name]}")
    source.keys(where, found, _FIELDS, "field")
    return found


def values_of(source: Source, where: Where, field: str, given: Any) -> Iterator[tuple[str, Value]]:
    """Every value of a field that is meant, each with how a variant's name writes it.

    >>> source = Source("lam: {from: 0, to: 0.5, step: 0.25}", "mine.yaml")
    >>> list(values_of(source, ("lam",), "lam", source.content["lam"]))
    [('0', 0.0), ('0.25', 0.25), ('0.5', 0.5)]
    """
    listed = given if isinstance(given, list) and given else [given]
    if field in _FLAGS:
        yield str(given).lower(), source.flag(where, given)
    elif field == "model_args":
        for arguments in (source.mapping(where, each) for each in listed):
            yield ",".join(f"{name}={value}" for name, value in arguments.items()), json.dumps(arguments, default=str)
    elif field in _WORDS or given == CHOSEN:
        yield from ((str(word), str(word)) for word in listed)
    elif isinstance(given, dict) and "of" in given:
        source.keys(where, given, ("of", "times", "plus"))
        base = source.one_of((*where, "of"), "value to start from", given["of"], tuple(_BASES))
        if field not in _BASES[base]:
            own = [name for name, allowed in _BASES.items() if field in allowed]
            way = f"start from {own[0]}, or give a number" if own else "give a number"
            raise source.fail((*where, "of"), f"{field} cannot start from {base}, which is of another kind; {way}")
        times = limited(source, where, _numbers(source, (*where, "times"), given.get("times", 1)))
        plus = limited(source, where, _numbers(source, (*where, "plus"), given.get("plus", 0)))
        for t, p in itertools.product(times, plus):
            shown = [f"x{t:g}"] * ("times" in given) + [f"{p:+g}"] * ("plus" in given)
            yield "".join(shown) or base, Relative(base, t, p)
    else:
        for number in _numbers(source, where, given):
            yield f"{number:g}", number


def limited(source: Source, where: Where, values: Iterable[_T]) -> list[_T]:
    """All of some values, if there are not more of them than a study may have variants.

    >>> limited(Source("lam: [1, 2]", "mine.yaml"), ("lam",), iter([1, 2]))
    [1, 2]
    """
    found = list(itertools.islice(values, _MOST_VARIANTS + 1))
    if len(found) > _MOST_VARIANTS:
        problem = f"this stands for more than {_MOST_VARIANTS:,} variants; give larger steps, or fewer values"
        raise source.fail(where, problem)
    return found


def _numbers(source: Source, where: Where, given: Any) -> Iterator[float]:
    """One number, a list, or a range; lists may hold ranges."""
    if isinstance(given, list) and given:
        for index, part in enumerate(given):
            yield from _numbers(source, (*where, index), part)
    elif isinstance(given, dict):
        source.keys(where, given, ("from", "to", "step"))
        if len(given) < 3:
            problem = f"a range has three keys, not {', '.join(given)}; write {{from: 0, to: 1, step: 0.1}}"
            raise source.fail(where, problem)
        first, last, step = (source.number((*where, key), given[key]) for key in ("from", "to", "step"))
        wide = (last - first) / step if step else -1.0
        steps = round(wide) if abs(wide) <= _MOST_VARIANTS else -1
        if steps < 0 or abs(first + steps * step - last) > 1e-9 * max(1, abs(last)):
            raise source.fail(where, f"steps of {step:g} do not lead from {first:g} to {last:g}; fix one of the three")
        # Rounded, so that 3 × 0.05 is the number 0.15 that a person would write, and the same trial.
        yield from (round(first + i * step, 10) for i in range(steps + 1))
    else:
        yield source.number(where, given)
