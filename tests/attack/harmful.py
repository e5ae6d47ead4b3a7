"""Small files that would eat all memory or time, made in code; each must be refused by name, or read within its means."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

NODES = b"id,age,label\na,1,x\nb,2,y\nc,3,\n"


@dataclass(frozen=True)
class Harmful:
    """A file and what is said about it.

    Args:
        name: What to call the case.
        file: The name of the file.
        make: Its bytes.
        says: What the refusal holds; None where it is read.
    """

    name: str
    file: str
    make: Callable[[], bytes]
    says: str | None


def npy(shape: tuple[int, ...], dtype: str, data: bytes = b"") -> bytes:
    """An array as a header says it is, whatever stands behind it."""
    out = io.BytesIO()
    np.lib.format.write_array_header_2_0(out, {"shape": shape, "fortran_order": False, "descr": dtype})
    return out.getvalue() + data


def npz(**parts: bytes) -> bytes:
    """An archive of arrays."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(f"{name}.npy", data)
    return out.getvalue()


EDGES = npy((2, 1), "<i8", struct.pack("<2q", 0, 0))


def graph_npz(**parts: bytes) -> bytes:
    """An archive with one edge, and the parts given."""
    return npz(edge_index=EDGES, **parts)


def pt(**tensors: torch.Tensor) -> bytes:
    """A saved dict of tensors, with one edge."""
    out = io.BytesIO()
    torch.save({"edge_index": torch.zeros(2, 1, dtype=torch.int64), **tensors}, out)
    return out.getvalue()


def opcodes(count: int) -> bytes:
    """A saved file whose program does nothing, at length."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + b"N0" * (count // 2) + b"N.")
        archive.writestr("archive/version", b"3\n")
    return out.getvalue()


def parquet(table: pa.Table, **options: object) -> bytes:
    """A table as Parquet."""
    out = pa.BufferOutputStream()
    pq.write_table(table, out, **options)
    return out.getvalue().to_pybytes()


def repeated_text() -> bytes:
    """One megabyte of text that stands once in the file and in each of 6,000 rows."""
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(6000, dtype=np.int32)), pa.array(["x" * 2**20]))
    return parquet(pa.table({"id": np.arange(6000), "text": text}), compression="zstd", store_schema=False)


def prefixed_text() -> bytes:
    """Long texts that share all but their ends, of which a file holds the ends."""
    text = pa.array([("x" * 2**17) + str(i) for i in range(1500)])
    options = {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}, "compression": "zstd"}
    return parquet(pa.table({"id": np.arange(1500), "text": text}), **options)


def long_list(count: int) -> bytes:
    """One row with a list of zeros."""
    values = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), pa.array(np.zeros(count, dtype=np.int8)))
    return parquet(pa.table({"id": [1], "v": values}), compression="zstd")


def many_rows(count: int) -> bytes:
    """Zeros without end, which a run length holds in a few bytes."""
    return parquet(pa.table({"id": pa.array(np.zeros(count, dtype=np.int8))}), compression="zstd")


def wide_csv(columns: int) -> bytes:
    """A header and one row."""
    return (",".join(f"c{i}" for i in range(columns)) + "\n" + ",".join(["1"] * columns) + "\n").encode()


def wide_parquet(columns: int) -> bytes:
    """One row of many columns."""
    return parquet(pa.table([pa.array([1])] * columns, names=[f"c{i}" for i in range(columns)]), write_statistics=False)


def key_per_line(lines: int) -> bytes:
    """A key of its own in every line."""
    return "".join(f'{{"id": {i}, "k{i}": 1}}\n' for i in range(lines)).encode()


def attribute_per_node(nodes: int) -> bytes:
    """A GraphML file in which every node has an attribute of its own."""
    keys = "".join(f'<key id="k{i}" for="node" attr.name="a{i}" attr.type="int"/>' for i in range(nodes))
    each = "".join(f'<node id="{i}"><data key="k{i}">1</data></node>' for i in range(nodes))
    head = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    return f'{head}{keys}<graph edgedefault="directed">{each}</graph></graphml>'.encode()


MODEL = "model.safetensors"


def model(shape: list[int], dtype: str = "F32", **metadata: str) -> bytes:
    """A safetensors file of one tensor, as its header says."""
    about = {"format": "sharpen-5", "sharpen": "{}"} | metadata
    header = {"__metadata__": about, "0.weight": {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]}}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text


FAR = 10**12


def crafted(*, large: bool) -> list[Harmful]:
    """Those of the attack that the limits were made for, and their kin.

    Args:
        large: Whether to make them as large as they were in the attack, which takes a minute, or just beyond the limits.
    """
    wide, zeros = (200_000, 2 * 10**8) if large else (60_000, 14 * 10**7)
    return [
        Harmful(
            "npz: nodes without features", "graph.npz", lambda: graph_npz(x=npy((FAR, 0), "<f4")), "nodes, but holds"
        ),
        Harmful("npz: features without nodes", "graph.npz", lambda: graph_npz(x=npy((0, FAR), "<f4")), "x is empty"),
        Harmful("npz: labels of no column", "graph.npz", lambda: graph_npz(y=npy((FAR, 0), "<i8")), "nodes, but holds"),
        Harmful(
            "npz: edges without ends", "graph.npz", lambda: npz(edge_index=npy((0, FAR), "<i8")), "edge_index has shape"
        ),
        Harmful("npz: ids of no length", "graph.npz", lambda: graph_npz(ids=npy((10**10,), "<U0")), "no length"),
        Harmful("npz: bytes of no length", "graph.npz", lambda: graph_npz(y=npy((10**10,), "|S0")), "no length"),
        Harmful("npz: an overflowing shape", "graph.npz", lambda: graph_npz(x=npy((2**62, 4), "<f4")), "cut short"),
        Harmful("npz: zeros", "graph.npz", lambda: graph_npz(x=npy((5000, 5000), "<f4", bytes(10**8))), "bomb"),
        Harmful(
            "npz: too many columns",
            "graph.npz",
            lambda: graph_npz(x=npy((1, wide), "|i1", bytes(wide))),
            " columns, but",
        ),
        Harmful("pt: nodes without features", "graph.pt", lambda: pt(x=torch.empty(FAR, 0)), "nodes, but holds"),
        Harmful("pt: features without nodes", "graph.pt", lambda: pt(x=torch.empty(0, FAR)), "x is empty"),
        Harmful("pt: one number expanded", "graph.pt", lambda: pt(x=torch.zeros(1).expand(10**6, 10**6)), "bomb"),
        Harmful(
            "pt: one sparse number",
            "graph.pt",
            lambda: pt(x=torch.sparse_coo_tensor([[0], [0]], [1.0], (10**6, 10**6))),
            "bomb",
        ),
        Harmful(
            "pt: millions of instructions", "graph.pt", lambda: opcodes(4 * 10**7 if large else 10**6), "instructions"
        ),
        Harmful(
            "pt: hundreds of millions of instructions",
            "graph.pt",
            lambda: opcodes(25 * 10**7 if large else 7 * 10**7),
            "bomb",
        ),
        Harmful("parquet: a repeated text", "nodes.parquet", repeated_text, "bomb"),
        Harmful("parquet: texts that share their beginning", "nodes.parquet", prefixed_text, "bomb"),
        Harmful("parquet: a long list", "nodes.parquet", lambda: long_list(2 * 10**8 if large else 4 * 10**7), "bomb"),
        Harmful("parquet: rows without end", "nodes.parquet", lambda: many_rows(zeros), "bomb"),
        Harmful("parquet: too many columns", "nodes.parquet", lambda: wide_parquet(wide), "columns"),
        Harmful("jsonl: a key per line", "nodes.jsonl", lambda: key_per_line(20_000), "never written"),
        Harmful(
            "jsonl: too many keys",
            "nodes.jsonl",
            lambda: json.dumps({f"k{i}": 1 for i in range(wide)}).encode(),
            " columns, but",
        ),
        Harmful(
            "csv.gz: commas", "nodes.csv.gz", lambda: gzip.compress(b"," * (25 * 10**7 if large else 7 * 10**7)), "bomb"
        ),
        Harmful(
            "csv.gz: commas and lines",
            "nodes.csv.gz",
            lambda: gzip.compress((b"," * 99 + b"\n") * (25 * 10**5 if large else 7 * 10**5)),
            "bomb",
        ),
        Harmful("csv: commas", "nodes.csv", lambda: b"," * 5 * 10**7, "50,000,001 columns"),
        Harmful("csv: too many columns", "nodes.csv", lambda: wide_csv(wide), " columns, but"),
        Harmful("graphml: an attribute per node", "graph.graphml", lambda: attribute_per_node(5000), "never written"),
        Harmful("model: runs without weights", MODEL, lambda: model([FAR, 0]), "is damaged"),
        Harmful("model: weights without runs", MODEL, lambda: model([0, FAR]), "is damaged"),
    ]
