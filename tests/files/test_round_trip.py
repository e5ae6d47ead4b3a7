"""Random tables, written by other libraries, come back as they were."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpen.files import (
    Columns,
    FeatureEncoder,
    GraphTables,
    read_nodes_and_edges,
    read_predictions,
    write_predictions,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
ID = TEXT.filter(lambda text: text.strip() and text == text.strip())
NAMED = Columns(id="id", label="klass", source="from", target="to")


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[str], list[str], list[tuple[int, int]]]:
    """Ids, labels and a column of any text, and edges between the ids."""
    ids = draw(st.lists(ID, min_size=2, max_size=8, unique_by=lambda text: text.removesuffix(".0")))
    labels = draw(st.lists(st.sampled_from(["", "cat", "dog, big", '"x"', "-3"]), min_size=len(ids), max_size=len(ids)))
    notes = draw(st.lists(TEXT, min_size=len(ids), max_size=len(ids)))
    end = st.integers(0, len(ids) - 1)
    return ids, labels, notes, draw(st.lists(st.tuples(end, end), max_size=12))


def written(kind: str, columns: dict[str, list[str]]) -> bytes:
    """A table as bytes, by libraries that know nothing of ours."""
    rows = list(zip(*columns.values(), strict=True))
    if kind in ("csv", "tsv"):
        file = io.StringIO(newline="")
        writer = csv.writer(file, delimiter="\t" if kind == "tsv" else ",", quoting=csv.QUOTE_ALL)
        writer.writerows([tuple(columns), *rows])
        return file.getvalue().encode()
    if kind == "jsonl":
        return "\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows).encode()
    out = io.BytesIO()
    pd.DataFrame(columns, dtype=object if rows else str).to_parquet(out)
    return out.getvalue()


def pack(ending: str, data: bytes) -> bytes:
    packers: dict[str, Any] = {
        "": bytes,
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
        ".zst": lambda raw: pa.compress(raw, codec="zstd", asbytes=True),
    }
    return bytes(packers[ending](data))


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "jsonl"])
@settings(max_examples=40, deadline=None)
@given(table=tables(), ending=st.sampled_from(["", ".gz", ".bz2", ".xz", ".zst"]))
def test_a_written_table_reads_back(kind: str, table: Any, ending: str) -> None:
    ids, labels, notes, pairs = table
    with tempfile.TemporaryDirectory() as folder:
        nodes, edges = Path(folder) / f"nodes.{kind}{ending}", Path(folder) / f"edges.{kind}{ending}"
        nodes.write_bytes(pack(ending, written(kind, {"id": ids, "klass": labels, "note": notes})))
        edges.write_bytes(
            pack(ending, written(kind, {"from": [ids[u] for u, _ in pairs], "to": [ids[v] for _, v in pairs]}))
            if pairs or kind != "jsonl"
            else pack(ending, b'{"from": %s, "to": %s}' % ((json.dumps(ids[0]).encode(),) * 2))
        )
        read = read_nodes_and_edges(nodes, edges, NAMED)
    assert read.ids.tolist() == ids
    assert read.labels.tolist() == [label or None for label in labels]
    assert read.frame["note"].tolist() == notes
    assert read.edge_index.T.tolist() == [list(pair) for pair in pairs] or (kind == "jsonl" and not pairs)


@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(st.floats(-1e100, 1e100, allow_nan=False), min_size=3, max_size=10),
    holes=st.sets(st.integers(0, 9)),
    kind=st.sampled_from(["csv", "jsonl", "parquet"]),
)
def test_numbers_are_standardised_as_numpy_does(numbers: list[float], holes: set[int], kind: str) -> None:
    values = [None if i in holes and i else number for i, number in enumerate(numbers)]
    frame = pd.DataFrame({"id": range(len(values)), "size": pd.Series(values, dtype=float)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"nodes.{kind}"
        if kind == "csv":
            frame.to_csv(path, index=False)
        elif kind == "parquet":
            frame.to_parquet(path)
        else:
            frame.to_json(path, orient="records", lines=True, double_precision=15)
        tables = read_nodes_and_edges(path)
        encoder = FeatureEncoder.fit(tables)
        x = encoder.transform(tables)
    again = FeatureEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert again == encoder
    x = x if isinstance(x, np.ndarray) else x.toarray()
    assert np.isfinite(x).all()
    known = np.array([value for value in values if value is not None])
    spread = known.std() > 1e-9 * max(1, np.abs(known).max()) and encoder.columns[0].kind == "number"
    if spread and kind != "jsonl":  # which pandas writes with fewer digits
        expected = [0 if value is None else (value - known.mean()) / known.std() for value in values]
        np.testing.assert_allclose(x[:, 0], expected, rtol=1e-4, atol=1e-4)
        if any(value is None for value in values):
            assert x[:, 1].tolist() == [float(value is None) for value in values]


@settings(max_examples=60, deadline=None)
@given(
    table=st.lists(st.tuples(TEXT, TEXT.filter(bool)), min_size=1, max_size=8),
    ending=st.sampled_from(["csv", "parquet"]),
)
def test_predictions_read_back_and_no_cell_is_a_formula(table: list[tuple[str, str]], ending: str) -> None:
    frame = pd.DataFrame(table, columns=["id", "=label"])
    frame["margin"] = -0.25
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"predictions.{ending}"
        write_predictions(path, frame)
        again = read_predictions(path)
        text = path.read_bytes().decode() if ending == "csv" else ""
    cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
    assert again["id"].tolist() == frame["id"].tolist()
    assert again["=label"].tolist() == frame["=label"].tolist()
    assert [float(margin) for margin in again["margin"]] == [-0.25] * len(frame)
    assert all(cell == "-0.25" or cell[:1] not in tuple("=+-@\t\r") for cell in cells if cell)


def test_the_same_bytes_have_the_same_fingerprint(tmp_path: Path) -> None:
    def read(text: str) -> GraphTables:
        (tmp_path / "nodes.csv").write_text(text)
        return read_nodes_and_edges(tmp_path / "nodes.csv")

    assert read("id\na\n").fingerprint == read("id\na\n").fingerprint
    assert read("id\na\n").fingerprint != read("id\nb\n").fingerprint
