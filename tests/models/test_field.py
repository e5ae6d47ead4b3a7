"""The methods of the field, those that propagate: each against its formula in dense NumPy, on ten nodes and in double precision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sharpen import Graph, InputError, NodeClassifier, Trial, load_dataset, train
from sharpen.models import zoo
from sharpen.models.registry import REGISTRY
from sharpen.models.zoo.settings import settings_of
from sharpen.training.trials import blueprint_of
from tests.models.small import SMALL
from tests.models.ten import A_HAT, ROWS, TRAIN, A, B, X, Y, called, linear, made, relu, softmax, symmetric

FIELD = [name for name, model in REGISTRY.items() if model.of_the_field]


def close(a: np.ndarray, b: np.ndarray) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def test_fsgnn():
    module, w = made("fsgnn", hidden=5, hops=2)
    one = symmetric(A)
    parts = [ROWS, one @ ROWS, one @ one @ ROWS, A_HAT @ ROWS, A_HAT @ A_HAT @ ROWS]
    weighed = []
    for k, part in enumerate(parts):
        h = linear(part, w, f"maps.{k}")
        weighed.append(softmax(w["attention"])[k] * h / np.linalg.norm(h, axis=1, keepdims=True))
    close(called(module), linear(relu(np.hstack(weighed)), w, "head"))


def test_h2gcn():
    module, w = made("h2gcn", hidden=5, rounds=2)
    two = (((A + np.eye(10)) @ (A + np.eye(10)) > 0) & (A + np.eye(10) == 0)).astype(float)
    one, two = symmetric(A), symmetric(two)
    rounds = [relu(linear(ROWS, w, "first"))]
    for _ in range(2):
        rounds.append(np.hstack([one @ rounds[-1], two @ rounds[-1]]))
    close(called(module), linear(np.hstack(rounds), w, "head"))


def test_gcnii():
    module, w = made("gcnii", layers=3, hidden=5, alpha=0.2, strength=0.7)
    h = first = relu(linear(ROWS, w, "first"))
    for number, weight in enumerate(w["convs"], start=1):
        beta = np.log(0.7 / number + 1)
        h = relu((0.8 * A_HAT @ h + 0.2 * first) @ ((1 - beta) * np.eye(5) + beta * weight))
    close(called(module), linear(h, w, "head"))


def test_linkx():
    module, w = made("linkx", layers=2, hidden=5)
    links, own = A @ w["nodes"] + w["nodes_bias"], linear(X, w, "own")
    h = relu(linear(np.hstack([links, own]), w, "both") + links + own)
    h = relu(linear(h, w, "maps.0"))
    h = (h - w["norms.0.running_mean"]) / np.sqrt(w["norms.0.running_var"] + 1e-5)
    close(called(module), linear(h * w["norms.0.weight"] + w["norms.0.bias"], w, "maps.1"))


@pytest.mark.parametrize("keep", [False, True])
def test_sgformer(keep):
    module, w = made("sgformer", layers=2, hidden=5, graph_weight=0.7, keep=keep, alpha=0.6)
    h = relu(linear(X, w, "attention.first"))
    q, k = (linear(h, w, f"attention.{role}.0") for role in ("query", "key"))
    weights = (q / np.linalg.norm(q)) @ (k / np.linalg.norm(k)).T / 10
    attended = (h + weights @ h) / (1 + weights.sum(1, keepdims=True))
    attended = 0.6 * attended + 0.4 * h if keep else attended
    convolved = A_HAT @ linear(relu(A_HAT @ linear(X, w, "convs.0")), w, "convs.1")
    close(called(module), linear(0.7 * convolved + 0.3 * attended, w, "head"))


def test_normprop():
    module, w = made("normprop", hidden=6, width=5, dropout=0.0, threshold=0.1, warm_up=3, mu=0.7)
    h = linear(ROWS, w, "first")
    h = (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-6) * w["norm.weight"] + w["norm.bias"]
    h = linear(relu(h), w, "second")
    h = A_HAT @ A_HAT @ (h / np.linalg.norm(h, axis=1, keepdims=True))
    corners = module.prototypes.numpy()
    gram = corners @ corners.T  # unit vectors, all of them equally far apart
    np.testing.assert_allclose(gram, np.where(np.eye(3) > 0, 1, -1 / 2), atol=1e-7)
    cosine = h @ corners.T / np.linalg.norm(h, axis=1, keepdims=True)
    close(called(module), 10 * cosine)
    scores, more = called(module, training=True, epoch=2)
    logs = np.log(softmax(scores))[np.arange(10), Y][TRAIN]
    cosine_loss = (1 - cosine[np.arange(10), Y][TRAIN]).mean()
    close(more - logs.mean(), cosine_loss)  # with the cross-entropy, that is all
    confident = (cosine.max(1) > 0.1) & ~TRAIN
    assert confident.sum() > 0
    lost = 1 - np.linalg.norm(h, axis=1) / (A_HAT @ A_HAT @ np.ones(10))
    _, later = called(module, training=True, epoch=3)
    close(later - more, 0.7 * lost[confident].mean())


def test_cpgnn():
    module, w = made("cpgnn", hidden=5, dropout=0.0, rounds=2, pretrain=2, cotrain=0.5, zero_sum=0.3)
    prior = linear(relu(linear(ROWS, w, "mlp.maps.0")), w, "mlp.maps.1")
    close(called(module), prior)
    scores, more = called(module, training=True, epoch=1)
    close(scores, prior)
    assert more == 0
    known = np.where(TRAIN[:, None], np.eye(3)[Y], softmax(prior))
    walk = A / A.sum(1, keepdims=True)
    met = np.array([(walk @ known)[TRAIN & (c == Y)].mean(0) for c in range(3)])
    for _ in range(1000):
        met = met / met.sum(0)
        met = met / met.sum(1, keepdims=True)
    compatible = (met + met.T) / 2 - 1 / 3 + w["learned"]
    own = spread = softmax(prior) - 1 / 3
    for _ in range(2):
        spread = own + symmetric(A) @ spread @ compatible
    scores, more = called(module, training=True, epoch=2)
    np.testing.assert_allclose(scores, spread + 1 / 3, rtol=1e-6)
    alone = -np.log(softmax(prior))[np.arange(10), Y][TRAIN].mean()
    np.testing.assert_allclose(more, 0.5 * alone + 0.3 * np.abs(compatible.sum(1)).sum(), rtol=1e-6)
    np.testing.assert_allclose(called(module), spread + 1 / 3, rtol=1e-6)  # and it is remembered


def test_glognn():
    module, w = made("glognn", hidden=5, rounds=2, orders=2, alpha=0.4, beta=0.9, gamma=0.3, delta=0.6)
    mean = (A + np.eye(10)) / (A + np.eye(10)).sum(1, keepdims=True)
    first = linear(relu(0.6 * linear(ROWS, w, "first") + 0.4 * mean @ w["nodes"]), w, "second")
    h, c = first, 0.7
    for _ in range(2):
        near = w["powers"][0] * mean + w["powers"][1] * mean @ mean
        z = (c * h @ h.T + 0.9 * near - 0.3 * c * first @ h.T) @ np.linalg.inv(c**2 * h @ h.T + 1.3 * np.eye(10))
        h = c * z @ h + 0.3 * first
    close(called(module), h)


def test_elugcn():
    beta, eye = 2.0, np.eye(3)
    module, w = made(
        "elugcn",
        hidden=5,
        mlp_hidden=4,
        dropout=0.0,
        pretrain=1,
        steps=3,
        beta=beta,
        gamma=0.3,
        tau=0.5,
        contrast=0.7,
        entropy=0.2,
    )
    logits = linear(relu(linear(ROWS, w, "mlp.maps.0")), w, "mlp.maps.1")
    scores, more = called(module, training=True, epoch=0)
    close(scores, logits)
    assert more == 0
    called(module, training=True, epoch=1)
    beliefs, labels = softmax(logits), eye[Y] * TRAIN[:, None]
    smooth, spread = A_HAT @ A_HAT @ beliefs, labels
    for _ in range(3):
        spread = np.where(TRAIN[:, None], labels, 0.9 * A_HAT @ spread + 0.1 * spread).clip(0, 1)
    agree = smooth.argmax(1) == spread.argmax(1)
    assert 0 < (agree & ~TRAIN).sum() < (~TRAIN).sum() or agree.sum() < 10
    y = np.where(TRAIN[:, None], labels, eye[smooth.argmax(1)] * agree[:, None])
    for number in range(3):
        whole = beliefs @ y.T @ np.linalg.inv(beliefs @ beliefs.T + beta * np.eye(10))  # the closed form itself
        after = 0.7 * whole @ y + 0.3 * y
        after = after / np.linalg.norm(after, axis=1, keepdims=True)
        after = np.where((TRAIN | agree)[:, None], y, after)
        y = after if number == 2 else np.where(np.abs(after) < 0.2, 0, after).clip(0, 1)
        scores, more = called(module, training=True, epoch=2 + number)
    whole = beliefs @ y.T @ np.linalg.inv(beliefs @ beliefs.T + beta * np.eye(10))
    first = ROWS @ w["first.weight"].T
    near, far = (A_HAT @ linear(relu(m @ first + w["first.bias"]), w, "second") for m in (A_HAT, whole))
    close(scores, 0.7 * near + 0.3 * far)
    one, other = (np.where(p > 0, p, np.expm1(p)) for p in (linear(view, w, "projection") for view in (near, far)))
    one, other = (p / np.linalg.norm(p, axis=1, keepdims=True) for p in (one, other))
    apart = ((one - other) ** 2).sum(1)
    positive, negative = (np.exp(apart[nodes].mean() / 0.5) if nodes.any() else 1.0 for nodes in (agree, ~agree))
    p = softmax(scores)
    close(more, -0.7 * np.log(positive / (positive + negative)) - 0.2 * (p * np.log(p)).sum(1).mean())
    close(called(module), scores)


@pytest.mark.parametrize(("jump", "loops"), [("none", False), ("cat", True), ("max", False)])
def test_coed(jump, loops):
    edges = int(A.sum()) // 2
    module, w = made("coed", layers=2, hidden=5, alpha=0.3, self_loops=loops, jump=jump)
    flow, number = np.zeros((10, 10)), 0  # from column to row
    for low in range(10):
        for high in range(low + 1, 10):
            if A[low, high]:
                start = np.pi / 4 if B[low, high] and B[high, low] else 0.0 if B[low, high] else np.pi / 2
                angle = np.clip(start + w["edges"][number], 0, np.pi / 2)
                flow[high, low], flow[low, high] = np.cos(angle) ** 2, np.sin(angle) ** 2
                number += 1
    assert number == edges
    flow = flow + np.eye(10) * loops
    p = flow / np.sqrt(flow.sum(1, keepdims=True).clip(1e-12)) / np.sqrt(flow.sum(0).clip(1e-12))
    h, layers = X, []
    for k in range(2):
        forth, back, own = (
            linear(v, w, f"{name}.{k}") for v, name in ((p @ h, "along"), (p.T @ h, "against"), (h, "own"))
        )
        h = 0.3 * forth + 0.7 * back + own
        h = relu(h) if k == 0 or jump != "none" else h
        layers.append(h)
    h = {"none": h, "cat": np.hstack(layers), "max": np.maximum(*layers)}[jump]
    close(called(module), linear(h, w, "head"))


@pytest.mark.parametrize("model", [name for name in REGISTRY if name in FIELD or settings_of(name) is not None])
def test_published_settings_are_settings_of_the_model(model):
    known = settings_of(model)
    assert known is not None
    assert known.source
    for dataset in ("cora", "squirrel", "a graph that nobody has published on"):
        found = known.configurations(dataset, 4)
        assert len(found) == 4
        assert len({str(sorted(map(str, one.items()))) for one in found}) == len(found)
        for one in found:
            trial = Trial(model=model, dataset=dataset, **one).resolve("any")
            assert trial.epochs
            assert trial.lr
            blueprint_of(8, 3, trial).build(0)
    if model in FIELD:
        assert Trial(model=model, dataset="cora").resolve("any").lr == known.of("cora").get("lr", 0.01)


def test_a_method_fits_on_a_screen_or_two():
    lines = {path.name: len(path.read_text("utf-8").splitlines()) for path in Path(zoo.__file__).parent.glob("*.py")}
    assert max(lines.values()) <= 120
    assert sum(lines.values()) <= 1800


@pytest.mark.parametrize("model", [name for name in FIELD if name not in SMALL])
def test_it_learns(model):
    arguments = {
        "cpgnn": {"pretrain": 20, "rounds": 2},
        "gcnii": {"strength": 0.5},
        "elugcn": {"pretrain": 15, "steps": 5},
    }.get(model)
    lr = 0.1 if model == "elugcn" else 0.01  # its features are small
    wanted = Trial(model=model, epochs=60, hidden=32, dropout=0.2, lr=lr, weight_decay=5e-4, model_args=arguments)
    (record,) = train(load_dataset("digits"), [wanted], device="cpu", progress=False)
    assert record.status == "ok"
    assert record.way == "vmap"
    assert record.traces["train"][-1] > 0.8
    assert record.test > (
        0.4 if model == "linkx" else 0.7
    )  # LINKX passes no messages, and five labels per class are few


def test_a_model_that_knows_one_graph_is_saved_for_it_and_says_so_on_another(tmp_path):
    rng, y = np.random.default_rng(0), np.arange(60) % 2
    edges = rng.integers(0, 60, (2, 300))
    graph = Graph(x=rng.normal(size=(60, 4)) + y[:, None], edge_index=edges, y=np.where(np.arange(60) < 40, y, -1))
    fitted = NodeClassifier(model="linkx", lam=0.25, epochs=3, device="cpu").fit(graph)
    fitted.save(tmp_path / "model.safetensors")
    loaded = NodeClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(graph), fitted.predict_proba(graph))
    other = Graph(x=rng.normal(size=(30, 4)), edge_index=edges % 30, class_names=graph.class_names)
    with pytest.raises(InputError, match="LINKX does not fit"):
        loaded.predict(other)
