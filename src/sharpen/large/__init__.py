"""Graphs that are taken in pieces: parts, batches, exact evaluation layer by layer, arrays that stay on disk."""

from sharpen.large.stored import open_graph, store_graph

__all__ = ["open_graph", "store_graph"]
