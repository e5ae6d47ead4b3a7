"""The example's files are what its script makes, and read without options."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path

from sharpen.files import FeatureEncoder, check_labels, class_order, read_nodes_and_edges, to_graph

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_files_are_what_the_script_makes(tmp_path: Path) -> None:
    runpy.run_path(str(EXAMPLES / "make_digits.py"))["main"](tmp_path)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (EXAMPLES / path.name).read_bytes()
    assert len(list(tmp_path.iterdir())) == 3


def test_the_files_read_without_options() -> None:
    tables = read_nodes_and_edges(EXAMPLES / "digits-nodes.csv", EXAMPLES / "digits-edges.csv")
    assert check_labels(tables) == []
    assert set(Counter(tables.labels.tolist()).values()) == {10, 1697}
    graph = to_graph(tables, FeatureEncoder.fit(tables).transform(tables), class_order(tables.labels))
    assert (graph.num_nodes, graph.num_edges, graph.num_classes) == (1797, 6309, 10)
