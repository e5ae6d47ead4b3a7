"""The backbone, with any model: what predicts is what was trained, and nothing else in the process is disturbed."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.nn import GCN
from torch_geometric.nn.models import Polynormer, SGFormer

from sharpen.cluster.pool import Trainer
from sharpen.errors import InputError
from sharpen.fitting.backbone import UNSPREAD, Backbone
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.folds import draw_round
from sharpen.fitting.runs import Listener, Run
from sharpen.fitting.spreading import Spreading
from sharpen.graph import Graph
from sharpen.models.blueprint import Blueprint
from sharpen.models.custom import register
from sharpen.models.inputs import Inputs
from sharpen.training import memory, train
from sharpen.trial import Record, Trial
from tests.fitting.camps import two_camps

SETTINGS = {
    "layers": 2, "hidden": 8, "dropout": 0.3, "norm": "none", "residual": False, "input_linear": False,
    "lr": 0.02, "weight_decay": 0.0, "epochs": 15, "q": 2.0,
}  # fmt: skip


def with_module(model: object, settings: dict[str, Any] = SETTINGS, balanced: bool = False) -> Backbone:
    """The backbone of one model of somebody's own, which candidates call ``model``."""
    return Backbone(settings, "cpu", balanced, names={"model": register(model)})


def runs(graph: Graph, *candidates: Candidate) -> list[Run]:
    folds = draw_round(graph.y.numpy(), 0)[:2]
    return [Run(candidate, fold, seed) for candidate in candidates for seed, fold in enumerate(folds)]


def polynormer(features: int, classes: int) -> nn.Module:
    return Polynormer(features, 16, classes, local_layers=2, global_layers=1)


def polynormer_global(features: int, classes: int) -> nn.Module:
    module = Polynormer(features, 16, classes, local_layers=2, global_layers=1)
    module._global = True
    return module


def sgformer(features: int, classes: int) -> nn.Module:
    return SGFormer(features, 16, classes, trans_num_layers=1, gnn_num_layers=2)


@pytest.mark.parametrize("norm", ["none", "batch"])
@pytest.mark.parametrize("model", ["mlp", "gcn", "sage", "gat"])
def test_saved_weights_predict_what_the_trained_predicted(camps: Graph, model: str, norm: str) -> None:
    backbone = Backbone(SETTINGS | {"norm": norm}, "cpu")
    trained = backbone.train(camps, runs(camps, Candidate(model), Candidate(model, 0.5, 0.5)))
    logits = list(backbone.logits(camps, model, 2, [run.weights for run in trained]))
    assert len(logits) == len(trained) == 8
    assert [run.candidate.spread for run in trained[:2]] == [False, True]
    for run, raw in zip(trained, logits, strict=True):
        known = camps.y.numpy().copy()
        known[run.test] = -1  # a run does not know what it is judged by
        opinions = Listener(camps).opinions(raw, run.candidate.spread, known)
        assert opinions[:, run.test] == pytest.approx(run.opinions, abs=1e-5)


def test_a_graph_is_cut_by_what_those_who_train_have_free_and_not_by_what_is_free_here(camps: Graph) -> None:
    trials_seen: list[Trial] = []

    def train_elsewhere(graph: Graph, trials: list[Trial], **options: Any) -> list[Record]:
        trials_seen.extend(trials)
        return train(graph, trials, **options)

    said: list[str] = []
    backbone = Backbone(SETTINGS, "cpu", tell=said.append, trainer=Trainer(train_elsewhere, memory_left=1000))
    trained = backbone.train(camps, runs(camps, Candidate("gcn")))
    assert len({trial.batching for trial in trials_seen}) == 1
    assert str(trials_seen[0].batching).startswith("clusters-")
    assert "0.0 GB are free on a worker" in said[0]
    (logits,) = backbone.logits(camps, "gcn", 2, [trained[0].weights])  # here, at once
    known = camps.y.numpy().copy()
    known[trained[0].test] = -1
    opinions = Listener(camps).opinions(logits, trained[0].candidate.spread, known)
    assert opinions[:, trained[0].test] == pytest.approx(trained[0].opinions, abs=1e-5)


def test_labels_are_not_spread_over_a_graph_in_batches(camps: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spreading, "similar", property(lambda self: pytest.fail("work on the whole graph")))
    said: list[str] = []
    backbone = Backbone(SETTINGS, "cpu", batching="clusters-4-2", tell=said.append)
    trained = backbone.train(camps, runs(camps, Candidate("gcn"), Candidate("mlp")))
    assert [run.candidate.spread for run in trained] == [False] * 4
    assert said == backbone.notes == ["training in batches, clusters-4-2", UNSPREAD]


def test_whether_a_graph_is_cut_is_decided_once(camps: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory may come free or run out between two candidates; they are trained alike all the same."""
    trials_seen: list[Trial] = []

    def train_here(graph: Graph, trials: list[Trial], **options: Any) -> list[Record]:
        trials_seen.extend(trials)
        return train(graph, trials, **options)

    backbone = Backbone(SETTINGS, "cpu", trainer=Trainer(train_here, memory_left=None))
    for left in (1000, 10**12):
        monkeypatch.setattr(memory, "memory_left", lambda device, left=left: left)
        trained = backbone.train(camps, runs(camps, Candidate("gcn")))
        assert [run.candidate.spread for run in trained] == [False, False]
    assert {trial.batching for trial in trials_seen} == {backbone.cuts["gcn"]} != {None}
    assert len(backbone.notes) == 2
    # Predictions are the same to rounding, whether the graph is cut for them or not.
    one, other = (
        next(Backbone(SETTINGS, "cpu", cuts=cuts).logits(camps, "gcn", 2, [trained[0].weights]))
        for cuts in ({}, backbone.cuts)
    )
    assert one == pytest.approx(other, abs=1e-5)


@pytest.mark.parametrize("factory", [polynormer, polynormer_global, sgformer])
def test_pygs_graph_transformers_are_backbones(camps: Graph, factory: Callable[[int, int], nn.Module]) -> None:
    backbone = with_module(factory)
    state = torch.get_rng_state()
    first, second = backbone.train(camps, runs(camps, Candidate("model", 0.25)))[::2]
    assert torch.get_rng_state().equal(state)
    logits = list(backbone.logits(camps, "model", 2, [first.weights, second.weights]))
    assert logits[1][second.test] == pytest.approx(second.opinions[0], abs=1e-5)  # they give log-probabilities
    assert np.exp(logits[0]).sum(1) == pytest.approx(1, abs=1e-5)


def test_a_module_is_copied_and_each_run_has_first_weights_of_its_own(camps: Graph) -> None:
    module = GCN(camps.num_features, 8, 2, 2)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    backbone = with_module(module)
    blueprint = Blueprint(register(module), camps.num_features, 2, {})
    starts = [blueprint.build(seed).state_dict() for seed in (0, 1, 0)]
    backbone.train(camps, runs(camps, Candidate("model")))
    assert all(value.equal(before[name]) for name, value in module.state_dict().items())
    weight = next(name for name in before if name.endswith("weight"))
    assert starts[0][weight].equal(starts[2][weight])
    assert not starts[0][weight].equal(starts[1][weight])


def test_the_same_seed_gives_the_same_run(camps: Graph) -> None:
    backbone = with_module(sgformer)
    one, two = (backbone.train(camps, runs(camps, Candidate("model", 0.25)))[0] for _ in range(2))
    assert np.array_equal(one.opinions, two.opinions)


def test_sharpening_reaches_a_module(camps: Graph) -> None:
    backbone = with_module(sgformer, SETTINGS | {"epochs": 40, "dropout": 0.0})
    plain, sharp = (backbone.train(camps, runs(camps, Candidate("model", lam))[:1])[0] for lam in (0.0, 2.0))
    assert not np.array_equal(plain.opinions, sharp.opinions)


def test_a_module_of_the_wrong_width_is_named(camps: Graph) -> None:
    backbone = with_module(lambda features, classes: GCN(features, 8, 2, 5))
    with pytest.raises(InputError, match=r"lambda gives \[40, 5\] where \[40, 2\] is needed"):
        backbone.train(camps, runs(camps, Candidate("model")))
    with pytest.raises(InputError, match="lambda made a str"):
        with_module(lambda features, classes: "gcn").train(camps, runs(camps, Candidate("model")))


def test_a_module_that_diverges_is_marked(camps: Graph) -> None:
    backbone = with_module(sgformer, SETTINGS | {"lr": 1e30})
    assert not backbone.train(camps, runs(camps, Candidate("model")))[0].ok


def test_weights_of_another_module_are_refused(camps: Graph) -> None:
    run = with_module(sgformer).train(camps, runs(camps, Candidate("model"))[:1])[0]
    with pytest.raises(InputError, match="does not fit the saved weights"):
        list(with_module(polynormer).logits(camps, "model", 2, [run.weights]))


@pytest.mark.parametrize("kind", ["population", "module"])
def test_balanced_classes_weigh_the_same_in_training(camps: Graph, kind: str) -> None:
    y = np.where(np.arange(40) % 8 == 1, 1, 0)  # five of forty
    uneven = dataclasses.replace(camps, y=torch.from_numpy(y))

    def rare(balanced: bool) -> int:
        settings = SETTINGS | {"epochs": 20}
        backbone = (
            Backbone(settings, "cpu", balanced)
            if kind == "population"
            else with_module(lambda features, classes: GCN(features, 8, 2, classes), settings, balanced)
        )
        run = backbone.train(uneven, runs(uneven, Candidate("gcn" if kind == "population" else "model"))[:1])[0]
        logits = next(iter(backbone.logits(uneven, run.candidate.model, 2, [run.weights])))
        return int((logits.argmax(1) == 1).sum())

    assert rare(balanced=True) > rare(balanced=False)


def test_a_module_that_takes_edge_weights_gets_them(camps: Graph) -> None:
    weight = torch.rand(camps.num_edges, generator=torch.Generator().manual_seed(0)) + 0.1
    weighted = dataclasses.replace(camps, edge_weight=weight)
    backbone = with_module(lambda features, classes: GCN(features, 8, 2, classes))
    run = backbone.train(weighted, runs(camps, Candidate("model"))[:1])[0]
    with_weights = next(iter(backbone.logits(weighted, "model", 2, [run.weights])))
    module = GCN(camps.num_features, 8, 2, 2).eval()
    module.load_state_dict({name: torch.from_numpy(value) for name, value in run.weights.items()})
    with torch.no_grad():
        inputs = Inputs(weighted, torch.device("cpu"), torch.float32)  # both directions of every edge
        expected = module(camps.x, inputs.edge_index, edge_weight=inputs.edge_weight)
    assert with_weights == pytest.approx(expected.numpy(), abs=1e-6)
    assert not np.allclose(with_weights, next(iter(backbone.logits(camps, "model", 2, [run.weights]))))


def test_grand_is_held_back_on_words_and_less_where_labels_are_not_few() -> None:
    seen: list[Trial] = []

    def train_and_note(graph: Graph, trials: list[Trial], **options: Any) -> list[Record]:
        seen.extend(trials)
        return train(graph, trials, **options)

    usual = SETTINGS | {"weight_decay": 0.0005, "dropout": 0.5}
    for labeled, settings, words in (
        (10, usual, True),
        (40, usual, True),
        (40, usual | {"dropout": 0.1}, True),
        (40, usual, False),
    ):
        camps = two_camps(labeled=labeled)
        x = np.eye(40, 120, dtype=np.float32) if words else camps.x
        graph = Graph(x=x, edge_index=camps.edge_index, y=camps.y, class_names=["left", "right"])
        Backbone(settings, "cpu", trainer=Trainer(train_and_note)).train(
            graph, runs(graph, Candidate("grand", 1, 1))[:1]
        )
    assert [(t.weight_decay, t.dropout) for t in seen] == [(0.005, 0.5), (0.002, 0.7), (0.002, 0.1), (0.0005, 0.5)]
    assert [t.arguments for t in seen] == [{"dropcolumn": 0.3, "consistency": 1.5}] * 3 + [{}]
