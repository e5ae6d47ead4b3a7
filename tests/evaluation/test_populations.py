"""Scores of whole populations against scikit-learn's and against our own of one member."""

import numpy as np
import pytest
import sklearn.metrics
import torch
from scipy.special import softmax

from sharpen import Graph, Split, Trial, load_dataset, to_frame, train
from sharpen.evaluation import brier, ece, fit_temperature, log_loss
from sharpen.evaluation.populations import held_out_scores
from sharpen.store import Store
from sharpen.trial import LAST, METRICS

MEMBERS, NODES, CLASSES = 3, 90, 4


@pytest.fixture
def population():
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(CLASSES, (NODES,), generator=generator)
    logits = 2 * torch.randn(MEMBERS, NODES, CLASSES, generator=generator)
    logits[:, torch.arange(NODES), y] += 1.5
    order = torch.rand(MEMBERS, NODES, generator=generator)
    val, test = order < 0.3, order > 0.6  # other nodes, and other numbers of them, in every member
    return logits, y, val, test


def test_every_member_is_scored_as_if_alone(population):
    logits, y, val, test = population
    scores = held_out_scores(logits, y, val, test)
    for r in range(MEMBERS):
        z, truth = logits[r, test[r]].double().numpy(), y[test[r]].numpy()
        p = softmax(z, axis=1)
        predicted, named = p.argmax(1), np.unique(truth)
        f1 = sklearn.metrics.f1_score(truth, predicted, average="macro", labels=named)
        assert scores["macro_f1"][r].item() == pytest.approx(f1)
        assert scores["log_loss"][r].item() == pytest.approx(sklearn.metrics.log_loss(truth, p, labels=range(CLASSES)))
        assert scores["brier"][r].item() == pytest.approx(brier(p, truth))
        assert scores["ece"][r].item() == pytest.approx(ece(p, truth))
        temperature = fit_temperature(logits[r, val[r]].double().numpy(), y[val[r]].numpy())
        assert scores["temperature"][r].item() == pytest.approx(temperature, rel=1e-4)
        scaled = softmax(z / scores["temperature"][r].item(), axis=1)
        for name, function in (("ece", ece), ("log_loss", log_loss), ("brier", brier)):
            assert scores[f"{name}_scaled"][r].item() == pytest.approx(function(scaled, truth))


def test_a_member_without_nodes_or_with_nan_spoils_no_other(population):
    logits, y, val, test = population
    alone = held_out_scores(logits[2:], y, val[2:], test[2:])
    logits, val, test = logits.clone(), val.clone(), test.clone()
    logits[0, test[0].nonzero()[0]] = torch.nan
    val[1] = False
    scores = held_out_scores(logits, y, val, test)
    for name, value in scores.items():
        assert value[2].item() == pytest.approx(alone[name].item()), name
        assert value[0].isnan() == (name != "temperature"), name
        assert value[1].isnan() == (name == "temperature" or name.endswith("scaled")), name
    nobody = held_out_scores(logits, y, torch.zeros_like(val), test)
    assert nobody["temperature"].isnan().all()


def test_a_perfect_validation_set_is_as_cold_as_may_be(population):
    _, y, _, test = population
    every = torch.ones(MEMBERS, NODES, dtype=torch.bool)
    sure = torch.nn.functional.one_hot(y, CLASSES).float().expand(MEMBERS, -1, -1)
    assert held_out_scores(sure, y, every, test)["temperature"].tolist() == pytest.approx([0.05] * MEMBERS)
    assert held_out_scores(-sure, y, every, test)["temperature"].tolist() == pytest.approx([20.0] * MEMBERS)


def test_records_hold_them_at_the_chosen_and_at_the_last_epoch(tmp_path):
    digits = load_dataset("digits")
    trials = [Trial(model="gcn", hidden=8, epochs=30, lam=lam, seed=seed) for lam in (0.0, 0.5) for seed in (0, 1)]
    records = train(digits, trials, device="cpu", progress=False)
    last = train(digits, trials, device="cpu", progress=False, choose="last")
    for record, final in zip(records, last, strict=True):
        assert set(record.metrics) == {*METRICS, *LAST}
        nodes = digits.splits[record.trial.split].test.numpy()
        p, truth = softmax(record.logits[nodes].astype(float), axis=1), digits.graph.y[nodes].numpy()
        assert record.metrics["ece"] == pytest.approx(ece(p, truth), abs=1e-6)
        assert record.metrics["log_loss"] == pytest.approx(log_loss(p, truth), rel=1e-5)
        assert record.metrics["test_last"] == pytest.approx(final.test)
        assert record.metrics["val_last"] == pytest.approx(final.val)
        assert record.metrics["brier_last"] == pytest.approx(final.metrics["brier"], rel=1e-4)
        assert 0 < record.metrics["class_use"] <= 1.01
    frame = to_frame(records)
    assert frame["ece_scaled"].notna().all()
    store = Store(tmp_path)
    store.add(records)
    assert Store(tmp_path).frame(r.trial for r in records)["test_last"].tolist() == pytest.approx(
        frame["test_last"].tolist()
    )


def test_without_validation_nodes_there_is_no_temperature():
    ring = Graph(x=torch.eye(6), edge_index=[[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]], y=[0, 0, 0, 1, 1, 1])
    split = Split("all", train=[0, 3], val=[], test=[2, 5])
    (record,) = train(ring, [Trial(hidden=4, epochs=3)], splits=[split], device="cpu", progress=False, choose="last")
    assert np.isnan(record.metrics["temperature"])
    assert np.isfinite(record.metrics["log_loss"])
