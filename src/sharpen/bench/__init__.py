"""Measuring: a population beside the loop a PyG user would write, on the same settings, in one process."""
