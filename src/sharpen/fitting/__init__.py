"""Choosing a model for a graph of the user's own: folds, search, selection, calibration, and what is saved."""
