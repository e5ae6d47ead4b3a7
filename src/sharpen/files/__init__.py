"""A user's own files: tables of nodes and edges in, features and labels out, predictions written."""

from sharpen.files.columns import Columns
from sharpen.files.encoder import FeatureEncoder
from sharpen.files.labels import check_labels, class_order, label_column
from sharpen.files.predictions import check_output, read_predictions, write_predictions
from sharpen.files.source import GraphTables, read_nodes_and_edges, to_graph
from sharpen.files.table import comparable_ids

__all__ = [
    "Columns",
    "FeatureEncoder",
    "GraphTables",
    "check_labels",
    "check_output",
    "class_order",
    "comparable_ids",
    "label_column",
    "read_nodes_and_edges",
    "read_predictions",
    "to_graph",
    "write_predictions",
]
