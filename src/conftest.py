"""Doctests: kernels are collected only where Triton is installed."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("triton") else ["sharpen/kernels/triton/*"]
