"""An epoch of every model as a GPU captures it: nothing waits for the host or crosses devices, and a replay is another epoch.

No GPU is needed. On torch's device ``meta``, which stands for one, tensors have no numbers: whatever asks for them fails. And a
tape of an epoch's operations, run again on the tensors of the first time, does on a CPU what the replay of a CUDA graph does.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from sharpen import Trial, train
from sharpen.datasets import Dataset, Splits
from sharpen.kernels import backend
from sharpen.models.inputs import Inputs
from sharpen.models.registry import MODELS, model_info
from sharpen.training.modular import Modular
from sharpen.training.population import Population
from sharpen.training.trials import blueprint_of, resolve
from sharpen.trial import Record
from tests.models.small import SMALL
from tests.models.ten import GRAPH, SPLIT

META, CPU = torch.device("meta"), torch.device("cpu")
# What a GPU can only do by asking the host, or in a library that does; and what draws from a generator that no seed of a run knows.
WAITS = ("local_scalar_dense", "nonzero", "is_nonzero", "equal", "unique", "masked_select", "bincount", "histc")
WAITS += ("cholesky", "geqrf", *(f"linalg_{name}" for name in ("inv", "solve", "lu", "qr", "eigh", "svd", "cholesky")))
DRAWS = ("rand", "bernoulli", "normal_", "uniform_", "exponential_", "multinomial", "native_dropout")
# Sums in whatever order a GPU comes to them.
SCATTERS = ("index_add", "scatter_add", "scatter_reduce")


# So that no phase of a model's training lies beyond the epochs here.
PHASES: dict[str, dict[str, Any]] = {
    "cpgnn": {"model_args": {"pretrain": 5}},
    "elugcn": {"model_args": {"pretrain": 4, "steps": 4}},
    "normprop": {"model_args": {"warm_up": 6}},
}


def tensors(value: Any) -> list[Tensor]:
    return [each for each in tree_leaves(value) if isinstance(each, Tensor)]


class Watch(TorchDispatchMode):
    """Notes what a capture would not bear, and the name of every operation."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.__name__
        self.names.append(name)
        if name.removeprefix("_").startswith((*WAITS, *DRAWS, *SCATTERS)):
            self.problems.append(f"{name} of {[tuple(each.shape) for each in tensors(args)]}")
        if name.startswith("lift_fresh") and tensors(args)[0].device == META:
            self.problems.append(f"{name}: numbers of the host become a tensor of the device")
        out = func(*args, **(kwargs or {}))
        both = tensors((args, kwargs, out))
        moved = name.startswith(("_to_copy", "copy_"))
        if len({each.device for each in both if each.dim() > 0 or moved}) > 1:
            self.problems.append(f"{name} has tensors of the host and of the device")
        return out


class Launch:
    """In the place of a kernel: sees that all it is given lies on the device."""

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def launch(*args: Any, **kwargs: Any) -> None:
            assert all(each.device == META for each in tensors((args, kwargs)))
            assert all(size > 0 for size in grid)
            assert all(size < 2**16 for size in grid[1:])

        return launch


class Tape(TorchDispatchMode):
    """An epoch's operations, with the tensors that they read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        # Apart from autograd, but in the same memory.
        self.steps.append(tree_map_only(Tensor, Tensor.detach, (func, args, kwargs or {}, out)))
        return out

    @torch.no_grad()
    def replay(self) -> None:
        for func, args, kwargs, out in self.steps:
            for new, old in zip(tensors(func(*args, **kwargs)), tensors(out), strict=True):
                new, old = (each if each.layout == torch.strided else each.values() for each in (new, old))
                if new.data_ptr() != old.data_ptr():
                    old.copy_(new)


def population(model: str, device: torch.device, dtype: torch.dtype, epochs: int) -> Population:
    """Three members that differ in what members may differ in, the way that a GPU would train them."""
    settings = SMALL.get(model, {}) | PHASES.get(model, {})
    takes = {"dropout": 0.5} if "dropout" in model_info(model).settings else {}
    dataset = Dataset("ten", GRAPH, splits=Splits([SPLIT], GRAPH.y))
    trials = [
        Trial(model=model, split="halves", seed=k, lam=0.25 * (k > 0), epochs=epochs, **takes, **settings)
        for k in range(3)
    ]
    trials = [resolve(trial, dataset) for trial in trials]
    inputs = Inputs(GRAPH, device, dtype)
    way = Modular(blueprint_of(GRAPH.num_features, GRAPH.num_classes, trials[0]), inputs, "vmap, captured")
    way._products = None  # a CPU's own
    return Population(way, "accuracy", trials, [SPLIT] * 3)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """One that has the fused kernels, and no numbers."""
    folder = pytest.importorskip("sharpen.kernels.triton", reason="the fused kernels need Triton")
    monkeypatch.setattr(backend, "fused", lambda x: x.device == META and x.dtype == torch.float32)
    monkeypatch.setitem(backend._COSTS, ("meta", "highest"), backend._COSTS["cuda", "highest"])
    for info in pkgutil.iter_modules(folder.__path__):
        module = importlib.import_module(f"{folder.__name__}.{info.name}")
        for name, value in vars(module).items():
            if hasattr(value, "run") and hasattr(type(value), "__getitem__"):
                monkeypatch.setattr(module, name, Launch())
    # Called as it is, a module's dropout reads its rate on the host; that is before training.
    monkeypatch.setattr(Modular, "run", lambda self, module: torch.empty(10, 3, device=META))
    fallback = torch._C._functorch._is_vmap_fallback_enabled()
    torch._C._functorch._set_vmap_fallback_enabled(False)  # it is a loop over members
    yield META
    torch._C._functorch._set_vmap_fallback_enabled(fallback)


@pytest.mark.parametrize("model", MODELS)
def test_an_epoch_waits_for_nothing(model: str, device: torch.device) -> None:
    members, seen = population(model, device, torch.float32, 5), []
    for epoch in range(4):
        watch = Watch()
        with watch:
            members.epoch()
        if epoch >= 2:  # the first ones warm up
            assert not watch.problems, sorted(set(watch.problems))
            seen.append(watch.names)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("model", MODELS)
def test_replayed_epochs_are_those_that_would_have_been_run(model: str) -> None:
    epochs = 14
    members, replayed = (population(model, CPU, torch.float64, epochs) for _ in range(2))
    for _ in range(epochs):
        members.epoch()
    for _ in range(2):
        replayed.epoch()
    tape = Tape()
    with tape:
        replayed.epoch()
    for _ in range(epochs - 3):
        tape.replay()
    torch.testing.assert_close(replayed.traces, members.traces, rtol=1e-6, atol=1e-7, equal_nan=True)
    torch.testing.assert_close(replayed.best_logits, members.best_logits, rtol=1e-9, atol=1e-9)
    for name, value in members.statistics.items():
        torch.testing.assert_close(replayed.statistics[name], value, rtol=1e-9, atol=1e-9)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("model", MODELS)
def test_a_gpu_captures_it_and_does_what_a_cpu_does(model: str) -> None:
    settings = SMALL.get(model, {}) | PHASES.get(model, {})
    wanted = [Trial(model=model, split="halves", seed=k, lam=0.25 * (k > 0), epochs=14, **settings) for k in range(3)]

    def trained(device: str) -> list[Record]:
        return train(GRAPH, wanted, splits=[SPLIT], device=device, progress=False)

    here, there, again = trained("cpu"), trained("cuda"), trained("cuda")
    assert {record.way for record in there} <= {"fused", "vmap, captured"}
    for a, b, c in zip(here, there, again, strict=True):
        assert a.status == b.status == "ok"
        np.testing.assert_allclose(b.traces["loss"][:3], a.traces["loss"][:3], rtol=1e-2, atol=1e-3)
        if model != "graphgps":  # a GPU's fused attention adds gradients up in any order
            np.testing.assert_array_equal(b.logits, c.logits)
