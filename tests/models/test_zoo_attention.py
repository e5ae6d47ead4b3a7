"""The transformers of the field against their formulas, written again in NumPy with dense matrices, on ten nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from sharpen import Graph, Trial, load_dataset, train
from sharpen.graph.partition import metis
from sharpen.models.inputs import Inputs
from sharpen.models.registry import model_info
from sharpen.models.run import Run
from sharpen.models.zoo import nodeformer
from sharpen.models.zoo.bunn import BuNN
from sharpen.models.zoo.exphormer import Exphormer, expander
from sharpen.models.zoo.goat import GOAT, Codebook
from sharpen.models.zoo.graphgps import GraphGPS
from sharpen.models.zoo.m3dphormer import M3Dphormer
from sharpen.models.zoo.nagphormer import NAGphormer, eigenvectors
from sharpen.models.zoo.nodeformer import NodeFormer
from sharpen.models.zoo.ogformer import OGFormer
from sharpen.models.zoo.polynormer import Polynormer
from tests.models.small import SMALL

NODES, FEATURES, CLASSES = 10, 6, 3
EDGES = np.array([[0, 1, 2, 3, 4, 5, 6, 7, 0, 2], [1, 2, 3, 4, 5, 6, 7, 8, 5, 7]])  # node 9 is isolated
X = np.random.default_rng(3).integers(-9, 9, (NODES, FEATURES)) / 8  # exact in single precision, which a graph holds
Y = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0])
GRAPH = Graph(x=X, edge_index=EDGES, y=Y)
INPUTS = Inputs(GRAPH, torch.device("cpu"), torch.float64)
RUN = Run.of(torch.from_numpy(Y), CLASSES, torch.arange(NODES) < 5, torch.tensor(0), INPUTS.x)
A = np.zeros((NODES, NODES))
A[EDGES[0], EDGES[1]] = A[EDGES[1], EDGES[0]] = 1
LOOPS = A + np.eye(NODES)


def random(module: nn.Module) -> Any:
    """The module with weights that are all different, in double precision and evaluation; no norm and no gate is trivial."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(parameter + 0.3 * torch.randn_like(parameter))
        for name, value in module.named_buffers():
            if "running_var" in name:
                value.copy_(torch.rand_like(value) + 0.5)
            elif "running_mean" in name:
                value.copy_(torch.randn_like(value))
    return module.double().eval()


def n(tensor: Any) -> np.ndarray:
    return tensor.detach().numpy()


def linear(x: np.ndarray, layer: Any) -> np.ndarray:
    return x @ n(layer.weight).T + (0 if layer.bias is None else n(layer.bias))


def layer_norm(x: np.ndarray, layer: Any) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + layer.eps) * n(layer.weight) + n(layer.bias)


def batch_norm(x: np.ndarray, layer: Any) -> np.ndarray:
    scaled = (x - n(layer.running_mean)) / np.sqrt(n(layer.running_var) + 1e-5)
    return scaled if layer.weight is None else scaled * n(layer.weight) + n(layer.bias)


def softmax(score: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Along rows; a row that may look at nothing is 0."""
    weight = np.exp(score) * (1 if mask is None else mask)
    total = weight.sum(-1, keepdims=True)
    return weight / np.where(total == 0, 1, total)


def normalized(matrix: np.ndarray) -> np.ndarray:
    degree = matrix.sum(1)
    root = np.divide(1, np.sqrt(degree), out=np.zeros(len(degree)), where=degree > 0)
    return root[:, None] * matrix * root


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def gelu(x: np.ndarray) -> np.ndarray:
    return n(nn.functional.gelu(torch.from_numpy(x)))


def per_head(heads: int, width: int) -> list[slice]:
    return [slice(k * width, (k + 1) * width) for k in range(heads)]


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, heads: int, mask: np.ndarray | None = None) -> np.ndarray:
    width = q.shape[1] // heads
    each = [softmax(q[:, s] @ k[:, s].T / np.sqrt(width), mask) @ v[:, s] for s in per_head(heads, width)]
    return np.concatenate(each, 1)


def gat(scored: np.ndarray, source: np.ndarray, target: np.ndarray, v: np.ndarray, mask: np.ndarray) -> np.ndarray:
    heads, width = source.shape
    out = []
    for head, s in enumerate(per_head(heads, width)):
        score = (scored[:, s] @ target[head])[:, None] + (scored[:, s] @ source[head])[None]
        out.append(softmax(np.where(score > 0, score, 0.2 * score), mask) @ v[:, s])
    return np.concatenate(out, 1)


def gat_layer(x: np.ndarray, layer: Any) -> np.ndarray:
    h = linear(x, layer.map)
    return gat(h, n(layer.source)[0], n(layer.target)[0], h, LOOPS)


@pytest.mark.parametrize("beta", [None, 0.4])
@pytest.mark.parametrize("late", [False, True])
def test_polynormer(beta: float | None, late: bool) -> None:
    model = random(Polynormer(FEATURES, CLASSES, layers=2, hidden=4, heads=2, local_epochs=5, beta=beta))
    model.steps.fill_(6 if late else 5)
    gate = sigmoid if beta is None else lambda value: value
    x, total = linear(X, model.embed), 0.0
    for k in range(2):
        h, b = relu(linear(x, model.gate[k])), gate(n(model.beta[k]))
        x = relu(gat_layer(x, model.attend[k]) + linear(x, model.own[k]))
        x = (1 - b) * layer_norm(h * x, model.norm[k]) + b * x
        total = total + x
    wanted = linear(total, model.local_head)
    if late:
        z = layer_norm(total, model.late_enter)
        for k in range(2):
            key, value, seen = sigmoid(linear(z, model.late_key[k])), linear(z, model.late_value[k]), []
            for s in per_head(2, 4):
                weight = key[:, s] @ key[:, s].T
                seen.append(weight / weight.sum(1, keepdims=True) @ value[:, s])
            z = layer_norm(np.concatenate(seen, 1), model.late_norm[k]) * (
                linear(z, model.late_gate[k]) + gate(n(model.late_beta[k]))
            )
            z = relu(linear(z, model.late_out))
        wanted = linear(z, model.late_head)
    assert_allclose(n(model(INPUTS.x, INPUTS)), wanted, rtol=1e-9)


def test_polynormer_begins_with_the_global_part_after_so_many_steps() -> None:
    model = random(
        Polynormer(FEATURES, CLASSES, layers=1, hidden=4, heads=1, local_epochs=2, dropout=0.0, input_dropout=0.0)
    )
    reached = []
    for _ in range(4):
        model.train()(INPUTS.x, INPUTS).sum().backward()
        reached.append(bool(model.late_out.weight.grad.abs().sum() > 0))
        model.zero_grad()
    assert reached == [False, False, True, True]


def test_nagphormer() -> None:
    model = random(NAGphormer(FEATURES, CLASSES, layers=2, hidden=8, hops=2, heads=2, positions=3))
    both = np.concatenate([X, eigenvectors(GRAPH, 3)], 1)
    weight = np.concatenate([n(model.embed.weight), n(model.place.weight)], 1)
    power = [np.linalg.matrix_power(normalized(LOOPS), k) @ both for k in range(3)]
    tokens = np.stack(power, 1) @ weight.T + n(model.embed.bias)
    out = []
    for t in tokens:
        for layer in model.layers:
            y = layer_norm(t, layer.first)
            seen = attention(linear(y, layer.query), linear(y, layer.key), linear(y, layer.value), 2)
            t = t + linear(seen, layer.out)
            t = t + linear(gelu(linear(layer_norm(t, layer.second), layer.wide)), layer.narrow)
        t = layer_norm(t, model.norm)
        score = np.array([linear(np.concatenate([t[0], other]), model.weigh)[0] for other in t[1:]])
        out.append(t[0] + softmax(score) @ t[1:])
    wanted = linear(relu(linear(np.array(out), model.shrink)), model.head)
    assert_allclose(n(model(INPUTS.x, INPUTS)), wanted, rtol=1e-9)


def test_eigenvectors_of_a_large_graph_are_those_of_the_laplacian() -> None:
    ring = np.arange(600)
    spokes = np.random.default_rng(0).integers(0, 600, (2, 900))
    graph = Graph(x=np.ones((600, 1)), edge_index=np.concatenate([[ring, (ring + 1) % 600], spokes], 1))
    dense = np.zeros((600, 600))
    dense[tuple(np.asarray(graph.edge_index))] = 1
    dense = np.maximum(dense, dense.T) * (1 - np.eye(600))
    laplacian, found = np.eye(600) - normalized(dense), eigenvectors(graph, 4)
    values = np.linalg.eigvalsh(laplacian)[1:5]
    assert_allclose(laplacian @ found, found * values, atol=1e-3)
    assert_allclose(found.T @ found, np.eye(4), atol=1e-6)


def local_layer(h: np.ndarray, layer: Any) -> np.ndarray:
    if layer.kind == "gat":
        return gat_layer(h, layer.map) + n(layer.bias)
    if layer.kind == "sage":
        return LOOPS / LOOPS.sum(1, keepdims=True) @ h @ n(layer.map.weight).T + linear(h, layer.own) + n(layer.bias)
    return normalized(LOOPS) @ h @ n(layer.map.weight).T + n(layer.bias)


def gps_layer(h: np.ndarray, layer: Any, seen: np.ndarray) -> np.ndarray:
    h = batch_norm(h + local_layer(h, layer.local), layer.norms[0]) + batch_norm(h + seen, layer.norms[1])
    return batch_norm(h + linear(relu(linear(h, layer.wide)), layer.narrow), layer.norms[2])


@pytest.mark.parametrize("local", ["gcn", "sage", "gat"])
def test_graphgps(local: str) -> None:
    model = random(GraphGPS(FEATURES, CLASSES, layers=2, hidden=8, heads=2, local=local))
    h = linear(X, model.embed)
    for layer in model.layers:
        own = layer.attention
        seen = attention(linear(h, own.query), linear(h, own.key), linear(h, own.value), 2)
        h = gps_layer(h, layer, linear(seen, own.out))
    assert_allclose(n(model(INPUTS.x, INPUTS)), linear(h, model.head), rtol=1e-9)


def test_exphormer() -> None:
    model = random(Exphormer(FEATURES, CLASSES, layers=2, hidden=8, heads=2, permutations=2))
    far = n(expander(model.keys, NODES))
    h = linear(X, model.embed)
    for layer in model.layers:
        own = layer.attention
        q, k, v = (linear(h, each) for each in (own.query, own.key, own.value))
        seen = np.zeros_like(h)
        for head, s in enumerate(per_head(2, 4)):
            graph_kind, expander_kind = n(own.kinds)[:, head]
            for i in range(NODES):
                looks = [(j, graph_kind) for j in np.flatnonzero(A[i])] + [(j, expander_kind) for j in far[i]]
                weight = [np.exp(np.clip((q[i, s] * kind * k[j, s]).sum() / 2, -5, 5)) for j, kind in looks]
                seen[i, s] = sum(w * v[j, s] for w, (j, _) in zip(weight, looks, strict=True)) / (sum(weight) + 1e-6)
        h = gps_layer(h, layer, seen)
    assert_allclose(n(model(INPUTS.x, INPUTS)), linear(h, model.head), rtol=1e-9)


def test_an_expander_is_regular_symmetric_and_connected() -> None:
    torch.manual_seed(0)
    far = n(expander(torch.randint(2**31 - 1, (3, 2), dtype=torch.int32), 200))
    matrix = np.zeros((200, 200))
    np.add.at(matrix, (np.repeat(np.arange(200), 6), far.ravel()), 1)
    assert (matrix == matrix.T).all()
    assert (matrix.sum(1) == 6).all()
    assert np.linalg.eigvalsh(matrix)[-2] < 5.2  # 2√5 = 4.47 is the best there is, 6 is not connected


def test_goat() -> None:
    model = random(GOAT(FEATURES, CLASSES, layers=2, hidden=4, heads=2, centroids=5))
    for layer in model.layers:
        layer.codebook.count.copy_(torch.tensor([3.0, 0.0, 1.0, 2.0, 4.0]))
    first, norm, _, _, last = model.embed
    h = linear(relu(batch_norm(linear(X, first), norm)), last)
    for layer in model.layers:
        near = attention(linear(h, layer.query), linear(h, layer.key), linear(h, layer.value), 2, LOOPS)
        book = layer.codebook
        seen = n(book.code) * np.sqrt(n(book.norm.running_var) + 1e-5) + n(book.norm.running_mean)
        q, k, v = (
            linear(linear(h, layer.project), layer.far_query),
            linear(seen, layer.far_key),
            linear(seen, layer.far_value),
        )
        far = attention(q, k, v, 2, n(book.count)[None])  # e^(score + log n) = n e^score
        h = relu(batch_norm(linear(np.concatenate([near, far], 1), layer.mix), layer.norms[0]))
        h = relu(batch_norm(linear(h, layer.out), layer.norms[1]))
    assert_allclose(n(model(INPUTS.x, INPUTS)), linear(h, model.head), rtol=1e-9)


def test_a_codebook_follows_by_moving_averages() -> None:
    torch.manual_seed(2)
    book = Codebook(3, FEATURES).double().train()
    code, total, mass = n(book.code).copy(), n(book.total).copy(), np.zeros(3)
    scaled = (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-5)
    for _ in range(2):
        nearest = np.array([((row - code) ** 2).sum(1).argmin() for row in scaled])
        for c in range(3):
            mass[c] = 0.99 * mass[c] + 0.01 * (nearest == c).sum()
            total[c] = 0.99 * total[c] + 0.01 * scaled[nearest == c].sum(0)
        mass = (mass + 1e-5) / (mass.sum() + 3e-5) * mass.sum()
        code = total / mass[:, None]
        book.follow(torch.from_numpy(X))
        assert_allclose(n(book.code), code, rtol=1e-9)
        assert_allclose(n(book.count), np.bincount(nearest, minlength=3))


@pytest.mark.parametrize("training", [False, True])
def test_nodeformer(training: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random(NodeFormer(FEATURES, CLASSES, hidden=4, heads=2, random_features=5, draws=3, edge_loss=0.7)).train(
        training
    )
    rows = np.random.default_rng(5).normal(size=(5, 4))
    noise = np.random.default_rng(6).uniform(size=(NODES, 2, 3))
    monkeypatch.setattr(nodeformer, "random_rows", lambda *_: torch.from_numpy(rows))
    monkeypatch.setattr(torch, "rand", lambda *_, **__: torch.from_numpy(noise))
    gumbel = -np.log(-np.log(noise)) if training else np.zeros((NODES, 2, 1))
    orders = [normalized(LOOPS), normalized((LOOPS @ LOOPS > 0).astype(float))]
    z, losses = linear(X, model.embed), []
    z = layer_norm(z, model.norms[0])
    z = np.where(z > 0, z, np.exp(z) - 1)
    for layer in range(2):
        q, k, v = (linear(z, each[layer]) for each in (model.query, model.key, model.value))
        seen, logs = [], []
        for head, s in enumerate(per_head(2, 4)):
            fq, fk = (_random_features(each[:, s] / np.sqrt(0.25), rows) for each in (q, k))
            # What is taken off before exponents for stability, and 1e-6 added, as the repository has it.
            fq = fq(np.max((q[:, s] / 0.5 / 4**0.25) @ rows.T, 1, keepdims=True))
            fk = fk(_peak(k, rows, head))
            weight = fq @ fk.T
            draws = [weight * np.exp(gumbel[:, head, d] / 0.25) for d in range(gumbel.shape[2])]
            mixed = np.mean([w / w.sum(1, keepdims=True) @ v[:, s] for w in draws], 0)
            for order, matrix in enumerate(orders):
                mixed = mixed + sigmoid(n(model.bias)[layer, order, head]) * matrix @ v[:, s]
            seen.append(mixed)
            logs.append(np.log(weight / weight.sum(1, keepdims=True)) / LOOPS.sum(1)[:, None])
        losses.append(np.mean([each[LOOPS > 0] for each in logs]))
        z = layer_norm(linear(np.concatenate(seen, 1), model.out[layer]) + z, model.norms[layer + 1])
    given = model(INPUTS.x, INPUTS)
    scores, loss = given if training else (given, None)
    assert_allclose(n(scores), linear(z, model.head), rtol=1e-8)
    if training:
        assert_allclose(n(loss), -0.7 * np.mean(losses), rtol=1e-8)


def _random_features(x: np.ndarray, rows: np.ndarray) -> Any:
    x = x / x.shape[1] ** 0.25
    return lambda peak: (np.exp(x @ rows.T - (x**2).sum(1, keepdims=True) / 2 - peak) + 1e-6) / np.sqrt(len(rows))


def _peak(k: np.ndarray, rows: np.ndarray, head: int) -> float:
    return ((k[:, head * 4 : head * 4 + 4] / 0.5 / 4**0.25) @ rows.T).max()


def test_random_features_estimate_the_exponential_of_products() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(2, 1, 1, 4, dtype=torch.float64) * 0.7
    products = []
    for _ in range(4000):
        rows = nodeformer.random_rows(8, 4, x)
        # What is taken off before exponents is given back.
        scale = [torch.exp((each / 4**0.25 @ rows.t()).amax()) for each in (x, y)]
        fx, fy = (nodeformer._features(each, rows, (2,)) for each in (x, y))
        products.append(float((fx * fy).sum() * scale[0] * scale[1]))
    wanted = float(torch.exp((x * y).sum() / 2))
    assert abs(np.mean(products) - wanted) < 4 * np.std(products) / np.sqrt(4000)


@pytest.mark.parametrize("normalisation", ["row", "symmetric"])
@pytest.mark.parametrize("training", [False, True])
def test_ogformer(normalisation: str, training: bool) -> None:
    model = random(OGFormer(FEATURES, CLASSES, hidden=5, normalisation=normalisation, divergence=0.3, homophily=0.2))
    h, relation, losses, known = X, A, 0.0, []
    for layer, alpha in enumerate((0.8, 0.9)):
        s = sigmoid(linear(h, model.query[layer]))
        z = (s - s.mean(1, keepdims=True)) / (s.std(1, ddof=1, keepdims=True) + 1e-8)
        square = (z @ z.T) ** 2
        relation = square / square.sum(1, keepdims=True) + alpha * relation
        degree = relation.sum(1)
        by_row = relation / degree[:, None]
        used = by_row if normalisation == "row" else relation / np.sqrt(degree[:, None] * degree)
        out = used @ h @ n(model.map[layer].weight).T + n(model.map[layer].bias)
        h = (out if layer else relu(out)) + s
        known.append((s, by_row))
    scores = h[:, :CLASSES]
    y = np.where(np.arange(NODES) < 5, Y, scores.argmax(1))
    for s, by_row in known:
        p = s / ((s**4).sum(1, keepdims=True)) ** 0.25
        divergence = (p * np.log(p)).sum(1, keepdims=True) - p @ np.log(p).T
        same = (by_row * (y[:, None] == y)).sum(1)
        losses += 0.3 * (divergence * by_row).sum() + 0.2 * np.linalg.norm(1 - same)
    given = model.train(training)(INPUTS.x, INPUTS, RUN)
    assert_allclose(n(given[0] if training else given), scores, rtol=1e-9)
    if training:
        assert_allclose(n(given[1]), losses, rtol=1e-6)


@pytest.mark.parametrize("training", [False, True])
def test_m3dphormer(training: bool) -> None:
    model = random(M3Dphormer(FEATURES, CLASSES, 2, 8, 0.0, 2, clusters=3, attention_dropout=0.0, class_loss=0.5))
    member = np.eye(3)[metis(GRAPH.adjacency, 3)]  # [N, 3]
    labels = np.eye(CLASSES)[Y] * (np.arange(NODES) < 5)[:, None]
    h = linear(np.concatenate([X, (member / member.sum(0)).T @ X, (labels / labels.sum(0)).T @ X]), model.embed)
    total = h = h + relu(h)
    mask = np.block([[np.eye(NODES), member], [member.T, np.eye(3)]])
    for layer in model.layers:
        y = h / np.sqrt((h**2).mean(1, keepdims=True) + 1e-6) * n(layer.scale) + n(layer.shift)
        nodes, classes = y[:NODES], y[NODES + 3 :]
        target, source = n(layer.ends)
        local = gat(linear(nodes, layer.score), source, target, linear(nodes, layer.near), A)
        cluster = attention(*(linear(y[: NODES + 3], each) for each in layer.to_cluster), 2, mask)
        q, k, v = layer.to_class
        down = attention(linear(nodes, q), linear(classes, k), linear(classes, v), 2)
        up = attention(linear(classes, q), linear(nodes, k), linear(nodes, v), 2, labels.T)
        b1, b2 = (sigmoid(nodes @ g)[:, None] for g in n(layer.gates))
        mixed = b1 * local + (1 - b1) * (b2 * cluster[:NODES] + (1 - b2) * down)
        h = relu(np.concatenate([mixed, cluster[NODES:], up])) + linear(h, layer.residual)
        total = total + h
    scores = linear(total, model.head)
    given = model.train(training)(INPUTS.x, INPUTS, RUN)
    assert_allclose(n(given[0] if training else given), scores[:NODES], rtol=1e-8)
    if training:  # three classes beside five training nodes, each of them one example
        own = np.log(softmax(scores[NODES + 3 :]).diagonal())
        assert_allclose(n(given[1]), -0.5 * own.sum() / 5, rtol=1e-8)


def test_a_class_without_training_nodes_does_no_harm() -> None:
    model = random(M3Dphormer(FEATURES, CLASSES, 2, 8, 0.0, 2, clusters=3))
    scores, loss = model.train()(
        INPUTS.x, INPUTS, Run.of(torch.from_numpy(Y), CLASSES, torch.arange(NODES) < 1, RUN.epoch, INPUTS.x)
    )
    assert scores.isfinite().all()
    assert loss.isfinite()


def test_bunn() -> None:
    model = random(BuNN(FEATURES, CLASSES, layers=2, hidden=12, bundles=2, dimension=3, rounds=2))

    def feed_forward(x: np.ndarray, part: Any) -> np.ndarray:
        return linear(gelu(linear(x, part[0])), part[3])

    x = gelu(linear(X, model.embed))
    degree, diffusion = A.sum(1, keepdims=True), normalized(A)
    mean = A / np.where(degree == 0, 1, degree)
    for k in range(2):
        s = gelu(linear(x, model.enter))
        for part in model.rounds:
            s = s + feed_forward(np.concatenate([s, mean @ s], 1), part)
        blocks = feed_forward(linear(s, model.leave), model.frames[k]).reshape(NODES, 2, 3, 3)
        turn = np.zeros((NODES, 6, 6))
        for i in range(NODES):
            for b in range(2):
                block = np.eye(3)
                for c in range(3):
                    vector = np.tril(blocks[i, b], -1)[:, c] + np.eye(3)[c]
                    block = block @ (np.eye(3) - 2 * np.outer(vector, vector) / (vector @ vector))
                turn[i, 3 * b : 3 * b + 3, 3 * b : 3 * b + 3] = block
        y = layer_norm(x, model.norms[k])
        # A node's 12 numbers are 2 blocks of 3 vectors' coordinates, 2 vectors each.
        turned = np.einsum("iab,ibc->iac", turn, y.reshape(NODES, 6, 2)).reshape(NODES, 12)
        share = softmax(n(model.times[k]))
        spread = sum(
            w * np.linalg.matrix_power(diffusion, t) @ turned for w, t in zip(share, (1, 2, 5, 20), strict=True)
        )
        h = feed_forward(np.concatenate([y, spread], 1), model.mixes[k])
        x = x + np.einsum("iba,ibc->iac", turn, h.reshape(NODES, 6, 2)).reshape(NODES, 12)
    assert_allclose(n(model(INPUTS.x, INPUTS)), linear(layer_norm(x, model.norm), model.head), rtol=1e-8)


@pytest.mark.parametrize("model", SMALL)
def test_it_learns(model: str) -> None:
    dropout = {"dropout": 0.2} if "dropout" in model_info(model).settings else {}
    wanted = Trial(model=model, epochs=40, lr=0.02, weight_decay=5e-4, **SMALL[model], **dropout)
    (record,) = train(load_dataset("digits"), [wanted], device="cpu", progress=False)
    assert (record.status, record.way) == ("ok", "vmap")
    assert record.test > 0.7
