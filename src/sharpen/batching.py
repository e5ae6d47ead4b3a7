"""How a graph that does not fit is taken in pieces: a name that says completely how, as a split's name does.

=======================  ==============================================================================================
``clusters-64-4``        64 parts with few edges between them (METIS); a batch is the graph on 4 parts drawn together
``clusters-64-4-2``      the same, and two such batches make one step of the optimiser
``neighbors-10-512``     a batch is 512 nodes and, hop by hop, up to 10 drawn neighbours of each node met (PyG's loader)
``neighbors-all-512-2``  the same with all neighbours, two batches a step
=======================  ==============================================================================================

Batches of one step may be computed side by side, on several processes; how many processes there are changes nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sharpen.errors import InputError

KINDS = ("clusters", "neighbors")
_PATTERN = re.compile(r"(?:clusters-(?P<parts>\d+)|neighbors-(?P<fanout>\d+|all))-(?P<size>\d+)(?:-(?P<per_step>\d+))?")


@dataclass(frozen=True)
class Batching:
    """The numbers in a batching's name.

    Args:
        kind: ``clusters`` or ``neighbors``.
        size: How many parts, or nodes, make a batch.
        parts: Of clusters: how many there are.
        fanout: Of neighbours: how many are drawn for a node; None for all.
        per_step: How many batches make a step.

    >>> Batching.parse("clusters-64-4-2")
    Batching(kind='clusters', size=4, parts=64, fanout=None, per_step=2)
    >>> Batching.parse("clusters-64-4-1").name
    'clusters-64-4'
    >>> Batching.parse("clusters")
    Traceback (most recent call last):
    sharpen.errors.InputError: batching is 'clusters'; write it like 'clusters-64-4' (parts, parts a batch) or
    'neighbors-10-512' (neighbours, nodes a batch)
    """

    kind: str
    size: int
    parts: int = 0
    fanout: int | None = None
    per_step: int = 1

    @classmethod
    def parse(cls, name: str) -> Batching:
        """From the name."""
        match = _PATTERN.fullmatch(str(name))
        if match is None:
            forms = "'clusters-64-4' (parts, parts a batch) or 'neighbors-10-512' (neighbours, nodes a batch)"
            raise InputError(f"is {name!r}; write it like {forms}", field="batching")
        numbers = {key: int(value) for key, value in match.groupdict().items() if value not in (None, "all")}
        if min(numbers.values()) < 1:
            raise InputError(f"is {name!r}; give numbers of at least 1", field="batching")
        if numbers.get("parts", numbers["size"]) < numbers["size"]:
            raise InputError(f"is {name!r}, more parts a batch than there are; give fewer", field="batching")
        return cls("clusters" if "parts" in numbers else "neighbors", **numbers)

    @property
    def name(self) -> str:
        """The name, in its shortest form."""
        first = self.parts if self.kind == "clusters" else (self.fanout or "all")
        return f"{self.kind}-{first}-{self.size}" + (f"-{self.per_step}" if self.per_step > 1 else "")
