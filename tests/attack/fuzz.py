"""Bytes for readers, valid ones damaged in many ways; the same for the same seed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa

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
STUDY = b"""\
title: Mine
datasets: [digits]
models: [gcn]
runs: 4
trial: {hidden: 4, layers: 1, epochs: 2, dropout: 0.2}
variants:
  baseline: {lam: 0}
  ts-{lam}: {lam: {from: 0.1, to: 0.5, step: 0.1}}
baseline: baseline
choose:
  best: [ts-*]
compare: [best - baseline]
"""
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


def further_cases(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """So many of other kinds: splits, studies, other packings; and archives of which a field of a header is changed."""
    random = np.random.default_rng(seed)
    splits = io.BytesIO()
    np.savez_compressed(splits, train=np.arange(3), val=np.array([3]), test=np.array([4, 5]))
    packed = {".bz2": bz2.compress, ".xz": lzma.compress, ".zst": lambda data: pa.compress(data, "zstd", asbytes=True)}
    archives = {
        "split.npz": splits.getvalue(),
        **{name: VALID[name] for name in ("nodes.zip", "graph.npz", "graph.pt")},
    }
    files = (
        {f"nodes.csv{ending}": pack(VALID["nodes.csv"]) for ending, pack in packed.items()}
        | {"split.json": b'{"name": "mine", "train": [0, 1], "val": [2], "test": [3]}', "study.yaml": STUDY}
        | archives
    )
    names = [*files, *archives, *archives]
    for number in range(count):
        name = names[number % len(names)]
        if number % len(names) >= len(files):
            yield name, _odd_archive(files[name], random)
        else:
            yield name, _damaged(files[name], random)


def _odd_archive(data: bytes, random: np.random.Generator) -> bytes:
    """A zip archive that says something else of a member, or of itself: version, flags, method, sizes, names, places."""
    changed = bytearray(data)
    heads = [at for at in range(len(data) - 4) if data[at : at + 4] in (b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06")]
    for _ in range(int(random.integers(1, 3))):
        at = int(random.choice(heads)) + int(random.integers(4, 50))
        width = int(random.choice([1, 1, 2, 4]))
        if at + width <= len(changed):
            value = int(random.choice([0, 1, 2, 8, 9, 12, 14, 32, 99, 127, 128, 255]))
            changed[at : at + width] = bytes([value] * width)
    return bytes(changed)


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
