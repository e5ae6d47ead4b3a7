"""When a GPU refuses to capture an epoch: training goes on without, memory that is short is halved, and a study loses one cell."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sharpen import InputError
from sharpen.training import full_batch, trials
from sharpen.training.capture import Runner
from sharpen.training.population import Population
from sharpen.training.trials import train
from sharpen.trial import Trial
from tests.models.ten import GRAPH, SPLIT
from tests.models.test_capture import population


class Refusing:
    """In the place of :class:`torch.cuda.graph`: what is captured fails, and so may the capture's end."""

    default_capture_stream: Any = "used before"
    at_the_end: Exception | None = None

    def __init__(self, graph: Any, pool: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        if self.at_the_end is not None:
            raise self.at_the_end


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of CUDA, on a machine without: as it would be with a population on a GPU."""
    made: list[str] = []
    stream = SimpleNamespace(device_index=0)

    def noted(name: str, result: Any = None) -> Any:
        return lambda *args: made.append(name) or result

    graph = SimpleNamespace(reset=noted("reset"), replay=noted("replay"))
    for name, result in {"CUDAGraph": graph, "graph_pool_handle": (0, 1), "current_stream": stream}.items():
        monkeypatch.setattr(torch.cuda, name, noted(name, result))
    for name in ("set_stream", "synchronize"):
        monkeypatch.setattr(torch.cuda, name, noted(name))
    for name in ("_cuda_endAllocateToPool", "_cuda_releasePool"):
        monkeypatch.setattr(torch._C, name, noted(name), raising=False)
    monkeypatch.setattr(torch.cuda, "graph", Refusing)
    monkeypatch.setattr(Refusing, "at_the_end", None)
    monkeypatch.setattr(Runner, "_on_gpu", True)
    return made


def captured(monkeypatch: pytest.MonkeyPatch, error: Exception) -> Population:
    """One whose third epoch, which would be captured, fails once."""
    members = population("appnp", torch.device("cpu"), torch.float64, 6)
    epoch, asked = members.epoch, 0

    def failing() -> None:
        nonlocal asked
        asked += 1
        if asked == Runner.WARM_UP + 1:
            raise error
        epoch()

    monkeypatch.setattr(members, "epoch", failing)
    return members


def test_training_goes_on_without_a_graph_and_says_why(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    members = captured(monkeypatch, RuntimeError("operation not permitted when stream is capturing\nmore"))
    runner = Runner(members)
    runner.run(lambda epochs: None)
    alone = population("appnp", torch.device("cpu"), torch.float64, 6)
    for _ in range(6):
        alone.epoch()
    assert members.traces.equal(alone.traces)
    assert "replay" not in calls
    undone = calls[calls.index("set_stream") :]
    assert undone[:4] == ["set_stream", "reset", "_cuda_endAllocateToPool", "_cuda_releasePool"]
    assert Refusing.default_capture_stream is None
    assert not members.way.captures
    assert (
        members.way.full_name
        == "vmap: its epoch could not be captured (operation not permitted when stream is capturing)"
    )


def test_short_memory_is_told_from_other_failures(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    members = captured(monkeypatch, torch.OutOfMemoryError("40 GB"))
    monkeypatch.setattr(Refusing, "at_the_end", RuntimeError("invalid capture"))  # which hides it
    with pytest.raises(torch.OutOfMemoryError, match="40 GB"):
        Runner(members).run(lambda epochs: None)
    assert "_cuda_releasePool" in calls
    assert members.way.captures  # half as many may fit


TRIAL = Trial(model="appnp", split="halves", epochs=2)


def trained() -> None:
    train(GRAPH, [TRIAL], splits=[SPLIT], device="cpu", progress=False)


def test_a_model_that_a_device_cannot_run_is_left_out_of_a_study(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> None:
        raise RuntimeError("no kernel image is available")

    monkeypatch.setattr(Population, "epoch", failing)
    with pytest.raises(InputError, match=r"APPNP fails on this graph .*: RuntimeError: no kernel image"):
        trained()


@pytest.mark.parametrize(
    ("where", "name"), [(trials, "decide"), (full_batch, "population_size"), (Population, "epoch")]
)
def test_a_model_that_does_not_fit_says_so(where: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*_: Any) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(where, name, short)
    if name == "population_size":  # where it is asked, it is one run that did not fit
        monkeypatch.setattr(full_batch, name, lambda *_: 1)
        monkeypatch.setattr(full_batch, "_train_population", short)
    with pytest.raises(InputError, match="one run of APPNP does not fit in memory"):
        trained()
