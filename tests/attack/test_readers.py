"""Damaged and crafted files are read or refused by name, never with a traceback; more of them in ``benchmarks/attack.py``."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from tests.attack import child, crafted, fuzz
from tests.attack.harmful import NODES

CASES = 700


def attempt(folder: Path, name: str, data: bytes) -> str:
    (folder / "nodes.csv").write_bytes(NODES)
    (folder / name).write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = child.read(folder / name)
    assert all(line.isprintable() for line in outcome.splitlines())
    assert outcome == "read" or str(folder) in outcome
    return outcome


def test_well_formed_inputs_that_cannot_be_meant_are_refused_by_name(tmp_path):
    outcomes = [attempt(tmp_path, name, data) for _, name, data in crafted.inputs()]
    assert len(outcomes) > 900
    assert 20 < outcomes.count("read") < 200


def test_damaged_files_are_read_or_refused_by_name(tmp_path):
    outcomes = [attempt(tmp_path, name, data) for name, data in fuzz.cases(seed=1, count=CASES)]
    assert 0 < outcomes.count("read") < CASES / 2


def test_damaged_splits_studies_and_archives_are_read_or_refused_by_name(tmp_path):
    outcomes = [attempt(tmp_path, name, data) for name, data in fuzz.further_cases(seed=1, count=CASES)]
    assert 0 < outcomes.count("read") < CASES / 2


def test_a_footer_on_which_arrow_ends_the_process_is_refused_by_name(tmp_path):
    """Its sizes of levels do not fit its schema: Arrow's view of such a column is an exception that nobody can catch."""
    number, (name, data) = next((n, case) for n, case in enumerate(fuzz.cases(seed=5, count=2000)) if n == 1043)
    assert name == "nodes.parquet", number
    assert "is not a whole Parquet file" in attempt(tmp_path, name, data)


@pytest.mark.parametrize(
    ("name", "line"), [("edges.jsonl", '{"source": "a", "target": "b", "weight": %d}'), ("edges.parquet", "")]
)
def test_weights_beyond_what_a_float_tells_apart_are_read(tmp_path, name, line):
    import pyarrow as pa

    from sharpen.files import read_nodes_and_edges
    from tests.attack.harmful import parquet

    (tmp_path / "nodes.csv").write_bytes(NODES)
    big = 2**53 + 1
    table = pa.table({"source": ["a"], "target": ["b"], "weight": [big]})
    (tmp_path / name).write_bytes((line % big).encode() if line else parquet(table))
    assert read_nodes_and_edges(tmp_path / "nodes.csv", tmp_path / name).edge_weight.tolist() == [float(big)]
