"""Class scores from weights that were kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from sharpen.errors import InputError
from sharpen.graph import Graph
from sharpen.kernels.dropout import member_keys
from sharpen.large.layerwise import layerwise_logits
from sharpen.large.parted import arrange
from sharpen.models.blueprint import Blueprint
from sharpen.models.inputs import Inputs
from sharpen.models.network import Network
from sharpen.training.modular import Modular
from sharpen.training.ways import Fused, Moment
from sharpen.trial import Trial

# The largest intermediate result of all members that predict together.
_CHUNK_BYTES = 64 * 2**20

_Kept = Sequence[Mapping[str, np.ndarray]]


@torch.no_grad()
def class_scores(blueprint: Blueprint, inputs: Inputs, weights: _Kept) -> Iterator[np.ndarray]:
    """Class scores [N, C] of every set of weights of one model, in the same order."""
    way = Modular(blueprint, inputs, "loop") if blueprint.network is None else Fused(blueprint.network, inputs)
    size = max(1, _CHUNK_BYTES // way.activation_bytes)
    for start in range(0, len(weights), size):
        chunk = weights[start : start + size]
        parameters, statistics = way.start([Trial()] * len(chunk))
        every = parameters | statistics
        wanted = {n for n in every if way.persistent is None or n in parameters or n in way.persistent}
        for name in sorted(wanted ^ chunk[0].keys()):
            raise _unfit(blueprint, f"{name} is {'missing' if name in wanted else 'not known to it'}")
        for name in sorted(wanted):
            for row, own in zip(every[name], chunk, strict=True):
                if row.shape != own[name].shape:
                    raise _unfit(blueprint, f"{name} has shape {list(own[name].shape)}, not {list(row.shape)}")
                row.copy_(torch.from_numpy(np.array(own[name])))
        moment = Moment(member_keys([0] * len(chunk)).to(inputs.device), torch.zeros((), device=inputs.device), None)
        yield from way.logits(parameters, statistics, way.leaves(parameters), False, moment).cpu().numpy()


def _unfit(blueprint: Blueprint, reason: str) -> InputError:
    why = f"{blueprint.title} does not fit the saved weights ({reason})"
    return InputError(f"{why}; give the model that it was fitted with")


@torch.no_grad()
def layerwise_scores(
    network: Network, graph: Graph, device: torch.device, dtype: torch.dtype, weights: _Kept
) -> Iterator[np.ndarray]:
    """The same, layer by layer, for a graph that does not fit in memory at once."""
    whole = arrange(graph, 1)
    size = max(1, _CHUNK_BYTES // (4 * graph.num_nodes * network.hidden))
    for start in range(0, len(weights), size):
        chunk = weights[start : start + size]
        rows = {name: np.stack([own[name] for own in chunk]) for name in chunk[0]}
        stacked = {name: torch.from_numpy(row).to(device, dtype) for name, row in rows.items()}
        statistics = {name: value for name, value in stacked.items() if name not in network.initials}
        parameters = {name: value for name, value in stacked.items() if name in network.initials}
        yield from layerwise_logits(network, parameters, statistics, whole).cpu().numpy()
