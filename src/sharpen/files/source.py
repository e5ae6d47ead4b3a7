"""Two tables, or one file that holds a graph whole, as nodes with features, labels and numbered edges."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from sharpen.errors import InputError
from sharpen.files.arrays import GraphFile, read_npz, read_pt
from sharpen.files.column import Column
from sharpen.files.columns import Columns, find, guess_id, guess_label, listed
from sharpen.files.content import Content, printable, read_file
from sharpen.files.decimals import SEPARATED_BY, decimal_commas, reading
from sharpen.files.delimited import read_delimited
from sharpen.files.edges import check_weights, read_edges
from sharpen.files.labels import read_labels
from sharpen.files.markup import read_markup
from sharpen.files.table import Table, as_text, canonical, same_length, to_objects
from sharpen.files.typed import read_json_lines, read_parquet
from sharpen.graph import Graph

_TABLES: dict[str, Callable[[Content], Table]] = {
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

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return len(self.ids)

    def place(self, row: int, column: str) -> str:
        """The words for one cell: file, line or row, column."""
        return f"{self.name} {self.locate(row)}, column {column!r}"


def read_nodes_and_edges(
    nodes: Path | str, edges: Path | str | None = None, columns: Columns | None = None
) -> GraphTables:
    """The graph in a table of nodes and a table of edges, or in one file that holds both.

    Ids are compared as text: ``1``, ``"1"``, ``1.0`` and ``"1.0"`` name the same node, ``"01"`` another one.

    Args:
        nodes: CSV, TSV, Parquet or JSON lines, packed or not; or ``.npz``, GraphML, GEXF or a saved PyG ``Data``, which
            hold their edges.
        edges: CSV, TSV, Parquet or JSON lines; None for a graph without edges, or when ``nodes`` holds them.
        columns: What the columns mean, where their names do not say.

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
    columns = columns or Columns()
    content = read_file(nodes)
    digest = hashlib.sha256(content.data)
    whole = _GRAPHS[content.kind](content) if content.kind in _GRAPHS else None
    table = _TABLES[content.kind](content) if whole is None else whole.nodes
    del content  # a large file is not kept twice
    if table.columns.num_rows == 0:
        raise InputError(f"{table.name} has a header but no row; add one row per node")
    guesses = list(table.notes)
    id_column = _choose_id(table, columns, whole, guesses)
    label_column = _choose_label(table, columns, whole, id_column, guesses)
    ids, keys = _ids(table, id_column)
    labels = np.full(len(ids), None, dtype=object)
    if label_column is not None:
        labels, notes = read_labels(table.columns.column(label_column), lambda row: table.place(row, label_column))
        guesses += notes
    frame = _candidates(table, columns, {id_column, label_column})
    commas = _decimal_commas(table, [str(name) for name in frame], columns.decimal_commas, guesses)
    weight_comma = False
    if whole is not None:
        if edges is not None:
            raise InputError(f"{table.name} holds its own edges, so {edges} is not needed; leave one of the two out")
        edge_index, weight = whole.edge_index, whole.edge_weight
        check_weights(weight, lambda edge: f"{table.name}: edge {edge + 1}")
    elif edges is None:
        edge_index, weight = np.zeros((2, 0), dtype=np.int64), None
        guesses.append("edges: none given")
    else:
        content = read_file(edges)
        digest.update(content.data)
        edge_table = _edge_table(content)
        del content
        guesses += edge_table.notes
        edge_index, weight, weight_comma = read_edges(edge_table, columns, table.name, keys, guesses)
        if not edge_table.columns.num_rows:
            guesses.append(f"edges: none, since {edge_table.name} has a header but no row")
    if weight is not None:
        edge_index, weight = _without_zeros(edge_index, weight, guesses)
        if weight.size:
            guesses.append(
                f"edge weights: {weight.min():g} to {weight.max():g}, {mean_weight(weight):g} in the mean; "
                f"GCN and GraphSAGE use them, GAT and MLP do not"
            )
    return GraphTables(
        ids=ids,
        labels=labels,
        frame=frame,
        edge_index=edge_index,
        edge_weight=weight,
        guesses=guesses,
        fingerprint=digest.hexdigest(),
        name=table.name,
        label_column=label_column,
        locate=table.locate,
        columns=table.names,
        edges_given=whole is not None or edges is not None,
        decimal_commas=commas,
        weight_comma=weight_comma,
        delimiter=table.delimiter,
    )


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
        tables: What the files hold.
        x: Features, one row per node: what :class:`sharpen.files.FeatureEncoder` gives.
        class_names: The classes in order. A node of another class counts as one of unknown class.
        name: What to call the graph.
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


def _choose_id(table: Table, columns: Columns, whole: GraphFile | None, guesses: list[str]) -> str:
    if columns.id is not None:
        return find(table.name, table.names, columns.id, "--id")
    if whole is not None:
        return whole.id_column
    label_missing = columns.label is None and guess_label(table.names, taken="") is None
    found = guess_id(table.name, table.names, label_missing=label_missing)
    guesses.append(f"id column: {found} (guessed)")
    return found


def _choose_label(
    table: Table, columns: Columns, whole: GraphFile | None, id_column: str, guesses: list[str]
) -> str | None:
    if columns.label == "":
        return None
    if columns.label is not None:
        found = find(table.name, table.names, columns.label, "--label")
        if found == id_column:
            raise InputError(f"{table.name}: {found!r} is both the id and the label; name two columns")
        return found
    if whole is not None and whole.label_column is not None:
        return whole.label_column
    candidates = [name for name in table.names if name not in (columns.features or ()) and name not in columns.ignore]
    guess = guess_label(candidates, taken=id_column)
    guesses.append(f"label column: {guess} (guessed)" if guess else "label column: none found")
    return guess


def _ids(table: Table, column: str) -> tuple[np.ndarray, pa.Array]:
    text = as_text(table.columns.column(column), lambda row: table.place(row, column))
    if text.null_count:
        row = int(np.argmax(text.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(
            f"{table.place(row, column)} is blank, but every node needs an id; fill it in or remove the row"
        )
    keys = canonical(text)
    if pc.count_distinct(keys).as_py() < len(keys):
        first = pc.index_in(keys, value_set=pc.unique(keys)).to_numpy(zero_copy_only=False)
        _, rows = np.unique(first, return_index=True)
        again = int(np.setdiff1d(np.arange(len(keys)), rows)[0])
        before = int(np.flatnonzero(first == first[again])[0])
        raise InputError(
            f"{table.place(again, column)}: the id {str(text[again])!r} already stands on {table.locate(before)}; "
            f"give every node its own id, or name another column with --id"
        )
    return to_objects(text), keys


def _candidates(table: Table, columns: Columns, taken: set[str | None]) -> pd.DataFrame:
    ignored = {find(table.name, table.names, name, "--ignore") for name in columns.ignore}
    if columns.features is None:
        wanted = [name for name in table.names if name not in taken and name not in ignored]
    else:
        wanted = [find(table.name, table.names, name, "--features") for name in dict.fromkeys(columns.features)]
        both = next((name for name in wanted if name in taken or name in ignored), None)
        if both is not None:
            raise InputError(
                f"{table.name}: {both!r} is given as a feature and as id, label or ignored; give it one part"
            )
    series: dict[str, Any] = {}
    for name in wanted:
        for key, values in _expanded(table, name).items():
            if pa.types.is_floating(values.type):
                _check_finite(table, name, values)
            series[key] = values.to_pandas()
    return pd.DataFrame(series, index=pd.RangeIndex(table.columns.num_rows))


def _decimal_commas(table: Table, names: Sequence[str], known: Sequence[str], guesses: list[str]) -> list[str]:
    if table.delimiter not in SEPARATED_BY:
        return []
    values = {name: table.columns.column(name) for name in names}
    some = [name for name in names if pc.any(pc.match_substring_regex(values[name], "[.,]")).as_py()]
    text = {name: Column(name, values[name], str).filled for name in some}
    found = decimal_commas(text, known)
    for name in known:
        if name not in found and name in text and reading(text[name], known=True):
            row = int(
                np.argmax(pc.fill_null(pc.match_substring(text[name], "."), False).to_numpy(zero_copy_only=False))
            )
            value = text[name][row].as_py()
            whole, comma = value.replace(".", ""), value.replace(".", ",")
            raise InputError(
                f"{table.place(row, name)} is {value}, where the model was fitted on decimal commas; write {whole}, or "
                f"{comma} if that is meant"
            )
    if found:
        guesses.append(f"{table.name}: decimal commas in column{'s' * (len(found) > 1)} {listed(found)} (guessed)")
    return found


def _expanded(table: Table, name: str) -> dict[str, pa.ChunkedArray]:
    """A column of lists as one column per position; any other as it is."""
    values = table.columns.column(name)
    kind = values.type
    way_out = f"give text, numbers or lists of numbers, or leave the column out with --ignore {name}"
    if pa.types.is_dictionary(kind):
        values = values.cast(kind.value_type)
    if pa.types.is_struct(kind) or pa.types.is_map(kind) or pa.types.is_union(kind) or pa.types.is_binary(kind):
        raise InputError(f"{table.name}, column {name!r} holds {printable(str(kind))} values; {way_out}")
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        return {name: values}
    if not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
        raise InputError(
            f"{table.name}, column {name!r} holds lists of {printable(str(kind.value_type))} values; {way_out}"
        )
    lists = values.to_pylist()
    width = same_length(entry or () for entry in lists)
    if not width or any(number is None for entry in lists for number in entry):
        usual = len(lists[0] or ())
        row = next((i for i, e in enumerate(lists) if len(e or ()) != usual or None in (e or ())), 0)
        raise InputError(f"{table.place(row, name)} does not hold {usual} numbers as {table.locate(0)} does; {way_out}")
    matrix = np.array(lists, dtype=np.float64)
    return {f"{name}[{i}]": pa.chunked_array([matrix[:, i]]) for i in range(width)}


def _check_finite(table: Table, name: str, values: pa.ChunkedArray) -> None:
    wrong = pc.invert(pc.is_finite(values))
    if pc.any(wrong).as_py():
        row = int(np.argmax(pc.fill_null(wrong, False).to_numpy()))
        raise InputError(
            f"{table.place(row, name)} is {values[row].as_py()}; leave it empty (null) if unknown, or give a finite number"
        )


def _edge_table(content: Content) -> Table:
    if content.kind in _GRAPHS:
        raise InputError(f"{content.name} holds a whole graph; give it as the only file, or give the edges as a table")
    return _TABLES[content.kind](content)


def _without_zeros(edge_index: np.ndarray, weight: np.ndarray, guesses: list[str]) -> tuple[np.ndarray, np.ndarray]:
    zero = weight == 0
    if zero.any():
        guesses.append(f"edges of weight 0: {int(zero.sum())} left out")
        edge_index, weight = edge_index[:, ~zero], weight[~zero]
    return edge_index, weight
