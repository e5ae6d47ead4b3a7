"""The promises of training, each with a test that fails when it is broken."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from sharpen import Graph, InputError, Split, Trial, to_frame, train
from sharpen.datasets import Dataset, Splits
from sharpen.kernels import dropout as dropout_kernel
from sharpen.models.inputs import Inputs
from sharpen.training import full_batch
from sharpen.training import population as population_module
from sharpen.training import trials as train_module
from sharpen.training.decision import decide

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here"))]


def make_graph(nodes: int = 30, classes: int = 3) -> Graph:
    """Three loose communities; features that say a little about the class."""
    rng = np.random.default_rng(0)
    y = np.arange(nodes) % classes
    same = y[:, None] == y
    adjacency = rng.random((nodes, nodes)) < np.where(same, 0.3, 0.05)
    x = np.eye(classes)[y] + rng.normal(size=(nodes, classes))
    return Graph(x=x, edge_index=np.stack(adjacency.nonzero()), y=y, name="communities")


GRAPH = make_graph()
SPLITS = [
    Split(f"part-{k}", train=[k, k + 1, k + 2, k + 9], val=[k + 3, k + 4, k + 5, k + 6], test=range(k + 10, k + 20))
    for k in range(3)
]
SMALL = {"layers": 2, "hidden": 8, "dropout": 0.5, "epochs": 15, "lr": 0.01, "weight_decay": 5e-4}


def run(trials, device="cpu", precision="float64", graph=GRAPH):
    return train(graph, trials, splits=SPLITS, device=device, precision=precision)


def assert_same_run(a, b, **tolerance):
    assert a.trial == b.trial
    assert (a.status, a.best_epoch) == (b.status, b.best_epoch)
    for name, trace in a.traces.items():
        np.testing.assert_allclose(trace, b.traces[name], err_msg=name, **(tolerance or {"rtol": 1e-6}))
    np.testing.assert_allclose(a.logits, b.logits, **(tolerance or {"rtol": 1e-8, "atol": 1e-9}))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("model", ["mlp", "gcn", "sage", "gat"])
@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
def test_a_trial_is_the_same_alone_and_in_a_population(model, norm, device):
    variety = [
        Trial(model=model, norm=norm, residual=True, split="part-0", lam=0.25, seed=1, **SMALL),
        Trial(model=model, norm=norm, residual=True, split="part-1", lam=0.0, seed=2, **SMALL | {"dropout": 0.0}),
        Trial(model=model, norm=norm, residual=True, split="part-2", lam=1.0, q=1.0, seed=1, **SMALL | {"lr": 0.1}),
        Trial(model=model, norm=norm, residual=True, split="part-0", lam=0.5, balance=0.3, seed=9, **SMALL),
    ]
    together = run(variety, device)
    for trial, record in zip(variety, together, strict=True):
        assert_same_run(run([trial], device)[0], record)


@pytest.mark.parametrize("device", DEVICES)
def test_the_same_population_gives_the_same_bits(device):
    trials = [Trial(model=model, split=s.name, lam=0.25, seed=3, **SMALL) for model in ("gcn", "gat") for s in SPLITS]
    for a, b in zip(run(trials, device, "float32"), run(trials, device, "float32"), strict=True):
        assert a.traces.keys() == b.traces.keys()
        for name in a.traces:
            assert a.traces[name].tobytes() == b.traces[name].tobytes()
        assert a.logits.tobytes() == b.logits.tobytes()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
@pytest.mark.parametrize("model", ["gcn", "sage", "gat", "mlp"])
def test_a_diverging_member_leaves_the_others_alone(model, norm, device):
    sane = [Trial(model=model, norm=norm, split=s.name, lam=0.25, seed=4, **SMALL) for s in SPLITS]
    wild = Trial(model=model, norm=norm, split="part-0", lam=0.25, seed=4, **SMALL | {"lr": 1e30})
    alone, beside = run(sane, device, "float32"), run([sane[0], wild, *sane[1:]], device, "float32")
    assert beside[1].status == "diverged"
    assert np.isnan([beside[1].val, beside[1].test]).all()
    assert beside[1].best_epoch == -1
    for a, b in zip(alone, [beside[0], *beside[2:]], strict=True):
        assert b.status == "ok"
        assert_same_run(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_a_learning_rate_of_a_million_beside_sane_ones(device):
    sane = [Trial(model="gcn", split=s.name, lam=0.25, seed=4, **SMALL) for s in SPLITS]
    beside = run([Trial(model="gcn", split="part-0", **SMALL | {"lr": 1e6}), *sane], device)
    for a, b in zip(run(sane, device), beside[1:], strict=True):
        assert_same_run(a, b)
    assert beside[0].status == "diverged" or np.isfinite(beside[0].traces["loss"]).all()


def test_weights_and_dropout_depend_on_the_seed_alone():
    """The dataset's split and λ change the gradients, not where a run starts: variants are paired."""
    trials = [Trial(model="gcn", split=s.name, lam=lam, seed=5, **SMALL) for s in SPLITS for lam in (0.0, 0.7)]
    first = [record.traces["entropy_unlabeled"][0] for record in run(trials)]
    pairs = np.reshape(first, (3, 2))
    np.testing.assert_array_equal(pairs[:, 0], pairs[:, 1])
    assert len({*first}) == 3
    other_seed = run([dataclasses.replace(trials[0], seed=6)])[0]
    assert other_seed.traces["entropy_unlabeled"][0] != first[0]


def test_masks_change_from_epoch_to_epoch_and_from_layer_to_layer(monkeypatch):
    seen = []

    def spy(keys, size):
        bits = original(keys, size)
        seen.append(bits.clone())
        return bits

    original = dropout_kernel.random_bits
    monkeypatch.setattr(dropout_kernel, "random_bits", spy)
    run([Trial(model="gcn", split="part-0", **SMALL | {"epochs": 3})])
    assert len(seen) == 6
    assert len({bits.numpy().tobytes() for bits in seen}) == 6


def test_test_labels_choose_nothing():
    """With every test label changed, the training, its traces and the chosen epoch are the same to the last bit."""
    trial = Trial(model="gcn", split="part-0", lam=0.25, seed=1, **SMALL | {"epochs": 60, "lr": 0.05})
    y = GRAPH.y.clone()
    y[SPLITS[0].test] = (y[SPLITS[0].test] + 1) % 3
    changed = Graph(x=GRAPH.x, edge_index=GRAPH.edge_index, y=y, name="communities")
    a, b = run([trial])[0], run([trial], graph=changed)[0]
    assert a.test != b.test
    assert a.best_epoch == b.best_epoch
    assert a.logits.tobytes() == b.logits.tobytes()
    for name in a.traces:
        assert a.traces[name].tobytes() == b.traces[name].tobytes()


def test_test_labels_are_read_after_training_only(monkeypatch):
    masks = []
    original = population_module.Population._score

    def spy(self, logits, mask):
        masks.append(mask)
        return original(self, logits, mask)

    monkeypatch.setattr(population_module.Population, "_score", spy)
    run([Trial(model="gcn", split="part-0", **SMALL)])
    test = torch.zeros(GRAPH.num_nodes, dtype=torch.bool)
    test[SPLITS[0].test] = True
    during, after = masks[: 2 * SMALL["epochs"]], masks[2 * SMALL["epochs"] :]
    assert not any(bool((mask & test).any()) for mask in during)
    # At the chosen epoch, and for what is recorded of the last one: validation, test.
    assert [bool((mask & test).any()) for mask in after] == [True, False, True]


@pytest.mark.parametrize("metric", ["accuracy", "roc-auc"])
def test_scores_are_those_of_the_first_best_validation_epoch(metric):
    from sklearn.metrics import accuracy_score, roc_auc_score

    graph = make_graph(classes=2)
    dataset = Dataset("two", graph, metric, Splits(SPLITS, graph.y))
    for record in train(dataset, [Trial(model="gcn", split=s.name, seed=2, **SMALL) for s in SPLITS], device="cpu"):
        split, best = dataset.splits[record.trial.split], record.best_epoch
        assert best == int(np.argmax(record.traces["val"]))
        assert record.val == pytest.approx(record.traces["val"].max(), abs=1e-6)
        for nodes, score in ((split.val, record.val), (split.test, record.test)):
            y, logits = graph.y[nodes].numpy(), record.logits[nodes]
            if metric == "accuracy":
                expected = accuracy_score(y, logits.argmax(1))
            else:
                expected = roc_auc_score(y, logits[:, 1] - logits[:, 0])
            assert score == pytest.approx(expected)


def test_test_only_sharpening_leaves_validation_nodes_out_and_keeps_the_normaliser():
    trial = Trial(model="gcn", split="part-0", lam=0.5, sharpen_val=False, **SMALL | {"dropout": 0.0, "epochs": 1})
    everywhere = run([dataclasses.replace(trial, sharpen_val=True)])[0]
    without = run([trial])[0]
    assert without.traces["entropy_unlabeled"][0] < everywhere.traces["entropy_unlabeled"][0]
    # Four of 26 unlabeled nodes are gone from the sum, none from the divisor: near 22/26 of the entropy at the start.
    assert without.traces["entropy_unlabeled"][0] == pytest.approx(
        everywhere.traces["entropy_unlabeled"][0] * 22 / 26, rel=0.1
    )


def test_sharpening_sharpens():
    trials = [
        Trial(model="gcn", split="part-0", lam=lam, **SMALL | {"epochs": 100, "dropout": 0.0}) for lam in (0.0, 1.0)
    ]
    plain, sharpened = run(trials)
    assert sharpened.traces["entropy_unlabeled"][-1] < plain.traces["entropy_unlabeled"][-1] - 0.1


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_population_that_does_not_fit_is_split(monkeypatch, size):
    trials = [Trial(model="gcn", split=s.name, seed=k, **SMALL) for s in SPLITS for k in range(2)]
    whole = run(trials)
    monkeypatch.setattr(full_batch, "population_size", lambda *_: size)
    for a, b in zip(whole, run(trials), strict=True):
        assert_same_run(a, b)


def test_running_out_of_memory_halves_the_population(monkeypatch):
    sizes = []
    original = full_batch._train_population

    def limited(way, blueprint, dataset, trials, *rest):
        sizes.append(len(trials))
        if len(trials) > 2:
            raise torch.OutOfMemoryError("no room")
        return original(way, blueprint, dataset, trials, *rest)

    trials = [Trial(model="gcn", split=s.name, seed=k, **SMALL) for s in SPLITS for k in range(2)]
    whole = run(trials)
    monkeypatch.setattr(full_batch, "_train_population", limited)
    for a, b in zip(whole, run(trials), strict=True):
        assert_same_run(a, b)
    assert sizes == [6, 3, 2, 2, 2]
    monkeypatch.setattr(full_batch, "_train_population", lambda *_: (_ for _ in ()).throw(torch.OutOfMemoryError()))
    with pytest.raises(InputError, match="does not fit in memory"):
        run(trials)


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_kept_weights_give_the_kept_logits(norm):
    trials = [Trial(model="sage", norm=norm, split=s.name, seed=k, **SMALL) for k, s in enumerate(SPLITS)]
    for record in train(GRAPH, trials, splits=SPLITS, device="cpu", precision="float64", keep_weights=True):
        network = train_module.blueprint_of(GRAPH.num_features, GRAPH.num_classes, record.trial).network
        inputs = Inputs(GRAPH, torch.device("cpu"), torch.float64)
        weights = {name: torch.from_numpy(weight)[None] for name, weight in record.weights.items()}
        logits = network.logits(weights, weights, network.project(weights, inputs), inputs, training=False)
        np.testing.assert_allclose(logits[0].numpy(), record.logits, rtol=1e-10, atol=1e-12)


def test_records_come_in_the_order_of_the_trials():
    trials = [Trial(model=model, split="part-0", seed=k, **SMALL) for k in range(2) for model in ("gcn", "mlp")]
    frame = to_frame(run(trials))
    assert frame[["model", "seed"]].values.tolist() == [["gcn", 0], ["mlp", 0], ["gcn", 1], ["mlp", 1]]
    assert set(frame["status"]) == {"ok"}
    assert (frame["device"] == "cpu").all()
    assert (frame["precision"] == "float64").all()
    assert (frame["lam_labeled"] == -frame["lam"]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dataset": "cora"}, "dataset 'cora'"),
        ({"split": "part-7"}, "part-7"),
    ],
)
def test_trials_that_do_not_fit_the_data_are_named(change, message):
    with pytest.raises(InputError, match=message):
        run([Trial(**change)])


def test_bad_device_and_precision_are_named():
    for options, message in (
        ({"device": "tpu"}, "choose auto, cpu or cuda"),
        ({"precision": "float8"}, "choose one of"),
        ({"precision": "tf32"}, "use float32"),
    ):
        with pytest.raises(InputError, match=message):
            train(GRAPH, [Trial()], splits=SPLITS, **{"device": "cpu"} | options)


def test_one_class_in_validation_is_named_where_the_metric_needs_two():
    graph = make_graph(classes=2)
    split = Split("uneven", train=[0, 1], val=[2, 4], test=[5, 6])
    with pytest.raises(InputError, match="one class only in val"):
        train(Dataset("two", graph, "roc-auc", Splits([split], graph.y)), [Trial(**SMALL)], device="cpu")


def test_the_weights_of_nodes_are_exact_in_double_precision():
    trial = train_module.resolve(
        Trial(model="gcn", split="part-0", **SMALL), Dataset("c", GRAPH, splits=Splits(SPLITS, GRAPH.y))
    )
    blueprint = train_module.blueprint_of(GRAPH.num_features, GRAPH.num_classes, trial)
    way = decide(blueprint, Inputs(GRAPH, torch.device("cpu"), torch.float64))
    population = population_module.Population(way, "accuracy", [trial], [SPLITS[0]])
    assert population.unlabeled.sum().item() == pytest.approx(1, abs=1e-15)
    assert population.unlabeled.max().item() == 1 / 26


def test_a_split_without_validation_is_named():
    with pytest.raises(InputError, match="no val nodes"):
        train(GRAPH, [Trial()], splits=[Split("bare", train=[0, 1], val=[], test=[2])], device="cpu")
