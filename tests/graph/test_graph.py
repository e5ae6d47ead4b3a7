"""Graph and Adjacency, against SciPy, PyG and NetworkX."""

import dataclasses
import pickle
import warnings

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import add_self_loops, coalesce, remove_self_loops, to_undirected

from sharpen.errors import InputError
from sharpen.graph import Graph

examples = settings(max_examples=50, deadline=None)  # a busy machine is no failure
PATH = [[0, 1, 2], [1, 2, 3]]  # 0 → 1 → 2 → 3


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Graphs of 1 to 8 nodes with duplicated edges, self-loops, unknown labels, dense or sparse features."""
    n = draw(st.integers(1, 8))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=20))
    if draw(st.booleans()):
        edges += [(target, source) for source, target in edges]
    width = draw(st.integers(1, 3))
    entry = st.sampled_from([0.0, 0.0, 1.0, -2.5, 0.1])
    x = np.array(draw(st.lists(entry, min_size=n * width, max_size=n * width))).reshape(n, width)
    y = draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n))
    return Graph(
        x=scipy.sparse.csr_array(x) if draw(st.booleans()) else x,
        edge_index=np.array(edges, dtype=np.int64).reshape(-1, 2).T,
        y=y,
        class_names=["c", "a", "b"],
    )


def dense_x(graph: Graph) -> np.ndarray:
    return (graph.x.to_dense() if graph.is_sparse else graph.x).numpy()


def assert_same(one: Graph, other: Graph) -> None:
    assert one.is_sparse == other.is_sparse
    assert np.array_equal(dense_x(one), dense_x(other))
    assert torch.equal(one.edge_index, other.edge_index)
    assert torch.equal(one.y, other.y)
    assert one.class_names == other.class_names
    assert one.fingerprint == other.fingerprint


# ---------------------------------------------------------------------------------------------------- what is stored


def test_types_are_brought_to_one_form() -> None:
    graph = Graph(
        x=np.array([[1, 2], [3, 4]], dtype=np.int8),
        edge_index=torch.tensor([[1, 0, 1], [0, 1, 0]], dtype=torch.int32),
        y=np.array([1, -1], dtype=np.int16),
    )
    assert graph.x.dtype == torch.float32
    assert graph.x.tolist() == [[1, 2], [3, 4]]
    assert graph.edge_index.dtype == torch.int64
    assert graph.edge_index.tolist() == [[0, 1], [1, 0]]
    assert graph.y.dtype == torch.int64
    assert graph.y.tolist() == [1, -1]
    assert graph.class_names == ("0", "1")
    assert (graph.num_nodes, graph.num_features, graph.num_classes, graph.num_edges) == (2, 2, 2, 2)
    assert not graph.is_sparse


def test_edges_are_sorted_once_each_with_direction_and_loops_kept() -> None:
    graph = Graph(x=np.eye(4), edge_index=[[3, 0, 3, 2, 0], [1, 2, 1, 2, 1]])
    assert graph.edge_index.tolist() == [[0, 0, 2, 3], [1, 2, 2, 1]]


@examples
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30))
def test_edges_are_coalesced_as_pyg_does(edges: list[tuple[int, int]]) -> None:
    edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    expected = coalesce(edge_index, num_nodes=6)
    assert torch.equal(Graph(x=np.eye(6), edge_index=edge_index).edge_index, expected)


def test_no_edges_and_no_labels() -> None:
    graph = Graph(x=np.eye(3), edge_index=[[], []])
    assert graph.edge_index.shape == (2, 0)
    assert graph.y.tolist() == [-1, -1, -1]
    assert graph.class_names == ()
    assert graph.adjacency.col.tolist() == [0, 1, 2]


def test_it_keeps_its_own_copy() -> None:
    x, edge_index, y = torch.eye(4), torch.tensor(PATH), torch.tensor([0, 1, 0, 1])
    graph = Graph(x=x, edge_index=edge_index, y=y)
    x[0, 0] = 7
    edge_index[0, 0] = 3
    y[0] = 1
    assert_same(graph, Graph(x=torch.eye(4), edge_index=PATH, y=[0, 1, 0, 1]))
    data = graph.to_pyg()
    data.x[0, 0] = 7
    assert graph.x[0, 0] == 1


def test_it_is_frozen_and_replaceable_and_picklable() -> None:
    graph = Graph(x=np.eye(4), edge_index=PATH, y=[0, 1, 0, 1], class_names=["a", "b"], name="path")
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.y = torch.zeros(4)  # type: ignore[misc]
    other = dataclasses.replace(graph, y=[0, -1, -1, 1])
    assert other.y.tolist() == [0, -1, -1, 1]
    assert other.class_names == ("a", "b")
    assert other.name == "path"
    assert_same(pickle.loads(pickle.dumps(graph)), graph)


@pytest.mark.parametrize("form", ["coo", "csr", "csc", "torch_coo", "torch_csr", "torch_csc", "spmatrix"])
def test_sparse_features_stay_sparse(form: str) -> None:
    dense = np.array([[0, 2, 0], [0, 0, 0], [1, 0, 3.5]])
    tensor = torch.from_numpy(dense)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, for the input of this test
        x = {
            "coo": lambda: scipy.sparse.coo_array(dense),
            "csr": lambda: scipy.sparse.csr_array(dense),
            "csc": lambda: scipy.sparse.csc_array(dense),
            "torch_coo": tensor.to_sparse_coo,
            "torch_csr": tensor.to_sparse_csr,
            "torch_csc": tensor.to_sparse_csc,
            "spmatrix": lambda: scipy.sparse.csr_matrix(dense),
        }[form]()
    graph = Graph(x=x, edge_index=[[0], [1]])
    assert graph.is_sparse
    assert graph.x.layout == torch.sparse_csr
    assert graph.x.dtype == torch.float32
    assert graph.x.crow_indices().tolist() == [0, 1, 1, 3]
    assert graph.x.col_indices().tolist() == [1, 0, 2]
    assert graph.x.values().tolist() == [2, 1, 3.5]


def test_sparse_duplicates_add_up_and_zeros_go() -> None:
    x = scipy.sparse.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    graph = Graph(x=x, edge_index=[[0], [1]])
    assert graph.x.values().tolist() == [3]
    assert x.nnz == 3  # the input is left alone


def test_large_sparse_features_are_never_dense() -> None:
    # 2 million x 2 million: dense, these would be 16 TB.
    n = 2_000_000
    graph = Graph(x=scipy.sparse.eye_array(n), edge_index=[[0], [n - 1]])
    assert graph.x.values().numel() == n
    assert len(graph.fingerprint) == 64
    assert Graph.from_pyg(graph.to_pyg()).fingerprint == graph.fingerprint
    assert Graph.from_scipy(*graph.to_scipy()).fingerprint == graph.fingerprint


def test_sparse_features_raise_no_warning() -> None:
    torch.set_warn_always(True)  # otherwise torch warns once per process, perhaps before this test
    try:
        with pytest.warns(UserWarning, match="beta"):
            torch.eye(3).to_sparse_csr()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            graph = Graph(x=scipy.sparse.eye_array(3), edge_index=[[0], [1]])
            assert graph.fingerprint
    finally:
        torch.set_warn_always(False)


# ------------------------------------------------------------------------------------------------------- adjacency


def test_adjacency_of_a_path() -> None:
    adjacency = Graph(x=np.eye(4), edge_index=PATH).adjacency
    assert adjacency.rowptr.dtype == torch.int32
    assert adjacency.col.dtype == torch.int32
    assert adjacency.rowptr.tolist() == [0, 2, 5, 8, 10]
    assert adjacency.col.tolist() == [0, 1, 0, 1, 2, 1, 2, 3, 2, 3]
    assert adjacency.degree().tolist() == [2, 3, 3, 2]
    assert adjacency.num_nodes == 4
    assert adjacency.nnz == 10


@examples
@given(graphs())
def test_adjacency_is_the_protocols(graph: Graph) -> None:
    # The protocol's own words, in PyG's functions.
    edges = to_undirected(graph.edge_index, num_nodes=graph.num_nodes)
    edges, _ = add_self_loops(remove_self_loops(edges)[0], num_nodes=graph.num_nodes)
    source, target = coalesce(edges, num_nodes=graph.num_nodes)
    rows = np.repeat(np.arange(graph.num_nodes), graph.adjacency.degree())
    assert rows.tolist() == source.tolist()
    assert graph.adjacency.col.tolist() == target.tolist()
    pattern = graph.adjacency.to_scipy().toarray()
    assert np.array_equal(pattern, pattern.T)
    assert (pattern.diagonal() == 1).all()
    assert graph.adjacency is graph.adjacency


# ----------------------------------------------------------------------------------------------------- fingerprint


def test_fingerprint_is_of_the_content_only() -> None:
    graph = Graph(x=np.eye(4), edge_index=PATH, y=[0, 1, 0, -1], name="one")
    again = Graph(
        x=scipy.sparse.csc_array(np.eye(4)).astype(np.float64),
        edge_index=np.array(PATH, dtype=np.int32)[:, [2, 0, 1, 0]],
        y=torch.tensor([0, 1, 0, -1], dtype=torch.int8),
        name="two",
    )
    assert graph.fingerprint == again.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"x": 2 * np.eye(4)},
        {"x": np.eye(4, 5)},
        {"x": np.eye(4)[[1, 0, 2, 3]]},
        {"edge_index": [[0, 1], [1, 2]]},
        {"edge_index": [PATH[1], PATH[0]]},
        {"edge_weight": [1, 1, 2]},
        {"y": [0, 1, 1, -1]},
        {"class_names": ["0", "one"]},
        {"class_names": ["0", "1", "2"]},
    ],
)
def test_fingerprint_sees_every_change(change: dict) -> None:
    graph = Graph(x=np.eye(4), edge_index=PATH, y=[0, 1, 0, -1])
    assert dataclasses.replace(graph, **change).fingerprint != graph.fingerprint


def test_fingerprint_does_not_change_between_versions() -> None:
    # Recorded once; stores of results are keyed by it.
    graph = Graph(x=np.eye(4), edge_index=PATH, y=[0, 1, 0, -1])
    assert graph.fingerprint == "b446a06b67893e439c2f2f753b65b2a9977ea759c4ca6aae0d84f4456d3b7b57"


# ----------------------------------------------------------------------------------------------------- conversions


@examples
@given(graphs())
def test_pyg_round_trip(graph: Graph) -> None:
    data = graph.to_pyg()
    assert isinstance(data, Data)
    data.validate()
    assert_same(Graph.from_pyg(data, class_names=graph.class_names), graph)


@examples
@given(graphs())
def test_scipy_round_trip(graph: Graph) -> None:
    adjacency, x, y = graph.to_scipy()
    expected = np.zeros((graph.num_nodes, graph.num_nodes))
    for source, target in graph.edge_index.T.tolist():
        expected[source, target] = 1
    assert np.array_equal(adjacency.toarray(), expected)
    assert_same(Graph.from_scipy(adjacency, x, y, class_names=graph.class_names), graph)


@examples
@given(graphs())
def test_networkx_round_trip(graph: Graph) -> None:
    out = graph.to_networkx()
    edges = set(map(tuple, graph.edge_index.T.tolist()))
    assert out.is_directed() == any((target, source) not in edges for source, target in edges)
    assert networkx.to_numpy_array(out, nodelist=range(graph.num_nodes)).astype(bool).tolist() == (
        graph.to_scipy()[0].toarray().astype(bool).tolist()
    )
    assert_same(Graph.from_networkx(out, class_names=graph.class_names), graph)


def test_from_pyg_takes_columns_of_labels_and_none() -> None:
    edge_index = torch.tensor(PATH)
    column = Data(x=torch.eye(4), edge_index=edge_index, y=torch.tensor([[0], [1], [1], [0]]))
    assert Graph.from_pyg(column).y.tolist() == [0, 1, 1, 0]
    assert Graph.from_pyg(Data(x=torch.eye(4), edge_index=edge_index)).y.tolist() == [-1] * 4
    assert Graph.from_pyg(Data(x=torch.eye(4).to_sparse_coo(), edge_index=edge_index), name="p").is_sparse


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Data(edge_index=torch.tensor(PATH), num_nodes=4), "data.x is missing; set it"),
        (Data(x=torch.eye(4)), "data.edge_index is missing; give"),
        (HeteroData(), "HeteroData, not a torch_geometric.data.Data; give one Data"),
        (Data(x=torch.eye(4), edge_index=torch.tensor(PATH), y=torch.eye(4)), "y holds torch.float32 values; give"),
    ],
)
def test_from_pyg_names_what_is_wrong(data: Data, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Graph.from_pyg(data)


def test_from_networkx_keeps_the_order_of_nodes() -> None:
    g = networkx.Graph()
    g.add_node("b", x=[1, 0], label="dog")
    g.add_node("a", x=[0, 1], label="cat")
    g.add_node("c", x=[2, 2])
    g.add_edge("a", "c")
    graph = Graph.from_networkx(g)
    assert graph.x.tolist() == [[1, 0], [0, 1], [2, 2]]
    assert graph.edge_index.tolist() == [[1, 2], [2, 1]]
    assert graph.class_names == ("cat", "dog")
    assert graph.y.tolist() == [1, 0, -1]


def test_from_networkx_directed_and_parallel_edges() -> None:
    assert Graph.from_networkx(networkx.DiGraph([(0, 1)]), x=np.eye(2)).edge_index.tolist() == [[0], [1]]
    multi = networkx.MultiGraph([(0, 1), (0, 1), (1, 1)])
    assert Graph.from_networkx(multi, x=np.eye(2)).edge_index.tolist() == [[0, 1, 1], [1, 0, 1]]


@pytest.mark.parametrize(
    ("values", "names", "y"),
    [
        ([10, 9, None, 10], ("9", "10"), [1, 0, -1, 1]),
        (["10", "9", "9", "1"], ("1", "9", "10"), [2, 1, 1, 0]),
        ([True, False, True, -1], ("False", "True"), [1, 0, 1, -1]),
        ([0.5, float("nan"), 0.25, 0.5], ("0.25", "0.5"), [1, -1, 0, 1]),
        (["b", 3, "b", "a"], ("3", "a", "b"), [2, 0, 2, 1]),
        ([None, None, None, None], (), [-1, -1, -1, -1]),
    ],
)
def test_from_networkx_labels_of_any_type(values: list, names: tuple[str, ...], y: list[int]) -> None:
    g = networkx.path_graph(4)
    networkx.set_node_attributes(g, dict(enumerate(values)), "kind")
    graph = Graph.from_networkx(g, features=None, label="kind", x=np.eye(4))
    assert graph.class_names == names
    assert graph.y.tolist() == y


def test_from_networkx_names_what_is_wrong() -> None:
    g = networkx.path_graph(3)
    with pytest.raises(InputError, match=r"node 0 has no attribute 'x'; .* give x"):
        Graph.from_networkx(g)
    with pytest.raises(InputError, match=r"features is None and so is x; .* give x"):
        Graph.from_networkx(g, features=None)
    networkx.set_node_attributes(g, {0: [1, 2], 1: [1], 2: [1, 2]}, "x")
    with pytest.raises(InputError, match=r"'x' of node 1 has shape \(1,\).*give every node the same"):
        Graph.from_networkx(g)
    networkx.set_node_attributes(g, "horse", "label")
    with pytest.raises(InputError, match=r"label 'horse' is not among class_names \['cat'\]; add it"):
        Graph.from_networkx(g, x=np.eye(3), class_names=["cat"])


def test_from_scipy_reads_weights_but_not_zeros() -> None:
    adjacency = scipy.sparse.coo_array(([0.5, 0.0, 1.5, 2.0, -2.0], ([0, 1, 2, 1, 1], [1, 2, 0, 1, 1])), shape=(3, 3))
    graph = Graph.from_scipy(adjacency, np.eye(3))
    assert graph.edge_index.tolist() == [[0, 2], [1, 0]]
    assert graph.edge_weight.tolist() == [0.5, 1.5]
    assert Graph.from_scipy(scipy.sparse.csr_array(adjacency) != 0, np.eye(3)).edge_weight is None
    with pytest.raises(InputError, match=r"edge_weight\[0\] is -0.5; give a finite number above 0"):
        Graph.from_scipy(-adjacency, np.eye(3))
    cancelling = scipy.sparse.csr_array(([1, -1, 1], [1, 1, 2], [0, 3, 3, 3]), shape=(3, 3))
    assert Graph.from_scipy(cancelling, np.eye(3)).edge_index.tolist() == [[0], [2]]
    with pytest.raises(InputError, match=r"shape \(3, 3\), but x has 4 rows; give"):
        Graph.from_scipy(adjacency, np.eye(4).tolist())
    with pytest.raises(InputError, match="ndarray, not a SciPy sparse matrix; wrap"):
        Graph.from_scipy(np.eye(3), np.eye(3))  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------------------- weights


def weighted() -> Graph:
    """A square with a diagonal, given one way; the diagonal twice and both ways, one self-loop."""
    edges = [[0, 1, 2, 3, 0, 0, 2, 1], [1, 2, 3, 0, 2, 2, 0, 1]]
    return Graph(x=np.eye(4), edge_index=edges, edge_weight=[1, 2, 3, 4, 0.25, 0.5, 5, 7])


def test_weights_follow_their_edges_and_add_up() -> None:
    graph = weighted()
    assert graph.edge_index.tolist() == [[0, 0, 1, 1, 2, 2, 3], [1, 2, 1, 2, 0, 3, 0]]
    assert graph.edge_weight.tolist() == [1, 0.75, 7, 2, 5, 3, 4]
    assert repr(graph) == "Graph('graph', nodes=4, edges=7 weighted, features=4, classes=0)"


def test_weighted_messages_go_both_ways_with_one_self_loop() -> None:
    expected = np.array([[1, 1, 5, 4], [1, 7, 2, 0], [5, 2, 1, 3], [4, 0, 3, 1]], dtype=float)
    assert weighted().adjacency.to_scipy().toarray().tolist() == expected.tolist()
    plain = dataclasses.replace(weighted(), edge_weight=None).adjacency
    assert plain.weight is None
    assert plain.col.equal(weighted().adjacency.col)
    assert plain.rowptr.equal(weighted().adjacency.rowptr)


def test_weights_of_one_are_no_weights() -> None:
    plain = Graph(x=np.eye(4), edge_index=PATH)
    ones = Graph(x=np.eye(4), edge_index=PATH, edge_weight=torch.ones(3))
    assert ones.edge_weight is None
    assert ones.fingerprint == plain.fingerprint


def test_weights_survive_every_conversion() -> None:
    graph = weighted()
    for again in (
        Graph.from_pyg(graph.to_pyg()),
        Graph.from_scipy(*graph.to_scipy()),
        Graph.from_networkx(graph.to_networkx(), label=None),
        pickle.loads(pickle.dumps(graph)),
        dataclasses.replace(graph),
    ):
        assert again.fingerprint == graph.fingerprint
    both = networkx.Graph()
    both.add_weighted_edges_from([(0, 1, 2.0), (1, 1, 3.0)])
    both.add_edge(0, 2)
    graph = Graph.from_networkx(both, x=np.eye(3))
    assert graph.edge_index.tolist() == [[0, 0, 1, 1, 2], [1, 2, 0, 1, 0]]
    assert graph.edge_weight.tolist() == [2, 1, 2, 3, 1]
    assert Graph.from_networkx(graph.to_networkx(), label=None).fingerprint == graph.fingerprint
    assert Graph.from_networkx(both, x=np.eye(3), weight=None).edge_weight is None
    both.add_edge(1, 2, weight=0.0)  # left out, as in tables
    assert Graph.from_networkx(both, x=np.eye(3)).fingerprint == graph.fingerprint
    assert Graph.from_networkx(both, x=np.eye(3), weight=None).num_edges == 7


def test_a_data_frame_of_numbers_and_truth_values_is_features() -> None:
    people = pd.DataFrame({"age": [3.5, 4, 5], "city": ["Rome", "Oslo", "Rome"], "old": pd.array([1, 0, 1], "Int64")})
    dummies = pd.get_dummies(people)
    for x in (dummies, dummies.to_numpy()):  # the latter holds objects
        assert Graph(x, [[0], [1]]).x.tolist() == [[3.5, 1, 0, 1], [4, 0, 1, 0], [5, 1, 0, 1]]
    with pytest.raises(
        InputError, match=r"x, column 'city' holds .* such as 'Rome'; make them numbers.*get_dummies\(x\)"
    ):
        Graph(people, [[0], [1]])
    with pytest.raises(InputError, match=r"x\[0, 1\] is 'Rome', a str; give real numbers"):
        Graph(people.to_numpy(), [[0], [1]])
    with pytest.raises(InputError, match=r"x\[1, 0\] is not a finite float32 number"):
        Graph(pd.DataFrame({"old": pd.array([1, None], "Int64")}), [[0], [1]])


# ---------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": [1.0, 2.0]}, r"x has shape \(2,\); give"),
        ({"x": np.zeros((4, 0))}, r"x has shape \(4, 0\); give .* without features"),
        ({"x": scipy.sparse.csr_array((4, 0))}, r"x has shape \(4, 0\); give"),
        ({"x": [[1.0], [2.0, 3.0]]}, r"x is not rectangular .* give"),
        ({"x": [["a"], ["b"], ["c"], ["d"]]}, r"x holds <U1 values; give real numbers"),
        ({"x": torch.eye(4) * 1j}, r"x holds torch.complex64 values; give real numbers"),
        ({"x": np.where(np.eye(4) * [0, 0, 1, 0] > 0, np.nan, 1)}, r"x\[2, 2\] is not a finite .* replace"),
        ({"x": np.eye(4) * [1, 1, 1e39, 1]}, r"x\[2, 2\] is not a finite float32 .* replace"),
        ({"x": np.where(np.eye(4, k=1) > 0, -np.inf, 1)}, r"x\[0, 1\] is not a finite .* replace"),
        ({"x": scipy.sparse.diags_array([1, 1, np.inf, 1])}, r"x\[2, 2\] is not a finite .* replace"),
        (
            {"edge_index": [[0, 1], [1, 2], [2, 3]]},
            r"edge_index has shape \(3, 2\); give two rows.*\(edge_index.T has\)",
        ),
        ({"edge_index": [0, 1]}, r"edge_index has shape \(2,\); give two rows"),
        ({"edge_index": [[0.0], [1.0]]}, r"edge_index holds float64 values; give integers"),
        ({"edge_index": [[0, 1], [1]]}, r"edge_index is not rectangular .* give integers"),
        ({"edge_index": [[0, 1], [1, 4]]}, r"edge_index\[:, 1\] is \(1, 4\), but x has 4 rows; number .* 0 to 3"),
        ({"edge_index": [[0, 1, -1], [1, 2, 0]]}, r"edge_index\[:, 2\] is \(-1, 0\), .* number"),
        ({"edge_weight": [1, 2]}, r"edge_weight has shape \(2,\), but edge_index holds 3 edges; give one"),
        ({"edge_weight": [1, 0, 2]}, r"edge_weight\[1\] is 0; give a finite number above 0"),
        ({"edge_weight": [1, 2, -0.5]}, r"edge_weight\[2\] is -0.5; give a finite number above 0"),
        ({"edge_weight": [1, np.nan, 2]}, r"edge_weight\[1\] is nan; give a finite number above 0"),
        ({"edge_weight": ["a", "b", "c"]}, r"edge_weight does not hold numbers .* give one number above 0 per edge"),
        ({"y": [0, 1, 0]}, r"y has shape \(3,\), but x has 4 rows; give one class per node"),
        ({"y": [0.0, 1.0, 0.0, 1.0]}, r"y holds float64 values; give integers"),
        ({"y": torch.eye(4)}, r"y holds torch.float32 values; give integers"),
        ({"y": torch.eye(4).to_sparse_coo()}, r"y is a sparse tensor; give a dense one"),
        ({"y": [0, -2, 0, 1]}, r"y\[1\] is -2; give -1"),
        ({"y": [0, 1, 0, 9000]}, r"class 9000, but there are only 4 nodes; number the classes"),
        ({"y": [0, 1, 0, 2], "class_names": ["a", "b"]}, r"y\[3\] is 2, but class_names has 2 names; give"),
        ({"class_names": ["a", "a"]}, r"class_names holds 'a' twice; give"),
        ({"class_names": "ab"}, r"class_names is one string, 'ab'; give one name per class"),
    ],
)
def test_mistakes_are_named_with_the_way_out(change: dict, message: str) -> None:
    good = {"x": np.eye(4), "edge_index": PATH, "y": [0, 1, 0, -1]}
    Graph(**good)
    with pytest.raises(InputError, match=message):
        Graph(**{**good, **change})
