"""What a model may ask for beyond the graph: terms of the loss, its run's labels, the epoch, state, and rates of its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sharpen import Graph, Split, Trial, train

RNG = np.random.default_rng(4)
NODES = 12
GRAPH = Graph(x=RNG.normal(size=(NODES, 4)), edge_index=[range(11), range(1, 12)], y=np.arange(NODES) % 3, name="path")
SPLITS = [Split(f"s{k}", range(k, 6 + k), [8, 9], [10, 11]) for k in range(2)]


class Asking(nn.Module):
    """A linear map with all the hooks: a ridge as its own loss, a prior from labels, and a count of epochs as state."""

    def __init__(self, num_features: int, num_classes: int, ridge: float = 0.5) -> None:
        super().__init__()
        self.head, self.other = nn.Linear(num_features, num_classes), nn.Linear(num_features, num_classes, bias=False)
        self.register_buffer("seen", torch.zeros(()))
        self.ridge, self.rates = ridge, {"other": (0.3, 0.0)}

    def forward(self, x: Tensor, graph, run):
        if self.training:
            self.seen.copy_(run.epoch + 1)
        prior = run.labels.sum(0) / run.train.sum()
        scores = self.head(x) + self.other(x) + prior
        return (scores, self.ridge * self.head.weight.square().sum()) if self.training and self.ridge else scores


def reference(split: Split, seed: int, epochs: int, ridge: float) -> tuple[np.ndarray, float]:
    """The same in a plain loop."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Asking(4, 3, ridge)
    model = model.double()
    x, y, nodes = GRAPH.x.double(), GRAPH.y, split.train
    prior = F.one_hot(y[nodes], 3).double().mean(0)
    groups = [
        {"params": model.head.parameters(), "lr": 0.05, "weight_decay": 0.01},
        {"params": model.other.parameters(), "lr": 0.3, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.Adam(groups)
    for _ in range(epochs):
        optimizer.zero_grad()
        scores = model.head(x) + model.other(x) + prior
        loss = F.cross_entropy(scores[nodes], y[nodes]) + ridge * model.head.weight.square().sum()
        loss.backward()
        optimizer.step()
    return (model.head(x) + model.other(x) + prior).detach().numpy(), loss.item()


@pytest.mark.parametrize("ridge", [0.5, 0.0])
def test_members_are_plain_loops_with_the_same_loss_labels_and_rates(ridge):
    wanted = [
        Trial(model=Asking, model_args={"ridge": ridge}, split=split.name, seed=k, lr=0.05, weight_decay=0.01, epochs=7)
        for k, split in enumerate(SPLITS)
    ]
    records = train(
        GRAPH,
        wanted,
        splits=SPLITS,
        device="cpu",
        precision="float64",
        progress=False,
        choose="last",
        keep_weights=True,
    )
    assert {record.way for record in records} == {"vmap"}
    for record, split in zip(records, SPLITS, strict=True):
        scores, loss = reference(split, record.trial.seed, 7, ridge)
        np.testing.assert_allclose(record.logits, scores, rtol=1e-8, atol=1e-9)
        assert record.traces["loss"][-1] == pytest.approx(loss, rel=1e-5)
        assert record.weights["seen"] == 7


def test_where_lambda_is_learned_the_term_counts_too_and_held_out_labels_stay_unknown():
    wanted = [
        Trial(model=Asking, split="s0", lam_max=1.0, epochs=25, weight_decay=0.0, lr=0.01, seed=k) for k in range(2)
    ]
    both = train(GRAPH, wanted, splits=SPLITS, device="cpu", precision="float64", progress=False)
    alone = train(GRAPH, wanted[1:], splits=SPLITS, device="cpu", precision="float64", progress=False)
    np.testing.assert_allclose(both[1].logits, alone[0].logits, rtol=1e-8)
    trace = both[0].traces
    assert (trace["loss"][:20] > trace["cross_entropy"][:20]).all()  # λ is 0 there, so what is more is the ridge
