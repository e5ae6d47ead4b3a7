"""Small graphs for these tests: towns of friends with a few roads between them."""

import numpy as np

from sharpen import Graph, Split

SPLIT = Split("towns", train=[0, 1, 3, 9], val=[4, 7, 10], test=[2, 5, 6, 8])


def towns(roads: bool, features: int = 5) -> Graph:
    """Twelve nodes in four towns of three; with roads between the towns, or without."""
    rng = np.random.default_rng(3)
    streets = [(3 * t + a, 3 * t + b) for t in range(4) for a, b in ((0, 1), (1, 2), (0, 2))]
    between = [(2, 3), (5, 6), (8, 9), (0, 11), (1, 7)] if roads else []
    edges = np.array(streets + between).T
    return Graph(x=rng.normal(size=(12, features)), edge_index=edges, y=np.repeat([0, 1, 0, 1], 3), name="towns")
