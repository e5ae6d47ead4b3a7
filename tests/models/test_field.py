"""The methods of the field, those that propagate: each against its formula in dense NumPy, on ten nodes and in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from sharpen import Trial, load_dataset, train
from sharpen.models.registry import REGISTRY
from sharpen.models.zoo.settings import settings_of
from sharpen.training.trials import blueprint_of
from tests.models.ten import A_HAT, A, X, called, linear, made, relu, softmax, symmetric

FIELD = [name for name, model in REGISTRY.items() if model.of_the_field]


def close(a: np.ndarray, b: np.ndarray) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def test_fsgnn():
    module, w = made("fsgnn", hidden=5, hops=2)
    one = symmetric(A)
    parts = [X, one @ X, one @ one @ X, A_HAT @ X, A_HAT @ A_HAT @ X]
    weighed = []
    for k, part in enumerate(parts):
        h = linear(part, w, f"maps.{k}")
        weighed.append(softmax(w["attention"])[k] * h / np.linalg.norm(h, axis=1, keepdims=True))
    close(called(module), linear(relu(np.hstack(weighed)), w, "head"))


@pytest.mark.parametrize("model", FIELD)
def test_published_settings_are_settings_of_the_model(model):
    known = settings_of(model)
    assert known is not None
    assert known.source
    for dataset in ("cora", "squirrel", "a graph that nobody has published on"):
        found = known.configurations(dataset, 4)
        assert len(found) >= 2
        assert len({str(sorted(map(str, one.items()))) for one in found}) == len(found)
        for one in found:
            trial = Trial(model=model, dataset=dataset, **one).resolve("any")
            assert trial.epochs
            assert trial.lr
            blueprint_of(8, 3, trial).build(0)
    assert Trial(model=model, dataset="cora").resolve("any").lr == known.of("cora").get("lr", 0.01)


@pytest.mark.parametrize("model", FIELD)
def test_it_learns(model):
    digits = load_dataset("digits")
    (record,) = train(
        digits,
        [Trial(model=model, epochs=40, hidden=32, dropout=0.2, lr=0.01, weight_decay=5e-4, model_args={})],
        device="cpu",
        progress=False,
    )
    assert record.status == "ok"
    assert record.way.split(":")[0] == "vmap", record.way
    assert record.test > 0.8
