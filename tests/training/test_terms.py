"""What a call of train may ask of all trials: another metric, the last epoch, weights of classes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

from sharpen import Graph, InputError, Split, Trial, train
from sharpen.datasets import Dataset, Splits

ROOM = {"layers": 2, "hidden": 8, "dropout": 0.0, "epochs": 40, "lr": 0.03, "weight_decay": 0.0}


def uneven_graph() -> Graph:
    """Twenty-four nodes of one class, eight of another, hard to tell apart."""
    rng = np.random.default_rng(0)
    y = np.array([0, 0, 0, 1] * 8)
    x = rng.normal(size=(32, 4)) + 1.5 * y[:, None]
    return Graph(x=x, edge_index=rng.integers(0, 32, size=(2, 40)), y=y, name="uneven")


GRAPH = uneven_graph()
SPLIT = Split("given", train=range(12), val=range(12, 22), test=range(22, 32))
BARE = Split("bare", train=range(12), val=[], test=[])


def run(trials: list[Trial], split: Split = SPLIT, **options: object) -> list:
    return train(GRAPH, trials, splits=[split], device="cpu", precision="float64", **options)


@pytest.mark.parametrize("model", ["mlp", "gcn"])
def test_the_last_epoch_is_that_of_a_run_which_ends_there(model: str) -> None:
    best = run([Trial(model=model, lam=0.5, **ROOM)])[0]
    assert best.best_epoch < 39
    short = run(
        [Trial(model=model, lam=0.5, **ROOM | {"epochs": best.best_epoch + 1})], choose="last", keep_weights=True
    )[0]
    assert short.best_epoch == best.best_epoch
    np.testing.assert_array_equal(short.logits, best.logits)
    assert (short.val, short.test) == (best.val, best.test)
    assert short.weights
    assert run([Trial(model=model, lam=0.5, **ROOM)], choose="last")[0].best_epoch == 39


def test_training_needs_no_held_out_nodes_if_the_last_epoch_is_kept() -> None:
    record = run([Trial(lam=0.25, **ROOM)], BARE, choose="last")[0]
    assert record.status == "ok"
    assert np.isnan([record.val, record.test]).all()
    assert np.isfinite(record.logits).all()
    np.testing.assert_array_equal(record.logits, run([Trial(lam=0.25, **ROOM)], choose="last")[0].logits)
    with pytest.raises(InputError, match=r"no val nodes; .* choose='last'"):
        run([Trial(**ROOM)], BARE)


def test_a_run_that_diverges_says_so_whatever_epoch_is_kept() -> None:
    wild, sane = run(
        [Trial(lr=lr, **{k: v for k, v in ROOM.items() if k != "lr"}) for lr in (1e200, 0.03)], choose="last"
    )
    assert (wild.status, wild.best_epoch, sane.status) == ("diverged", -1, "ok")


def test_the_epoch_is_chosen_by_the_metric_that_is_asked_for() -> None:
    plain = run([Trial(model="mlp", **ROOM)])[0]
    balanced = run([Trial(model="mlp", **ROOM)], metric="balanced-accuracy")[0]
    guess, y = balanced.logits.argmax(1), GRAPH.y.numpy()

    def score(nodes: torch.Tensor) -> float:
        own = y[nodes]
        return float(np.mean([(guess[nodes][own == c] == c).mean() for c in (0, 1)]))

    assert balanced.val == pytest.approx(score(SPLIT.val))
    assert balanced.test == pytest.approx(score(SPLIT.test))
    assert balanced.best_epoch == balanced.traces["val"].argmax()
    assert (balanced.traces["val"] != plain.traces["val"]).any()
    # A dataset has a metric of its own, which may be overruled.
    dataset = Dataset("uneven", GRAPH, "roc-auc", Splits([SPLIT], GRAPH.y))
    again = train(dataset, [Trial(model="mlp", **ROOM)], device="cpu", precision="float64", metric="balanced-accuracy")[
        0
    ]
    assert again.val == balanced.val
    with pytest.raises(InputError, match="metric is 'f1'"):
        run([Trial()], metric="f1")


def test_class_weights_weigh_the_cross_entropy_alone() -> None:
    """From logits of the last epoch, the loss of the next step is known."""
    weight = [0.5, 3.0]
    for trial in (Trial(lam=0.3, **ROOM), Trial(lam=0.3, balance=0.2, **ROOM)):
        before = run([Trial(**vars(trial) | {"epochs": 39})], choose="last", class_weight=weight)[0]
        traces = run([trial], choose="last", class_weight=weight)[0].traces
        z, y = torch.from_numpy(before.logits[:12]), GRAPH.y[:12]
        expected = F.cross_entropy(z, y, weight=torch.tensor(weight, dtype=torch.float64)).item()
        assert traces["cross_entropy"][39] == pytest.approx(expected, rel=1e-5)
        gini = (1 - torch.softmax(z, 1).square().sum(1)).mean().item()
        assert traces["entropy_labeled"][39] == pytest.approx(gini, rel=1e-5)


@pytest.mark.parametrize("model", ["mlp", "gcn"])
def test_shannons_entropy_is_traced_beside_that_of_the_objective(model: str) -> None:
    """From logits of the last epoch, that of the next step is known. What is traced changes nothing else."""
    for more in ({"lam": 0.3}, {"lam_max": 1.0}):
        trial = Trial(model=model, sharpen_val=True, **more, **ROOM)
        before = run([Trial(**vars(trial) | {"epochs": 15})], choose="last")[0]
        record, plain = (run([Trial(**vars(trial) | {"epochs": 16})], shannon=each)[0] for each in (True, False))
        p = torch.softmax(torch.from_numpy(before.logits), 1)
        h = torch.distributions.Categorical(p).entropy()
        assert record.traces["shannon_labeled"][15] == pytest.approx(h[:12].mean().item(), rel=1e-5)
        assert record.traces["shannon_unlabeled"][15] == pytest.approx(h[12:].mean().item(), rel=1e-5)
        assert set(record.traces) - set(plain.traces) == {"shannon_labeled", "shannon_unlabeled"}
        for name, values in plain.traces.items():
            np.testing.assert_array_equal(record.traces[name], values)
        np.testing.assert_array_equal(record.logits, plain.logits)


def test_equal_class_weights_change_nothing_and_unequal_ones_help_their_class() -> None:
    plain, equal, rare = (run([Trial(**ROOM)], choose="last", class_weight=w)[0] for w in (None, [2, 2], [0.2, 5]))
    np.testing.assert_allclose(equal.logits, plain.logits, rtol=1e-9, atol=1e-9)
    assert (rare.logits.argmax(1) == 1).sum() > (plain.logits.argmax(1) == 1).sum()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"choose": "first"}, "choose is 'first'; give 'best'"),
        ({"class_weight": [1.0]}, "one finite number above 0 for each of 2 classes"),
        ({"class_weight": [1.0, 0.0]}, "class_weight is .1.0, 0.0."),
        ({"class_weight": [1.0, float("nan")]}, "class_weight"),
    ],
)
def test_what_cannot_be_asked_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run([Trial()], **options)


def test_a_pyg_graph_is_trained_as_a_graph_is() -> None:
    data = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0, 1]))
    splits = [Split("s", train=[0, 1], val=[2], test=[3])]
    trial = Trial(model="gcn", layers=2, hidden=2, dropout=0.0, lr=0.01, weight_decay=0.0, epochs=2)
    (record,) = train(data, [trial], splits=splits)
    (same,) = train(Graph.from_pyg(data), [trial], splits=splits)
    assert record.test == same.test
    assert record.best_epoch == same.best_epoch


def test_what_is_no_graph_gets_the_way_to_a_graph_and_its_splits() -> None:
    with pytest.raises(InputError, match=r"data is a list; .*sharpen.Graph.from_pyg .*sharpen.splits.from_masks"):
        train([[0, 1]], [Trial()])  # type: ignore[arg-type]
