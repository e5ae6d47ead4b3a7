"""sharpen labels the unlabeled nodes of a graph, and says honestly how well."""

from sharpen.datasets import Dataset, list_datasets, load_dataset
from sharpen.entropy import tsallis_entropy
from sharpen.errors import InputError
from sharpen.estimator import NodeClassifier
from sharpen.graph import Graph
from sharpen.objective import SharpeningLoss
from sharpen.splits import Split
from sharpen.training import train
from sharpen.trial import Record, Trial, to_frame

__all__ = [
    "Dataset",
    "Graph",
    "InputError",
    "NodeClassifier",
    "Record",
    "SharpeningLoss",
    "Split",
    "Trial",
    "list_datasets",
    "load_dataset",
    "to_frame",
    "train",
    "tsallis_entropy",
]
