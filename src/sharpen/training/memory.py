"""Whether the whole graph fits at once, and how to cut it if it does not."""

from __future__ import annotations

import math

import torch

from sharpen.batching import KINDS, Batching
from sharpen.errors import InputError, as_given
from sharpen.graph import Graph
from sharpen.machine import memory_at_hand
from sharpen.models.network import Network
from sharpen.training.device import describe_device, free_memory

# Of what is free, what training may plan with.
_SHARE = 0.8
# A CPU is fastest while one layer's activations of all members stay in its cache.
CPU_ACTIVATION_BYTES = 2 * 2**20
# What a member takes, as fitted to measured peaks: vectors of the hidden width for each node, per layer, per layer of attention,
# and for all layers together, by device; copies of the weights; numbers for each entry of the adjacency and layer of attention.
# On an H200, 33 populations (docs/measurements: 11 graphs, 1 to 15 layers of 64 to 512): off by −12 to +35 %. On a CPU, where less
# is fused, GCN, GraphSAGE and GAT with the paper's settings on a quarter of ogbn-arxiv: off by 2 to 22 %.
_LAYER, _ATTENTION, _SHARED, _WEIGHTS, _SCORES = 2, 4, {"cuda": 3, "cpu": 6}, 4, 2
_SMALL = 10**9  # bytes of weights that are not worth asking whether they fit
# Parts of about so many nodes; so few parts at least, so that batches differ from epoch to epoch; so many batches an epoch. Four
# came to the accuracy of the full batch on PubMed and Physics, eight not everywhere (docs/scale.md).
_PART_NODES, _FEWEST_PARTS, _FEWEST_BATCHES, _MOST_BATCHES = 1500, 16, 4, 64


def memory_left(device: torch.device) -> int:
    """Bytes that can be allocated now: on a GPU, or on this machine within the limits set for this process.

    >>> memory_left(torch.device("cpu")) > 0
    True
    """
    if device.type == "cuda":
        return free_memory(device)
    return memory_at_hand()


def full_batch_bytes(network: Network, graph: Graph, dtype: torch.dtype, kind: str = "cpu") -> int:
    """About what one member needs to train on the whole graph at once, on a ``cpu`` or with ``cuda``.

    Features, plain and propagated; the adjacency with its values; some vectors a node for each layer, and a few for all; of the
    class scores, six times their size, for softmax, entropies and their gradients; the weights with what the optimiser holds.

    >>> import numpy as np
    >>> from sharpen.models.gcn import GCN
    >>> network = GCN.fused(num_features=4, num_classes=2, layers=2, hidden=8)
    >>> pairs = Graph(x=np.eye(4), edge_index=[[0, 1], [2, 3]])
    >>> full_batch_bytes(network, pairs, torch.float32), full_batch_bytes(network, pairs, torch.float32, "cuda")
    (3840, 3456)
    """
    nodes, size = graph.num_nodes, dtype.itemsize
    entries = graph.adjacency.nnz
    features = nodes * network.num_features if not graph.is_sparse else 4 * len(graph.x.values())
    attends = network.convolution.gather == "attention"
    operands = size * (2 * features + _WEIGHTS * network.num_weights)
    if network.convolution.gather != "none":
        operands += entries * (4 + 8 + 2 * size)  # columns as int32 and, for torch's product, as int64
    if attends:
        operands += entries * _SCORES * size * network.layers
    vectors = (_ATTENTION if attends else _LAYER) * (network.layers + network.input_linear) + _SHARED[kind]
    return operands + nodes * size * (vectors * network.hidden + 6 * network.num_classes)


def choose_batching(
    wanted: str,
    network: Network,
    graph: Graph,
    device: torch.device,
    dtype: torch.dtype,
    per_step: int = 1,
    left: int | None = None,
) -> tuple[str | None, str]:
    """How to cut the graph, None for not at all; and a sentence about it, empty where there is nothing to say.

    Args:
        wanted: ``auto`` (batches of clusters if the full batch does not fit), ``full``, ``clusters``, ``neighbors``, or the full
            name of a batching.
        network, graph, device, dtype: What is to be trained where.
        per_step: How many batches are to make a step, where the name does not say.
        left: Bytes that a worker elsewhere has for it; None: what is free on the device.

    >>> import numpy as np
    >>> from sharpen.models.gcn import GCN
    >>> network = GCN.fused(num_features=4, num_classes=2, layers=2, hidden=8)
    >>> pairs, cpu = Graph(x=np.eye(4), edge_index=[[0, 1], [2, 3]]), torch.device("cpu")
    >>> choose_batching("auto", network, pairs, cpu, torch.float32)
    (None, '')
    >>> choose_batching("clusters", network, pairs, cpu, torch.float32)
    ('clusters-4-1', 'training in batches, clusters-4-1')
    """
    where = "a worker" if left is not None else describe_device(device)
    left = memory_left(device) if left is None else left
    weights = dtype.itemsize * _WEIGHTS * network.num_weights
    if weights > max(left, _SMALL):  # however the graph is cut
        raise InputError(
            f"the weights of one run, with what the optimiser holds, would take about {weights / 1e9:.0f} GB, but "
            f"{left / 1e9:.1f} GB are free; give fewer layers, or a smaller hidden width"
        )
    if wanted == "full":
        return None, ""
    if wanted == "auto":
        need = full_batch_bytes(network, graph, dtype, device.type)
        if need <= _SHARE * left:
            return None, ""
        # A batch beside the vectors of all nodes that the evaluation holds.
        name = _default("clusters", graph, per_step, least=math.ceil(2 * need / max(1, _SHARE * left))).name
        return name, (
            f"the full batch would need about {need / 1e9:.1f} GB, but {left / 1e9:.1f} GB are free on {where}; "
            f"training in batches, {name} ({as_given('batching', 'full')} overrides)"
        )
    check_batching(wanted)
    name = (_default(wanted, graph, per_step) if wanted in KINDS else Batching.parse(wanted)).name
    return name, f"training in batches, {name}"


def check_batching(wanted: str) -> None:
    """Refuses what :func:`choose_batching` would not know.

    >>> check_batching("clumps")
    Traceback (most recent call last):
    sharpen.errors.InputError: batching is 'clumps'; choose auto, full, clusters or neighbors, or say how, as clusters-64-4 or
    neighbors-10-512
    """
    if wanted in ("auto", "full", *KINDS):
        return
    try:
        Batching.parse(wanted)
    except InputError:
        raise InputError(
            f"is {wanted!r}; choose auto, full, clusters or neighbors, or say how, as clusters-64-4 or neighbors-10-512",
            field="batching",
        ) from None


def _default(kind: str, graph: Graph, per_step: int, least: int = 1) -> Batching:
    """Parts, or nodes, so that batches are a few per epoch on a small graph and 64 on a large one, and as small as they must be."""
    nodes = graph.num_nodes
    parts = min(max(_FEWEST_PARTS, round(nodes / _PART_NODES), 4 * least), nodes)
    batches = max(min(max(_FEWEST_BATCHES, parts // 8), _MOST_BATCHES), least)
    if kind == "clusters":
        return Batching("clusters", max(1, parts // batches), parts=parts, per_step=per_step)
    return Batching("neighbors", min(nodes, 1024), fanout=10, per_step=per_step)


def members_in_batches(
    network: Network, graph: Graph, batching: Batching, wanted: int, device: torch.device, dtype: torch.dtype
) -> int:
    """How many members to train at once in batches: so that a batch fits in training, and vectors of all nodes in the evaluation.

    >>> import numpy as np
    >>> from sharpen.models.gcn import GCN
    >>> network = GCN.fused(num_features=4, num_classes=2, layers=2, hidden=8)
    >>> members_in_batches(
    ...     network,
    ...     Graph(x=np.eye(4), edge_index=[[0, 1], [2, 3]]),
    ...     Batching.parse("clusters-2-1"),
    ...     5,
    ...     torch.device("cpu"),
    ...     torch.float32,
    ... )
    5
    """
    size, nodes = dtype.itemsize, graph.num_nodes
    evaluation = size * nodes * (2 * network.hidden + 16 + 2 * network.num_classes)
    weights = nodes * (2 * size + 3)
    if batching.kind == "clusters":
        share = batching.size / batching.parts
    else:
        reached = float(nodes) if batching.fanout is None else batching.size * (batching.fanout + 1.0) ** network.hops
        share = min(1.0, reached / nodes)
    training = share * full_batch_bytes(network, graph, dtype, device.type)
    most = int(_SHARE * memory_left(device) / max(2 * (evaluation + weights), training + weights))
    if device.type == "cpu":
        core = nodes * batching.size / (batching.parts or nodes)
        most = min(most, int(CPU_ACTIVATION_BYTES / (core * network.hidden * size)))
    return max(1, min(wanted, most))
