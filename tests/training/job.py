"""A small training for torchrun: several processes, or one, write what came out to a file. Run as a script."""

import sys

import numpy as np
import torch

from sharpen import Trial, train
from sharpen.graph import Graph
from sharpen.splits import class_balanced
from sharpen.training import batched
from sharpen.training.ranks import joined


def ring_of_towns(nodes: int = 60) -> Graph:
    """Towns in a ring, noisy features."""
    rng = np.random.default_rng(0)
    y = np.arange(nodes) // 5 % 3
    town = np.arange(nodes) // 5 * 5
    ends = np.stack([np.repeat(np.arange(nodes), 3), np.repeat(town, 3) + rng.integers(5, size=3 * nodes)])
    roads = np.stack([np.arange(0, nodes, 5), (np.arange(0, nodes, 5) + 7) % nodes])
    x = np.eye(3)[y] + rng.normal(size=(nodes, 3))
    return Graph(x=x, edge_index=np.concatenate([ends, roads], 1), y=y, name="ring")


def trials(epochs: int, **more) -> list[Trial]:
    """Two members, sharpened and plain, with all that could depend on the order of work."""
    shape = {
        "layers": 2,
        "hidden": 8,
        "norm": "batch",
        "residual": True,
        "dropout": 0.3,
        "lr": 0.01,
        "weight_decay": 1e-4,
    }
    return [Trial(lam=lam, epochs=epochs, seed=3, batching="clusters-12-2-2", **(shape | more)) for lam in (0.0, 0.5)]


def main(out: str, checkpoints: str, die_after: int) -> None:
    graph = ring_of_towns()
    split = class_balanced(graph.y, per_class=3, val=15, test=20, seed=0)
    if die_after:  # as a killed job would: in the middle, without a word
        original = batched.BatchedPopulation.epoch

        def epoch(self):
            if int(self.epoch_number) == die_after:
                import os

                os._exit(9)
            original(self)

        batched.BatchedPopulation.epoch = epoch
    with joined("cpu") as (ranks, device):
        records = train(
            graph,
            trials(6),
            splits=[split],
            device=device,
            precision="float64",
            progress=False,
            keep_weights=True,
            checkpoints=None if checkpoints == "none" else checkpoints,
        )
        if ranks.writes:
            arrays = {f"{r}/weights/{k}": v for r, record in enumerate(records) for k, v in record.weights.items()}
            arrays |= {f"{r}/traces/{k}": v for r, record in enumerate(records) for k, v in record.traces.items()}
            arrays |= {f"{r}/logits": record.logits for r, record in enumerate(records)}
            np.savez(out, world=ranks.world, **arrays)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
