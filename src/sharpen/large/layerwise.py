"""Exact predictions for every node, one layer after the other over the whole graph, in runs of nodes.

A layer's vectors of all nodes are held, [R, N, H], and what neighbours gather from them; the rest comes and goes with a run of
nodes. So memory grows with nodes and width, time with edges and layers, and neither with the number of nodes within so many hops.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from sharpen.large.inputs import RowInputs
from sharpen.large.parted import PartedGraph
from sharpen.models.network import Network, Weights

# Runs of nodes hold at most so many activations: long runs keep a GPU busy, short ones stay in a CPU's cache.
_CHUNK_ACTIVATIONS = {"cuda": 2**27, "cpu": 2**24}


@torch.no_grad()
def layerwise_logits(
    network: Network,
    parameters: Weights,
    statistics: Weights,
    parted: PartedGraph,
    owner: Callable[[int], bool] = lambda run: True,
    share: Callable[[Tensor, list[slice]], None] = lambda values, runs: None,
) -> Tensor:
    """Class scores [R, N, C] in the order of the parted graph, on the device of the parameters.

    ``owner`` says which runs of nodes this process computes; ``share`` completes a tensor [R, N, ...] with the others'.

    >>> import numpy as np
    >>> from sharpen import Graph
    >>> from sharpen.large.parted import arrange
    >>> from sharpen.models.initial import draw
    >>> from sharpen.models.gcn import GCN
    >>> network = GCN.fused(num_features=4, num_classes=2, layers=3, hidden=8)
    >>> weights = draw(network.initials, [0], torch.device("cpu"), torch.float64)
    >>> layerwise_logits(network, weights, {}, arrange(Graph(x=np.eye(4), edge_index=[[0, 1], [2, 3]]), 2)).shape
    torch.Size([1, 4, 2])
    """
    some = parameters["head.weight"]
    members, device, dtype = len(some), some.device, some.dtype
    widest = max(network.blocks(layer).columns for layer in range(network.layers))
    most = max(1, _CHUNK_ACTIVATIONS[device.type] // (members * widest))
    runs = [
        slice(start, min(start + most, chunk.stop))
        for chunk in parted.chunks()
        for start in range(chunk.start, chunk.stop, most)
    ]
    own_runs = [run for number, run in enumerate(runs) if owner(number)]
    x = torch.empty(members, parted.num_nodes, network.hidden, device=device, dtype=dtype)

    def projected(run: slice) -> list[Tensor]:
        return network.project(parameters, RowInputs(parted, run, device, dtype))

    if network.input_linear:
        for run in own_runs:
            x[:, run] = network.input(parameters, projected(run))
    for layer in range(network.layers):
        blocks = network.blocks(layer)
        from_features = layer == 0 and not network.input_linear

        def multiplied(run: slice, layer: int = layer, from_features: bool = from_features) -> list[Tensor]:
            return projected(run) if from_features else network.multiply(parameters, layer, x[:, run])

        if not blocks.neighbors:
            for run in own_runs:
                x[:, run] = network.finish(parameters, statistics, layer, multiplied(run), None)
            continue
        widths = [blocks.width, 2] if blocks.scores else [blocks.width]
        offered = [torch.empty(members, parted.num_nodes, width, device=device, dtype=dtype) for width in widths]
        for run in own_runs:
            z = blocks.split(multiplied(run))
            for everyone, part in zip(offered, (z[0], z[-1]), strict=False):
                everyone[:, run] = part[..., : everyone.shape[2]]
        for everyone in offered:
            share(everyone, runs)
        for run in own_runs:
            # A run's own vectors are read before they are overwritten, and nobody else's are needed any more.
            z = multiplied(run) if len(blocks.sizes) > 1 else [offered[0][:, run]]
            graph = parted.rows(run, network.convolution.matrix, device, dtype)
            x[:, run] = network.finish(parameters, statistics, layer, z, graph, offered=offered)
    logits = torch.empty(members, parted.num_nodes, network.num_classes, device=device, dtype=dtype)
    for run in own_runs:
        logits[:, run] = network.head(parameters, x[:, run])
    share(logits, runs)
    return logits
