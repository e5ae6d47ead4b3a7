"""Files made to eat all memory are refused by name, in little memory, and those that only look so are read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sharpen.files import read_nodes_and_edges
from tests.attack import child
from tests.attack.harmful import NODES, crafted

MOST_MEGABYTES = 500


FILES = {case.name: case for case in crafted(large=False)}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """By the name of the case, what came of reading its file in a process of its own."""
    paths = {}
    for name, case in FILES.items():
        paths[name] = tmp_path_factory.mktemp("harmful") / case.file
        paths[name].write_bytes(case.make())
    paths["hole"] = tmp_path_factory.mktemp("harmful") / "nodes.csv"
    paths["hole"].write_bytes(NODES)
    os.truncate(paths["hole"], 2**40)
    done = subprocess.run(
        [sys.executable, child.__file__, "1", *map(str, paths.values())], capture_output=True, check=True
    )
    found = {line["path"]: line for line in map(json.loads, done.stdout.splitlines())}
    return {name: found[str(path)] for name, path in paths.items()}


@pytest.mark.parametrize("name", FILES)
def test_a_harmful_file_is_refused_by_name_in_little_memory(name: str, outcomes: dict[str, dict[str, Any]]) -> None:
    found = outcomes[name]
    assert FILES[name].says in found["outcome"]
    assert found["outcome"].startswith(found["path"])
    assert found["megabytes"] < MOST_MEGABYTES


def test_a_file_with_a_hole_of_a_terabyte_is_refused_before_it_is_read(outcomes: dict[str, dict[str, Any]]) -> None:
    assert "bytes of memory are free" in outcomes["hole"]["outcome"]
    assert outcomes["hole"]["megabytes"] < 50


def test_a_graph_of_many_edges_and_a_thousand_columns_is_read(tmp_path: Path) -> None:
    """A tenth of what the limits promise, in Parquet, whose repeated values cost nothing."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.integers(0, 2, size=(1000, 1000), dtype=np.int64)).rename(columns=str)
    frame.insert(0, "id", np.arange(1000))
    frame.to_parquet(tmp_path / "nodes.parquet")
    ends = random.integers(0, 1000, size=(2, 10**6))
    pd.DataFrame({"source": ends[0], "target": ends[1], "weight": 1.0}).to_parquet(tmp_path / "edges.parquet")
    tables = read_nodes_and_edges(tmp_path / "nodes.parquet", tmp_path / "edges.parquet")
    assert tables.edge_index.shape == (2, 10**6)
    assert tables.frame.shape == (1000, 1000)
