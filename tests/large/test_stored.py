"""Graphs on disk: mapped for reading, checked when they are opened, and graphs like any other."""

import dataclasses
import errno
import json
import os
import warnings

import numpy as np
import pytest
import torch

from sharpen import NodeClassifier, train
from sharpen.errors import InputError
from sharpen.large import disk, open_graph, parted, store_graph, stored
from sharpen.large.parted import arrange
from sharpen.trial import Trial
from tests.large.towns import SPLIT, towns


@pytest.fixture
def folder(tmp_path):
    store_graph(towns(roads=True), tmp_path / "towns")
    return tmp_path / "towns"


def write_holes(path, shape):
    """An array of zeros that takes no room on disk."""
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        try:
            file.truncate(file.tell() + 4 * int(np.prod(shape)))
        except OSError:
            pytest.skip("no files of this size here")


def test_features_larger_than_all_memory_are_mapped_and_not_read(folder):
    """8 TB: a mapping that could be written to is refused by the system, and reading them would take an hour."""
    write_holes(folder / "x.npy", (12, 2**41 // 12))
    x = open_graph(folder).x
    assert x[-1, -1] == 0
    assert x.shape == (12, 2**41 // 12)
    assert not stored.load_array(folder / "x.npy").flags.writeable


@pytest.mark.parametrize("model", ["gcn", "gat"])
def test_reading_gives_no_warning(folder, model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="Sparse|.*TF32")
        train(
            open_graph(folder),
            [Trial(model=model, epochs=1, hidden=4, batching=batching) for batching in (None, "clusters-4-2")],
            splits=[SPLIT],
            device="cpu",
            progress=False,
        )


def test_what_cannot_be_mapped_is_not_called_something_else(folder, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(np, "load", refuse)
    with pytest.raises(InputError, match=r"cannot be read .*allocate memory"):
        open_graph(folder)


def test_labels_of_its_own(folder, monkeypatch):
    graph = open_graph(folder)
    monkeypatch.setattr(type(graph), "edge_index", property(lambda self: pytest.fail("made all edges")))
    y = torch.arange(12) % 3
    other = dataclasses.replace(graph, y=y, class_names=("a", "b", "c"))
    assert (other.y.tolist(), other.num_classes, other.name) == (y.tolist(), 3, "towns")
    assert graph.y.tolist() == towns(roads=True).y.tolist()
    assert other.folder == graph.folder
    assert isinstance(arrange(other, 4).x, np.memmap)
    assert dataclasses.replace(other, name="again").y.tolist() == y.tolist()
    with pytest.raises(InputError, match=r"y has shape \(3,\)"):
        dataclasses.replace(graph, y=[0, 1, 2])
    with pytest.raises(ValueError, match="field x"):
        dataclasses.replace(graph, x=np.eye(12))


def test_the_content_of_files_is_hashed_once(folder, monkeypatch):
    content = open_graph(folder).content
    monkeypatch.setattr(stored, "_HASHED_AT_ONCE", 7)
    about = json.loads((folder / "graph.json").read_text())
    assert about.pop("content") == content == stored._content(folder, 5)
    (folder / "graph.json").write_text(json.dumps(about))  # as it was stored before there was a hash
    assert open_graph(folder).content == content
    monkeypatch.setattr(stored, "_content", lambda *given: pytest.fail("read all files again"))
    assert open_graph(folder).content == content
    assert not list(folder.glob(".*"))


def test_labels_and_class_names_are_part_of_what_a_graph_is(folder):
    graph = open_graph(folder)
    same = dataclasses.replace(graph, y=graph.y.clone(), name="again")
    others = [dataclasses.replace(graph, y=1 - graph.y), dataclasses.replace(graph, class_names=("a", "b"))]
    assert same.identity == graph.identity
    assert len({each.identity for each in (graph, *others)}) == 3


def test_a_classifier_takes_it_with_labels_beside_it(folder):
    labels = [None if node in SPLIT.test else "ab"[c] for node, c in enumerate(towns(roads=True).y.tolist())]
    settings = {"model": "gcn", "lam": 0.25, "epochs": 3, "hidden": 4, "device": "cpu"}
    a, b = (NodeClassifier(**settings).fit(g, labels).predict_proba(g) for g in (towns(roads=True), open_graph(folder)))
    np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "how", "message"),
    [
        (
            "col",
            lambda col: np.where(np.arange(len(col)) == 5, 12, col).astype(np.int32),
            r"col\[5\] is 12, .* 12 nodes",
        ),
        ("col", lambda col: np.where(np.arange(len(col)) == 7, -1, col).astype(np.int32), r"col\[7\] is -1"),
        ("col", lambda col: col[:-1], "rowptr does not run from 0"),
        ("col", lambda col: col.astype(np.int64), "no list of torch.int32"),
        ("rowptr", lambda rowptr: rowptr[[0, 2, 1, *range(3, 13)]], "does not increase"),
        ("rowptr", lambda rowptr: rowptr + np.int32(1), "rowptr does not run from 0"),
        ("y", lambda y: y[:-1], "do not agree"),
        ("y", lambda y: y + 7, "class_names has 2 names"),
    ],
)
def test_arrays_that_would_lead_astray_are_named(folder, name, how, message, monkeypatch):
    monkeypatch.setattr(stored, "_CHECKED_AT_ONCE", 4)  # so that it is found beyond the first few
    np.save(folder / f"{name}.npy", how(np.load(folder / f"{name}.npy")))
    with pytest.raises(InputError, match=message):
        open_graph(folder)


def test_a_file_that_is_cut_off_is_named(folder):
    (folder / "x.npy").write_bytes((folder / "x.npy").read_bytes()[:-4])
    with pytest.raises(InputError, match="not a stored graph"):
        open_graph(folder)


@pytest.mark.parametrize("quicker", ["the same", "other labels", "something else"])
def test_of_two_that_store_at_once_the_first_serves_the_second_if_it_is_the_same(quicker, tmp_path, monkeypatch):
    place, original = tmp_path / "towns", stored._content
    graph = towns(roads=True)

    def overtaken(*given):
        monkeypatch.setattr(stored, "_content", original)
        if quicker == "something else":
            place.mkdir()
            (place / "notes.txt").write_text("mine")
        else:
            store_graph(graph if quicker == "the same" else dataclasses.replace(graph, y=1 - graph.y), place)
        return original(*given)

    monkeypatch.setattr(stored, "_content", overtaken)
    if quicker == "the same":
        assert store_graph(graph, place).y.tolist() == graph.y.tolist()
    else:
        with pytest.raises(InputError, match=r"another process.*give a new folder"):
            store_graph(graph, place)
    assert [path.name for path in tmp_path.iterdir()] == ["towns"]


def test_an_empty_folder_is_used_unless_it_cannot_be_replaced(tmp_path, monkeypatch):
    place, original = tmp_path / "towns", os.replace
    place.mkdir()

    def refuse(source, target):
        if target == place:
            raise OSError(errno.EBUSY, "Device or resource busy")
        original(source, target)

    with monkeypatch.context() as mounted:
        mounted.setattr(os, "replace", refuse)
        with pytest.raises(InputError, match=r"resource busy.*a new folder inside of it"):
            store_graph(towns(roads=True), place)
    assert store_graph(towns(roads=True), place).num_nodes == 12
    with pytest.raises(InputError, match="exists already"):
        store_graph(towns(roads=True), place)


@pytest.mark.parametrize("where", ["clusters", "features"])
def test_a_folder_that_cannot_be_written_to_is_named_before_anything_that_takes_long(folder, where, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(errno.EROFS, "Read-only file system")

    graph = open_graph(folder)
    if where == "clusters":
        monkeypatch.setattr(disk.tempfile, "TemporaryDirectory", refuse)
        monkeypatch.setattr(parted, "metis", lambda adjacency, parts: pytest.fail("cut the graph first"))
    else:
        arrange(graph, 4)
        monkeypatch.setattr(np.lib.format, "open_memmap", refuse)
    with pytest.raises(InputError, match=r"cannot be written to .Read-only file system.*another folder"):
        arrange(graph, 4).propagated("mean", torch.float32)
