"""Synthetic graphs of a published size where the published data is not at hand: to measure time and memory, not accuracy.

    python benchmarks/synthetic.py ogbn-products /data/products --scale 0.1     # then: sharpen recipe run … --stored /data/products

Nodes, edges, features, classes and the shares of the split are the published ones. Degrees follow a Lomax law (a power law with a
bend) with the published mean; every node has an edge, and one, well above the others, has the published maximum. The published
share of edges joins nodes of one class, nearly all inside communities of about a thousand nodes, of which a class has many;
features are a noisy vector of the class. So METIS has something to find, and training something to learn. Graphs scaled down to a
few thousand nodes have smaller communities, whose hubs have fewer edges.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sharpen.datasets import Dataset, Splits
from sharpen.errors import InputError
from sharpen.graph.splits import Split
from sharpen.large.disk import is_free, save_array
from sharpen.large.recipes import keep_split
from sharpen.large.stored import StoredGraph, open_graph, write_stored


@dataclass(frozen=True)
class Size:
    """What is published about a graph; edges are undirected.

    Args:
        nodes, edges, features, classes: Its size.
        max_degree: Of the best connected node.
        exponent: Of the Lomax law whose mean and expected maximum are those of the graph.
        homophily: The share of edges between nodes of one class.
        split: How many nodes are for training, validation and test.
    """

    nodes: int
    edges: int
    features: int
    classes: int
    max_degree: int
    exponent: float
    homophily: float
    split: tuple[int, int, int]

    def scaled(self, scale: float) -> Size:
        """The same kind of graph, smaller or larger.

        >>> SIZES["ogbn-arxiv"].scaled(0.1).nodes
        16934
        """
        sizes = [max(1, round(scale * part)) for part in self.split]
        nodes, edges = max(sum(sizes), round(scale * self.nodes)), round(scale * self.edges)
        most = max(2, round(self.max_degree * scale ** (1 / self.exponent)))
        return Size(
            nodes,
            edges,
            self.features,
            self.classes,
            most,
            self.exponent,
            self.homophily,
            (sizes[0], sizes[1], sizes[2]),
        )


SIZES = {
    "ogbn-arxiv": Size(169343, 1157799, 128, 40, 13161, 1.65, 0.65, (90941, 29799, 48603)),
    "ogbn-products": Size(2449029, 61859140, 100, 47, 17481, 2.8, 0.81, (196615, 39323, 2213091)),
}
_COMMUNITY = 1000
_DRAWN_AT_ONCE = 2**22


def generate(name: str, folder: str | os.PathLike[str], scale: float = 1.0, seed: int = 0) -> Dataset:
    """A stored graph of the size of a published one, with a split of the same shares; one that is in the folder is opened.

    Args:
        name: ``ogbn-arxiv`` or ``ogbn-products``.
        folder: Where it is, or is to be; new, or empty.
        scale: Of nodes and edges alike.
        seed: Of all draws.

    >>> place = Path(tempfile.mkdtemp()) / "small"
    >>> made = generate("ogbn-arxiv", place, scale=0.01)
    >>> made.graph, made.splits["given-0"]
    (Graph('generated-ogbn-arxiv', nodes=1693, edges=23156, features=128, classes=40),
     Split('given-0', train=909, val=298, test=486))
    """
    if name not in SIZES:
        raise InputError(f"there is no published size for {name!r}; choose one of {', '.join(SIZES)}")
    size, where = SIZES[name].scaled(scale), Path(folder)
    origin = {"generated": name, "scale": float(scale), "seed": int(seed)}
    if is_free(where):
        graph = _write(size, where, f"generated-{name}", seed, origin)
    elif (where / "graph.json").exists():
        graph = open_graph(where)
    else:
        raise InputError(f"{where} holds something else than a generated graph; give a new folder, or an empty one")
    found = json.loads((where / "graph.json").read_text(encoding="utf-8")).get("origin")
    if found != origin:
        raise InputError(f"{where} holds a graph made from {found}, not from {origin}; give another folder")
    order = np.random.default_rng([seed, 1]).permutation(size.nodes)
    train, val, test = np.split(order[: sum(size.split)], np.cumsum(size.split)[:2])
    split = Split("given-0", train, val, test)
    keep_split(split, where)
    return Dataset(graph.name, graph, splits=Splits([split], y=graph.y))


def _write(size: Size, folder: Path, name: str, seed: int, origin: dict[str, Any]) -> StoredGraph:
    rng = np.random.default_rng([seed, 0])
    communities = max(size.classes, size.nodes // _COMMUNITY)
    community = rng.integers(communities, size=size.nodes)
    class_of = rng.permutation(np.arange(communities) % size.classes)
    y = class_of[community]
    edges = _edges(size, community, rng)
    rowptr, col = _adjacency(edges, size.nodes)
    del edges
    centers = rng.normal(size=(size.classes, size.features)).astype(np.float32)

    def features(out: np.ndarray) -> None:
        for start in range(0, size.nodes, 2**16):
            own = centers[y[start : start + 2**16]]
            out[start : start + 2**16] = own + 2 * rng.standard_normal(own.shape, dtype=np.float32)

    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".generating-") as unfinished:
        x = Path(unfinished, "x.npy")
        save_array(x, (size.nodes, size.features), np.dtype(np.float32), features)
        names = tuple(str(c) for c in range(size.classes))
        arrays = {"rowptr": rowptr, "col": col, "y": y}
        return write_stored(folder, arrays, size.features, names, name, x, origin)


def _edges(size: Size, community: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each edge once, as smaller end · nodes + larger end, sorted."""
    order = np.argsort(community, kind="stable")
    weight = rng.pareto(size.exponent, size.nodes)  # beside the one edge that every node has
    weight = np.minimum(weight * (2 * size.edges / size.nodes - 1) / weight.mean(), size.max_degree)
    hub = int(weight.argmax())
    weight[hub] = 0  # it has as many as are published, drawn apart
    # Another hub has more edges than its community has nodes, too: the rest go elsewhere.
    near = np.minimum(weight, 0.3 * size.nodes / (community.max() + 1))
    # Edges between communities meet the same class now and then, too.
    inside = (size.homophily - 1 / size.classes) / (1 - 1 / size.classes)
    near_ends, far_ends = np.cumsum(near), np.cumsum(weight - inside * near)
    first = np.searchsorted(community[order], np.arange(community.max() + 2))
    start, stop = (np.concatenate([[0.0], near_ends])[bounds] for bounds in (first[:-1], first[1:]))

    def somewhere(ends: np.ndarray, count: int) -> np.ndarray:
        return np.minimum(np.searchsorted(ends, np.sort(rng.random(count)) * ends[-1]), size.nodes - 1)

    def at_home(place: np.ndarray) -> np.ndarray:
        home, u = community[order[place]], rng.random(len(place))
        return np.minimum(np.searchsorted(near_ends, start[home] + u * (stop[home] - start[home])), size.nodes - 1)

    def keys(place: np.ndarray, other: np.ndarray) -> np.ndarray:
        one, two = order[place], order[other]
        key: np.ndarray = np.minimum(one, two) * np.int64(size.nodes) + np.maximum(one, two)
        return key[one != two]

    every = np.arange(size.nodes)
    someone = at_home(every)
    friends = rng.choice(size.nodes - 1, min(size.max_degree, size.nodes) - 1, replace=False)
    kept = _distinct(
        [
            keys(every, np.where(someone == every, (every + 1) % size.nodes, someone)),
            keys(np.full(len(friends), hub), friends + (friends >= hub)),
        ]
    )
    found = kept
    # Those inside come first, as many as there are to be; small communities may have no room for all of them.
    for ends, until, rounds in (
        (near_ends, round(inside * size.edges) + len(friends), 20),
        (far_ends, size.edges, 10**6),
    ):
        while len(found) < until and rounds:
            drawn, count = [found], round(1.02 * (until - len(found))) + 100
            for begun in range(0, count, _DRAWN_AT_ONCE):
                place = somewhere(ends, min(_DRAWN_AT_ONCE, count - begun))
                other = at_home(place) if ends is near_ends else rng.permutation(somewhere(ends, len(place)))
                drawn.append(keys(place, other))
            found, rounds = _distinct(drawn), rounds - 1
    extra = len(found) - size.edges
    surplus = rng.choice(len(found), min(len(found), 2 * extra + 100), replace=False)
    return np.delete(found, surplus[~np.isin(found[surplus], kept)][:extra])


def _distinct(keys: list[np.ndarray]) -> np.ndarray:
    """All of them once, sorted; not by np.unique, whose hash table is many times slower on so many numbers."""
    found = np.concatenate(keys)
    found.sort()
    return found[np.append(True, found[1:] != found[:-1])]


def _adjacency(edges: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Both directions and a self-loop per node, in compressed rows."""
    a, b = (part.astype(np.int32) for part in np.divmod(edges, nodes))
    own = np.arange(nodes, dtype=np.int32)
    row, col = np.concatenate([a, b, own]), np.concatenate([b, a, own])
    del a, b
    matrix = sp.csr_array(sp.coo_array((np.ones(len(row), dtype=np.int8), (row, col)), shape=(nodes, nodes)))
    matrix.sort_indices()
    return matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)


def main() -> None:
    """Make one."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("name", choices=list(SIZES))
    options.add_argument("folder", type=Path, help="new, or empty")
    options.add_argument("--scale", type=float, default=1.0, help="of nodes and edges alike")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    print(generate(given.name, given.folder, given.scale, given.seed).graph)


if __name__ == "__main__":
    main()
