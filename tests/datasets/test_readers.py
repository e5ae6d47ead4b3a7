"""Every reader on files of a few nodes in the format of its source, next to PyG's reader of the same file."""

from __future__ import annotations

import gzip
import importlib.util
import json
import pickle
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from torch_geometric.datasets import HeterophilousGraphDataset, WikiCS
from torch_geometric.io import read_npz
from torch_geometric.transforms import NormalizeFeatures
from torch_geometric.utils import coalesce, to_undirected

from sharpen.datasets import gnn_benchmark, load_dataset, planetoid
from sharpen.datasets.arrays import read_arrays
from sharpen.errors import InputError


class Bomb:
    """Unpickling it leaves a file behind."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple:
        return (Path.touch, (self.trace,))


# Arrays


def test_read_arrays_reads_only_what_is_asked(tmp_path):
    path, trace = tmp_path / "a.npz", tmp_path / "trace"
    np.savez(path, edges=np.array([[0, 1]]), beside=np.array([Bomb(trace)], dtype=object))
    assert list(read_arrays(path, ["edges"])) == ["edges"]
    with pytest.raises(InputError, match=r"a\.npz: array 'beside' holds pickled"):
        read_arrays(path, ["beside"])
    assert not trace.exists()


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"<html>404</html>"])
def test_read_arrays_of_a_damaged_file(tmp_path, damage):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, edges=np.arange(1000))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=r"a\.npz is not a whole .*remove it"):
        read_arrays(path, ["edges"])


def test_read_arrays_notices_a_flipped_byte(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, edges=np.arange(1000))
    content = bytearray(path.read_bytes())
    content[4000] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match=r"a\.npz is not a whole .*remove it"):
        read_arrays(path, ["edges"])


# Planetoid


def test_planetoid_runs_no_pickle_but_the_published_ones(tmp_path):
    raw, trace = tmp_path / "planetoid/Cora/raw", tmp_path / "trace"
    raw.mkdir(parents=True)
    for file in planetoid.files("cora"):
        (tmp_path / file.path).write_bytes(pickle.dumps(Bomb(trace)))
    with pytest.raises(InputError, match=r"ind\.cora\.x is not the file that https://.*/ind\.cora\.x publishes"):
        load_dataset("cora", tmp_path)
    assert not trace.exists()


# Amazon and Coauthor

WORDS = scipy.sparse.csr_array(np.array([[2, 0, 1], [0, 0, 3], [0, 0, 0], [1, 1, 1], [0, 5, 0]], dtype=np.float32))
LINKS = scipy.sparse.csr_array(np.array([[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 1], [0] * 5]))


@pytest.fixture
def physics(tmp_path) -> Path:
    """A folder with Coauthor Physics in small: a self-loop, a one-way edge, counts, a node without words, a pickle."""
    path = tmp_path / "coauthor/Physics/raw/ms_academic_phy.npz"
    path.parent.mkdir(parents=True)
    arrays = {"labels": np.array([0, 1, 2, 3, 4], dtype=np.int32), "class_names": np.array(["a", None], dtype=object)}
    for prefix, matrix in (("attr", WORDS), ("adj", LINKS)):
        parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
        arrays |= {f"{prefix}_{part}": np.array(values) for part, values in parts.items()}
    np.savez(path, **arrays)
    (tmp_path / "splits").mkdir()
    np.savez(tmp_path / "splits/physics.npz", train=[3, 0, 4], valid=[1], test=[2])
    return tmp_path


def test_coauthor_is_what_pyg_reads(physics):
    dataset = load_dataset("physics", physics)
    oracle = NormalizeFeatures()(read_npz(str(physics / "coauthor/Physics/raw/ms_academic_phy.npz")))
    assert dataset.graph.is_sparse
    assert torch.equal(dataset.graph.x.to_dense(), oracle.x)
    assert torch.equal(dataset.graph.edge_index, coalesce(oracle.edge_index))
    assert torch.equal(dataset.graph.y, oracle.y)
    assert dataset.graph.edge_index.tolist() == [[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]]
    assert dataset.graph.class_names == gnn_benchmark.CLASS_NAMES["physics"]
    assert dataset.splits.paper == dataset.splits.given == ("given-0",)
    split = dataset.splits["given-0"]
    assert (split.train.tolist(), split.val.tolist(), split.test.tolist()) == ([0, 3, 4], [1], [2])


def test_coauthor_with_parts_that_do_not_fit(physics):
    path = physics / "coauthor/Physics/raw/ms_academic_phy.npz"
    with np.load(path, allow_pickle=True) as archive:
        arrays = dict(archive) | {"attr_indptr": np.array([0, 99])}
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=r"ms_academic_phy\.npz: attr_data.* make no matrix"):
        load_dataset("physics", physics)


# Roman-Empire and its like


@pytest.mark.parametrize("name", ["roman-empire", "amazon-ratings"])
def test_heterophilous_is_what_pyg_reads(name, tmp_path):
    raw = tmp_path / "heterophilous" / name.replace("-", "_") / "raw"
    raw.mkdir(parents=True)
    part = np.random.default_rng(0).integers(0, 3, size=(10, 6))
    part[:, 0] = 0  # at least one training node
    np.savez(
        raw / f"{raw.parent.name}.npz",
        node_features=np.random.default_rng(1).normal(size=(6, 3)).astype(np.float32),
        node_labels=np.array([0, 1, 2, 0, 1, 2]),
        edges=np.array([[0, 1], [1, 2], [4, 3], [5, 0]]),
        train_masks=part == 0,
        val_masks=part == 1,
        test_masks=part == 2,
    )
    dataset = load_dataset(name, tmp_path)
    assert [path.name for path in raw.parent.iterdir()] == ["raw"]  # no processed copy beside
    oracle = HeterophilousGraphDataset(str(tmp_path / "heterophilous"), name)[0]
    assert torch.equal(dataset.graph.x, oracle.x)
    assert torch.equal(dataset.graph.edge_index, coalesce(oracle.edge_index))
    assert torch.equal(dataset.graph.y, oracle.y)
    assert dataset.metric == "accuracy"
    assert dataset.splits.paper == tuple(f"given-{i}" for i in range(10))
    assert dataset.splits.paired_names(30) == dataset.splits.paper
    for i, split in enumerate(dataset.splits.values()):
        for mask, expected in zip(split.masks(6), (oracle.train_mask, oracle.val_mask, oracle.test_mask), strict=True):
            assert torch.equal(mask, expected[:, i])


# WikiCS


def wikics(**changes: object) -> dict[str, object]:
    content: dict[str, object] = {
        "features": [[0.5, -1.0], [1.0, 2.0], [3.0, 4.0], [5.0, 6.25], [0.0, 0.0]],
        "labels": [0, 9, 3, 3, 1],
        "links": [[1, 2], [0], [], [2, 3], []],
        "train_masks": [[True, False, False, False, False], [False, True, False, False, False]],
        "val_masks": [[False, True, False, False, False], [False, False, True, False, False]],
        "stopping_masks": [[False, False, True, False, False], [True, False, True, False, False]],
        "test_mask": [False, False, False, True, True],
    }
    return content | changes


def write_wikics(root: Path, content: object) -> None:
    (root / "wikics/raw").mkdir(parents=True, exist_ok=True)
    (root / "wikics/raw/data.json").write_text(json.dumps(content))


def test_wikics_is_what_pyg_reads(tmp_path):
    write_wikics(tmp_path, wikics())
    dataset = load_dataset("wikics", tmp_path)
    oracle = WikiCS(str(tmp_path / "wikics"), is_undirected=True)[0]
    assert torch.equal(dataset.graph.x, oracle.x)
    assert torch.equal(dataset.graph.edge_index, coalesce(oracle.edge_index))
    assert torch.equal(dataset.graph.y, oracle.y)
    assert dataset.graph.class_names[9] == "Programming language topics"
    assert dataset.splits.paper == ("given-0", "given-1")
    assert dataset.splits["given-0"].val.tolist() == [1, 2]
    assert dataset.splits["given-1"].val.tolist() == [0, 2]
    assert dataset.splits["given-1"].train.tolist() == [1]
    assert dataset.splits["given-1"].test.tolist() == [3, 4]


@pytest.mark.parametrize("content", [{}, [], wikics(features=[[1.0], [1.0, 2.0]]), wikics(links=3)])
def test_wikics_of_another_format(tmp_path, content):
    write_wikics(tmp_path, content)
    with pytest.raises(InputError, match=r"data\.json is not the data\.json of WikiCS"):
        load_dataset("wikics", tmp_path)


def test_wikics_cut_short(tmp_path):
    write_wikics(tmp_path, wikics())
    path = tmp_path / "wikics/raw/data.json"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=r"data\.json is not the data\.json of WikiCS"):
        load_dataset("wikics", tmp_path)


# ogbn-arxiv


@pytest.fixture
def ogb_package(monkeypatch) -> None:
    """The package ogb where it is installed; else a stand-in with the one function that is used."""
    if importlib.util.find_spec("ogb"):
        return

    def read_csv_graph_raw(raw_dir: str) -> list[dict]:
        print("Loading necessary files...")  # as it does
        edges = pd.read_csv(f"{raw_dir}/edge.csv.gz", header=None).to_numpy().T
        x = pd.read_csv(f"{raw_dir}/node-feat.csv.gz", header=None).to_numpy().astype(np.float32)
        nodes = pd.read_csv(f"{raw_dir}/num-node-list.csv.gz", header=None)[0][0]
        return [{"edge_index": edges, "edge_feat": None, "node_feat": x, "num_nodes": int(nodes)}]

    for name in ("ogb", "ogb.io", "ogb.io.read_graph_raw"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["ogb.io.read_graph_raw"].read_csv_graph_raw = read_csv_graph_raw


ARXIV = {
    "raw/edge.csv.gz": "0,1\n1,2\n3,0\n1,0\n",
    "raw/node-feat.csv.gz": "0.5,-1\n1,2\n3,4\n5,6.25\n",
    "raw/node-label.csv.gz": "0\n1\n1\n0\n",
    "raw/num-node-list.csv.gz": "4\n",
    "raw/num-edge-list.csv.gz": "4\n",
    "raw/node_year.csv.gz": "2013\n2018\n2019\n2013\n",
    "split/time/train.csv.gz": "3\n0\n",
    "split/time/valid.csv.gz": "1\n",
    "split/time/test.csv.gz": "2\n",
    "mapping/labelidx2arxivcategeory.csv.gz": "label idx,arxiv category\n0,arxiv cs na\n1,arxiv cs mm\n",
}


def write_arxiv(root: Path, members: dict[str, str], name: str = "arxiv") -> None:
    (root / "ogb").mkdir(exist_ok=True)
    with zipfile.ZipFile(root / f"ogb/{name}.zip", "w") as archive:
        for member, text in members.items():
            archive.writestr(f"{name}/{member}", gzip.compress(text.encode()))


@pytest.mark.usefixtures("ogb_package")
def test_ogb_reads_products_too(tmp_path):
    members = {member.replace("split/time", "split/sales_ranking"): text for member, text in ARXIV.items()}
    members.pop("mapping/labelidx2arxivcategeory.csv.gz")
    categories = "label idx,product category\n0,Home & Kitchen\n1,\n"
    write_arxiv(tmp_path, members | {"mapping/labelidx2productcategory.csv.gz": categories}, "products")
    dataset = load_dataset("ogbn-products", tmp_path)
    assert dataset.graph.class_names == ("Home & Kitchen", "class 1")
    assert torch.equal(dataset.graph.edge_index, to_undirected(torch.tensor([[0, 1, 3], [1, 2, 0]])))
    assert dataset.splits["given-0"].train.tolist() == [0, 3]


@pytest.mark.usefixtures("ogb_package")
def test_ogb_reads_its_archive(tmp_path, capsys):
    write_arxiv(tmp_path, ARXIV)
    dataset = load_dataset("ogbn-arxiv", tmp_path)
    graph, split = dataset.graph, dataset.splits["given-0"]
    assert graph.x.tolist() == [[0.5, -1], [1, 2], [3, 4], [5, 6.25]]
    assert torch.equal(graph.edge_index, to_undirected(torch.tensor([[0, 1, 3], [1, 2, 0]])))
    assert graph.y.tolist() == [0, 1, 1, 0]
    assert graph.class_names == ("cs.NA", "cs.MM")
    assert (split.train.tolist(), split.val.tolist(), split.test.tolist()) == ([0, 3], [1], [2])
    assert [path.name for path in (tmp_path / "ogb").iterdir()] == ["arxiv.zip"]
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("ogb_package")
@pytest.mark.parametrize("missing", ["raw/edge.csv.gz", "split/time/valid.csv.gz"])
def test_ogb_archive_without_a_member(tmp_path, missing):
    write_arxiv(tmp_path, {member: text for member, text in ARXIV.items() if member != missing})
    with pytest.raises(InputError, match=rf"arxiv\.zip is not the archive of ogbn-arxiv .*{missing}"):
        load_dataset("ogbn-arxiv", tmp_path)


@pytest.mark.usefixtures("ogb_package")
def test_ogb_archive_cut_short(tmp_path):
    write_arxiv(tmp_path, ARXIV)
    path = tmp_path / "ogb/arxiv.zip"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"arxiv\.zip is not the archive"):
        load_dataset("ogbn-arxiv", tmp_path)


def test_without_ogb_the_error_says_how_to_have_it(tmp_path, monkeypatch):
    write_arxiv(tmp_path, ARXIV)
    monkeypatch.setitem(sys.modules, "ogb", None)
    monkeypatch.setitem(sys.modules, "ogb.io.read_graph_raw", None)  # an earlier test may have imported it
    with pytest.raises(InputError, match=r'pip install "graph-sharpen\[ogb\]"'):
        load_dataset("ogbn-arxiv", tmp_path)
