"""Whatever bytes stand in a file, reading it ends in a graph or an InputError."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from sharpen.errors import InputError
from sharpen.files import FeatureEncoder, check_labels, read_nodes_and_edges

ROUNDS = 60
CSV = b'id,age,city,old,text,label\n1,3.5,"Rome, It",yes,a few words here,x\n2,,Oslo,no,some other words,y\n' * 3


def _frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": [1, 2, 3],
            "label": ["x", "y", None],
            "age": [1.5, None, 2.0],
            "v": [[1.0, 2.0]] * 3,
            "ok": [True, False, True],
        }
    )


def _parquet() -> bytes:
    out = io.BytesIO()
    _frame().to_parquet(out)
    return out.getvalue()


def _npz() -> bytes:
    out = io.BytesIO()
    np.savez(out, x=np.eye(3), edge_index=np.array([[0, 1], [1, 2]]), y=np.array([0, 1, -1]))
    return out.getvalue()


def _pt() -> bytes:
    out = io.BytesIO()
    torch.save(Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([0, 1, -1])), out)
    return out.getvalue()


def _zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("nodes.csv", CSV)
    return out.getvalue()


def _gexf() -> bytes:
    out = io.BytesIO()
    networkx.write_gexf(networkx.karate_club_graph(), out)
    return out.getvalue()


VALID = {
    "nodes.csv": CSV,
    "nodes.tsv": CSV.replace(b",", b"\t"),
    "nodes.jsonl": _frame().to_json(orient="records", lines=True).encode(),
    "nodes.parquet": _parquet(),
    "nodes.csv.gz": gzip.compress(CSV, mtime=0),
    "nodes.zip": _zip(),
    "graph.npz": _npz(),
    "graph.pt": _pt(),
    "graph.graphml": "\n".join(networkx.generate_graphml(networkx.karate_club_graph())).encode(),
    "graph.gexf": _gexf(),
}


def attempt(path: Path, data: bytes) -> str:
    """Read and encode a file of these bytes; anything but an InputError passes through and fails the test."""
    path.write_bytes(data)
    try:
        tables = read_nodes_and_edges(path)
        FeatureEncoder.fit(tables).transform(tables)
        check_labels(tables)
    except InputError as error:
        return str(error)
    return "read"


@pytest.mark.parametrize("name", VALID)
@pytest.mark.filterwarnings("ignore")
def test_damaged_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    random = np.random.default_rng(sum(name.encode()))
    valid = VALID[name]
    path = tmp_path / name
    outcomes = set()
    for _ in range(ROUNDS):
        outcomes.add(attempt(path, random.bytes(int(random.integers(1, 400)))))
        outcomes.add(attempt(path, valid[: int(random.integers(0, len(valid)))]))
        flipped = bytearray(valid)
        for position in random.integers(0, len(valid), size=int(random.integers(1, 4))):
            flipped[position] ^= 1 << int(random.integers(8))
        outcomes.add(attempt(path, bytes(flipped)))
        start, stop = sorted(random.integers(0, len(valid), size=2))
        outcomes.add(attempt(path, valid[:start] + valid[stop:] + valid[start:stop]))
    assert len(outcomes - {"read"}) > 1  # refused, and for more than one reason
    assert all(message.isprintable() for message in outcomes)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["edges.csv", "edges.jsonl", "edges.parquet"])
def test_damaged_edges_are_read_or_refused(name: str, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    nodes = tmp_path / "nodes.csv"
    nodes.write_bytes(b"id,label\n1,x\n2,y\n3,x\n")
    frame = pd.DataFrame({"source": [1, 2, 3], "target": [2, 3, 1], "weight": [1.0, 0.0, 2.5]})
    path = tmp_path / name
    if name.endswith("csv"):
        frame.to_csv(path, index=False)
    elif name.endswith("jsonl"):
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path)
    valid = path.read_bytes()
    assert read_nodes_and_edges(nodes, path).edge_index.tolist() == [[0, 2], [1, 0]]
    refused = 0
    for _ in range(2 * ROUNDS):
        flipped = bytearray(valid)
        for position in random.integers(0, len(valid), size=2):
            flipped[position] ^= 1 << int(random.integers(8))
        path.write_bytes(bytes(flipped))
        try:
            read_nodes_and_edges(nodes, path)
        except InputError:
            refused += 1
    assert refused
