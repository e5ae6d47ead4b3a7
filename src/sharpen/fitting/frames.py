"""Two DataFrames as a graph: read by the rules that files are read by, with text, categories, dates and missing values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd
import pyarrow as pa

from sharpen.errors import InputError, Problems, reason
from sharpen.files import Columns, GraphTables
from sharpen.files.source import assembled
from sharpen.files.table import DataTable, by_row, check_names


@dataclass(frozen=True, eq=False)
class Frames:
    """A graph in two DataFrames; what is not said of their columns is guessed, as it is of files.

    Args:
        nodes: One row for each node. An index that is more than a count of rows is a column too.
        edges: Two columns of ids, and a column of weights if there is one; None: no edges.
        columns: What the columns mean.

    >>> nodes = pd.DataFrame({"who": ["a", "b"], "joined": pd.to_datetime(["2020-01-01", "2021-01-01"]), "label": ["x", None]})
    >>> frames = Frames(nodes, pd.DataFrame({"source": ["a"], "target": ["b"]}))
    >>> frames.tables().labels.tolist(), list(frames.tables().frame)
    (['x', None], ['joined'])
    """

    nodes: pd.DataFrame
    edges: pd.DataFrame | None = None
    columns: Columns = field(default_factory=Columns)

    @classmethod
    def of(cls, data: Any, y: Any = None) -> Frames | None:
        """Frames from what may be some: a DataFrame, or a pair of them of which the second is a list of edges; else None.

        Args:
            data: What a classifier was given.
            y: Labels; a text names their column, and so does the name of a Series.
        """
        if isinstance(data, pd.DataFrame):
            found = cls(data)
        elif isinstance(data, Frames):
            found = data
        elif isinstance(data, tuple | list) and len(data) == 2 and all(isinstance(part, pd.DataFrame) for part in data):
            if data[1].shape == (len(data[0]),) * 2:  # an adjacency matrix
                return None
            found = cls(data[0], data[1])
        else:
            return None
        name = y if isinstance(y, str) else getattr(y, "name", None) if isinstance(y, pd.Series) else None
        if isinstance(y, str) or (name is not None and name in found.nodes.columns):
            found = replace(found, columns=replace(found.columns, label=str(name)))
        return found

    def tables(self) -> GraphTables:
        """What the files of the same graph would hold."""
        with Problems() as problems:
            nodes = _table(self.nodes, "nodes")
            edges = None if self.edges is None else _table(self.edges, "edges")
            if not nodes.columns.num_rows:
                raise InputError("nodes has no row; give one for each node")
            return assembled(nodes, edges, self.columns, problems)


def _table(frame: pd.DataFrame, name: str) -> DataTable:
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index(names=frame.index.name or "id")
    frame = frame.rename(columns=str)
    check_names(name, list(frame.columns), "the columns")
    columns = {}
    for column in frame.columns:
        try:
            columns[column] = pa.array(frame[column], from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"{name}, column {column!r} holds values of several types ({reason(error)}); give all the same type, or "
                "leave it out"
            ) from error
    return DataTable(name, pa.table(columns), by_row)
