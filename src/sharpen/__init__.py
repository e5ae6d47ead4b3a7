"""sharpen labels the unlabeled nodes of a graph, and says honestly how well.

The names below are the public interface. They are loaded when they are first used: torch takes seconds to import, and a command
that only prints its help should not wait for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharpen.advice import first_choice
    from sharpen.comparison import ComparisonResult, compare
    from sharpen.datasets import Dataset, list_datasets, load_dataset
    from sharpen.entropy import tsallis_entropy
    from sharpen.errors import InputError
    from sharpen.estimator import NodeClassifier
    from sharpen.fitting.frames import Frames
    from sharpen.graph import Graph, Split
    from sharpen.loss import SharpeningLoss
    from sharpen.node_index import NodeIndexClassifier
    from sharpen.training import train
    from sharpen.trial import Record, Trial, to_frame

_HOMES = {
    "ComparisonResult": "comparison",
    "compare": "comparison",
    "Dataset": "datasets",
    "Frames": "fitting.frames",
    "Graph": "graph",
    "InputError": "errors",
    "NodeClassifier": "estimator",
    "NodeIndexClassifier": "node_index",
    "Record": "trial",
    "SharpeningLoss": "loss",
    "Split": "graph",
    "Trial": "trial",
    "first_choice": "advice",
    "list_datasets": "datasets",
    "load_dataset": "datasets",
    "to_frame": "trial",
    "train": "training",
    "tsallis_entropy": "entropy",
}

__all__ = [
    "ComparisonResult",
    "Dataset",
    "Frames",
    "Graph",
    "InputError",
    "NodeClassifier",
    "NodeIndexClassifier",
    "Record",
    "SharpeningLoss",
    "Split",
    "Trial",
    "compare",
    "first_choice",
    "list_datasets",
    "load_dataset",
    "to_frame",
    "train",
    "tsallis_entropy",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'sharpen' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"sharpen.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
