"""Predictions over HTTP, for nodes that are new to a graph or have changed."""
