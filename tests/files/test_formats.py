"""One graph in every format, and what is read from each."""

from __future__ import annotations

import io
from pathlib import Path

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from sharpen.errors import InputError
from sharpen.files import Columns, FeatureEncoder, check_labels, class_order, read_nodes_and_edges, to_graph
from sharpen.files.columns import ENDS, IDS, LABELS, WEIGHTS

from .conftest import Write

X = np.array([[0.5, 1.0], [1.5, 0.0], [2.5, 1.0]])
PAIRS = np.array([[0, 1], [1, 2]])


def test_npz_and_pyg_give_the_same_graph(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", x=X, edge_index=PAIRS, y=np.array([0, 1, -1]), edge_weight=np.array([1.0, 2.0]))
    data = Data(x=torch.tensor(X), edge_index=torch.tensor(PAIRS), y=torch.tensor([[0], [1], [-1]]))
    data.edge_weight = torch.tensor([1.0, 2.0])
    torch.save(data, tmp_path / "g.pt")
    torch.save(data.to_dict(), tmp_path / "dict.pt")
    for name in ("g.npz", "g.pt", "dict.pt"):
        tables = read_nodes_and_edges(tmp_path / name, columns=Columns())
        assert tables.ids.tolist() == ["0", "1", "2"]
        assert tables.labels.tolist() == ["0", "1", None]
        assert tables.frame.to_numpy().tolist() == X.tolist()
        assert tables.edge_index.tolist() == PAIRS.tolist()
        assert tables.edge_weight is not None
        assert tables.edge_weight.tolist() == [1, 2]


def test_ids_in_npz_name_the_nodes(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", edge_index=PAIRS, ids=np.array(["u", "v", "w"]))
    assert read_nodes_and_edges(tmp_path / "g.npz").ids.tolist() == ["u", "v", "w"]


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
def test_karate_club_through_networkx(kind: str, tmp_path: Path) -> None:
    karate = networkx.karate_club_graph()
    path = tmp_path / f"karate.{kind}"
    (networkx.write_graphml if kind == "graphml" else networkx.write_gexf)(karate, path)
    tables = read_nodes_and_edges(path, columns=Columns(label="club"))
    assert tables.ids.tolist() == [str(node) for node in karate]
    assert tables.labels.tolist() == [karate.nodes[node]["club"] for node in karate]
    assert tables.edge_index.shape == (2, 2 * karate.number_of_edges())
    assert tables.edge_weight is not None
    assert tables.edge_weight.sum() == 2 * sum(weight for *_, weight in karate.edges(data="weight"))
    encoder = FeatureEncoder.fit(tables)
    assert encoder.kind == "structural"
    graph = to_graph(tables, encoder.transform(tables), class_order(tables.labels))
    assert graph.num_nodes == 34
    assert graph.class_names == ("Mr. Hi", "Officer")


def test_gexf_names_of_nodes_are_no_classes(tmp_path: Path) -> None:
    graph = networkx.Graph()
    for node in "abc":
        graph.add_node(node, label=f"name of {node}", group="g" if node == "a" else "h")
    networkx.write_gexf(graph, tmp_path / "g.gexf")
    tables = read_nodes_and_edges(tmp_path / "g.gexf")
    assert tables.label_column is None
    assert "name" in tables.frame.columns


def test_directed_graphml_keeps_its_directions(tmp_path: Path) -> None:
    networkx.write_graphml(networkx.DiGraph([("a", "b"), ("b", "c")]), tmp_path / "g.graphml")
    assert read_nodes_and_edges(tmp_path / "g.graphml").edge_index.tolist() == [[0, 1], [1, 2]]


def test_ends_are_found_by_the_ids_that_they_hold(write: Write) -> None:
    nodes = write("nodes.csv", "id,age\na,31\nb,4\nc,5\n")
    for text in ("n,von,an\n9,a,b\n7,b,c\n", "von,km,an\na,2.5,b\nb,1,c\n", "von,an,weight\na,b,1\nb,c,2\n"):
        tables = read_nodes_and_edges(nodes, write("edges.csv", text))
        assert tables.edge_index.tolist() == [[0, 1], [1, 2]]
        assert "source and target columns: von, an (guessed)" in tables.guesses
    # A third column of ids, mostly ids, or an end with a stray id: nothing is clear.
    for text in (
        "von,an,n\na,b,c\nb,c,a\n",
        "von,an,n\na,b,c\nb,c,a\na,c,z\n",
        "von,an,n\na,b,c\nb,z,a\nb,c,a\n",
        "von,an,n\n",
    ):
        with pytest.raises(InputError, match="no two columns look like the ends"):
            read_nodes_and_edges(nodes, write("edges.csv", text))
    # Where ids are whole numbers, so are counts and marks.
    numbered = write("numbered.csv", "id,age\n1,31\n2,4\n3,5\n")
    with pytest.raises(InputError, match="no two columns look like the ends"):
        read_nodes_and_edges(numbered, write("rated.csv", "person,film,stars\n1,x7,3\n2,x9,1\n"))


def test_lists_of_numbers_are_features(write: Write) -> None:
    path = write("nodes.jsonl", '{"id": "a", "emb": [1, 2]}\n{"id": "b", "emb": [3, 4.5]}\n')
    frame = read_nodes_and_edges(path).frame
    assert frame.to_dict("list") == {"emb[0]": [1, 3], "emb[1]": [2, 4.5]}


def test_ids_of_any_spelling_meet(write: Write) -> None:
    nodes = write("nodes.csv", 'id,label\n10,x\n"Smith, ""Jo""",y\n007,x\n =SUM(A1),y\n')
    edges = write(
        "edges.jsonl",
        '{"source": 10.0, "target": "Smith, \\"Jo\\""}\n{"source": 10, "target": "007"}\n'.replace(
            "10.0", '"10.0"'
        ).replace('"source": 10,', '"source": "10",')
        + '{"source": "=SUM(A1)", "target": "10"}\n',
    )
    tables = read_nodes_and_edges(nodes, edges)
    assert tables.ids.tolist() == ["10", 'Smith, "Jo"', "007", " =SUM(A1)"]
    assert tables.edge_index.tolist() == [[0, 0, 3], [1, 2, 0]]
    with pytest.raises(InputError, match="no node with the id '7'"):
        read_nodes_and_edges(nodes, write("edges.csv", "source,target\n7,10\n"))


def test_whole_floats_name_the_same_node_as_integers(tmp_path: Path, write: Write) -> None:
    import pandas as pd

    pd.DataFrame({"id": [1, 2], "label": [3.0, None]}).to_parquet(tmp_path / "nodes.parquet")
    pd.DataFrame({"source": [1.0], "target": [2.0]}).to_parquet(tmp_path / "edges.parquet")
    tables = read_nodes_and_edges(tmp_path / "nodes.parquet", tmp_path / "edges.parquet")
    assert tables.edge_index.tolist() == [[0], [1]]
    assert tables.labels.tolist() == ["3", None]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["0", "1", "2", "-1"], ["0", "1", "2", None]),
        (["-1", "1", "1", "-1"], ["-1", "1", "1", "-1"]),  # a pair of classes, as support vector machines have them
        (["1.0", "2.0", "", "2"], ["1", "2", None, "2"]),
        (["1.0", "1.5", "", "x"], ["1.0", "1.5", None, "x"]),
        (["NA", "north", "?", "nan"], [None, "north", None, None]),
        (["true", " true ", "false", ""], ["true", "true", "false", None]),
    ],
)
def test_labels(labels: list[str], expected: list[str | None], write: Write) -> None:
    rows = "".join(f'{i},"{label}"\n' for i, label in enumerate(labels))
    tables = read_nodes_and_edges(write("nodes.csv", f"id,label\n{rows}"))
    assert tables.labels.tolist() == expected
    unknown = [line for line in tables.guesses if "unknown" in line]
    assert len(unknown) == len({old for old, new in zip(labels, expected, strict=True) if new is None and old})


def test_a_class_of_one_node_is_a_warning(write: Write) -> None:
    tables = read_nodes_and_edges(write("nodes.csv", "id,label\na,x\nb,x\nc,y\n"))
    assert check_labels(tables) == ["class 'y' has one labeled node only: it can be learned but not validated"]


@pytest.mark.parametrize(
    ("header", "guess"),
    [
        ("src,dst", "src, dst"),
        ("weight,From,To", "From, To"),
        ("u,v", "u, v"),
        ("citing,cited", "citing, cited"),
        ("one,two", "one, two"),
    ],
)
def test_ends_are_guessed_and_said(header: str, guess: str, write: Write) -> None:
    cells = {"weight": "2"}
    row = ",".join(cells.get(name, "a") for name in header.split(","))
    tables = read_nodes_and_edges(write("nodes.csv", "paper_id\na\n"), write("edges.csv", f"{header}\n{row}\n"))
    assert f"source and target columns: {guess} (guessed)" in tables.guesses
    assert "id column: paper_id (guessed)" in tables.guesses
    assert (tables.edge_weight is not None) == ("weight" in header)


def test_named_columns_are_not_guessed(write: Write) -> None:
    nodes = write("nodes.csv", "id,key,label,kind\n1,a,x,p\n2,b,y,q\n")
    edges = write("edges.csv", "source,target,left,right\n1,2,a,b\n")
    tables = read_nodes_and_edges(
        nodes, edges, Columns(id="key", label="kind", source="right", target="left", ignore=["id"])
    )
    assert tables.ids.tolist() == ["a", "b"]
    assert tables.labels.tolist() == ["p", "q"]
    assert list(tables.frame) == ["label"]
    assert tables.edge_index.tolist() == [[1], [0]]
    assert tables.guesses == []


def test_no_label_column_is_guessed_if_there_is_none(write: Write) -> None:
    tables = read_nodes_and_edges(write("nodes.csv", "id,category\na,x\nb,y\n"), columns=Columns(label=""))
    assert tables.label_column is None
    assert tables.labels.tolist() == [None, None]
    assert list(tables.frame) == ["category"]


def test_numbers_of_edges_that_are_not_used_are_named(write: Write) -> None:
    nodes = write("nodes.csv", "id,label\na,x\nb,y\n")
    edges = write("edges.csv", "source,target,similarity,since,kind\na,b,0.5,,friend\nb,a,0.25,1999,friend\n")
    tables = read_nodes_and_edges(nodes, edges)
    said = f"columns similarity, since of {edges} are not used; weight='similarity' would make it the weights"
    assert said in tables.guesses
    assert tables.edge_weight is None
    weighted = read_nodes_and_edges(nodes, edges, Columns(weight="similarity"))
    assert f"column since of {edges} is not used; weight='since' would make it the weights" in weighted.guesses
    assert not any("kind" in line for line in weighted.guesses)


def test_edges_once_and_those_of_weight_zero_not(write: Write) -> None:
    nodes = write("nodes.csv", "id,age,label\na,1,x\nb,2,y\nc,3,\n")
    edges = write("edges.csv", "source,target,weight\na,b,1\na,b,2\nb,b,1\nb,c,0\nc,a,1\n")
    tables = read_nodes_and_edges(nodes, edges)
    assert tables.edge_index.shape == (2, 4)
    assert "edges of weight 0: 1 left out" in tables.guesses
    graph = to_graph(tables, FeatureEncoder.fit(tables).transform(tables), ["x", "y"])
    assert graph.edge_index.tolist() == [[0, 1, 2], [1, 1, 0]]
    assert graph.y.tolist() == [0, 1, -1]


def test_no_edges_is_a_graph_without_edges(write: Write) -> None:
    nodes = write("nodes.csv", "id,age\na,1\nb,2\n")
    for edges in (None, write("edges.csv", "source,target\n")):
        assert read_nodes_and_edges(nodes, edges).edge_index.shape == (2, 0)


def test_torch_loader_state_is_left_as_it_was(tmp_path: Path) -> None:
    before = set(torch.serialization.get_safe_globals())
    out = io.BytesIO()
    torch.save(Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]])), out)
    (tmp_path / "g.pt").write_bytes(out.getvalue())
    read_nodes_and_edges(tmp_path / "g.pt")
    assert set(torch.serialization.get_safe_globals()) == before


def test_weights_reach_the_graph_whatever_their_unit(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label\na,x\nb,y\nc,\n")
    graphs = []
    for unit in (1, 1000):
        rows = [f"{s},{t},{w * unit}" for s, t, w in (("a", "b", 1), ("b", "c", 4), ("b", "c", 1), ("c", "a", 0))]
        (tmp_path / "edges.csv").write_text("\n".join(["source,target,weight", *rows, ""]))
        tables = read_nodes_and_edges(tmp_path / "nodes.csv", tmp_path / "edges.csv")
        assert "edges of weight 0: 1 left out" in tables.guesses
        assert tables.guesses[-1].startswith(f"edge weights: {unit} to {4 * unit}, {2 * unit} in the mean; GCN")
        graphs.append(to_graph(tables, np.eye(3), ["x", "y"]))
    assert graphs[0].edge_index.tolist() == [[0, 1], [1, 2]]
    assert graphs[0].edge_weight.tolist() == [0.5, 2.5]  # of the mean; an edge given twice has both its weights
    assert graphs[0].fingerprint == graphs[1].fingerprint
    (tmp_path / "edges.csv").write_text("source,target,weight\na,b,1e308\nb,c,1.5e308\nc,a,5e-324\n")
    extreme = to_graph(read_nodes_and_edges(tmp_path / "nodes.csv", tmp_path / "edges.csv"), np.eye(3), ["x", "y"])
    assert extreme.edge_weight.tolist() == pytest.approx([1.2, 1.8, 0])
    assert (extreme.edge_weight > 0).all()


def test_the_guide_lists_every_name_that_is_guessed() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "fit.md").read_text(encoding="utf-8")
    names = {*IDS, *LABELS, *WEIGHTS, *(end for pair in ENDS for end in pair)}
    assert not {name for name in names if f"`{name}`" not in guide}
