"""Files of a graph as what is trained on: a graph with its encoder, and a dataset to compare on."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from sharpen.datasets import Dataset
from sharpen.datasets.catalog import CATALOG, looks_like_a_file
from sharpen.errors import InputError, Problems
from sharpen.files.columns import Columns
from sharpen.files.encoder import FeatureEncoder
from sharpen.files.labels import check_labels, class_order
from sharpen.files.source import GraphTables, read_nodes_and_edges, to_graph
from sharpen.graph import Graph

_PARTS = (".gz", ".csv", ".tsv", ".parquet", ".jsonl", ".npz", ".pt", ".graphml", ".gexf")


class GraphInput(NamedTuple):
    """What was read from files, and the graph that came of it."""

    columns: Columns
    tables: GraphTables
    encoder: FeatureEncoder
    classes: tuple[str, ...]
    graph: Graph
    notes: list[str]


def read_graph(
    nodes: Path | str,
    edges: Path | str | None = None,
    columns: Columns | None = None,
    tell: Callable[[str], None] = lambda line: None,
    name: str = "graph",
) -> GraphInput:
    """A graph with labels from its files; all that is wrong with them is told at once.

    Args:
        nodes, edges, columns: As for :func:`sharpen.files.read_nodes_and_edges`.
        tell: Is given a line about each guess and each column.
    """
    columns = columns or Columns()
    with Problems() as problems:
        tables = read_nodes_and_edges(nodes, edges, columns, problems)
        for line in tables.guesses:
            tell(line)
        encoder = FeatureEncoder.fit(tables, problems)
        # What is wrong with the labels follows from what is wrong already, unless nobody has named them.
        unnamed = tables.label_column is None and tables.id_column is not None and columns.label is None
        notes = check_labels(tables) if unnamed or not problems.found else []
    classes = class_order(tables.labels)
    for line in encoder.describe():
        tell(line)
    graph = to_graph(tables, encoder.transform(tables), classes, name, unit=encoder.unit)
    return GraphInput(columns, tables, encoder, classes, graph, notes)


def read_dataset(
    nodes: Path | str,
    edges: Path | str | None = None,
    columns: Columns | None = None,
    metric: str = "accuracy",
    tell: Callable[[str], None] = lambda line: None,
) -> Dataset:
    """A graph of your own as a dataset: its labeled nodes can be split at random, and it is called as its node file is.

    Args:
        metric: ``accuracy``, ``balanced-accuracy``, or ``roc-auc`` for two classes.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "people.csv").write_text("id,age,label\\na,31,cat\\nb,4,dog\\nc,9,cat\\nd,7,dog\\n")
    >>> _ = (folder / "edges.csv").write_text("source,target\\na,b\\nc,d\\n")
    >>> read_dataset(folder / "people.csv", folder / "edges.csv").graph
    Graph('people', nodes=4, edges=2, features=1, classes=2)
    """
    name = dataset_name(nodes)
    return Dataset(name, read_graph(nodes, edges, columns, tell, name).graph, metric)


def dataset_name(nodes: Path | str) -> str:
    """What a dataset from a file is called: as the file, but never as one that the paper has settings for.

    >>> dataset_name("data/people.csv.gz"), dataset_name("cora.npz")
    ('people', 'own-cora')
    """
    name = Path(nodes).name
    while name.lower().endswith(_PARTS):
        name = name[: name.rindex(".")]
    name = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "graph"
    return f"own-{name}" if name in CATALOG else name


def graph_from_paths(data: Any, columns: Columns | None, tell: Callable[[str], None]) -> Any:
    """The graph in the file, or in the files of nodes and edges, whose paths are given; anything else as it is."""
    a_name = isinstance(data, str) and (data in CATALOG or not looks_like_a_file(data))
    if a_name or not isinstance(data, str | Path | tuple):
        return data
    paths = data if isinstance(data, tuple) else (data, None)
    if len(paths) != 2:
        raise InputError(f"data is a tuple of {len(paths)}; give two paths: that of the nodes and that of the edges")
    return read_dataset(paths[0], paths[1], columns, tell=tell).graph
