"""Fused GPU kernels. Each has a plain PyTorch version beside the function that dispatches to it, which is its test oracle."""
