"""Programs of the repository that are no part of the package, for tests."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))
findings = importlib.import_module("findings")
