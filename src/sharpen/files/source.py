"""Two tables, or one file that holds a graph whole, as nodes with features, labels and numbered edges."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse

from sharpen.errors import InputError, Problems
from sharpen.files.arrays import GraphFile, read_npz, read_pt
from sharpen.files.columns import Columns, find, guess_label
from sharpen.files.content import Content, read_file
from sharpen.files.delimited import read_delimited
from sharpen.files.edges import check_weights, read_edges
from sharpen.files.features import feature_columns, written_with_commas
from sharpen.files.ids import choose_id, id_keys, is_edge, read_ids, without_copies
from sharpen.files.labels import read_labels
from sharpen.files.markup import read_markup
from sharpen.files.table import DataTable
from sharpen.files.typed import read_json_lines, read_parquet
from sharpen.graph import Graph

_TABLES: dict[str, Callable[[Content], DataTable]] = {
    "csv": read_delimited, "tsv": read_delimited, "parquet": read_parquet, "jsonl": read_json_lines
}  # fmt: skip
_GRAPHS: dict[str, Callable[[Content], GraphFile]] = {
    "npz": read_npz, "pt": read_pt, "graphml": read_markup, "gexf": read_markup
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class GraphTables:
    """What the files of a graph hold, with nodes in the order of the file.

    Args:
        ids: The name of each node as text, as it stands in the file.
        labels: The class of each node as text, None where unknown.
        frame: The columns to learn from, one row per node, as they stand in the file.
        edge_index: ``[2, E]`` row numbers, sources above targets, in the order of the file.
        edge_weight: ``[E]`` non-negative numbers, or None.
        guesses: What was guessed or decided, one line each, for the user to see.
        fingerprint: SHA-256 of the files' contents.
        name: The node file as the user named it.
        label_column: The column of labels, or None.
        locate: From a row to the words for it, such as ``"line 2"``.
        columns: All columns of the node file, whatever their part.
        edges_given: Whether there was a place for edges to stand, even if none stands there.
        decimal_commas: The columns of ``frame`` whose numbers are written with a decimal comma.
        weight_comma: Whether the weights were.
        delimiter: What separates the cells of the node file, where something does.
        id_column: The column of ids, where there is one.
    """

    ids: np.ndarray
    labels: np.ndarray
    frame: pd.DataFrame
    edge_index: np.ndarray
    edge_weight: np.ndarray | None
    guesses: list[str]
    fingerprint: str
    name: str
    label_column: str | None
    locate: Callable[[int], str] = field(repr=False)
    columns: Sequence[str] = ()
    edges_given: bool = True
    decimal_commas: Sequence[str] = ()
    weight_comma: bool = False
    delimiter: str | None = None
    id_column: str | None = None

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return len(self.ids)

    def place(self, row: int, column: str) -> str:
        """The words for one cell: file, line or row, column."""
        return f"{self.name} {self.locate(row)}, column {column!r}"


def read_nodes_and_edges(
    nodes: Path | str,
    edges: Path | str | None = None,
    columns: Columns | None = None,
    problems: Problems | None = None,
    *,
    known_ids: Sequence[str] | np.ndarray | None = None,
) -> GraphTables:
    """The graph in a table of nodes and a table of edges, or in one file that holds both.

    Ids are compared as text: ``1``, ``"1"``, ``1.0`` and ``"1.0"`` name the same node, ``"01"`` another one.

    Args:
        nodes: CSV, TSV, Parquet or JSON lines, packed or not; or ``.npz``, GraphML, GEXF or a saved PyG ``Data``, which
            hold their edges.
        edges: CSV, TSV, Parquet or JSON lines; None for a graph without edges, or when ``nodes`` holds them.
        columns: What the columns mean, where their names do not say.
        problems: Receives what is wrong, for the caller to tell together with what else is; what is given back then is not to
            be used. None: all that is wrong is told here, at once.
        known_ids: Ids that the table of nodes should hold, to find their column by, where there are no edges.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "nodes.csv").write_text("id,age,label\\na,31,cat\\nb,4,\\n")
    >>> _ = (folder / "edges.csv").write_text("source,target\\na,b\\n")
    >>> tables = read_nodes_and_edges(folder / "nodes.csv", folder / "edges.csv")
    >>> tables.ids, tables.labels, tables.edge_index.tolist(), list(tables.frame)
    (array(['a', 'b'], dtype=object), array(['cat', None], dtype=object), [[0], [1]], ['age'])
    >>> tables.guesses
    ['id column: id (guessed)', 'label column: label (guessed)', 'source and target columns: source, target (guessed)']
    """
    if problems is None:
        with Problems() as problems:
            return read_nodes_and_edges(nodes, edges, columns, problems, known_ids=known_ids)
    columns = columns or Columns()
    files = read_tables(nodes, edges, columns, problems)
    tables = assembled(files.nodes, files.edges, columns, problems, whole=files.whole, known_ids=known_ids)
    return replace(tables, fingerprint=files.fingerprint)


class Files(NamedTuple):
    """What two files hold, before columns are given a meaning: see :func:`read_tables`."""

    nodes: DataTable
    edges: DataTable | None
    whole: GraphFile | None
    fingerprint: str


def read_tables(nodes: Path | str, edges: Path | str | None, columns: Columns, problems: Problems) -> Files:
    """The tables of nodes (each row once) and of edges, or the file that holds both."""
    content = read_file(nodes)
    digest = hashlib.sha256(content.data)
    whole = _GRAPHS[content.kind](content) if content.kind in _GRAPHS else None
    table = _TABLES[content.kind](content) if whole is None else whole.nodes
    del content  # a large file is not kept twice
    if table.columns.num_rows == 0:
        raise InputError(f"{table.name} has a header but no row; add one row per node")
    edge_table = None
    if whole is None:
        table = without_copies(table)
        if edges is not None:
            with problems.collected():
                edge_table = _edge_table(read_file(edges), table, columns, digest)
    elif edges is not None:
        raise InputError(f"{table.name} holds its own edges, so {edges} is not needed; leave one of the two out")
    return Files(table, edge_table, whole, digest.hexdigest())


def assembled(
    table: DataTable,
    edges: DataTable | None,
    columns: Columns,
    problems: Problems,
    *,
    whole: GraphFile | None = None,
    known_ids: Sequence[str] | np.ndarray | None = None,
) -> GraphTables:
    """What a table of nodes and a table of edges hold, wherever they came from.

    Args:
        table: Of nodes, each row once.
        whole: The file that held both, if it was one.

    >>> import pyarrow as pa
    >>> from sharpen.files.table import by_row
    >>> nodes = DataTable("nodes", pa.table({"id": ["a", "b"], "age": [3, 4]}), by_row)
    >>> assembled(nodes, None, Columns(), Problems()).ids.tolist()
    ['a', 'b']
    """
    guesses = list(table.notes)
    if whole is not None:
        label = whole.label_column if columns.label is None else columns.label
        columns = replace(columns, id=columns.id or "id", label=label)
    id_column = label_column = None
    ids, keys = np.arange(table.columns.num_rows).astype(str).astype(object), None
    with problems.collected():
        if columns.id is not None:
            id_column = find(table.name, table.names, columns.id, "id")
        else:
            id_column = choose_id(table, edges, columns, known_ids)
            guesses.append(f"id column: {id_column} (guessed)")
    labels = np.full(len(ids), None, dtype=object)
    with problems.collected():
        label_column = _choose_label(table, columns, id_column, guesses)
    if id_column is not None:
        with problems.collected():
            keys = id_keys(table, id_column)
            ids = read_ids(table, id_column)
    if label_column is not None:
        with problems.collected():
            place = partial(table.place, column=label_column)
            labels, notes = read_labels(table.columns.column(label_column), place, columns.unknown_labels)
            guesses += notes
    frame, commas = pd.DataFrame(index=pd.RangeIndex(len(ids))), []
    with problems.collected():
        frame = feature_columns(table, columns, {id_column, label_column}, problems)
        commas = written_with_commas(table, [str(name) for name in frame], columns.decimal_commas, guesses)
    edge_index, weight, weight_comma = np.zeros((2, 0), dtype=np.int64), None, False
    with problems.collected():
        edge_index, weight, weight_comma = _edges(table, edges, columns, whole, keys, guesses)
    found = GraphTables(ids, labels, frame, edge_index, weight, guesses, "", table.name, label_column, table.locate)
    return replace(
        found,
        columns=table.names,
        edges_given=whole is not None or edges is not None,
        decimal_commas=commas,
        weight_comma=weight_comma,
        delimiter=table.delimiter,
        id_column=id_column,
    )


def _edges(
    table: DataTable,
    edges: DataTable | None,
    columns: Columns,
    whole: GraphFile | None,
    keys: pa.Array | None,
    guesses: list[str],
) -> tuple[np.ndarray, np.ndarray | None, bool]:
    """Numbered edges, their weights, and whether these had decimal commas."""
    edge_index, weight, comma = np.zeros((2, 0), dtype=np.int64), None, False
    if whole is not None:
        edge_index, weight = whole.edge_index, whole.edge_weight
        check_weights(weight, lambda edge: f"{table.name}: edge {edge + 1}")
    elif edges is None:
        guesses.append("edges: none given")
    else:
        guesses += edges.notes
        if keys is not None:
            edge_index, weight, comma = read_edges(edges, columns, table.name, keys, guesses)
        if not edges.columns.num_rows:
            guesses.append(f"edges: none, since {edges.name} has a header but no row")
    if weight is not None and not weight.all():
        guesses.append(f"edges of weight 0: {int((weight == 0).sum())} left out")
        edge_index, weight = edge_index[:, weight != 0], weight[weight != 0]
    if weight is not None and weight.size:
        guesses.append(
            f"edge weights: {weight.min():g} to {weight.max():g}, {mean_weight(weight):g} in the mean; "
            f"GCN and GraphSAGE use them, GAT and MLP do not"
        )
    return edge_index, weight, comma


def to_graph(
    tables: GraphTables,
    x: np.ndarray | scipy.sparse.csr_array,
    class_names: Sequence[str],
    name: str = "graph",
    *,
    unit: float | None = None,
    notes: list[str] | None = None,
) -> Graph:
    """The graph to train on: each edge once, directed ones as given, weights divided by their mean.

    So the unit of the weights does not matter: an edge of mean weight counts as much as a node counts for itself.

    Args:
        x: Features, one row per node: what :class:`sharpen.files.FeatureEncoder` gives.
        class_names: The classes in order. A node of another class counts as one of unknown class.
        unit: What to divide weights by: their mean when the model was fitted. None: their mean here.
        notes: Receives a line for each label that is no class.

    >>> tables = GraphTables(
    ...     ids=np.array(["a", "b"], dtype=object), labels=np.array(["cat", None], dtype=object), frame=pd.DataFrame(),
    ...     edge_index=np.array([[0, 0, 1], [1, 1, 1]]), edge_weight=None, guesses=[], fingerprint="", name="nodes.csv",
    ...     label_column="label", locate=str)
    >>> graph = to_graph(tables, np.eye(2), ["cat", "dog"])
    >>> graph, graph.y.tolist()
    (Graph('graph', nodes=2, edges=2, features=2, classes=2), [0, -1])
    """
    number = {label: i for i, label in enumerate(class_names)}
    y = np.array([number.get(label, -1) for label in tables.labels], dtype=np.int64)
    if notes is not None:
        stray = Counter(label for label in tables.labels if label is not None and label not in number)
        notes += [
            f"label {label!r} is no class of the model: {count} node{'s' * (count != 1)} with it count as unlabeled"
            for label, count in stray.items()
        ]
    weight = tables.edge_weight
    if weight is not None and weight.size:
        # The smallest and the largest number there are keep an edge that is next to nothing, or to all, beside the others.
        with np.errstate(over="ignore"):
            weight = weight / (mean_weight(weight) if unit is None else unit)
        weight = np.clip(weight, np.finfo(np.float64).tiny, np.finfo(np.float32).max)
    return Graph(x, tables.edge_index, y, class_names, name, weight)


def mean_weight(weight: np.ndarray) -> float:
    """The mean of positive numbers, whose sum may be too large for a float.

    >>> mean_weight(np.array([1e308, 1e308]))
    1e+308
    """
    largest = float(weight.max())
    return largest * float((weight / largest).mean())


def _choose_label(table: DataTable, columns: Columns, id_column: str | None, guesses: list[str]) -> str | None:
    if columns.label == "":
        return None
    if columns.label is not None:
        found = find(table.name, table.names, columns.label, "label")
        if found == id_column:
            raise InputError(f"{table.name}: {found!r} is both the id and the label; name two columns")
        return found
    candidates = [name for name in table.names if name not in (columns.features or ()) and name not in columns.ignore]
    guess = guess_label(candidates, taken=id_column or "")
    guesses.append(f"label column: {guess} (guessed)" if guess else "label column: none found")
    return guess


def _edge_table(content: Content, nodes: DataTable, columns: Columns, digest: Any) -> DataTable:
    """The table of edges; its bytes join the fingerprint of the files."""
    digest.update(content.data)
    if content.kind in _GRAPHS:
        raise InputError(f"{content.name} holds a whole graph; give it as the only file, or give the edges as a table")
    if content.kind in ("csv", "tsv"):
        return read_delimited(content, lambda cells: not is_edge(cells, nodes, columns))
    return _TABLES[content.kind](content)
