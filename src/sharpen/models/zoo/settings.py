"""The settings that methods were published with: ``settings/<model>.yaml``, one file each.

.. code-block:: yaml

    source: sunilkmaurya/FSGNN, run_3_hop.sh      # where they stand; another text is another seed of what is drawn from the grid
    all: {epochs: 1500, hidden: 64}               # what holds for every graph
    default: {lr: 0.01, hops: 3}                  # what to take where nothing was published; by the authors' own advice
    published:                                    # per graph; mean and sd in percent, on which split, and where it stands
      cora: {lr: 0.01, dropout: 0.5, mean: 87.93, sd: 1.0, split: geom-gcn, table: 2}
    grid: {lr: [0.01, 0.005], hops: [3, 8]}       # what the authors searched

A key is a field of :class:`sharpen.Trial`, or else an argument of the model. Nothing here imports torch.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

_FIELDS = ("layers", "hidden", "dropout", "norm", "residual", "input_linear", "lr", "weight_decay", "epochs")
_SAID = ("mean", "sd", "split", "table", "why")


@dataclass(frozen=True)
class Settings:
    """The parts of a method's file, each as a whole; ``scores`` are the published means: on which split (``paper``: those
    that the paper runs the graph on), where they stand, and ``why`` ours differs, where that is known."""

    source: str
    default: Mapping[str, Any]
    published: Mapping[str, Mapping[str, Any]]
    grid: Mapping[str, tuple[Any, ...]]
    scores: Mapping[str, Mapping[str, Any]]

    def of(self, dataset: str | None) -> dict[str, Any]:
        """The published setting of a graph, or the default: fields of a trial, ``model_args`` among them.

        >>> settings_of("fsgnn").of("cora")["model_args"]["hops"]
        3
        """
        return _as_fields(self.published.get(dataset or "", self.default))

    def configurations(self, dataset: str, count: int) -> list[dict[str, Any]]:
        """So many settings for a graph: the published one, then others drawn from the grid; the same ones every time.

        >>> first, second = settings_of("fsgnn").configurations("cora", 2)
        >>> first == settings_of("fsgnn").of("cora") != second
        True
        """
        base = dict(self.published.get(dataset, self.default))
        every = [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]
        random.Random(f"{self.source} {dataset}").shuffle(every)  # a draw, not a secret
        found = [base]
        for drawn in every:
            if len(found) < count and (base | drawn) not in found:
                found.append(base | drawn)
        return [_as_fields(one) for one in found]


def _as_fields(setting: Mapping[str, Any]) -> dict[str, Any]:
    """A setting as fields of a trial."""
    own = {name: value for name, value in setting.items() if name not in _FIELDS}
    return {name: value for name, value in setting.items() if name in _FIELDS} | ({"model_args": own} if own else {})


@cache
def settings_of(model: str) -> Settings | None:
    """The published settings of a model; None if there is no file of them.

    >>> settings_of("my_net.py:Net") is None
    True
    """
    file = files(__package__).joinpath(f"settings/{model}.yaml")
    if not file.is_file():
        return None
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    shared, rows = content.get("all") or {}, content.get("published") or {}
    return Settings(
        source=content["source"],
        default=shared | (content.get("default") or {}),
        published={
            dataset: shared | {name: value for name, value in row.items() if name not in _SAID}
            for dataset, row in rows.items()
        },
        grid={name: tuple(values) for name, values in (content.get("grid") or {}).items()},
        scores={dataset: {name: row[name] for name in _SAID if name in row} for dataset, row in rows.items()},
    )
