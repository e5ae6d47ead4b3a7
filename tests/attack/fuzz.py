"""Bytes for readers, valid ones damaged in many ways; the same for the same seed."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator

import numpy as np
import pandas as pd

from tests.files.test_fuzz import VALID

# Words that mean something to a parser, to be put where they do not belong.
WORDS = (
    b"\0",
    b"\n",
    b"\r",
    b'"',
    b",",
    b";",
    b"\t",
    b"{",
    b"}",
    b"[",
    b"]",
    b"<",
    b">",
    b"&",
    b"NaN",
    b"inf",
    b"-1",
    b"1e999",
    b"null",
    b"9" * 400,
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    "λ".encode(),
    b"PAR1",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"\x80\x04.",
    b"<!DOCTYPE x>",
    b"\\u0000",
    b"\\ud800",
    b"=1+1",
    b"../../x",
    b"\x00" * 64,
    b"\xff" * 8,
    b"\x7f\xff\xff\xff",
)
EDGE_FILES = {
    "edges.csv": b"source,target,weight\na,b,1\nb,c,2.5\n",
    "edges.jsonl": b'{"source": "a", "target": "b", "weight": 1}\n{"source": "b", "target": "c", "weight": 2.5}\n',
}


def valid_files() -> dict[str, bytes]:
    """By name, files that can be read."""
    sink = io.BytesIO()
    pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "weight": [1.0, 2.5]}).to_parquet(sink)
    return VALID | EDGE_FILES | {"edges.parquet": sink.getvalue()}


def cases(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """So many files, each with its name."""
    random, files = np.random.default_rng(seed), valid_files()
    names = list(files)
    for number in range(count):
        name = names[number % len(names)]
        yield name, _repacked(name, _damaged(_inside(name, files[name]), random), random)


def _inside(name: str, data: bytes) -> bytes:
    """What a packed file holds, so that what is damaged is not only the packing."""
    return gzip.decompress(data) if name.endswith(".gz") else data


def _repacked(name: str, data: bytes, random: np.random.Generator) -> bytes:
    if not name.endswith(".gz"):
        return data
    packed = gzip.compress(data, 1)
    return _damaged(packed, random) if random.random() < 0.3 else packed


def _damaged(data: bytes, random: np.random.Generator) -> bytes:
    way = int(random.integers(9))
    at, to = sorted(int(place) for place in random.integers(0, len(data) + 1, size=2))
    changed = bytearray(data)
    if way == 0:  # bits
        for place in random.integers(0, len(data), size=int(random.integers(1, 6))):
            changed[place] ^= 1 << int(random.integers(8))
    elif way == 1:  # bytes
        for place in random.integers(0, len(data), size=int(random.integers(1, 9))):
            changed[place] = int(random.integers(256))
    elif way == 2:  # cut off
        changed = changed[:at]
    elif way == 3:  # a piece missing
        changed = changed[:at] + changed[to:]
    elif way == 4:  # a piece again and again
        changed = changed[:to] + changed[at : min(to, at + 300)] * int(random.integers(1, 50)) + changed[to:]
    elif way == 5:  # a word where it does not belong
        changed[at:at] = WORDS[int(random.integers(len(WORDS)))] * int(random.integers(1, 4))
    elif way == 6:  # a number in the bytes, as large as it can be
        width = int(random.choice([2, 4, 8]))
        changed[at : at + width] = [b"\xff", b"\x7f", b"\0"][int(random.integers(3))] * width
    elif way == 7:  # zeros
        changed[at:to] = bytes(to - at)
    else:  # nothing of it
        changed = bytearray(random.bytes(int(random.integers(1, 600))))
    return bytes(changed)
