"""All columns of a node table as one matrix of features, by rules that are fitted once and saved with the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from sharpen.errors import InputError, Problems
from sharpen.files.column import column_of
from sharpen.files.columns import find, listed
from sharpen.files.encoding_choice import fit_encoding
from sharpen.files.encodings import Block, Dropped, Encoding, from_dict, is_finite, to_dict
from sharpen.files.source import GraphTables, mean_weight
from sharpen.files.structure import choose_anchors, pattern, structural_features
from sharpen.files.table import comparable_ids

_FORMAT = 2
_DENSE = 0.3
_MOST_LINES = 30  # of a description


@dataclass(frozen=True)
class Structural:
    """What features made of the structure alone remember."""

    anchors: tuple[str, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]


@dataclass(frozen=True)
class FeatureEncoder:
    """The features of a graph from its columns; or, if no column is of use, from its structure.

    Args:
        columns: How each column is encoded, in order.
        structural: In place of columns, if none is of use.
        unit: The mean of the edge weights, which they are divided by (:func:`sharpen.files.to_graph`); None if there are none.
        decimal_commas: Columns whose numbers were written with a decimal comma: for :class:`sharpen.files.Columns`, to read
            another file by the same rules.
        weight_comma: Whether the weights were.

    >>> import tempfile, pathlib
    >>> from sharpen.files import read_nodes_and_edges
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "nodes.csv"
    >>> _ = path.write_text("id,age,city\\n1,20,Rome\\n2,40,Oslo\\n3,60,Rome\\n")
    >>> tables = read_nodes_and_edges(path)
    >>> encoder = FeatureEncoder.fit(tables)
    >>> encoder.describe()
    ['age: number, mean 40, deviation 16.33', 'city: category, 2 values']
    >>> encoder.transform(tables).round(2)
    array([[-1.22,  0.  ,  1.  ],
           [ 0.  ,  1.  ,  0.  ],
           [ 1.22,  0.  ,  1.  ]], dtype=float32)
    >>> FeatureEncoder.from_json(encoder.to_json()) == encoder
    True
    """

    columns: tuple[Encoding, ...] = ()
    structural: Structural | None = None
    unit: float | None = None
    decimal_commas: tuple[str, ...] = ()
    weight_comma: bool = False

    @property
    def kind(self) -> str:
        """``"columns"`` or ``"structural"``."""
        return "columns" if self.structural is None else "structural"

    @property
    def num_features(self) -> int:
        """How many features a node gets."""
        return sum(each.width for each in self.columns) if self.structural is None else len(self.structural.mean)

    @classmethod
    def fit(cls, tables: GraphTables, problems: Problems | None = None) -> FeatureEncoder:
        """The rules for a table, from its columns alone, not its labels. What is wrong is told at once, or goes to ``problems``."""
        if problems is None:
            with Problems() as problems:
                return cls.fit(tables, problems)
        columns = tuple(_fit_column(tables, name, problems) for name in tables.frame.columns)
        weight = tables.edge_weight
        unit = None if weight is None or not weight.size else mean_weight(weight)
        written = (tuple(tables.decimal_commas), tables.weight_comma)
        if any(encoding.width for encoding in columns):
            return cls(columns, None, unit, *written)
        adjacency = pattern(tables.edge_index, tables.num_nodes)
        anchors = choose_anchors(adjacency)
        raw = structural_features(adjacency, anchors)
        scale = raw.std(axis=0)
        scale[scale < 1e-9] = 1.0
        ids = tuple(comparable_ids(tables.ids[anchors]).tolist())
        return cls(columns, Structural(ids, tuple(raw.mean(axis=0).tolist()), tuple(scale.tolist())), unit, *written)

    def transform(self, tables: GraphTables, notes: list[str] | None = None) -> np.ndarray | scipy.sparse.csr_array:
        """The features, float32: dense, or CSR if fewer than three in ten are not 0.

        Args:
            tables: The fitted graph, a grown one, or another with the same columns.
            notes: Receives a line for each thing that the fitted rules did not foresee: an unseen category, a value
                missing where none was, a column more.
        """
        notes = [] if notes is None else notes
        if self.structural is not None:
            return self._from_structure(self.structural, tables, notes)
        blocks: list[Block] = []
        names = [str(name) for name in tables.frame.columns]
        for encoding in self.columns:
            if encoding.width:
                find(tables.name, names, encoding.column, "the model was fitted with it")
                blocks.append(encoding.encode(column_of(tables, encoding.column), notes))
        known = {encoding.column for encoding in self.columns}
        more = [name for name in names if name not in known]
        if more:
            notes.append(f"columns that the model was not fitted with are not used: {listed(more)}")
        return _joined(blocks)

    def describe(self) -> list[str]:
        """One line for each column: how it is encoded, or why it is left out."""
        lines = _grouped([encoding.describe() for encoding in self.columns])
        if self.structural is not None:
            count = len(self.structural.anchors)
            instead = f": degree, PageRank and positions relative to {count} nodes take their place"
            nothing = " and no edges: nothing tells nodes apart, so all get the same answer"
            lines.append(f"no feature column{instead if count else nothing}")
        if self.unit is not None:
            lines.append(f"edge weights: divided by {self.unit:g}, their mean")
        return lines

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        structural = self.structural and {key: list(value) for key, value in vars(self.structural).items()}
        return {
            "format": _FORMAT,
            "kind": self.kind,
            "columns": [to_dict(encoding) for encoding in self.columns],
            "structural": structural,
            "unit": self.unit,
            "decimal_commas": list(self.decimal_commas),
            "weight_comma": self.weight_comma,
        }

    @classmethod
    def from_json(cls, description: dict[str, Any]) -> FeatureEncoder:
        """The encoder that :meth:`to_json` described.

        >>> FeatureEncoder.from_json({"format": 9})
        Traceback (most recent call last):
        sharpen.errors.InputError: the model's preprocessing cannot be read (format 9, not 2); fit and save the model again
        """
        way_out = "fit and save the model again"
        try:
            if description["format"] != _FORMAT:
                why = f"format {description['format']}, not {_FORMAT}"
                raise InputError(f"the model's preprocessing cannot be read ({why}); {way_out}")
            structural, unit = description["structural"], description["unit"]
            if unit is not None and not (is_finite(unit) and unit > 0):
                raise ValueError(f"unit is {unit!r}")
            commas = description["decimal_commas"]
            if not isinstance(commas, list) or not all(isinstance(name, str) for name in commas):
                raise ValueError(f"decimal_commas is {commas!r}"[:200])
            return cls(
                tuple(from_dict(encoding) for encoding in description["columns"]),
                None if structural is None else _structural(**structural),
                unit,
                tuple(commas),
                description.get("weight_comma", False) is True,
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"the model's preprocessing cannot be read ({error!r}); {way_out}") from error

    def _from_structure(self, structural: Structural, tables: GraphTables, notes: list[str]) -> np.ndarray:
        row = {node: i for i, node in enumerate(comparable_ids(tables.ids))}
        anchors = np.array([row.get(node, -1) for node in structural.anchors], dtype=np.int64)
        gone = int((anchors < 0).sum())
        if gone and gone == anchors.size:
            nodes = f"the {gone} nodes relative to which the model learned positions, such as {structural.anchors[0]!r}"
            way_out = "give the same or a grown graph, or fit a model with feature columns"
            raise InputError(f"{tables.name} has none of {nodes}; {way_out}")
        if gone:
            notes.append(f"{gone} of the {anchors.size} nodes relative to which positions were learned are gone")
        raw = structural_features(pattern(tables.edge_index, tables.num_nodes), anchors)
        return ((raw - structural.mean) / structural.scale).astype(np.float32)


def _fit_column(tables: GraphTables, name: str, problems: Problems) -> Encoding:
    with problems.collected():
        return fit_encoding(column_of(tables, name))
    return Dropped(name, "it cannot be read")


def _structural(anchors: list[str], mean: list[float], scale: list[float]) -> Structural:
    """From what a file says, if it can be that."""
    if not all(isinstance(node, str) for node in anchors) or not all(map(is_finite, [*mean, *scale])):
        raise ValueError("anchors that are no text, or a mean or scale that is no number")
    if len(mean) != len(scale) or 0 in scale:
        raise ValueError(f"{len(mean)} means and {len(scale)} scales, or a scale of 0")
    return Structural(tuple(anchors), tuple(mean), tuple(scale))


def _joined(blocks: Sequence[Block]) -> np.ndarray | scipy.sparse.csr_array:
    filled = sum(int(np.count_nonzero(b)) if isinstance(b, np.ndarray) else b.nnz for b in blocks)
    size = sum(block.shape[0] * block.shape[1] for block in blocks)
    if filled < _DENSE * size:
        columns: Any = [scipy.sparse.csc_array(block) for block in blocks]
        joined = scipy.sparse.csr_array(scipy.sparse.hstack(columns, format="csc").astype(np.float32))
        joined.sort_indices()
        return joined
    out = np.empty((blocks[0].shape[0], sum(block.shape[1] for block in blocks)), dtype=np.float32)
    ends = np.cumsum([block.shape[1] for block in blocks])
    for block, end in zip(blocks, ends, strict=True):
        out[:, end - block.shape[1] : end] = block if isinstance(block, np.ndarray) else block.toarray()
    return out


def _grouped(lines: list[str]) -> list[str]:
    """Hundreds of columns in a few lines: those encoded alike are counted."""
    if len(lines) <= _MOST_LINES:
        return lines
    kinds: dict[str, list[str]] = {}
    for line in lines:
        name, _, rest = line.partition(": ")
        kinds.setdefault(rest.split(",")[0] if not rest.startswith("left out") else rest, []).append(name)
    counts = {kind: f"{len(names)} column{'s' * (len(names) != 1)}" for kind, names in kinds.items()}
    return [f"{listed(names, most=3)}: {kind}, {counts[kind]}" for kind, names in kinds.items()]
