"""A parcel: the same dataset at the other end, over memory that is shared."""

import torch

import sharpen
from sharpen.cluster.parcel import pack, unpack
from sharpen.graph import Graph
from sharpen.trial import Trial


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
