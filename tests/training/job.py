"""A small training for torchrun: what came out goes to files. As a script it is one of several processes."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from sharpen import Trial, train
from sharpen.cli.compare import compare
from sharpen.graph import Graph
from sharpen.graph.splits import class_balanced
from sharpen.large import layerwise
from sharpen.training import batched, memory
from sharpen.training import in_batches as training
from sharpen.training.ranks import current_ranks, joined


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


class Stopped(BaseException):
    """The job ends here, as if killed."""


def stop() -> None:
    """Ends a job that runs in the tests' own process."""
    raise Stopped


@contextmanager
def stopping_at(epoch: int | None, end) -> Iterator[None]:
    """Calls ``end`` at that epoch, before anything of it is done."""
    original = batched.BatchedPopulation.epoch

    def epoch_or_end(self):
        if int(self.epoch_number) == epoch:
            end()
        original(self)

    batched.BatchedPopulation.epoch = epoch_or_end
    try:
        yield
    finally:
        batched.BatchedPopulation.epoch = original


def run(out: Path | None, checkpoints: Path | None, device: str = "cpu") -> None:
    """Six epochs, from the checkpoint if there is one; everything that came out goes to a file."""
    graph = ring_of_towns()
    split = class_balanced(graph.y, per_class=3, val=15, test=20, seed=0)
    records = train(
        graph,
        trials(6),
        splits=[split],
        device=device,
        precision="float64",
        progress=False,
        keep_weights=True,
        checkpoints=checkpoints,
    )
    if out is not None and current_ranks().writes:
        arrays = {f"{r}/weights/{k}": v for r, record in enumerate(records) for k, v in record.weights.items()}
        arrays |= {f"{r}/traces/{k}": v for r, record in enumerate(records) for k, v in record.traces.items()}
        arrays |= {f"{r}/logits": record.logits for r, record in enumerate(records)}
        np.savez(out, world=current_ranks().world, **arrays)


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    layerwise._CHUNK_ACTIVATIONS["cpu"] = 500  # so that every process has runs of nodes of its own to evaluate
    with joined("cpu") as (ranks, device):
        # Processes see different amounts of free memory: the first decides.
        training.members_in_batches = lambda *given: 2 - ranks.rank
        memory.memory_left = lambda device: 10 ** (5 + 7 * ranks.rank)
        compare("digits", splits="2", epochs=2, hidden=8, device=device, out=folder / "compare", page=False, quiet=True)
        run(folder / "two.npz", None, device)
        run(folder / "went-on-as-two.npz", folder / "stopped-as-one", device)
        with stopping_at(3, lambda: os._exit(9)):  # as a killed process: in the middle, without a word
            run(None, folder / "stopped-as-two", device)
