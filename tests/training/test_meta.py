"""Meta-learned λ: its gradient against finite differences, a whole epoch against PyG with double backward, and its contracts."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode

from sharpen import Graph, InputError, Split, Trial, to_frame, train
from sharpen.datasets import Dataset, Splits
from sharpen.kernels import backend
from sharpen.models.inputs import Inputs
from sharpen.training import trials as trials_module
from sharpen.training.decision import decide
from sharpen.training.meta import WARM_UP, MetaPopulation
from tests.models.test_parity import CLASSES, FEATURES, HIDDEN, NODES, Reference, message_edges

CPU = torch.device("cpu")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here"))]
MODELS = ["mlp", "gcn", "sage", "gat"]
NORMS = ["none", "layer", "batch"]


def make_graph(nodes: int, features: int, classes: int) -> Graph:
    rng = np.random.default_rng(7)
    y = np.arange(nodes) % classes
    edges = rng.integers(nodes, size=(2, 3 * nodes))
    return Graph(x=rng.normal(size=(nodes, features)) + y[:, None], edge_index=edges, y=y, name="small")


def population_of(graph, trials, splits, device=CPU, dtype=torch.float64) -> MetaPopulation:
    dataset = Dataset("small", graph, splits=Splits(splits, graph.y))
    resolved = [trials_module.resolve(trial, dataset) for trial in trials]
    blueprint = trials_module.blueprint_of(graph.num_features, graph.num_classes, resolved[0])
    way = decide(blueprint, Inputs(graph, device, dtype))
    where = [dataset.splits[str(trial.split)] for trial in resolved]
    return MetaPopulation(way, "accuracy", resolved, where)


# The gradient of the meta network, against finite differences of what it is the gradient of.


TEN = make_graph(10, 4, 3)
TEN_SPLITS = [
    Split("a", train=[0, 1, 2, 3, 4], val=[5, 6], test=[7, 8]),
    Split("b", train=[9, 8, 7, 6, 5, 4], val=[0, 2], test=[1]),
]


def sets(population, r) -> dict[str, Tensor]:
    """The node sets of one member at this epoch, from its split and what it holds out."""
    train, meta = population.masks["train"][r], population._meta_set()[r]
    return {
        "meta": meta,
        "labeled": train & ~meta,
        "unlabeled": ~train | meta,
        "val": population.masks["val"][r],
        "test": population.masks["test"][r],
    }


def gini(p: Tensor) -> Tensor:
    return 1 - (p * p).sum(-1)


def tsallis(p: Tensor, q: float) -> Tensor:
    return -(p * p.log()).sum(-1) if q == 1 else (1 - (p**q).sum(-1)) / (q - 1)


def features_of(logits: Tensor, y: Tensor, nodes: dict[str, Tensor], epoch: int, epochs: int) -> Tensor:
    """The protocol's seven inputs, read off one member's logits."""
    p = logits.detach().softmax(-1)
    return torch.stack(
        [
            torch.tensor(epoch / epochs, dtype=p.dtype),
            F.cross_entropy(logits.detach()[nodes["labeled"]], y[nodes["labeled"]]),
            gini(p[nodes["labeled"]]).mean(),
            gini(p[nodes["val"]]).mean(),
            gini(p[nodes["test"]]).mean(),
            gini(p[nodes["unlabeled"]]).mean(),
            gini(p[nodes["unlabeled"]].mean(0)),
        ]
    )


def meta_loss(population: MetaPopulation, weights: list[Tensor]) -> Tensor:
    """Every member's cross-entropy on its meta set after one step with the λ that these weights give; all by plain autograd."""
    network, inputs, y = population.way.network, population.inputs, population.y

    def forward(parameters, dropout):
        statistics = {name: s.clone() for name, s in population.statistics.items()}
        return network.logits(parameters, statistics, network.project(parameters, inputs), inputs, True, dropout)

    parameters = {name: p.detach().clone().requires_grad_() for name, p in population.parameters.items()}
    logits = forward(parameters, population._moment().dropout)
    total = torch.zeros((), dtype=torch.float64)
    for r, trial in enumerate(population.trials):
        nodes = sets(population, r)
        x = features_of(logits[r], y, nodes, int(population.epoch_number), population.epochs)
        for k in (0, 2, 4):
            x = x @ weights[k][r] + weights[k + 1][r]
            x = x.relu() if k < 4 else x
        lam = trial.lam_max * x.sigmoid().squeeze()
        p = logits[r].softmax(-1)
        sharpened = (
            nodes["unlabeled"] & (nodes["meta"] | ~nodes["val"]) if not trial.sharpen_val else nodes["unlabeled"]
        )
        uncertainty = tsallis(p[sharpened], trial.q).sum() / nodes["unlabeled"].sum()
        loss = F.cross_entropy(logits[r][nodes["labeled"]], y[nodes["labeled"]])
        loss = loss + lam * (uncertainty - tsallis(p[nodes["labeled"]], trial.q).mean())
        total = total + loss - trial.balance * tsallis(p[sharpened].mean(0), trial.q)
    gradients = torch.autograd.grad(total, list(parameters.values()), materialize_grads=True)
    lr = torch.tensor([trial.lr for trial in population.trials], dtype=torch.float64)
    stepped = {
        name: p - lr.view(-1, *[1] * (p.dim() - 1)) * g
        for (name, p), g in zip(parameters.items(), gradients, strict=True)
    }
    ahead = forward(stepped, population._moment(first=512).dropout)
    members = range(population.members)
    metas = [sets(population, r)["meta"] for r in members]
    return torch.stack([F.cross_entropy(ahead[r][metas[r]], y[metas[r]]) for r in members]).detach()


CASES = [(model, norm, {}) for model in MODELS for norm in NORMS] + [
    ("gcn", "none", {"q": 1.0}),
    ("gcn", "layer", {"balance": 0.3}),
    ("sage", "none", {"q": 3.0, "sharpen_val": False}),
    ("gat", "batch", {"input_linear": True}),
]


@pytest.mark.parametrize(("model", "norm", "more"), CASES)
def test_the_meta_gradient_is_that_of_finite_differences(model, norm, more, monkeypatch):
    options = {"layers": 2, "hidden": 4, "dropout": 0.4, "residual": norm != "none", "weight_decay": 0.01, "epochs": 50}
    trials = [
        Trial(model=model, norm=norm, split="a", lam_max=1.0, lr=0.5, seed=1, **options | more),
        Trial(model=model, norm=norm, split="b", lam_max=3.0, lr=0.2, seed=2, **options | more),
    ]
    population = population_of(TEN, trials, TEN_SPLITS)
    population.trials = trials
    population.epoch_number.fill_(WARM_UP + 3)
    weights = [p.detach().clone() for p in population.learner.parameters.values()]
    expected, steps = [], 1e-5  # small: a ReLU may have its kink nearby
    generator = torch.Generator().manual_seed(0)
    directions = [torch.randn(w.shape, generator=generator, dtype=w.dtype) for w in weights]
    for k, direction in enumerate(directions):
        up, down = (
            meta_loss(population, [w + sign * steps * direction if i == k else w for i, w in enumerate(weights)])
            for sign in (1, -1)
        )
        expected.append((up - down) / (2 * steps))

    found = []
    monkeypatch.setattr(population.learner.adam, "step", found.extend)
    population.epoch()
    actual = [(g * d).flatten(1).sum(1) for g, d in zip(found, directions, strict=True)]
    assert all(e.abs().max() > 1e-6 for e in expected)
    torch.testing.assert_close(torch.stack(actual), torch.stack(expected), rtol=1e-4, atol=1e-9)


# A whole epoch, against PyG's layers, double backward and torch's own Adam.


def reference_epoch(model, meta, optimisers, edges, x, y, nodes, epoch, trial) -> float:
    """One epoch as a plain PyTorch script would write it; gives the λ of the real step."""

    def objective(logits, lam):
        p = logits.softmax(-1)
        sharpening = gini(p[nodes["unlabeled"]]).mean() - gini(p[nodes["labeled"]]).mean()
        return F.cross_entropy(logits[nodes["labeled"]], y[nodes["labeled"]]) + lam * sharpening

    def buffers():
        return {name: b.clone() for name, b in model.named_buffers()}

    lam = torch.zeros((), dtype=torch.float64)
    if epoch >= 20:
        parameters = dict(model.named_parameters())
        logits = functional_call(model, parameters | buffers(), (x, edges))
        known = features_of(logits, y, nodes, epoch, trial.epochs)
        loss = objective(logits, trial.lam_max * meta(known).sigmoid().squeeze())
        gradients = torch.autograd.grad(loss, list(parameters.values()), create_graph=True)
        stepped = {name: p - trial.lr * g for (name, p), g in zip(parameters.items(), gradients, strict=True)}
        ahead = functional_call(model, stepped | buffers(), (x, edges))
        optimisers[1].zero_grad()
        F.cross_entropy(ahead[nodes["meta"]], y[nodes["meta"]]).backward()
        optimisers[1].step()
        lam = trial.lam_max * meta(known).sigmoid().squeeze().detach()
    optimisers[0].zero_grad()
    objective(model(x, edges), lam).backward()
    optimisers[0].step()
    return float(lam)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("model", MODELS)
def test_an_epoch_is_that_of_pyg_with_double_backward(model, norm):
    graph = make_graph(NODES, FEATURES, CLASSES)
    residual = norm != "none"
    # A bias before a batch norm has a gradient of 0; autograd's is rounding noise, which weight decay would make grow.
    decay = 0.0 if norm == "batch" else 0.01
    trial = Trial(
        model=model, norm=norm, residual=residual, layers=2, hidden=HIDDEN, dropout=0.0, lr=0.05, weight_decay=decay,
        epochs=40, lam_max=2.0, seed=3, split="s",
    )  # fmt: skip
    population = population_of(graph, [trial], [Split("s", train=[0, 1, 2, 3, 5], val=[4], test=[6, 7])])
    reference = Reference(model, 2, norm, residual, False).double()
    meta = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)).double()
    with torch.no_grad():
        for name, (theirs, transposed) in reference.named().items():
            ours = population.parameters[name][0]
            theirs.copy_(ours.t() if transposed else ours.reshape(theirs.shape))
        for theirs, ours in zip(meta.parameters(), population.learner.parameters.values(), strict=True):
            theirs.copy_(ours[0].t() if ours.dim() == 3 else ours[0])
    optimisers = (
        torch.optim.Adam(reference.parameters(), lr=0.05, weight_decay=decay),
        torch.optim.Adam(meta.parameters(), lr=0.001),
    )
    x, y, edges = graph.x.double(), graph.y, message_edges(graph)
    first = 18  # two epochs of the warm-up, then four with all that belongs to the method
    population.epoch_number.fill_(first)
    for epoch in range(first, 24):
        lam = reference_epoch(reference, meta, optimisers, edges, x, y, sets(population, 0), epoch, trial)
        population.epoch()
        assert population.traces[4, epoch, 0].item() == pytest.approx(lam, abs=1e-7)
    assert lam > 0
    for name, (theirs, transposed) in reference.named().items():
        expected = theirs.detach().t() if transposed else theirs.detach()
        actual = population.parameters[name][0].detach()
        torch.testing.assert_close(
            actual, expected.reshape(actual.shape), rtol=1e-7, atol=1e-8, msg=lambda m, n=name: f"{n}: {m}"
        )
    for theirs, ours in zip(meta.parameters(), population.learner.parameters.values(), strict=True):
        expected = theirs.detach().t() if ours.dim() == 3 else theirs.detach()
        torch.testing.assert_close(ours[0].detach(), expected, rtol=1e-7, atol=1e-9)
    for name, statistic in population.statistics.items():
        _, layer, _, kind = name.split(".")
        theirs = getattr(reference.norms[int(layer)], kind)
        torch.testing.assert_close(statistic[0], theirs, rtol=1e-7, atol=1e-8)


# What is held out.


MANY = make_graph(60, 5, 3)
MANY_SPLITS = [
    Split("p", train=range(0, 40), val=range(40, 50), test=range(50, 60)),
    Split("r", train=range(35, 59), val=range(0, 9), test=range(9, 35)),
]
SMALL = {"layers": 2, "hidden": 8, "dropout": 0.5, "epochs": WARM_UP + 6, "lr": 0.02, "weight_decay": 5e-4}


def drawn(seeds, epochs):
    """The meta sets of members on split p, [epochs, R, N]."""
    population = population_of(MANY, [Trial(split="p", lam_max=1.0, seed=s, **SMALL) for s in seeds], MANY_SPLITS)
    masks = []
    for epoch in epochs:
        population.epoch_number.fill_(epoch)
        masks.append(population._meta_set())
    return torch.stack(masks)


def test_a_tenth_of_the_training_nodes_is_held_out_each_epoch_anew():
    masks = drawn([0, 1], range(WARM_UP, WARM_UP + 500))
    assert (masks.sum(2) == 4).all()
    assert not masks[..., 40:].any()
    assert len({m.numpy().tobytes() for m in masks.flatten(0, 1)}) > 950  # of 1000, 91390 being possible
    # Each node's share of 1000 draws of 4 among 40 is binomial around 100, with a deviation below 10.
    held = masks.sum((0, 1))[:40]
    assert (held - 100).abs().max() < 45
    assert not drawn([0], range(WARM_UP)).any()


def test_what_is_held_out_is_a_function_of_seed_and_epoch():
    torch.testing.assert_close(drawn([5, 6, 7], [25, 30])[:, 1], drawn([6], [25, 30])[:, 0])


def test_few_training_nodes_give_one():
    population = population_of(TEN, [Trial(split="a", lam_max=1.0, **SMALL)], TEN_SPLITS)
    population.epoch_number.fill_(WARM_UP)
    assert population._meta_set().sum() == 1


def test_one_training_node_is_too_few():
    split = Split("one", train=[0], val=[1, 2], test=[3, 4])
    assert train(TEN, [Trial(**SMALL)], splits=[split], device="cpu")[0].status == "ok"
    with pytest.raises(InputError, match="'one' has one train node"):
        train(TEN, [Trial(lam_max=1.0, **SMALL)], splits=[split], device="cpu")


# The contracts of training, for learned λ.


def run(trials, device="cpu", precision="float64"):
    return train(MANY, trials, splits=MANY_SPLITS, device=device, precision=precision)


def assert_same_run(a, b, rtol=1e-6, atol=1e-9):
    assert a.trial == b.trial
    assert (a.status, a.best_epoch) == (b.status, b.best_epoch)
    assert a.traces.keys() == b.traces.keys()
    for name, trace in a.traces.items():
        np.testing.assert_allclose(trace, b.traces[name], rtol=rtol, atol=atol, err_msg=name)
    np.testing.assert_allclose(a.logits, b.logits, rtol=rtol, atol=max(atol, 1e-8))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("model", "norm"), [("gcn", "none"), ("sage", "layer"), ("gat", "batch"), ("mlp", "none")])
def test_a_trial_is_the_same_alone_and_beside_a_diverging_one(model, norm, device):
    shared = SMALL | {"model": model, "norm": norm}
    sane = [
        Trial(split="p", lam_max=1.0, seed=1, **shared),
        Trial(split="r", lam_max=2.0, seed=2, **shared | {"dropout": 0.0}),
        Trial(split="p", lam_max=0.5, q=1.0, balance=0.2, seed=3, **shared | {"lr": 0.1}),
    ]
    wild = Trial(split="r", lam_max=1.0, seed=4, **shared | {"lr": 1e300})
    together = run([sane[0], wild, *sane[1:]], device)
    assert together[1].status == "diverged"
    for trial, record in zip(sane, [together[0], *together[2:]], strict=True):
        assert record.status == "ok"
        assert_same_run(run([trial], device)[0], record)


@pytest.mark.parametrize("device", DEVICES)
def test_the_same_population_gives_the_same_bits(device):
    trials = [Trial(model=model, split="p", lam_max=1.0, seed=s, **SMALL) for model in ("gcn", "gat") for s in (1, 2)]
    for a, b in zip(run(trials, device, "float32"), run(trials, device, "float32"), strict=True):
        assert a.logits.tobytes() == b.logits.tobytes()
        for name in a.traces:
            assert a.traces[name].tobytes() == b.traces[name].tobytes()


def test_plain_training_until_it_is_active_and_a_moving_lam_within_bounds_after():
    learned = Trial(model="gcn", split="p", lam_max=0.7, seed=1, **SMALL)
    plain = dataclasses.replace(learned, lam_max=None)
    a, b = run([learned, plain])
    lam = a.traces["lam"]
    assert (lam[:WARM_UP] == 0).all()
    assert ((lam[WARM_UP:] > 0) & (lam[WARM_UP:] < 0.7)).all()
    assert len({*lam[WARM_UP:].tolist()}) == len(lam) - WARM_UP
    assert "lam" not in b.traces
    for name, trace in b.traces.items():
        np.testing.assert_allclose(a.traces[name][:WARM_UP], trace[:WARM_UP], rtol=1e-6, err_msg=name)
    total = a.traces["cross_entropy"] + lam * (a.traces["entropy_unlabeled"] - a.traces["entropy_labeled"])
    np.testing.assert_allclose(a.traces["loss"], total, rtol=1e-5)
    assert not np.allclose(a.traces["loss"][WARM_UP:], b.traces["loss"][WARM_UP:], rtol=1e-3)


def test_a_run_shorter_than_the_warm_up_is_plain_training():
    record = run([Trial(model="gcn", split="p", lam_max=1.0, **SMALL | {"epochs": 3})])[0]
    assert record.traces["lam"].tolist() == [0, 0, 0]


def test_learned_and_fixed_lam_in_one_call_keep_their_order():
    trials = [Trial(split="p", seed=s, lam_max=m, **SMALL | {"epochs": 2}) for s in (0, 1) for m in (1.0, None, 2.0)]
    frame = to_frame(run(trials))
    assert frame["seed"].tolist() == [0, 0, 0, 1, 1, 1]
    assert [None if math.isnan(v) else v for v in frame["lam_max"]] == [1.0, None, 2.0] * 2
    assert (frame["lam"] == 0).all()


class HostReads(TorchDispatchMode):
    """Names the operations that wait for the device to give a number or a shape to the host."""

    READS = (
        "_local_scalar_dense",
        "nonzero",
        "masked_select",
        "_unique2",
        "unique_dim",
        "bincount",
        "repeat_interleave",
    )

    def __init__(self):
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        masked = name in ("index", "index_put", "index_put_") and any(
            i is not None and i.dtype == torch.bool for i in args[1]
        )
        if name in self.READS or masked:
            self.seen.add(name)
        return func(*args, **kwargs or {})


@pytest.mark.parametrize("model", MODELS)
def test_nothing_crosses_to_the_host_inside_an_epoch(model):
    """Otherwise an epoch could not be captured as a CUDA graph."""
    trials = [Trial(model=model, split="p", lam_max=1.0, seed=s, norm="batch", **SMALL) for s in (0, 1)]
    population = population_of(MANY, trials, MANY_SPLITS)
    population.epoch()  # what is made once may look
    with HostReads() as reads:
        population.epoch()
        assert reads.seen == set()
        torch.ones(2)[torch.ones(2) > 0].sum().item()
    assert {"_local_scalar_dense", "index"} <= reads.seen


@pytest.mark.parametrize(("model", "norm", "layers"), [("gcn", "layer", 2), ("gat", "batch", 1)])
def test_the_fused_kernels_give_the_same_epoch(model, norm, layers, kernel_device, monkeypatch):
    small = {"layers": layers, "hidden": 4, "dropout": 0.4, "lr": 0.02, "weight_decay": 5e-4, "epochs": WARM_UP + 1}
    trials = [Trial(model=model, norm=norm, residual=True, split=s, lam_max=1.0, seed=1, **small) for s in ("a", "b")]

    def epoch(serves, *where):
        monkeypatch.setattr(backend, "fused", lambda x: serves)
        population = population_of(TEN, trials, TEN_SPLITS, *where)
        population.epoch_number.fill_(WARM_UP)
        population.epoch()
        return population

    plain, fused = epoch(False), epoch(True, kernel_device, torch.float32)
    for name, expected in plain.parameters.items():
        actual = fused.parameters[name].detach().cpu().double()
        torch.testing.assert_close(actual, expected.detach(), rtol=0, atol=1e-4, msg=lambda m, n=name: f"{n}: {m}")
    for actual, expected in zip(fused.learner.parameters.values(), plain.learner.parameters.values(), strict=True):
        torch.testing.assert_close(actual.detach().cpu().double(), expected.detach(), rtol=0, atol=1e-5)
    torch.testing.assert_close(fused.traces[:, WARM_UP].cpu(), plain.traces[:, WARM_UP], rtol=1e-4, atol=1e-5)
