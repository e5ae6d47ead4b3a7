r"""Batches, and what a batch says about the whole graph.

**Means over nodes.** The objective is made of means over all labeled and over all unlabeled nodes. A batch B is drawn so that every
node is in it with the same probability :math:`\pi_B` (the share of parts, or of nodes, that it holds), and a mean over a set V is
estimated by

.. math:: \frac{1}{|V|} \sum_{i \in V} h_i \;\approx\; \frac{1}{|V|} \sum_{i \in V \cap B} \frac{h_i}{\pi_B}

whose expectation over the draw is the mean itself, and so for its gradient: each node's term is counted with its inverse inclusion
probability over the FULL count, never over the count in the batch. Cross-entropy and both sharpening terms are such means. The
balance term is a function of a mean; of it a batch gives the plug-in estimate, biased by about its curvature times the variance.

**Sums over neighbours.** A node i of degree d sees b of its neighbours in the batch, itself among them. What is seen of the others
stands for all others: their entries of P are multiplied by (d − 1)/(b − 1), with edge weights by the ratio of their sums; a node
that sees nobody else stands for its neighbours itself. Attention is a softmax over those seen. Where a batch holds all that a node
gathers from, this is the full graph's sum. The first sum of GCN and GraphSAGE is always that: P X is computed once over the whole
graph (``PartedGraph.propagated``), so that cut edges matter from the second layer on only. What cut edges do to later layers is a
bias that no weighting removes; more parts per batch make it smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import torch

from sharpen.batching import Batching
from sharpen.errors import InputError
from sharpen.large.disk import as_tensor
from sharpen.large.parted import PartedGraph


@dataclass(frozen=True, eq=False)
class Batch:
    """Some nodes and the edges among them.

    Args:
        nodes: Their numbers in the parted graph.
        rowptr, col: Who gathers from whom, in places in ``nodes``; int32, one self-loop per node.
        core: The first so many nodes count in the objective; the others only serve them.
        probability: With which a node is in the core, the same for all nodes.
        symmetric: Whether whoever gathers is gathered from.
        weight: Of each entry of ``col``; None: all count the same.
    """

    nodes: np.ndarray
    rowptr: np.ndarray
    col: np.ndarray
    core: int
    probability: float
    symmetric: bool
    weight: np.ndarray | None = None


def _dealt(count: int, batches: int, epoch: int) -> list[np.ndarray]:
    """The numbers below ``count``, permuted for the epoch, dealt to batches whose sizes differ by at most one."""
    return np.array_split(np.random.default_rng([epoch, count]).permutation(count), batches)


def _how_many(count: int, size: int, per_step: int) -> int:
    """Batches in an epoch: about count / size, a whole number of steps."""
    batches = per_step * max(1, round(count / size / per_step))
    if batches > count:
        raise InputError(f"{count} parts or nodes do not make {batches} batches; give fewer batches a step")
    return batches


class ClusterBatches:
    """The graph on a few parts, drawn together; edges to other parts are not seen.

    The batches of an epoch together hold every node exactly once. Nothing in a batch depends on which were built before it, so that
    it does not matter who builds which.

    Which parts meet depends on the epoch alone, so that all members of a population, whatever their seeds, see the same batches.

    >>> from sharpen import Graph
    >>> from sharpen.large.parted import arrange
    >>> ring = Graph(x=np.eye(6), edge_index=[[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
    >>> batches = ClusterBatches(arrange(ring, parts=3), size=2, per_step=1)
    >>> [len(chosen) for chosen in batches.draw(epoch=0)]
    [2, 1]
    >>> batches.build(np.array([0, 1])).probability
    0.6666666666666666
    """

    def __init__(self, parted: PartedGraph, size: int, per_step: int) -> None:
        self._parted = parted
        self.per_epoch = _how_many(parted.num_parts, size, per_step)
        parts = -(-parted.num_parts // self.per_epoch)
        self.largest = int(np.sort(parted.sizes)[-parts:].sum())
        # The place of each node in the batch that is being built, −1 outside of it. To fill it anew for each would cost all nodes
        # for every batch; who builds leaves it as it was.
        self._places = np.full(parted.num_nodes, -1, dtype=np.int32)
        self._building = Lock()

    def draw(self, epoch: int) -> list[np.ndarray]:
        """The parts of each batch."""
        return _dealt(self._parted.num_parts, self.per_epoch, epoch)

    def build(self, chosen: np.ndarray, moment: int = 0) -> Batch:
        """The graph on these parts; there is nothing else to draw for it at any moment."""
        graph, places = self._parted, self._places
        parts = np.sort(chosen)
        runs = [(int(graph.offsets[part]), int(graph.offsets[part + 1])) for part in parts]
        nodes = np.concatenate([np.arange(*run) for run in runs])
        seen, weight, rowptr = [], [], [np.zeros(1, dtype=np.int64)]
        with self._building:
            try:
                places[nodes] = np.arange(len(nodes), dtype=np.int32)
                for start, stop in runs:
                    begin, end = int(graph.rowptr[start]), int(graph.rowptr[stop])
                    place = places[graph.col[begin:end]]
                    inside = place >= 0
                    count = np.concatenate([[0], np.cumsum(inside)])
                    rowptr.append(rowptr[-1][-1] + count[graph.rowptr[start + 1 : stop + 1] - begin])
                    seen.append(place[inside])
                    if graph.weight is not None:
                        weight.append(graph.weight[begin:end][inside])
            finally:
                places[nodes] = -1
        share, weights = len(parts) / graph.num_parts, np.concatenate(weight) if weight else None
        ends = np.concatenate(rowptr).astype(np.int32)
        return Batch(nodes, ends, np.concatenate(seen), len(nodes), share, symmetric=True, weight=weights)


class NeighborBatches:
    """Some nodes, and hop by hop a few drawn neighbours of each node met, by PyG's ``NeighborLoader``; else as
    :class:`ClusterBatches`. Without a fanout all neighbours are taken, which makes a batch exact.
    """

    def __init__(self, parted: PartedGraph, size: int, fanout: int | None, hops: int, per_step: int) -> None:
        if parted.weight is not None:
            raise InputError("neighbour batches do not know edge weights; use clusters, or leave the weights out")
        self._parted, self._hops = parted, hops
        self.per_epoch = _how_many(parted.num_nodes, min(size, parted.num_nodes), per_step)
        core = -(-parted.num_nodes // self.per_epoch)
        growth = int(parted.degree.max()) if fanout is None else fanout + 1
        self.largest = int(min(parted.num_nodes, core * growth ** min(hops, 8)))
        self._loader = _neighbor_loader(parted, fanout, hops) if hops else None

    def draw(self, epoch: int) -> list[np.ndarray]:
        """The core of each batch."""
        return _dealt(self._parted.num_nodes, self.per_epoch, epoch)

    def build(self, chosen: np.ndarray, moment: int = 0) -> Batch:
        """These nodes with the neighbours drawn for them at that moment."""
        core, probability = len(chosen), len(chosen) / self._parted.num_nodes
        if self._loader is None:
            alone = np.arange(core + 1, dtype=np.int32)
            return Batch(chosen, alone, alone[:-1], core, probability, symmetric=True)
        # The loader knows no other source of randomness than torch's own, which is the caller's.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(moment)
            drawn = self._loader(torch.from_numpy(chosen))
        nodes = drawn.n_id.numpy()
        own = np.arange(len(nodes))
        source, target = drawn.edge_index.numpy()  # messages go from source to target
        row, col = np.concatenate([target, own]), np.concatenate([source, own])
        order = np.lexsort([col, row])
        rowptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(nodes)))])
        return Batch(nodes, rowptr.astype(np.int32), col[order].astype(np.int32), core, probability, symmetric=False)


def _neighbor_loader(parted: PartedGraph, fanout: int | None, hops: int) -> Any:
    """PyG's loader over the graph's edges; its samplers are compiled, and come in packages of their own."""
    import torch_geometric.typing as has
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    if not (has.WITH_PYG_LIB or has.WITH_TORCH_SPARSE):
        raise InputError(
            "neighbour batches need pyg-lib or torch-sparse, and neither is installed; install one "
            "(https://pytorch-geometric.readthedocs.io), or use clusters"
        )
    row = torch.repeat_interleave(torch.arange(parted.num_nodes), torch.from_numpy(parted.degree))
    col = as_tensor(parted.col).long()
    others = row != col
    data = Data(edge_index=torch.stack([col[others], row[others]]), num_nodes=parted.num_nodes)
    return NeighborLoader(data, num_neighbors=[-1 if fanout is None else fanout] * hops, batch_size=1)


def make_batches(batching: Batching, parted: PartedGraph, hops: int) -> ClusterBatches | NeighborBatches:
    """The batches that a name describes."""
    if batching.kind == "clusters":
        return ClusterBatches(parted, batching.size, batching.per_step)
    return NeighborBatches(parted, batching.size, batching.fanout, hops, batching.per_step)
