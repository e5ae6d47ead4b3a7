"""The ten benchmark graphs at hand, as they are published."""

from __future__ import annotations

import hashlib
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.datasets import HeterophilousGraphDataset
from torch_geometric.io import read_npz
from torch_geometric.transforms import NormalizeFeatures
from torch_geometric.utils import coalesce

from sharpen.datasets import find_dataset, gnn_benchmark, heterophilous, list_datasets, load_dataset, planetoid
from sharpen.errors import InputError

# Nodes, undirected edges without self-loops, features, classes.
SIZES = {
    "cora": (2708, 5278, 1433, 7),
    "citeseer": (3327, 4552, 3703, 6),
    "pubmed": (19717, 44324, 500, 3),
    "photo": (7650, 119081, 745, 8),
    "computer": (13752, 245861, 767, 10),
    "cs": (18333, 81894, 6805, 15),
    "physics": (34493, 247962, 8415, 5),
    "minesweeper": (10000, 39402, 7, 2),
    "chameleon": (890, 8854, 2325, 5),
    "squirrel": (2223, 46998, 2089, 5),
}
SOURCE = {name: planetoid for name in planetoid.FOLDERS}
SOURCE |= {name: gnn_benchmark for name in gnn_benchmark.GRAPHS}
SOURCE |= {name: heterophilous for name in ("minesweeper", "chameleon", "squirrel")}


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


@pytest.mark.parametrize("name", SIZES)
def test_size_splits_and_folder(name, data_root, cache):
    before = snapshot(data_root)
    dataset = load_dataset(name, data_root)
    graph = dataset.graph
    edges = (graph.adjacency.nnz - graph.num_nodes) // 2
    assert (graph.num_nodes, edges, graph.num_features, graph.num_classes) == SIZES[name]
    info = next(info for info in list_datasets() if info.name == name)
    assert (info.nodes, info.edges, info.features, info.classes) == SIZES[name]
    assert dataset.metric == info.metric
    assert graph.is_sparse == (name != "minesweeper")
    assert sorted(set(graph.y.tolist())) == list(range(graph.num_classes))
    for split in dataset.splits.values():
        members = torch.cat([split.train, split.val, split.test])
        assert members.unique().numel() == members.numel()
        assert int(members.max()) < graph.num_nodes
        assert set(graph.y[split.train].tolist()) == set(range(graph.num_classes))
    assert snapshot(data_root) == before
    assert not cache.exists()
    assert find_dataset(name, data_root) == data_root
    assert load_dataset(name, data_root).graph.fingerprint == graph.fingerprint


@pytest.mark.parametrize("name", SIZES)
def test_checksums_are_those_of_the_published_files(name, data_root):
    for file in SOURCE[name].files(name):
        if file.sha256 is not None:
            assert hashlib.sha256((data_root / file.path).read_bytes()).hexdigest() == file.sha256


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_paper_split_of_planetoid_node_for_node(name, data_root):
    """The protocol word for word, on the global generator."""
    dataset = load_dataset(name, data_root)
    y = dataset.graph.y
    with torch.random.fork_rng():
        torch.manual_seed(123)
        train, rest = [], []
        for c in range(dataset.graph.num_classes):
            nodes = (y == c).nonzero().flatten()
            nodes = nodes[torch.randperm(len(nodes))]
            train.append(nodes[:20])
            rest.append(nodes[20:])
        others = torch.cat(rest)
        others = others[torch.randperm(len(others))]
    (paper,) = dataset.splits.paper
    split = dataset.splits[paper]
    assert split.train.tolist() == sorted(torch.cat(train).tolist())
    assert split.val.tolist() == sorted(others[:500].tolist())
    assert split.test.tolist() == sorted(others[500:1500].tolist())
    assert dataset.splits.paired_names(2) == ("balanced-20-500-1000-seed0", "balanced-20-500-1000-seed1")


@pytest.mark.filterwarnings("ignore:Please import `csr_matrix`")
@pytest.mark.parametrize(("name", "folder"), planetoid.FOLDERS.items())
def test_planetoid_test_nodes_have_their_own_features_and_labels(name, folder, data_root):
    """The files list test nodes in a shuffled order: row k of tx belongs to the k-th node of test.index."""
    raw = data_root / "planetoid" / folder / "raw"
    graph = load_dataset(name, data_root).graph
    index = np.loadtxt(raw / f"ind.{name}.test.index", dtype=np.int64)
    tx = scipy.sparse.csr_array(pickle.loads((raw / f"ind.{name}.tx").read_bytes(), encoding="latin1"))
    ty = pickle.loads((raw / f"ind.{name}.ty").read_bytes(), encoding="latin1")
    x = graph.to_scipy()[1]
    assert (x[index] != tx.astype(np.float32)).nnz == 0
    assert graph.y[torch.from_numpy(index)].tolist() == ty.argmax(1).tolist()
    public = load_dataset(name, data_root).splits["public"]
    assert public.test.tolist() == sorted(index.tolist())
    assert (len(public.train), len(public.val)) == (20 * graph.num_classes, 500)


def test_planetoid_class_names_by_class_size(data_root):
    """Sizes of the classes of the LINQS releases; CiteSeer's first has the 15 nodes of no class besides its 249."""
    sizes = {
        "cora": {"Neural Networks": 818, "Rule Learning": 180, "Reinforcement Learning": 217, "Theory": 351}
        | {"Probabilistic Methods": 426, "Genetic Algorithms": 418, "Case Based": 298},
        "citeseer": {"Agents": 596, "AI": 249 + 15, "DB": 701, "IR": 668, "ML": 590, "HCI": 508},
    }
    for name, expected in sizes.items():
        graph = load_dataset(name, data_root).graph
        counts = torch.bincount(graph.y).tolist()
        assert dict(zip(graph.class_names, counts, strict=True)) == expected


def test_planetoid_file_that_was_changed(tmp_path, data_root):
    raw = tmp_path / "planetoid/Cora/raw"
    shutil.copytree(data_root / "planetoid/Cora/raw", raw)
    graph_file = raw / "ind.cora.graph"
    graph_file.chmod(0o644)
    graph_file.write_bytes(graph_file.read_bytes() + b".")
    with pytest.raises(InputError, match=r"ind\.cora\.graph is not the file that"):
        load_dataset("cora", tmp_path)


def test_amazon_is_what_pyg_reads(data_root):
    graph = load_dataset("photo", data_root).graph
    oracle = NormalizeFeatures()(read_npz(str(data_root / gnn_benchmark.GRAPHS["photo"])))
    assert torch.equal(graph.x.to_dense(), oracle.x)
    assert torch.equal(graph.edge_index, coalesce(oracle.edge_index))
    assert torch.equal(graph.y, oracle.y)


@pytest.mark.parametrize("name", gnn_benchmark.GRAPHS)
def test_class_names_are_those_of_the_file(name, data_root):
    with np.load(data_root / gnn_benchmark.GRAPHS[name]) as archive:
        assert gnn_benchmark.CLASS_NAMES[name] == tuple(archive["class_names"].tolist())


@pytest.mark.parametrize("name", gnn_benchmark.GRAPHS)
def test_fixed_split_is_that_of_the_file(name, data_root):
    dataset = load_dataset(name, data_root)
    (paper,) = dataset.splits.paper
    split = dataset.splits[paper]
    with np.load(data_root / f"splits/{name}.npz") as archive:
        assert split.train.tolist() == sorted(archive["train"].tolist())
        assert split.val.tolist() == sorted(archive["valid"].tolist())
        assert split.test.tolist() == sorted(archive["test"].tolist())
    assert len(split.train) + len(split.val) + len(split.test) == dataset.graph.num_nodes
    assert dataset.splits.paired_names(1) == ("stratified-60-20-20-seed0",)
    drawn = dataset.splits["stratified-60-20-20-seed0"]
    assert abs(len(drawn.train) / dataset.graph.num_nodes - 0.6) < 0.001


def test_minesweeper_is_what_pyg_reads(data_root, tmp_path):
    raw = tmp_path / "minesweeper/raw"
    shutil.copytree(data_root / "heterophilous/minesweeper/raw", raw)
    dataset = load_dataset("minesweeper", data_root)
    oracle = HeterophilousGraphDataset(str(tmp_path), "minesweeper")[0]
    assert torch.equal(dataset.graph.x, oracle.x)
    assert torch.equal(dataset.graph.edge_index, coalesce(oracle.edge_index))
    assert torch.equal(dataset.graph.y, oracle.y)
    assert dataset.splits.paper == tuple(f"given-{i}" for i in range(10))
    for i, name in enumerate(dataset.splits.paper):
        train, val, test = dataset.splits[name].masks(10000)
        assert torch.equal(train, oracle.train_mask[:, i])
        assert torch.equal(val, oracle.val_mask[:, i])
        assert torch.equal(test, oracle.test_mask[:, i])
    assert dataset.graph.class_names[1] == "mine"
    assert int((dataset.graph.y == 1).sum()) == 2000  # a fifth of the fields


@pytest.mark.parametrize("name", ["chameleon", "squirrel"])
def test_filtered_graphs_are_those_of_the_file(name, data_root):
    dataset = load_dataset(name, data_root)
    with np.load(data_root / f"heterophilous/filtered/{name}_filtered.npz") as archive:
        assert (dataset.graph.x.to_dense().numpy() == archive["node_features"]).all()
        for i, split in enumerate(dataset.splits.values()):
            assert split.val.tolist() == np.flatnonzero(archive["val_masks"][i]).tolist()
    assert len(dataset.splits) == 10


def test_physics_is_never_dense(data_root):
    """Dense, its features alone would be 34493 × 8415 × 4 bytes, 1.1 GB."""
    pytest.importorskip("resource")
    program = (
        "import resource, sys\n"
        "from sharpen.datasets import load_dataset\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        "load_dataset('physics', sys.argv[1]).graph.fingerprint\n"
        "print((peak() - before) * (1 if sys.platform == 'darwin' else 1024))\n"
    )
    source = str(Path(gnn_benchmark.__file__).parents[2])
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r})\n{program}", str(data_root.resolve())],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(run.stdout) < 400e6
