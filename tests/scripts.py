"""Programs of the repository that are no part of the package, for tests."""

import importlib
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(_ROOT / "results"), str(_ROOT / "benchmarks")]
by_graph = importlib.import_module("by_graph")
findings = importlib.import_module("findings")
label_rates = importlib.import_module("label_rates")
synthetic = importlib.import_module("synthetic")
