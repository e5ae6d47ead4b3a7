"""Reads files, each in a process of its own, so that what it costs can be measured and limited; prints what came of it as JSON.

Usage: ``python child.py PATH...``: a line for each, after all that is needed has been imported.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
import warnings
from pathlib import Path

import torch_geometric.data  # noqa: F401  # so that its import is no part of what is measured

from sharpen.errors import InputError
from sharpen.files import FeatureEncoder, check_labels, read_nodes_and_edges
from sharpen.fitting.saved import load_fitted


def read(path: Path) -> str:
    """What reading the file ends in: ``read``, or the sentence of its refusal."""
    try:
        if path.suffix == ".safetensors":
            load_fitted(path)
            return "read"
        if path.stem == "edges" or path.name.startswith("edges."):
            read_nodes_and_edges(path.parent / "nodes.csv", path)
            return "read"
        tables = read_nodes_and_edges(path)
        check_labels(tables)
        FeatureEncoder.fit(tables).transform(tables)
    except InputError as error:
        return str(error)
    return "read"


def peak() -> int:
    """The most memory that this process ever had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def measured(name: str) -> str:
    """What came of one file, what it took, and how much memory beyond what was there before."""
    ready, start = peak(), time.perf_counter()
    try:
        outcome = read(Path(name))
    except BaseException:  # whatever it is, it is what is looked for
        outcome = "traceback: " + traceback.format_exc()[-1500:]
    seconds = round(time.perf_counter() - start, 3)
    return json.dumps({"path": name, "outcome": outcome, "seconds": seconds, "megabytes": peak() - ready})


def main() -> None:
    """Reads every file that is named, each in a process that is forked for it."""
    warnings.simplefilter("ignore")
    for name in sys.argv[1:]:
        process = os.fork()
        if process == 0:
            print(measured(name), flush=True)
            os._exit(0)
        _, status = os.waitpid(process, 0)
        if status:
            print(
                json.dumps({"path": name, "outcome": f"traceback: ended with {status}", "seconds": 0, "megabytes": 0}),
                flush=True,
            )


if __name__ == "__main__":
    main()
