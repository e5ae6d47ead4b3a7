"""The heavy operations of a population: one interface, plain PyTorch behind it anywhere, fused kernels on a GPU."""
