"""GraphML and GEXF, through NetworkX. A file that declares entities or names a document type is refused.

XML lets a file define words that stand for other words; ten such definitions can grow to gigabytes, and one can name a
file of yours. No graph needs them, so a first pass over the file refuses any.
"""

from __future__ import annotations

import io
import xml.parsers.expat
from typing import Any

import numpy as np
import pyarrow as pa

from sharpen.errors import InputError, told_as
from sharpen.files.arrays import GraphFile
from sharpen.files.content import Content
from sharpen.files.table import DataTable, from_objects
from sharpen.limits import check_cells

_DEPTH = 100


def read_markup(content: Content) -> GraphFile:
    """The graph in a GraphML or GEXF file; undirected edges are given in both directions.

    >>> import networkx
    >>> karate = "\\n".join(networkx.generate_graphml(networkx.karate_club_graph()))
    >>> graph = read_markup(Content("karate.graphml", "graphml", karate.encode()))
    >>> graph.nodes.names, graph.edge_index.shape
    (['id', 'club'], (2, 156))
    """
    name = content.name
    _check_xml(content)
    try:
        import networkx
    except ImportError as error:
        raise InputError(f"{name} needs NetworkX to be read; pip install 'graph-sharpen[networkx]'") from error
    read = networkx.read_graphml if content.kind == "graphml" else networkx.read_gexf
    with told_as(f"{name} is not a {content.kind} file that NetworkX can read", "export the graph again"):
        graph = read(io.BytesIO(content.data))
    nodes = list(graph.nodes)
    if not nodes:
        raise InputError(f"{name} has no node; export the graph again")
    table = _nodes(content, graph, nodes)
    position = {node: i for i, node in enumerate(nodes)}
    rows = [(position[u], position[v], attributes.get("weight")) for u, v, attributes in graph.edges(data=True)]
    edges = np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2).T
    weight = _weights(name, nodes, rows)
    if not graph.is_directed():
        edges = np.concatenate([edges, edges[::-1]], axis=1)
        weight = None if weight is None else np.concatenate([weight, weight])
    return GraphFile(table, edges, weight)


def _check_xml(content: Content) -> None:
    """The file is well-formed XML without a document type, entities or a depth no graph has.

    >>> _check_xml(Content("g.gexf", "gexf", b"<!DOCTYPE x [<!ENTITY a 'b'>]><gexf>&a;</gexf>"))
    Traceback (most recent call last):
    sharpen.errors.InputError: g.gexf line 1 declares a document type or entity, which could fetch or grow other ...
    """
    parser = xml.parsers.expat.ParserCreate()
    depth = 0

    def place() -> str:
        return f"{content.name} line {parser.CurrentLineNumber}"

    def refuse(*_: Any) -> None:
        what = "declares a document type or entity, which could fetch or grow other text"
        raise InputError(f"{place()} {what}; remove the declaration, or export the graph again")

    def enter(*_: Any) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEPTH:
            raise InputError(f"{place()} is nested more than {_DEPTH} deep; export the graph again")

    def leave(*_: Any) -> None:
        nonlocal depth
        depth -= 1

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = enter
    parser.EndElementHandler = leave
    try:
        parser.Parse(content.data, True)
    except InputError:
        raise
    except (xml.parsers.expat.ExpatError, ValueError, LookupError) as error:
        raise InputError(f"{place()} is not well-formed XML ({error}); export the graph again") from error


def _nodes(content: Content, graph: Any, nodes: list[Any]) -> DataTable:
    def locate(row: int) -> str:
        return f"node {str(nodes[row])!r}"

    rows = [values for _, values in graph.nodes(data=True)]
    attributes = dict.fromkeys(name for row in rows for name in row)
    written = sum(map(len, rows))
    check_cells(content.name, len(nodes), len(attributes), written, free=2**22)
    columns: dict[str, pa.Array] = {"id": pa.array([str(node) for node in nodes])}
    for attribute in attributes:
        values = [row.get(attribute) for row in rows]
        if any(isinstance(value, dict) for value in values):
            continue  # GEXF keeps colours and positions of the drawing there
        if values == [str(node) for node in nodes]:
            continue  # the name again, as GEXF writes it
        key, known = str(attribute).strip(), [str(value) for value in values if value is not None]
        if key == "label" and content.kind == "gexf" and len(set(known)) == len(known):
            key = "name"  # GEXF calls the name of a node its label
        while not key or key in columns:
            key += "_"
        columns[key] = from_objects(values, lambda row, key=key: f"{content.name} {locate(row)}, attribute {key!r}")  # type: ignore[misc]
    return DataTable(content.name, pa.table(columns), locate)


def _weights(name: str, nodes: list[Any], rows: list[tuple[int, int, Any]]) -> np.ndarray | None:
    weights = [weight for _, _, weight in rows]
    if not weights or all(weight is None for weight in weights):
        return None
    for source, target, weight in rows:
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            edge = f"the edge from {str(nodes[source])!r} to {str(nodes[target])!r}"
            raise InputError(f"{name}: {edge} has weight {weight!r}; give every edge a number, or none a weight")
    return np.array([float(min(weight, 1e308)) for weight in weights])  # a whole number may exceed every float
