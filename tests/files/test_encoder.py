"""Columns to features: each kind, its memory, and what it does with values it has not seen."""

from __future__ import annotations

import json

import networkx
import numpy as np
import pytest
import scipy.sparse
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

from sharpen.errors import InputError
from sharpen.files import FeatureEncoder, GraphTables, read_nodes_and_edges
from sharpen.files.structure import choose_anchors, pattern, structural_features

from .conftest import Write

ROWS = [
    ("a", "1.5", "Rome", "yes", "0"),
    ("b", "", "Oslo", "no", "0"),
    ("c", "4.5", "Rome", "yes", "0"),
    ("d", "3", "", "", "7"),
    ("e", "3", "Oslo", "no", "0"),
]
HEADER = "id,size,city,old,rare\n"


def table(rows: list[tuple[str, ...]]) -> str:
    return HEADER + "".join(",".join(row) + "\n" for row in rows)


def dense(x: np.ndarray | scipy.sparse.csr_array) -> np.ndarray:
    assert x.dtype == np.float32
    return x if isinstance(x, np.ndarray) else x.toarray()


def column(write: Write, values: list[str]) -> GraphTables:
    rows = "".join(f'{i},"{value}"\n' for i, value in enumerate(values))
    return read_nodes_and_edges(write("nodes.csv", f"id,c\n{rows}"))


def test_each_kind_by_hand(write: Write) -> None:
    tables = read_nodes_and_edges(write("nodes.csv", table(ROWS)))
    encoder = FeatureEncoder.fit(tables)
    assert [encoding.kind for encoding in encoder.columns] == ["number", "category", "flag", "sparse"]
    known = np.array([1.5, 4.5, 3, 3])
    size = (np.array([1.5, 3, 4.5, 3, 3]) - known.mean()) / known.std()  # the mean of the known ones is 3
    expected = np.column_stack(
        [
            size, [0, 1, 0, 0, 0],  # the number, and where it is missing
            [0, 1, 0, 0, 1], [1, 0, 1, 0, 0],  # Oslo, Rome
            [1, 0, 1, 0.5, 0], [0, 0, 0, 1, 0],  # old, and where that is missing
            [0, 0, 0, 1, 0],  # 7 / 7
        ]
    )  # fmt: skip
    np.testing.assert_allclose(dense(encoder.transform(tables)), expected, atol=1e-6)
    assert encoder.num_features == 7
    assert len(encoder.describe()) == 4


def test_what_was_not_foreseen_is_noted(write: Write) -> None:
    encoder = FeatureEncoder.fit(read_nodes_and_edges(write("nodes.csv", table(ROWS))))
    again = FeatureEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    text = "id,rare,new,old,city,size\nz,,1,no,Bonn,3\n"  # another order, a new column, a new city
    notes: list[str] = []
    x = dense(again.transform(read_nodes_and_edges(write("later.csv", text)), notes))
    np.testing.assert_allclose(x, np.zeros((1, 7)), atol=1e-6)
    assert len(notes) == 3
    assert "'Bonn'" in notes[0]
    assert "rare: 1 node without a value" in notes[1]
    assert "not used: new" in notes[2]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "id,sizes,city,old,rare\nz,1,Rome,no,0\n",
            ("later.csv has no column 'size'", "fitted", "did you mean 'sizes'?"),
        ),
        ("id,size,city,old,rare\nz,big,Rome,no,0\n", ("later.csv line 2, column 'size' is 'big'", "write a number")),
        (
            "id,size,city,old,rare\nz,1,Rome,perhaps,0\n",
            ("later.csv line 2, column 'old' is 'perhaps'", "true or false"),
        ),
        ("id,size,city,old,rare\nz,inf,Rome,no,0\n", ("later.csv line 2, column 'size' is infinite",)),
    ],
)
def test_a_table_that_does_not_fit_the_model_is_refused(text: str, says: tuple[str, ...], write: Write) -> None:
    encoder = FeatureEncoder.fit(read_nodes_and_edges(write("nodes.csv", table(ROWS))))
    later = read_nodes_and_edges(write("later.csv", text))
    with pytest.raises(InputError) as caught:
        encoder.transform(later)
    assert all(part in str(caught.value) for part in says)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2", "3"], "number"),
        (["1e3", "-2.", ".5"], "number"),
        (["1", "NA", "3"], "number"),
        (["0", "1", "1"], "flag"),
        (["TRUE", "false", "True"], "flag"),
        (["0", "0", "0", "0", "0", "3"], "sparse"),
        (["red", "blue", "red"], "category"),
        (["12a", "13", "12a", "13"], "category"),
        (["yes", "", "yes"], "flag"),
        (["only", "", "only"], "category"),
        (["same", "same"], "dropped"),
        (["2", "2"], "dropped"),
        (["", ""], "dropped"),
        (["u1", "u2", "u3"], "dropped"),
        (["a study of graphs", "on the theory of graphs", "trees in a forest"], "text"),
    ],
)
def test_the_kind_follows_from_the_values(values: list[str], kind: str, write: Write) -> None:
    assert [encoding.kind for encoding in FeatureEncoder.fit(column(write, values)).columns] == [kind]


def test_text_is_the_tf_idf_of_scikit_learn(write: Write) -> None:
    titles = [
        "graphs and trees",
        "trees in the wild",
        "wild graphs of graphs",
        "a theory of trees",
        "graphs and graphs",
    ]
    x = dense(FeatureEncoder.fit(column(write, titles)).transform(column(write, titles)))
    counts = HashingVectorizer(n_features=4096, alternate_sign=False, norm=None).transform(titles)
    shared = np.flatnonzero((counts > 0).sum(axis=0).A1 >= 2)
    expected = TfidfTransformer().fit_transform(counts[:, shared]).toarray()
    np.testing.assert_allclose(x, expected, atol=1e-6)


def test_a_thousand_sparse_columns_stay_sparse(tmp_path_factory: pytest.TempPathFactory) -> None:
    random = np.random.default_rng(0)
    words = (random.random((50, 1000)) < 0.02).astype(np.int64)
    path = tmp_path_factory.mktemp("wide") / "nodes.csv"
    header = ",".join(["id", *(f"w{i}" for i in range(1000))])
    np.savetxt(path, np.column_stack([np.arange(50), words]), fmt="%d", delimiter=",", header=header, comments="")
    tables = read_nodes_and_edges(path)
    encoder = FeatureEncoder.fit(tables)
    x = encoder.transform(tables)
    assert isinstance(x, scipy.sparse.csr_array)
    used = words.any(axis=0)
    assert (x.toarray() == words[:, used]).all()
    assert len(encoder.describe()) == 2  # not a line for each: the flags, and those that are the same for every node


def test_structure_agrees_with_networkx() -> None:
    karate = networkx.karate_club_graph()
    adjacency = pattern(np.array(list(karate.edges)).T, 34)
    anchors = choose_anchors(adjacency)
    assert anchors[0] == max(karate, key=karate.degree)
    assert not any(karate.has_edge(u, v) for u in anchors for v in anchors)
    features = structural_features(adjacency, anchors)
    plain = {"weight": None, "alpha": 0.85, "tol": 1e-12, "max_iter": 500}
    np.testing.assert_allclose(features[:, 0], np.log1p([karate.degree(node) for node in karate]))
    ranks = networkx.pagerank(karate, **plain)
    np.testing.assert_allclose(features[:, 1], np.log([34 * ranks[node] for node in karate]), atol=0.02)
    for k, anchor in enumerate(anchors):
        walks = networkx.pagerank(karate, personalization={anchor: 1}, **plain)
        np.testing.assert_allclose(features[:, 2 + k], np.log1p([34 * walks[node] for node in karate]), atol=0.02)


def test_positions_hold_when_the_graph_grows_and_are_refused_elsewhere(write: Write) -> None:
    nodes, edges = "id,label\n" + "".join(f"n{i},x\n" for i in range(6)), "source,target\nn0,n1\nn1,n2\nn3,n4\n"
    tables = read_nodes_and_edges(write("nodes.csv", nodes), write("edges.csv", edges))
    encoder = FeatureEncoder.fit(tables)
    encoder = FeatureEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert encoder.kind == "structural"
    first = dense(encoder.transform(tables))
    assert first.shape == (6, encoder.num_features)
    np.testing.assert_allclose(first.mean(axis=0), 0, atol=1e-6)
    assert (first == dense(encoder.transform(tables))).all()
    shuffled = "id,label\n" + "".join(f"n{i},x\n" for i in (5, 3, 1, 0, 2, 4))
    same = read_nodes_and_edges(write("again.csv", shuffled), write("edges.csv", edges))
    np.testing.assert_allclose(dense(encoder.transform(same))[[3, 2, 4, 1, 5, 0]], first, atol=1e-5)
    other = read_nodes_and_edges(write("other.csv", "id\nz\n"))
    with pytest.raises(InputError, match="has none of the 2 nodes relative to which"):
        encoder.transform(other)


def test_no_column_and_no_edge_still_gives_features(write: Write) -> None:
    tables = read_nodes_and_edges(write("nodes.csv", "id,label\na,x\nb,y\n"))
    assert np.isfinite(dense(FeatureEncoder.fit(tables).transform(tables))).all()


@pytest.mark.parametrize(
    "damage", [{"format": 1}, {}, {"format": 2, "columns": [{"kind": "evil"}], "structural": None, "unit": None}]
)
def test_a_damaged_description_is_refused(damage: dict[str, object]) -> None:
    with pytest.raises(InputError, match="fit and save the model again"):
        FeatureEncoder.from_json(damage)
