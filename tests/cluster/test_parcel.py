"""A parcel: the same dataset at the other end, over memory that is shared."""

import dataclasses
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import sharpen
from sharpen.cluster.parcel import pack, unpack
from sharpen.graph import Graph
from sharpen.large.parted import arrange
from sharpen.large.stored import CompressedGraph, StoredGraph, store_graph
from sharpen.trial import Trial
from tests.large.towns import SPLIT, towns


def test_a_parcel_holds_every_tensor_once_and_gives_the_same_dataset():
    digits = sharpen.load_dataset("digits")
    parcel = pack((digits, digits.graph.x))
    assert len(parcel.rest) < 2000
    assert (
        parcel.nbytes < 1.1 * sum(t.numel() * t.element_size() for t in (digits.graph.x, digits.graph.edge_index)) + 2e4
    )
    for array in parcel.arrays:
        array.flags.writeable = False
    again, x = unpack(parcel)
    assert again.graph.x is x
    assert x.data_ptr() == parcel.arrays[0].ctypes.data  # the same memory, not a copy
    assert again.graph.fingerprint == digits.graph.fingerprint
    assert again.splits.paper == digits.splits.paper
    trial = Trial(model="gcn", hidden=4, epochs=3, lam=0.5)
    (one,), (other,) = (sharpen.train(each, [trial], device="cpu", progress=False) for each in (digits, again))
    assert (one.val, one.test, one.best_epoch) == (other.val, other.test, other.best_epoch)


def test_sparse_features_stay_sparse_and_are_not_copied():
    graph = Graph(x=torch.eye(5).to_sparse_csr(), edge_index=[[0, 1], [1, 2]], y=[0, 1, 0, 1, -1], name="five")
    parcel = pack(graph)
    again = unpack(parcel)
    assert again.is_sparse
    assert again.x.values().data_ptr() in {array.ctypes.data for array in parcel.arrays}
    assert again.fingerprint == graph.fingerprint
    assert (again.name, again.class_names) == ("five", ("0", "1"))


def test_what_a_graph_has_worked_out_travels_too():
    graph = Graph(x=torch.eye(3), edge_index=[[0, 1], [1, 2]])
    bare = len(pack(graph).arrays)
    _ = graph.adjacency
    assert len(pack(graph).arrays) > bare
    assert "adjacency" in vars(unpack(pack(graph)))


def in_clusters(graph):
    trial = Trial(model="gcn", hidden=4, epochs=1, batching="clusters-4-2")
    (record,) = sharpen.train(
        graph, [trial], splits=[SPLIT], device="cpu", precision="float64", progress=False, keep_weights=True
    )
    return record


@pytest.mark.parametrize("kind", ["gone", "another graph", "read-only"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_stored_graph_trains_where_its_folder_is_not(kind, sparse, tmp_path, monkeypatch):
    plain = towns(roads=True, weighted=True)
    plain = dataclasses.replace(plain, x=sp.csr_array(plain.x.numpy())) if sparse else plain
    here, mapped = (store_graph(plain, tmp_path / name) for name in ("towns", "kept"))
    y = 1 - here.y
    parcel = pack(dataclasses.replace(here, y=y))
    expected = in_clusters(dataclasses.replace(here, y=y))
    shutil.rmtree(tmp_path / "towns")
    if kind == "another graph":
        store_graph(towns(roads=False), tmp_path / "towns")
    elif kind == "read-only":
        store_graph(plain, tmp_path / "towns")
        monkeypatch.setattr("os.access", lambda path, mode: False)
    there = unpack(parcel)
    assert isinstance(there, CompressedGraph)
    assert not isinstance(there, StoredGraph)
    assert (there.num_edges, there.y.tolist(), there.name) == (here.num_edges, y.tolist(), "towns")
    found = in_clusters(there)
    assert "edge_index" not in vars(there)
    assert (tmp_path / "towns").exists() == (kind != "gone")
    assert not (tmp_path / "towns" / "clusters-4").exists()
    np.testing.assert_allclose(found.logits, expected.logits, rtol=1e-9)
    again = dataclasses.replace(there, name="again")
    assert (again.num_edges, again.fingerprint) == (here.num_edges, there.fingerprint)
    assert there.fingerprint == unpack(pack(there)).fingerprint == dataclasses.replace(mapped, y=y).fingerprint


def test_a_stored_graph_stays_mapped_where_its_folder_is_too(tmp_path):
    here = store_graph(towns(roads=True), tmp_path / "towns")
    parcel = pack(dataclasses.replace(here, class_names=("a", "b")))
    there = unpack(parcel)
    assert isinstance(there, StoredGraph)
    assert (there.folder, there.class_names) == (here.folder, ("a", "b"))
    assert there.x.data_ptr() not in {array.ctypes.data for array in parcel.arrays}
    assert isinstance(arrange(there, 4).x, np.memmap)
