"""Graphs that are read as files are: DataFrames, and a NetworkX graph without features, which gets some from its structure."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from sharpen.files import GraphTables
from sharpen.fitting.frames import Frames


def is_bare(data: Any) -> bool:
    """Whether its features have to be made: of DataFrames, or of a NetworkX graph with edges of which no node has an ``x``.

    >>> import networkx
    >>> graph = networkx.path_graph(3)
    >>> is_bare(graph), is_bare((np.eye(3), np.eye(3)))
    (True, False)
    >>> graph.nodes[1]["x"] = 0.5
    >>> is_bare(graph)
    False
    """
    if Frames.of(data) is not None:
        return True
    if type(data).__module__.split(".")[0] != "networkx" or not data.number_of_edges():
        return False
    return not any("x" in attributes for _, attributes in data.nodes(data=True))


def bare_tables(data: Any, y: Any = None) -> GraphTables:
    """What a file of such a graph would hold; nodes of a NetworkX graph go by their names as text.

    Args:
        data: The graph.
        y: As for :meth:`sharpen.fitting.frames.Frames.of`.

    >>> import networkx
    >>> tables = bare_tables(networkx.path_graph(3))
    >>> tables.ids.tolist(), tables.edge_index.tolist()
    (['0', '1', '2'], [[0, 1], [1, 2]])
    """
    frames = Frames.of(data, y)
    if frames is not None:
        return frames.tables()
    position = {node: i for i, node in enumerate(data.nodes)}
    ends = [
        (position[one], position[other])
        for one, other, weight in data.edges(data="weight", default=1)
        if not (isinstance(weight, Real) and weight == 0)
    ]
    return GraphTables(
        ids=np.array([str(node) for node in data.nodes], dtype=object),
        labels=np.full(len(position), None, dtype=object),
        frame=pd.DataFrame(index=pd.RangeIndex(len(position))),
        edge_index=np.array(ends, dtype=np.int64).reshape(-1, 2).T,
        edge_weight=None,
        guesses=[],
        fingerprint="",
        name="the graph",
        label_column=None,
        locate=str,
    )
