"""The least time an epoch of one member can take on a device: arithmetic and bytes that no implementation avoids.

Arithmetic: every product of the network, forward in training and in evaluation (the first layer's once for both), and backward.
Bytes: each layer's activations are written and read in the training pass, read again in the backward pass, where gradients of the
same size are written and read; the evaluation writes and reads them once more. Adam reads four numbers per parameter and writes
three.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from sharpen.models.network import Network

_BYTES = 4  # of a number in float32
_REPEATS = 10


@dataclass(frozen=True)
class EpochWork:
    """What one epoch of one member has to do."""

    flops: float
    bytes: float


@dataclass(frozen=True)
class Ceiling:
    """What the device can do, measured."""

    flops: float
    bandwidth: float

    def seconds(self, work: EpochWork) -> float:
        """The floor: the slower of arithmetic and memory."""
        return max(work.flops / self.flops, work.bytes / self.bandwidth)


def work(network: Network, nodes: int, feature_entries: int, edges: int) -> EpochWork:
    """The least work of one member's epoch; ``edges`` are entries of the adjacency, ``feature_entries`` those that are not 0.

    >>> from sharpen.models.mlp import MLP
    >>> work(MLP.fused(10, 2, 1, 4), nodes=5, feature_entries=50, edges=0).flops
    1120.0
    """
    # Weights that multiply the same vectors count once: their sum can be multiplied.
    convolution = network.convolution
    matrices = (convolution.neighbors is not None) + (bool(convolution.own) or network.residual)
    hidden = network.hidden
    first = 2.0 * feature_entries * hidden * (1 if network.input_linear else matrices)
    dense_layers = network.layers - (not network.input_linear)
    dense = 2.0 * nodes * hidden * hidden * matrices * dense_layers
    head = 2.0 * nodes * hidden * network.num_classes
    gathers = 0 if convolution.neighbors is None else network.layers
    propagate = 2.0 * edges * hidden * gathers
    # First product: forward once for evaluation and training, and the weights' gradient. Others: two forward, two backward.
    flops = 2 * first + 4 * (dense + head) + 3 * propagate
    activations = float(nodes * hidden * network.layers * _BYTES)
    weights = sum(torch.Size(i.shape).numel() for i in network.initials.values()) * _BYTES
    return EpochWork(flops, 7 * activations + 7 * weights)


def measure_ceiling(device: torch.device) -> Ceiling:
    """The device's rate of a large float32 product, as torch computes it now, and of a large copy, counting both directions."""

    def clock(run: Callable[[], object]) -> float:
        run()
        wait_for(device)
        start = time.perf_counter()
        for _ in range(_REPEATS):
            run()
        wait_for(device)
        return (time.perf_counter() - start) / _REPEATS

    side = 8192 if device.type == "cuda" else 1024
    a, b = (torch.randn(side, side, device=device) for _ in range(2))
    flops = 2.0 * side**3 / clock(lambda: a @ b)
    numbers = torch.randn(2**29 if device.type == "cuda" else 2**25, device=device)
    target = torch.empty_like(numbers)
    return Ceiling(flops, 2.0 * numbers.numel() * _BYTES / clock(lambda: target.copy_(numbers)))


def wait_for(device: torch.device) -> None:
    """Until a GPU has done what it was asked to."""
    if device.type == "cuda":
        torch.cuda.synchronize()
