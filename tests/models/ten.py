"""A graph of ten nodes, its matrices written out in full, and what a method gives on it: for tests against a formula in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from sharpen import Graph, Split
from sharpen.models.blueprint import Blueprint, arguments
from sharpen.models.inputs import Inputs
from sharpen.models.run import Run

NODES, FEATURES, CLASSES = 10, 4, 3
RNG = np.random.default_rng(18)
X = RNG.normal(size=(NODES, FEATURES)).astype(np.float32).astype(float)  # as a graph keeps them
ROWS = X / np.abs(X).sum(1, keepdims=True)
"""With rows of one."""
Y = np.arange(NODES) % CLASSES
EDGES = np.array([[0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 2, 1], [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 6, 7]])
GRAPH = Graph(x=X, edge_index=EDGES, y=Y, name="ten")
TRAIN = np.isin(np.arange(NODES), [0, 1, 2, 3, 4, 5])
SPLIT = Split("halves", train=[0, 1, 2, 3, 4, 5], val=[6, 7], test=[8, 9])

B = np.zeros((NODES, NODES))
"""The directed edges: 1 at (source, target)."""
B[EDGES[0], EDGES[1]] = 1
A = np.maximum(B, B.T)
"""Who is whose neighbour."""


def symmetric(matrix: np.ndarray) -> np.ndarray:
    """D^-½ M D^-½; rows of zeros stay."""
    degree = matrix.sum(1)
    root = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return root[:, None] * matrix * root


A_HAT = symmetric(A + np.eye(NODES))
"""The normalised adjacency with self-loops."""


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def made(model: str, seed: int = 1, **settings: Any) -> tuple[nn.Module, dict[str, np.ndarray]]:
    """A method in double precision with weights that are all different, and these by name."""
    sizes = {"num_nodes": NODES, "num_edges": int(A.sum()) // 2}
    module = Blueprint(model, FEATURES, CLASSES, settings, sizes).build(seed).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in module.parameters():
            value += 0.1 * torch.randn(value.shape, generator=generator, dtype=value.dtype)
    return module, {name: value.detach().numpy().copy() for name, value in module.state_dict().items()}


def called(module: nn.Module, training: bool = False, epoch: int = 0, train: np.ndarray = TRAIN) -> Any:
    """What it gives on the graph: NumPy arrays."""
    inputs = Inputs(GRAPH, torch.device("cpu"), torch.float64)
    args, kwargs = arguments(module, inputs, CLASSES)
    if "run" in kwargs:
        kwargs["run"] = Run.of(
            torch.from_numpy(Y), CLASSES, torch.from_numpy(train), torch.tensor(epoch), torch.ones(1).double()
        )
    with torch.no_grad():
        out = module.train(training)(*args, **kwargs)
    return tuple(each.numpy() for each in out) if isinstance(out, tuple) else out.numpy()


def linear(x: np.ndarray, weights: dict[str, np.ndarray], name: str) -> np.ndarray:
    """``x Wᵀ + b`` with the weights of a torch.nn.Linear of this name."""
    bias = weights.get(f"{name}.bias")
    return x @ weights[f"{name}.weight"].T + (0 if bias is None else bias)
