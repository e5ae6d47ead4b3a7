"""Graphs whose nodes are to be labeled, and which of these nodes train, validate and test."""

from sharpen.graph.adjacency import Adjacency
from sharpen.graph.graph import Graph
from sharpen.graph.splits import Split

__all__ = ["Adjacency", "Graph", "Split"]
