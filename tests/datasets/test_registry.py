from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from sharpen.datasets import find_dataset, heterophilous, list_datasets, load_dataset
from sharpen.errors import InputError

NAMES = [
    "cora",
    "citeseer",
    "pubmed",
    "computer",
    "photo",
    "cs",
    "physics",
    "wikics",
    "squirrel",
    "chameleon",
    "amazon-ratings",
    "roman-empire",
    "minesweeper",
    "ogbn-arxiv",
    "ogbn-products",
    "digits",
]


def test_every_dataset_is_listed():
    infos = list_datasets()
    assert [info.name for info in infos] == NAMES
    assert {info.name for info in infos if info.metric == "roc-auc"} == {"minesweeper"}
    assert all(info.source and info.licence for info in infos)
    with pytest.raises(dataclasses.FrozenInstanceError):
        infos[0].nodes = 1


@pytest.mark.parametrize(
    ("given", "near"), [("coar", "cora"), ("Physics", "physics"), ("amazon_rating", "amazon-ratings")]
)
@pytest.mark.parametrize("function", [load_dataset, find_dataset])
def test_unknown_name(function, given, near):
    with pytest.raises(InputError, match=f"no dataset {given!r}; did you mean {near!r}.*There are cora, .*, digits"):
        function(given)


def test_name_like_no_other():
    with pytest.raises(InputError, match=r"no dataset 'zzzzzz'; there are cora"):
        load_dataset("zzzzzz")


@pytest.mark.parametrize("name", ["people.csv", "../cora", "graphs\\mine.pt", "nodes"])
def test_a_file_is_sent_where_files_are_read(name, tmp_path, monkeypatch):
    (tmp_path / "nodes").write_text("id\n1\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InputError, match=r"no dataset .*sharpen fit and sharpen compare take those of a graph of your own"
    ):
        load_dataset(name)


def test_nothing_is_found_in_an_empty_folder(tmp_path):
    root = tmp_path / "empty"
    root.mkdir()
    found = {name: find_dataset(name, root) for name in NAMES}
    assert [name for name, folder in found.items() if folder is not None] == ["digits"]
    assert found["digits"].is_dir()


def test_missing_file_is_downloaded_into_the_cache(server, cache, tmp_path, monkeypatch, data_root):
    content = (data_root / "heterophilous/filtered/chameleon_filtered.npz").read_bytes()
    server.content["/data/chameleon_filtered.npz"] = content
    monkeypatch.setattr(heterophilous, "_URL", f"{server.url}/data")
    root = tmp_path / "given"
    root.mkdir()
    dataset = load_dataset("chameleon", root)
    assert list(root.iterdir()) == []
    assert find_dataset("chameleon", root) == cache
    again = load_dataset("chameleon", root)
    assert server.asked == ["/data/chameleon_filtered.npz"]
    assert again.graph.fingerprint == dataset.graph.fingerprint
    assert dataset.graph.fingerprint == load_dataset("chameleon", data_root).graph.fingerprint


def test_no_network(tmp_path, monkeypatch):
    monkeypatch.setattr(heterophilous, "_URL", "http://127.0.0.1:9")
    with pytest.raises(
        InputError, match=r"127\.0\.0\.1:9/roman_empire\.npz could not .* put it at .*roman_empire\.npz"
    ):
        load_dataset("roman-empire", tmp_path)


def test_digits_need_no_file():
    dataset = load_dataset("digits")
    info = next(info for info in list_datasets() if info.name == "digits")
    graph = dataset.graph
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (info.nodes, info.features, info.classes)
    assert graph.adjacency.nnz == 2 * info.edges + info.nodes
    assert isinstance(find_dataset("digits"), Path)
    assert graph.x.layout == torch.strided


def test_the_catalog_needs_no_torch() -> None:
    code = "import sys, sharpen.datasets.catalog, sharpen.studies; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
