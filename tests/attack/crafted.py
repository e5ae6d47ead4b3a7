"""Hundreds of inputs that are well-formed and cannot be meant: every type in every place, every shape for every array."""

from __future__ import annotations

import datetime
import decimal
import itertools
import json
import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tests.attack.harmful import EDGES, FAR, model, npy, npz, parquet

TYPES = ("<f4", "<f8", "<i8", "|b1", "<U3", "|S3", "<M8[ns]", "<c16", "<f2", "|V4")
SHAPES = ((0,), (3,), (0, 0), (3, 0), (0, 3), (3, 2), (2, 3), (1, 1, 1), (), (FAR, 0))

COLUMNS = {
    "int64": pa.array([1, 2, 3]),
    "uint64 beyond int64": pa.array([2**64 - 1, 1, 2], pa.uint64()),
    "int64 beyond 2^53": pa.array([2**53 + 1, 2**62 + 3, 5]),
    "int8": pa.array([1, 2, 3], pa.int8()),
    "float": pa.array([1.5, float("nan"), float("inf")]),
    "float16": pa.array(np.array([1, 2, 3], dtype=np.float16)),
    "huge floats": pa.array([1e308, -1e308, 1e-320]),
    "bool": pa.array([True, None, False]),
    "text": pa.array(["a", "b", "c"]),
    "blank": pa.array([" ", "", None], pa.string()),
    "large text": pa.array(["a", "b", "c"], pa.large_string()),
    "bytes": pa.array([b"\xff", b"b", b"c"]),
    "null": pa.nulls(3),
    "dates": pa.array([datetime.date(2020, 1, 1)] * 3),
    "times": pa.array([datetime.datetime(9999, 12, 31)] * 3),
    "time of day": pa.array([datetime.time(1)] * 3),
    "durations": pa.array([datetime.timedelta(days=1)] * 3),
    "decimals": pa.array([decimal.Decimal("1.50")] * 3),
    "lists": pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
    "uneven lists": pa.array([[1.0], [3.0, 4.0], []]),
    "lists of nothing": pa.array([[], [], []], pa.list_(pa.float64())),
    "lists of text": pa.array([["a"], ["b"], ["c"]]),
    "lists of lists": pa.array([[[1]], [[2]], [[3]]]),
    "null lists": pa.array([None, [1.0], [2.0]]),
    "fixed lists": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6.0)), 2),
    "structs": pa.array([{"a": 1}] * 3),
    "maps": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
    "dictionary": pa.array(["a", "b", "a"]).dictionary_encode(),
    "dictionary of numbers": pa.array([1, 2, 1]).dictionary_encode(),
}
PLACES = ("id", "label", "age", "source", "target", "weight")

VALUES = (
    "1",
    "-1",
    "1e999",
    "9" * 5000,
    str(2**53 + 1),
    str(2**64),
    "0.1",
    "true",
    "null",
    '""',
    '" "',
    '"a"',
    '"\\ud800"',
    '"\\u0000"',
    '"\\u202e"',
    "[]",
    "[1, 2]",
    '["a"]',
    "[[1]]",
    "{}",
    '{"a": 1}',
    "NaN",
    "Infinity",
    "[" * 5000 + "]" * 5000,
    '"' + "x" * 10**6 + '"',
)

TEXTS = (
    b"id\n",
    b"id,label\n",
    b"\n\n\n",
    b",\n,\n",
    b"id,id\n1,2\n",
    b'"id\n1\n',
    b"id,age\n1,2,3\n",
    b"id;age\n1;2\n",
    b"\xef\xbb\xbfid,label\na,x\n",
    b"id,label\r1,x\r2,y\r",
    b"id\x00,label\n1,x\n",
    b"\xff\xfei\x00d\x00",
    b"id,label\n" + b"a,x\n" * 3,
    b"id," + b"x" * 200_000 + b"\n1,2\n",
    b"id,age\n1,1e400\n2,2\n",
    b"id,age\n1,0x10\n2,2\n",
    b"id,age\n1,1_000\n2,2\n",
    b"id,label\n" + b'"a""b",x\n' * 2,
    b"id,\n1,2\n",
    b"id,age\n" + b"1,2\n" * 2,
    b" id , label \n a , x \n",
    b"id|age\n1|2\n",
    b"id,label,age\n1,x,99999999999999999999999999\n2,y,1\n",
    "id,label\nλ,ü\n".encode(),
    b"id,label\n=1+1,x\n",
    b"id,age\n1,nan\n2,inf\n",
    b"id,a\xcc\x81\n1,2\n",
    b"id\\,label\n1,2\n",
    b"#id,label\n1,x\n",
)


def inputs() -> Iterator[tuple[str, str, bytes]]:
    """What each one is called, the name of its file, and its bytes."""
    for part, dtype, shape in itertools.product(("x", "y", "edge_index", "edge_weight", "ids"), TYPES, SHAPES):
        size = min(math.prod(shape), 100) * np.dtype(dtype).itemsize
        array = npy(shape, dtype, bytes(size))
        yield f"npz {part} {dtype} {shape}", "graph.npz", npz(**({"edge_index": EDGES} | {part: array}))
    for (name, column), place in itertools.product(COLUMNS.items(), PLACES):
        ends = place in ("source", "target", "weight")
        plain = (
            {"source": ["a", "b", "c"], "target": ["b", "c", "a"]}
            if ends
            else {"id": ["a", "b", "c"], "label": ["x", "y", None]}
        )
        table = pa.table({**plain, place: column})
        yield f"parquet {place}: {name}", "edges.parquet" if ends else "nodes.parquet", parquet(table)
    for value, place in itertools.product(VALUES, PLACES):
        ends = place in ("source", "target", "weight")
        plain = {"source": '"a"', "target": '"b"'} if ends else {"id": '"a"', "label": '"x"', "age": "2"}
        lines = [plain | {place: value}, plain if ends else plain | {"id": '"b"', "label": '"y"'}]
        text = "\n".join("{" + ", ".join(f'"{key}": {own}' for key, own in line.items()) + "}" for line in lines)
        yield f"jsonl {place}: {value[:20]}", "edges.jsonl" if ends else "nodes.jsonl", text.encode()
    for number, text in enumerate(TEXTS):
        for name in ("nodes.csv", "nodes.tsv", "edges.csv"):
            yield f"text {number}", name, text
    for dtype, shape in itertools.product(
        ("F32", "F64", "BF16", "I64", "BOOL", "U8", "F8_E4M3"), ([FAR, 0], [0, FAR], [0], [], [1], [-1])
    ):
        yield f"model {dtype} {shape}", "model.safetensors", model(shape, dtype)
    for text in (
        "{}",
        "[]",
        "null",
        "{" * 3000,
        '{"fitted": {}}',
        '{"fitted": 7}',
        json.dumps({"fitted": {"ensemble": {"parts": []}}}),
    ):
        yield f"model {text[:20]}", "model.safetensors", model([0], sharpen=text)
