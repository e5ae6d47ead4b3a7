"""What a user can get wrong, and the sentence each mistake gets."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pickle
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch_geometric.data import Data

from sharpen import limits
from sharpen.errors import InputError
from sharpen.files import Columns, FeatureEncoder, check_labels, read_nodes_and_edges, write_predictions

NODES = "id,age,label\na,31,cat\nb,4,dog\nc,5,cat\nd,6,dog\n"
EDGES = "source,target\na,b\nb,c\n"


@dataclass
class Bad:
    """One mistake: files to write, what to read, and what the message must say."""

    name: str
    says: tuple[str, ...]
    nodes: str = "nodes.csv"
    edges: str | None = "edges.csv"
    files: dict[str, str | bytes] = field(default_factory=dict)
    columns: Columns = field(default_factory=Columns)


def nodes(text: str | bytes, *says: str, name: str, **options: Any) -> Bad:
    file = options.pop("file", "nodes.csv")
    return Bad(name, says, nodes=file, edges=None, files={file: text}, **options)


def edges(text: str | bytes, *says: str, name: str, **options: Any) -> Bad:
    file = options.pop("file", "edges.csv")
    return Bad(name, says, edges=file, files={file: text}, **options)


def parquet(**columns: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def saved(value: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def zipped(**members: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("_", "."), text)
    return file.getvalue()


class Trap:
    """Makes a file when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("trap-was-sprung",)


PAIR = np.array([[0, 1], [1, 0]])
GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{}</graphml>'
LAUGHS = "<!DOCTYPE g [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
NUMBERS = "".join(f"{i},{i}.5,{'cat' if i % 2 else 'dog'}\n" for i in range(10))
BOMB = b"id,label\n" + b"a,b\n" * 100_000

CASES = [
    # the files themselves
    Bad("missing file", ("node.csv does not exist", "did you mean", "nodes.csv"), nodes="node.csv"),
    Bad("missing file, nothing near", ("zebra.parquet does not exist", "check the path"), nodes="zebra.parquet"),
    Bad("missing folder", ("nodes.csv does not exist",), nodes="nowhere/nodes.csv"),
    Bad("directory", (" is a directory", "give a file"), nodes="."),
    nodes("", "nodes.csv is empty (0 bytes)", name="empty file"),
    edges("", "edges.csv is empty (0 bytes)", name="empty edge file"),
    nodes("\n\n \n", "nodes.csv", name="blank lines only"),
    nodes("id,label\n", "nodes.csv has a header but no row", "add one row per node", name="header only"),
    nodes(NODES, "nodes.xlsx is a spreadsheet", "as CSV", name="spreadsheet", file="nodes.xlsx"),
    nodes(NODES, "nodes.foo ends in .foo", "Parquet", name="unknown ending", file="nodes.foo"),
    nodes(NODES, "nodes has no ending", name="no ending", file="nodes"),
    # encodings
    nodes(b"id,label\na,caf\x81\n", "nodes.csv line 2 is not UTF-8", "0x81", "iconv", name="no encoding at all"),
    nodes(NODES.encode("utf-16") + b"x", "nodes.csv is in UTF-16", "save it as UTF-8", name="damaged UTF-16"),
    nodes("id,label\r\na,x\r\nb,\x00\r\n", "nodes.csv line 3 holds a NUL byte", name="NUL byte"),
    # rows and headers
    nodes("id,age,label\na,1,x\n\nb,2\n", "nodes.csv line 4 has 2 cells, but the header has 3", name="ragged row"),
    nodes('id,label\n"a\nb",x\nc,x,y\n', "nodes.csv line 4 has 3 cells", name="ragged row after a cell of two lines"),
    nodes('id,label\na,"x\nb,y\nc,x\n', "nodes.csv line 2", "quotation mark is never closed", name="unclosed quote"),
    nodes("id,age,age\na,1,2\n", "nodes.csv, line 1", "column 'age' appears twice (columns 2 and 3)", name="same column twice"),
    nodes("id,,label\na,1,x\n", "nodes.csv, line 1", "column 2 has no name", name="column without a name"),
    nodes("id:label\na:x\nb:y\n", "nodes.csv: no column looks like a label", "(it has id:label)", "label=...",
          name="unknown delimiter"),
    edges("source:target\na:b\nb:c\n", "edges.csv has one column, 'source:target'", "comma, tab", name="edges split by colons"),
    nodes("1,2,3\n4,5,6\n", "nodes.csv", "line 1 is data and not a header", "id=...", name="no header"),
    Bad("files swapped", ("looks like a table of edges", "nodes first"), nodes="edges.csv", edges="nodes.csv"),
    # columns named by the user
    Bad("id column misspelled", ("has no column 'Id' (id=...)", "did you mean 'id'?"), columns=Columns(id="Id")),
    Bad("label column misspelled", ("no column 'lable' (label=...)", "'label'"), columns=Columns(label="lable")),
    Bad("source column misspelled", ("edges.csv has no column 'sorce' (source=...)", "'source'"), columns=Columns(source="sorce")),
    Bad("weight column absent", ("edges.csv has no column 'zzz' (weight=...)", "it has source"), columns=Columns(weight="zzz")),
    Bad("feature absent", ("no column 'agee' (features=...)", "did you mean 'age'?"), columns=Columns(features=["agee"])),
    Bad("ignored column absent", ("no column 'ages' (ignore=...)", "'age'"), columns=Columns(ignore=["ages"])),
    Bad("label is a feature", ("'label' is given as a feature and as",), columns=Columns(label="label", features=["label"])),
    Bad("id is the label", ("'id' is both the id and the label",), columns=Columns(id="id", label="id")),
    Bad("one end twice", ("source and target are both 'source'",), columns=Columns(source="source", target="source")),
    edges("one,two,three\na,b,c\n", "edges.csv: no two columns look like", "source=... and target=...", name="ends not clear"),
    # ids and edges
    nodes("id,label\na,x\nb,y\na,y\nb,x\n", "nodes.csv line 4, column 'id'", "'a' already stands on line 2", "1 more row",
          name="duplicate id"),
    nodes("id,label\n1,x\n1.0,y\n", "nodes.csv line 3", "'1.0' already stands on line 2", name="the same id written twice"),
    nodes("id,label\na,x\n,y\n", "nodes.csv line 3, column 'id' is blank", "fill it in", name="blank id"),
    edges("source,target\na,b\nb,e\na,e\n", "edges.csv line 3, column 'target'", "no node with the id 'e'", "first of 2",
          "add a row", "strict", name="edge to an unknown id", columns=Columns(strict=True)),
    edges("source,target\na,b\na,\n", "edges.csv line 3, column 'target' is blank", name="blank end", columns=Columns(strict=True)),
    edges("source,target\nx,y\ny,z\n", "edges.csv: no edge joins two nodes of nodes.csv", "the id 'x'", "same ids",
          name="edges of another graph"),
    edges("source,target,weight\na,b,1\nb,c,-2\n", "edges.csv line 3, column 'weight'", "-2", "0 or more", name="negative weight"),
    edges("source,target,weight\na,b,nan\n", "edges.csv line 2, column 'weight'", "nan", name="NaN weight"),
    edges("source,target,weight\na,b,heavy\n", "line 2, column 'weight'", "'heavy' is no number", name="weight in words"),
    edges("source,target,weight\na,b,1\nb,c,\n", "edges.csv line 3, column 'weight' is blank", name="blank weight"),
    edges(npz(edge_index=PAIR), "edges.npz holds a whole graph", name="graph as edges", file="edges.npz"),
    # labels
    nodes("id,age\na,1\nb,2\n", "no column looks like a label (it has id, age)", "label=...", name="no label column"),
    nodes("who,age\na,1\nb,2\n", "no column looks like the id of a node, and none like a label (it has who, age)",
          "name them with id=... and label=...", name="neither id nor label"),
    nodes("who,when,y\na,1,1\nb,2,2\n", "the id of a node (it has who, when, y); name it with id=...", name="no id column"),
    nodes("id,age,label\na,1,\nb,2,\n", "column 'label': every label is missing", name="all labels missing"),
    nodes("id,age,label\na,1,x\nb,2,\n", "only one node has a label", name="one label"),
    nodes("id,age,label\na,1,x\nb,2,x\n", "all 2 labels are 'x'", "second class", name="one class"),
    nodes("id,label\n" + "".join(f"{i},{i * 0.37}\n" for i in range(1, 40)), "nodes.csv line 2, column 'label'",
          "39 different numbers", "predicts classes", name="labels are amounts"),
    nodes("id,label\n" + "".join(f"{i},n{i}\n" for i in range(40)), "40 labels that all differ", name="labels are names"),
    # features
    nodes("id,age,label\n" + NUMBERS + "x,nan,cat\n", "nodes.csv line 12, column 'age'", "NaN", "blank", name="NaN feature"),
    nodes("id,age,label\n" + NUMBERS + "x,-inf,cat\n", "nodes.csv line 12, column 'age'", "infinite", name="infinite feature"),
    nodes("id,age,label\n" + NUMBERS + "x,1e999,cat\n", "line 12, column 'age'", "too large", name="number beyond every float"),
    nodes("id,age,label\n" + NUMBERS + "x,old,cat\n", "nodes.csv line 12, column 'age' is 'old'", "ignore=['age']",
          name="a word among numbers"),
    nodes('id,size,label\na,"3,5",x\nb,"4,25",y\n', "nodes.csv line 2, column 'size' is '3,5'", "3.5", name="decimal comma"),
    nodes("id;size;label\na;999;x\n" + "".join(f"b{i};1,25{i};y\n" for i in range(9)), "nodes.csv line 3, column 'size'",
          "may mark decimals or thousands", "1.250", name="commas of decimals or thousands"),
    nodes("id;size;label\na;n.v.;x\n" + "".join(f"b{i};1,{i};y\n" for i in range(9)), "line 2, column 'size' is 'n.v.'",
          "numbers with decimal commas", "ignore=['size']", name="a word among decimal commas"),
    edges("source;target;weight\na;b;1,250\nb;c;2,500\n", "edges.csv line 2, column 'weight': the mark of the weight '1,250'",
          "rename the column", name="weights with commas of decimals or thousands"),
    edges("source;target;kg\na;b;1,25\nb;c;\n", "edges.csv line 3, column 'kg' is blank; fill it in, or leave weight out",
          name="a blank weight that was asked for", columns=Columns(weight="kg")),
    edges("source,target,weight\na,b,1\nb,c,\n", "column 'weight' is blank; fill it in, or rename the column",
          name="a blank weight that was guessed"),
    edges("source,target,kg\na,b,1\nb,c,much\n", "the weight 'much' is no number; give a number of 0 or more, or leave weight",
          name="a word as weight that was asked for", columns=Columns(weight="kg")),
    nodes(parquet(id=["a", "b"], age=[1.0, float("nan")]), "nodes.parquet row 2, column 'age' is nan", name="NaN in Parquet",
          file="nodes.parquet"),
    nodes(parquet(id=["a", "b"], part=[{"x": 1}, {"x": 2}]), "column 'part' holds struct", "ignore=['part']",
          name="records in a cell", file="nodes.parquet"),
    nodes(parquet(id=["a", "b"], v=[[1.0, 2.0], [3.0]]), "nodes.parquet row 2, column 'v'", "2 numbers", name="uneven lists",
          file="nodes.parquet"),
    # Parquet and JSON lines
    nodes(parquet(id=list(range(100)))[:-20], "nodes.parquet is not a whole Parquet file", "copy", name="truncated Parquet",
          file="nodes.parquet"),
    nodes("id,label\na,x\n", "nodes.parquet is not a whole Parquet file", name="CSV named Parquet", file="nodes.parquet"),
    nodes(parquet(id=["a"]), "nodes.csv is a Parquet file by its content", ".parquet", name="Parquet named CSV"),
    nodes('{"id": 1}\n{"id": 2\n', "nodes.jsonl line 2 is not one JSON object", name="broken JSON", file="nodes.jsonl"),
    nodes('[{"id": 1}]\n', "nodes.json line 1", "whole JSON array", name="a JSON array", file="nodes.json"),
    nodes('{"id": 1, "a": 1}\n\n{"id": 2, "a": "x"}\n', "nodes.jsonl line 3, column 'a' is the text 'x'", "is a number",
          name="mixed types", file="nodes.jsonl"),
    nodes('{"id": 1, "a": NaN}\n', "nodes.jsonl line 1 holds NaN", "null", name="NaN in JSON", file="nodes.jsonl"),
    nodes('{"id": 1, "a": {"b": 1}}\n', "nodes.jsonl line 1, column 'a'", name="nested JSON", file="nodes.jsonl"),
    nodes("[" * 100_000, "nodes.jsonl line 1 is not one JSON object", name="deep JSON", file="nodes.jsonl"),
    # packed files
    nodes(gzip.compress(NODES.encode())[:-9], "nodes.csv.gz is damaged", "again", name="truncated gzip", file="nodes.csv.gz"),
    nodes(b"not xz", "nodes.csv.xz is damaged", name="no xz at all", file="nodes.csv.xz"),
    nodes(gzip.compress(NODES.encode()), "nodes.csv is packed with gzip", ".gz", name="gzip without its ending"),
    nodes(zipped(a_csv=NODES, b_csv=EDGES), "nodes.zip holds 2 files (a.csv, b.csv)", name="zip of two", file="nodes.zip"),
    nodes(gzip.compress(BOMB), "nodes.csv.gz unpacks from", "bomb", name="gzip bomb", file="nodes.csv.gz"),
    nodes(bz2.compress(BOMB), "nodes.csv.bz2 unpacks from", "bomb", name="bzip2 bomb", file="nodes.csv.bz2"),
    nodes(lzma.compress(BOMB), "nodes.csv.xz unpacks from", "bomb", name="xz bomb", file="nodes.csv.xz"),
    nodes(zipped(nodes_csv=BOMB.decode()), "nodes.zip unpacks from", "bomb", name="zip bomb", file="nodes.zip"),
    nodes(parquet(id=pa.array([1] * 500_000)), "nodes.parquet unpacks from", "bomb", name="Parquet bomb", file="nodes.parquet"),
    # pickles: none is opened
    nodes(pickle.dumps(Trap()), "nodes.pkl is a pickle", "CSV or Parquet", name="pickle", file="nodes.pkl"),
    nodes(pickle.dumps(Trap()), "nodes.csv is a pickle, whatever its name says", name="pickle named CSV"),
    nodes(pickle.dumps(Trap(), protocol=0), "nodes.csv is a pickle", name="old pickle named CSV"),
    nodes(pickle.dumps(Trap()), "nodes.parquet is a pickle", name="pickle named Parquet", file="nodes.parquet"),
    nodes(pickle.dumps(Trap()), "g.pt is a plain pickle", "torch.save", name="pickle named .pt", file="g.pt"),
    nodes(saved(Trap()), "g.pt would call", "mkdir", "not opened", name="torch file that runs something", file="g.pt"),
    nodes(saved(Data(x=torch.eye(2), edge_index=torch.tensor(PAIR), note=Trap())), "g.pt would call", name="Data with a trap",
          file="g.pt"),
    nodes(saved(torch.nn.Linear(2, 2)), "g.pt would call torch.nn", name="a model, not a graph", file="g.pt"),
    nodes(saved({"x": torch.eye(2)}), "g.pt has no tensor 'edge_index' (it has x)", name="tensors without edges", file="g.pt"),
    nodes(saved({"edge_index": torch.tensor(PAIR), "x": torch.ones(1, 1).expand(10**6, 10)}), "g.pt (tensor 'x') unpacks", "bomb",
          name="tensor bomb", file="g.pt"),
    nodes(npz(edge_index=PAIR, x=np.array([Trap(), 1], dtype=object)), "g.npz: array 'x' holds pickled Python objects",
          name="pickle in .npz", file="g.npz"),
    # arrays
    nodes(npz(x=np.eye(2)), "g.npz has no array 'edge_index'", "[2, edges]", name=".npz without edges", file="g.npz"),
    nodes(npz(x=np.eye(2), edge_index=np.array([[0], [7]])), "g.npz: edge_index[:, 0] is [0, 7], but there are 2 nodes",
          name=".npz edge out of range", file="g.npz"),
    nodes(npz(x=np.array([[1.0], [np.inf]]), edge_index=PAIR), "g.npz: x[1, 0] is inf", name=".npz infinite", file="g.npz"),
    nodes(npz(x=np.eye(2), y=np.zeros(3), edge_index=PAIR), "g.npz: y has shape [3]", "[2]", name=".npz uneven", file="g.npz"),
    nodes(npz(x=np.eye(2), edge_index=PAIR)[:-30], "g.npz is not a whole .npz", name="truncated .npz", file="g.npz"),
    Bad("edges beside a whole graph", ("g.npz holds its own edges", "leave one"), nodes="g.npz",
        files={"g.npz": npz(x=np.eye(2), edge_index=PAIR)}),
    # XML
    nodes(LAUGHS + "]><graphml>&i;</graphml>", "g.graphml line 1 declares a document type or entity", name="a billion laughs",
          file="g.graphml"),
    nodes('<!DOCTYPE g [<!ENTITY x SYSTEM "file:///etc/passwd">]><gexf>&x;</gexf>', "g.gexf line 1 declares", name="file entity",
          file="g.gexf"),
    nodes("<graphml>\n<graph>", "g.graphml line 2 is not well-formed XML", name="truncated XML", file="g.graphml"),
    nodes("<html><p>hi</p></html>", "g.gexf is not a gexf file that NetworkX can read", name="a web page", file="g.gexf"),
    nodes(GRAPHML.format('<graph edgedefault="directed"/>'), "g.graphml has no node", name="no node", file="g.graphml"),
    nodes("<a>" * 200 + "</a>" * 200, "g.graphml line 1 is nested more than", name="deep XML", file="g.graphml"),
]  # fmt: skip


def prepare(bad: Bad) -> None:
    """What `sharpen fit` does before it trains."""
    tables = read_nodes_and_edges(bad.nodes, bad.edges, bad.columns)
    FeatureEncoder.fit(tables)
    check_labels(tables)


@pytest.mark.parametrize("bad", CASES, ids=[case.name for case in CASES])
def test_each_mistake_gets_one_sentence(bad: Bad, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # so that messages hold the short names, and a sprung trap is seen
    monkeypatch.setattr(limits, "_FREE_BYTES", 300_000)
    monkeypatch.setattr(limits, "FREE_CELLS", 300_000)
    for name, data in {"nodes.csv": NODES, "edges.csv": EDGES, **bad.files}.items():
        Path(name).write_bytes(data.encode() if isinstance(data, str) else data)
    before = sorted(os.listdir())
    with pytest.raises(InputError) as caught:
        prepare(bad)
    message = str(caught.value)
    for part in bad.says:
        assert part in message
    assert "\n" not in message
    assert message.isprintable()
    assert "; " in message or ": " in message  # what was wrong, then the way out
    assert sorted(os.listdir()) == before


def test_there_are_at_least_forty_mistakes_and_each_is_another_one() -> None:
    assert len(CASES) >= 40
    assert len({case.name for case in CASES}) == len(CASES)


GOOD = {
    "byte order mark": b"\xef\xbb\xbf" + NODES.encode(),
    "Windows line ends": NODES.replace("\n", "\r\n").encode(),
    "old Mac line ends": NODES.replace("\n", "\r").encode(),
    "no last line end": NODES.rstrip().encode(),
    "blank lines": NODES.replace("\n", "\n\n").encode(),
    "semicolons": NODES.replace(",", ";").encode(),
    "tabs in a .csv": NODES.replace(",", "\t").encode(),
    "bars": NODES.replace(",", "|").encode(),
    "all quoted": ("\n".join('"' + line.replace(",", '","') + '"' for line in NODES.split()) + "\n").encode(),
    "blanks after commas": NODES.replace(",", ", ").encode(),
    "capitals in the header": NODES.replace("id,age,label", "ID,Age,Label").encode(),
    "row numbers of pandas": (
        ",id,age,label\n" + "".join(f"{i},{line}\n" for i, line in enumerate(NODES.split()[1:]))
    ).encode(),
}


@pytest.mark.parametrize("how", GOOD)
def test_the_same_table_written_differently_reads_the_same(how: str, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_bytes(GOOD[how])
    (tmp_path / "edges.csv").write_text(EDGES)
    tables = read_nodes_and_edges(tmp_path / "nodes.csv", tmp_path / "edges.csv")
    assert tables.ids.tolist() == ["a", "b", "c", "d"]
    assert tables.labels.tolist() == ["cat", "dog", "cat", "dog"]
    assert [float(age) for age in tables.frame.iloc[:, 0]] == [31, 4, 5, 6]
    assert tables.edge_index.tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("predictions.txt", ("written as .csv or .parquet", "change the ending")),
        ("nowhere/predictions.csv", ("the folder", "does not exist", "make it")),
        ("folder.csv", ("is a directory",)),
    ],
)
def test_a_place_that_cannot_be_written_to_is_named(path: str, says: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError) as caught:
        write_predictions(tmp_path / path, pd.DataFrame({"id": ["a"]}))
    assert all(part in str(caught.value) for part in says)
    assert [p.name for p in tmp_path.iterdir()] == ["folder.csv"]
