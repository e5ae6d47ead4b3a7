"""Small graphs for these tests: towns of friends with a few roads between them."""

import numpy as np

from sharpen import Graph, Split

SPLIT = Split("towns", train=[0, 1, 3, 9], val=[4, 7, 10], test=[2, 5, 6, 8])


def towns(roads: bool, features: int = 5, weighted: bool = False) -> Graph:
    """Twelve nodes in four towns of three; with roads between the towns, or without; streets wide and narrow, or alike."""
    rng = np.random.default_rng(3)
    streets = [(3 * t + a, 3 * t + b) for t in range(4) for a, b in ((0, 1), (1, 2), (0, 2))]
    between = [(2, 3), (5, 6), (8, 9), (0, 11), (1, 7)] if roads else []
    edges = np.array(streets + between).T
    weight = 0.5 + np.arange(edges.shape[1]) if weighted else None
    x, y = rng.normal(size=(12, features)), np.repeat([0, 1, 0, 1], 3)
    return Graph(x=x, edge_index=edges, y=y, name="towns", edge_weight=weight)
