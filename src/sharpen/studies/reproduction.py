"""What was published of a method on a graph, on a split that can be made here: the protocol ``published``.

A pair of a method and a graph counts where there is both: a setting that is published for the graph, and a mean. The paper's four
networks have the paper's. A mean of the paper's comparison goes before one of the method's own authors, whose splits often differ.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from sharpen.datasets.catalog import CATALOG
from sharpen.models.registry import REGISTRY
from sharpen.models.zoo.settings import settings_of
from sharpen.paper import published

_PUBLIC = "public"
_PAPER = "paper"
_SEEDS = 5


class Target(NamedTuple):
    """A published score, in percent.

    Args:
        mean, sd: What it is; the deviation is None where none is given.
        split: ``public``, or ``paper`` for those that the paper runs the graph on.
        table: Where it stands.
        why: What is known of a difference to ours.

    >>> target("cora", "normprop")
    Target(mean=85.46, sd=0.51, split='public', table="the paper's comparison", why=None)
    """

    mean: float
    sd: float | None
    split: str
    table: str
    why: str | None = None


@cache
def target(dataset: str, model: str) -> Target | None:
    """The published score of a method with published settings; None if there is none, or none on a split that can be made.

    >>> target("cora", "gcn").mean, target("cora", "fsgnn"), target("cora", "h2gcn")
    (84.54, None, None)
    """
    known, info = settings_of(model), REGISTRY.get(model)
    if known is None or info is None or (dataset not in known.published and not info.paper):
        return None
    said = known.scores.get(dataset, {})
    cited = published("comparison").get((dataset, info.title, "published"))
    split = _PUBLIC if said.get("split") == _PUBLIC else _PAPER
    if cited is not None and cited.mean is not None:
        return Target(cited.mean, cited.sd, split, "the paper's comparison", said.get("why"))
    if "mean" not in said or said.get("split") not in (_PUBLIC, _PAPER):
        return None
    return Target(said["mean"], said.get("sd"), split, said["table"], said.get("why"))


def published_draws(dataset: str, model: str, count: int | None = None) -> list[tuple[str, int]]:
    """The split and seed of every run: five on a single split, else one on each; none for a pair that has no :func:`target`.

    >>> published_draws("cora", "normprop", 2), len(published_draws("squirrel", "sgformer")), published_draws("cora", "h2gcn")
    ([('public', 0), ('public', 1)], 10, [])
    """
    known = target(dataset, model)
    if known is None:
        return []
    names = (_PUBLIC,) if known.split == _PUBLIC else CATALOG[dataset].splits.paper
    return [(names[seed % len(names)], seed) for seed in range(count or max(_SEEDS, len(names)))]
