r"""A graph whose nodes are to be labeled: features, edges, labels, and the pattern along which messages travel.

.. math:: G = (X, E, y), \qquad X \in \mathbb{R}^{N \times F},\; E \subseteq V \times V,\; y_i \in \{-1, \dots, C - 1\}

where :math:`y_i = -1` says that the class of node i is unknown. Convolutions do not see :math:`E` itself but its
message-passing pattern :math:`E \cup E^\top`, with exactly one self-loop per node: :attr:`Graph.adjacency`. Edges may have
weights above 0: the more, the more of a message comes through.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from sharpen.checks import Array, Sparse, checked_class_names, checked_edges, checked_features, checked_labels
from sharpen.errors import InputError
from sharpen.graph.adjacency import Adjacency
from sharpen.graph.conversions import networkx_parts, to_csr, to_networkx

if TYPE_CHECKING:
    import networkx
    import torch_geometric.data


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Graph:
    """An immutable graph on the CPU; what is given is checked, copied and brought to one form.

    Two graphs with the same content have the same :attr:`fingerprint`. To change a field, make a new graph with
    :func:`dataclasses.replace`.

    Args:
        x: Features, one row per node: dense (tensor, array, DataFrame, lists) or sparse (SciPy, torch). Kept as float32; sparse
            features stay sparse, as ``torch.sparse_csr`` without explicit zeros.
        edge_index: ``[2, E]`` integers, sources above targets. Kept as int64, sorted, each edge once; directed edges
            and self-loops stay as given.
        y: The class of each node, -1 for unknown. None: all unknown.
        class_names: One name per class. None: ``"0"`` to ``str(y.max())``.
        name: What to call the graph in tables; no part of its identity.
        edge_weight: ``[E]`` numbers above 0, in the order of ``edge_index``. Kept as float64; the weights of an edge that is
            given several times add up. None, or all 1: edges count the same.

    >>> graph = Graph(x=[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], edge_index=[[0, 1, 1], [1, 2, 2]], y=[0, 1, -1])
    >>> graph
    Graph('graph', nodes=3, edges=2, features=2, classes=2)
    >>> graph.edge_index.tolist(), graph.y.tolist(), graph.class_names
    ([[0, 1], [1, 2]], [0, 1, -1], ('0', '1'))
    >>> graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes, graph.is_sparse
    (3, 2, 2, 2, False)
    >>> import dataclasses
    >>> dataclasses.replace(graph, y=[0, 1, 1]).y.tolist()
    [0, 1, 1]
    """

    x: Tensor
    edge_index: Tensor
    y: Tensor
    class_names: tuple[str, ...]
    name: str = "graph"
    edge_weight: Tensor | None = None

    def __init__(
        self,
        x: Array | Sparse,
        edge_index: Array,
        y: Array | None = None,
        class_names: Iterable[str] | None = None,
        name: str = "graph",
        edge_weight: Array | None = None,
    ) -> None:
        features = checked_features(x)
        num_nodes = features.shape[0]
        labels = torch.full((num_nodes,), -1) if y is None else checked_labels(y, num_nodes)
        edges, weight = checked_edges(edge_index, edge_weight, num_nodes)
        values = (features, edges, labels, checked_class_names(class_names, labels), str(name), weight)
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)  # the one moment at which a frozen object takes values

    def __repr__(self) -> str:
        sparse = " sparse" if self.is_sparse else ""
        weighted = "" if self.edge_weight is None else " weighted"
        return (
            f"Graph({self.name!r}, nodes={self.num_nodes}, edges={self.num_edges}{weighted}, "
            f"features={self.num_features}{sparse}, classes={self.num_classes})"
        )

    @property
    def num_nodes(self) -> int:
        """The number of nodes N."""
        return self.x.shape[0]

    @property
    def num_features(self) -> int:
        """The number of features F of each node."""
        return self.x.shape[1]

    @property
    def num_classes(self) -> int:
        """The number of classes C; 0 when neither labels nor class names were given."""
        return len(self.class_names)

    @property
    def num_edges(self) -> int:
        """The number of edges as given, each direction counted."""
        return self.edge_index.shape[1]

    @property
    def is_sparse(self) -> bool:
        """Whether the features are stored sparse."""
        return self.x.layout == torch.sparse_csr

    @cached_property
    def adjacency(self) -> Adjacency:
        """The edges in both directions, with exactly one self-loop per node; computed once.

        Of two directions with different weights the larger counts. A self-loop weighs 1 where none is given.

        >>> Graph(x=torch.eye(2), edge_index=[[0, 0], [0, 1]]).adjacency.to_scipy().toarray().tolist()
        [[1.0, 1.0], [1.0, 1.0]]
        >>> Graph(x=torch.eye(2), edge_index=[[0, 1], [1, 0]], edge_weight=[3, 5]).adjacency.to_scipy().toarray().tolist()
        [[1.0, 5.0], [5.0, 1.0]]
        """
        limit = torch.iinfo(torch.int32).max
        if 2 * self.num_edges + self.num_nodes > limit:
            what = f"holds {self.num_edges} edges, but a pattern of at most {limit} messages can be indexed"
            raise InputError(what, field="edge_index", hint="give a subgraph")
        if self.edge_weight is None:
            edges = self.edge_matrix(np.int8)
            loops = scipy.sparse.eye_array(self.num_nodes, dtype=np.int8, format="csr")
            pattern = scipy.sparse.csr_array(edges + edges.T.tocsr() + loops)  # entries of 1 to 3: nothing cancels
        else:
            edges = self.edge_matrix(np.float64)
            without = scipy.sparse.diags_array((edges.diagonal() == 0).astype(np.float64), format="csr")
            pattern = scipy.sparse.csr_array(edges.maximum(edges.T.tocsr()) + without)
            pattern.eliminate_zeros()  # loops that are not missing
        pattern.sort_indices()
        return Adjacency(
            rowptr=torch.from_numpy(pattern.indptr.astype(np.int32)),
            col=torch.from_numpy(pattern.indices.astype(np.int32)),
            num_nodes=self.num_nodes,
            weight=None if self.edge_weight is None else torch.from_numpy(pattern.data),
        )

    def edge_matrix(self, dtype: type[np.generic]) -> scipy.sparse.csr_array:
        """The edges as given, one entry each: its weight, or 1.

        >>> Graph(x=torch.eye(2), edge_index=[[0], [1]]).edge_matrix(np.int8).toarray().tolist()
        [[0, 1], [0, 0]]
        """
        source, target = self.edge_index.numpy()  # already sorted by source: no sort is needed to compress
        indptr = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=self.num_nodes))])
        index = np.int32 if max(self.num_nodes, source.size) <= np.iinfo(np.int32).max else np.int64
        weight = np.ones(source.size) if self.edge_weight is None else self.edge_weight.numpy()
        parts: Any = (weight.astype(dtype), target.astype(index), indptr.astype(index))
        return scipy.sparse.csr_array(parts, shape=(self.num_nodes, self.num_nodes))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content: features, edges, weights, labels and class names; not of the name, nor of how x is stored.

        >>> dense = Graph(x=torch.eye(3), edge_index=[[0, 1], [1, 2]], name="dense")
        >>> sparse = Graph(x=scipy.sparse.eye_array(3), edge_index=[[1, 0], [2, 1]], name="sparse")
        >>> dense.fingerprint == sparse.fingerprint
        True
        """
        digest = hashlib.sha256()

        def add(values: np.ndarray, dtype: str) -> None:
            contiguous: Any = np.ascontiguousarray(values, dtype=dtype)  # one width, one byte order
            digest.update(contiguous.reshape(-1))

        add(np.array([self.num_nodes, self.num_features, self.num_edges, self.num_classes]), "<i8")
        matrix: Any = to_csr(self.x) if self.is_sparse else self.x.numpy()
        for start in range(0, self.num_nodes, 4096):  # in blocks, so that dense features need little extra memory
            block = scipy.sparse.csr_array(matrix[start : start + 4096])
            add(block.indptr, "<i8")
            add(block.indices, "<i8")
            add(block.data, "<f4")
        add(self.edge_index.numpy(), "<i8")
        add(self.y.numpy(), "<i8")
        for name in self.class_names:
            encoded = name.encode()
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
        if self.edge_weight is not None:
            add(self.edge_weight.numpy(), "<f8")
        return digest.hexdigest()

    @classmethod
    def from_pyg(
        cls, data: torch_geometric.data.Data, class_names: Iterable[str] | None = None, name: str = "graph"
    ) -> Graph:
        """A graph from PyG's ``Data``: its ``x``, ``edge_index`` and, where present, ``y`` (``[N]`` or ``[N, 1]``) and
        ``edge_weight``.

        For the masks of ``data``, see :func:`sharpen.splits.from_masks`.

        >>> from torch_geometric.data import Data
        >>> Graph.from_pyg(Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]])), name="path")
        Graph('path', nodes=3, edges=2, features=3, classes=0)
        """
        from torch_geometric.data import Data

        if not isinstance(data, Data):
            way_out = "give one Data (a HeteroData has to_homogeneous(), a dataset has [0])"
            raise InputError(f"is a {type(data).__name__}, not a torch_geometric.data.Data", field="data", hint=way_out)
        if data.x is None:
            way_out = "for instance data.x = torch.eye(data.num_nodes) when nodes have none"
            raise InputError(f"data.x is missing; set it to one row of features per node, {way_out}")
        if data.edge_index is None:
            way_out = "give a [2, E] tensor (from adj_t: torch.stack(adj_t.coo()[:2]))"
            raise InputError("data.edge_index is missing", hint=way_out)
        columns = (data.y, getattr(data, "edge_weight", None))
        y, weight = (v[:, 0] if isinstance(v, Tensor) and v.dim() == 2 and v.shape[1] == 1 else v for v in columns)
        return cls(data.x, data.edge_index, y, class_names, name, weight)

    def to_pyg(self) -> torch_geometric.data.Data:
        """The graph as PyG's ``Data(x, edge_index, y)``, a copy; sparse features stay ``torch.sparse_csr``. Weights, if any, are
        its ``edge_weight``, in float32 as PyG's layers want them.

        >>> Graph(x=torch.eye(3), edge_index=[[0], [1]]).to_pyg()
        Data(x=[3, 3], edge_index=[2, 1], y=[3])
        """
        from torch_geometric.data import Data

        data = Data(x=self.x.clone(), edge_index=self.edge_index.clone(), y=self.y.clone())
        if self.edge_weight is not None:
            data.edge_weight = self.edge_weight.float()
        return data

    @classmethod
    def from_networkx(
        cls,
        graph: networkx.Graph,
        features: str | None = "x",
        label: str | None = "label",
        x: Array | Sparse | None = None,
        class_names: Iterable[str] | None = None,
        name: str = "graph",
        weight: str | None = "weight",
    ) -> Graph:
        """A graph from NetworkX; node ``i`` is the ``i``-th that ``graph.nodes`` yields.

        Args:
            graph: Any NetworkX graph. Undirected edges give both directions; the weights of parallel ones add up, and edges of
                weight 0 are left out.
            features: The node attribute that holds a node's features, one number or several; not read if x is given.
            label: The node attribute that holds a node's class, of any type; a node without it, or with None, NaN or
                -1, is of unknown class. None: so are all nodes.
            x: Features in the order of ``graph.nodes``, for nodes that carry none.
            class_names: The classes in order. None: the values found, sorted (as numbers where all are whole numbers).
            name: As for :class:`Graph`.
            weight: The edge attribute that holds an edge's weight, 1 where it is missing. None: weights are not read.

        >>> import networkx
        >>> karate = networkx.karate_club_graph()
        >>> graph = Graph.from_networkx(karate, label="club", x=torch.eye(34))
        >>> graph, graph.class_names
        (Graph('graph', nodes=34, edges=156 weighted, features=34, classes=2), ('Mr. Hi', 'Officer'))
        """
        x, edge_index, y, names, edge_weight = networkx_parts(graph, features, label, x, class_names, weight)
        return cls(x, edge_index, y, names, name, edge_weight)

    def to_networkx(self, features: str | None = "x", label: str | None = "label") -> networkx.Graph:
        """The graph in NetworkX, undirected if every edge has its reverse (of the same weight); nodes are ``0`` to ``N - 1``.

        Args:
            features: The node attribute for a node's features: a NumPy row, or a SciPy ``[1, F]`` row when they are
                sparse. None: left out.
            label: The node attribute for a node's class name; nodes of unknown class do not get it. None: left out.

        >>> graph = Graph(x=torch.eye(2), edge_index=[[0, 1], [1, 0]], y=[0, -1], class_names=["cat", "dog"])
        >>> graph.to_networkx(features=None).nodes(data=True)
        NodeDataView({0: {'label': 'cat'}, 1: {}})
        """
        return to_networkx(self, features, label)

    @classmethod
    def from_scipy(
        cls,
        adjacency: Sparse,
        x: Array | Sparse,
        y: Array | None = None,
        class_names: Iterable[str] | None = None,
        name: str = "graph",
    ) -> Graph:
        """A graph from a square SciPy matrix: every entry ``[i, j]`` that is not zero is an edge from i to j of that weight.

        Where weights should not count, give ``adjacency != 0``. The other arguments are those of :class:`Graph`.

        >>> path = scipy.sparse.coo_array(([1, 1], ([0, 1], [1, 2])), shape=(3, 3))
        >>> Graph.from_scipy(path, x=torch.eye(3)).edge_index.tolist()
        [[0, 1], [1, 2]]
        """
        if not scipy.sparse.issparse(adjacency):
            what = f"is a {type(adjacency).__name__}, not a SciPy sparse matrix"
            raise InputError(what, field="adjacency", hint="wrap it in scipy.sparse.csr_array(adjacency)")
        csr, rows = scipy.sparse.csr_array(cast(Any, adjacency), copy=True), cast(Any, x)
        num_nodes = rows.shape[0] if hasattr(rows, "shape") else len(rows)
        if csr.shape != (num_nodes, num_nodes):
            way_out = f"give a [{num_nodes}, {num_nodes}] adjacency and one row of x per node"
            raise InputError(f"has shape {csr.shape}, but x has {num_nodes} rows", field="adjacency", hint=way_out)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        coo = csr.tocoo()
        return cls(x, np.stack([coo.row, coo.col]), y, class_names, name, coo.data)

    def to_scipy(self) -> tuple[scipy.sparse.csr_array, np.ndarray | scipy.sparse.csr_array, np.ndarray]:
        """The edges as a matrix of weights (float64) or ones (float32), features (sparse as ``csr_array``), labels; copies.

        ``Graph.from_scipy(*graph.to_scipy(), class_names=graph.class_names)`` is the graph again.

        >>> adjacency, x, y = Graph(x=torch.eye(2), edge_index=[[0], [1]], y=[0, -1]).to_scipy()
        >>> adjacency.toarray().tolist(), x.tolist(), y.tolist()
        ([[0.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [0, -1])
        """
        edges = self.edge_matrix(np.float32 if self.edge_weight is None else np.float64)
        x = to_csr(self.x).copy() if self.is_sparse else self.x.numpy().copy()
        return edges, x, self.y.numpy().copy()
