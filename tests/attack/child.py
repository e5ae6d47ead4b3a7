"""Reads files in processes of their own, so that what each costs can be measured; prints what came of it as JSON, a line for each.

Usage: ``python child.py GROUP PATH...``: GROUP files are read by one process, forked after all that is needed has been imported.
"""

from __future__ import annotations

import faulthandler
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
from sharpen.splits import load_split
from sharpen.studies import load_study


def read(path: Path) -> str:
    """What reading the file ends in: ``read``, or the sentence of its refusal."""
    try:
        if path.stem == "split":
            load_split(path)
            return "read"
        if path.suffix == ".yaml":
            load_study(path)
            return "read"
        if path.suffix == ".safetensors":
            load_fitted(path)
            return "read"
        if path.stem == "edges" or path.name.startswith("edges."):
            read_nodes_and_edges(path.parent / "nodes.csv", path)
            return "read"
        tables = read_nodes_and_edges(path)
        FeatureEncoder.fit(tables).transform(tables)
        check_labels(tables)
    except InputError as error:
        return str(error)
    return "read"


def peak() -> int:
    """The most memory that this process ever had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def measured(name: str, ready: int) -> str:
    """What came of one file, the seconds of CPU that it took, and the most memory so far beyond what was there before the first."""
    start = time.process_time()
    try:
        outcome = read(Path(name))
    except BaseException:  # whatever it is, it is what is looked for
        outcome = "traceback: " + traceback.format_exc()[-1500:]
    seconds = round(time.process_time() - start, 3)
    return json.dumps({"path": name, "outcome": outcome, "seconds": seconds, "megabytes": peak() - ready})


def main() -> None:
    """Reads every file that is named, so many of them in each process that is forked for them."""
    warnings.simplefilter("ignore")
    faulthandler.enable()  # what ends a process without an exception says where
    group, names = int(sys.argv[1]), sys.argv[2:]
    for start in range(0, len(names), group):
        process = os.fork()
        if process == 0:
            ready = peak()
            for name in names[start : start + group]:
                print(measured(name, ready), flush=True)
            os._exit(0)
        _, status = os.waitpid(process, 0)
        if status:  # one of these files has ended it
            outcome = f"traceback: ended with {status}, or one of the {group - 1} before it did"
            name = names[min(start + group, len(names)) - 1]
            print(json.dumps({"path": name, "outcome": outcome, "seconds": 0, "megabytes": 0}), flush=True)


if __name__ == "__main__":
    main()
