"""Stand-ins for PyG's loader of neighbours, whose samplers are compiled and may not be installed."""

import torch
import torch_geometric.typing as has
from torch_geometric.data import Data

from sharpen.large.parted import PartedGraph

COMPILED = has.WITH_PYG_LIB or has.WITH_TORCH_SPARSE


class EveryNeighbor:
    """Stands in for PyG's loader where its compiled samplers are not installed: all neighbours, hop by hop."""

    def __init__(self, parted: PartedGraph, fanout: int | None, hops: int) -> None:
        assert fanout is None
        self._parted, self._hops = parted, hops

    def __call__(self, nodes):
        met, edges, frontier = nodes.tolist(), [], nodes.tolist()
        for _ in range(self._hops):
            fresh = []
            for target in frontier:
                for source in self._parted.col[self._parted.rowptr[target] : self._parted.rowptr[target + 1]].tolist():
                    if source != target:
                        fresh += [source] if source not in met else []
                        met += [source] if source not in met else []
                        edges.append((met.index(source), met.index(target)))
            frontier = fresh
        return Data(n_id=torch.tensor(met), edge_index=torch.tensor(edges).T.reshape(2, -1))


class OneNeighbor:
    """Stands in for PyG's loader where it draws: one neighbour of each node, by torch's own source of randomness."""

    def __init__(self, parted: PartedGraph, fanout: int | None, hops: int) -> None:
        self._parted = parted

    def __call__(self, nodes):
        rows = [self._parted.col[self._parted.rowptr[n] : self._parted.rowptr[n + 1]] for n in nodes.tolist()]
        drawn = torch.tensor([int(row[int(torch.randint(len(row), ()))]) for row in rows])
        places = torch.arange(len(nodes))
        return Data(n_id=torch.cat([nodes, drawn]), edge_index=torch.stack([len(nodes) + places, places]))
