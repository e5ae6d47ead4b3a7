"""The search keeps to its budget, trains every candidate on the same folds, and says what it left out."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sharpen import NodeClassifier
from sharpen.errors import InputError
from sharpen.fitting import search as module
from sharpen.fitting.candidates import Candidate, list_candidates, order
from sharpen.fitting.runs import Run
from sharpen.fitting.search import search
from sharpen.graph import Graph
from sharpen.graph.splits import Split
from sharpen.models.registry import model_info
from sharpen.training.progress import BudgetBar, ProgressBar, _state
from tests.fitting.camps import trained, two_camps

NETWORKS = order(list_candidates(["mlp", "gcn", "sage", "gat"]), two_camps(), automatic=False)


class Slow:
    """A backbone that takes as long as it is told, by a clock of its own, and is right where its candidate should be."""

    def __init__(self, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.seconds, self.calls = 0.0, seconds, []
        monkeypatch.setattr(module.time, "perf_counter", lambda: self.now)

    def cost(self, model: str) -> float:
        return model_info(model).cost

    def one_bar(self, seconds: float) -> BudgetBar:
        return BudgetBar(seconds, show=False)

    def train(self, graph: Graph, runs: Sequence[Run]) -> list[Run]:
        self.calls.append(len(runs))
        self.now += self.seconds * len(runs)
        wrong = {"logistic": 4, "gcn": 2, "sage": 4, "gat": 6, "mlp": 10}
        y = graph.y.numpy()
        return [trained(run, y, np.arange(wrong[run.candidate.model])) for run in runs]


def test_with_time_enough_all_candidates_meet_the_same_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = Slow(0.01, monkeypatch)
    found = search(backbone, two_camps(), NETWORKS, budget=2)
    first = [m for m in found.runs if m.round_number == 0]
    folds = {c: sorted(m.test.tolist() for m in first if m.candidate == c) for c in {m.candidate for m in first}}
    assert len(folds) == 36
    assert len(first) == 36 * 5
    assert all(tests == folds[Candidate("gcn")] for tests in folds.values())
    assert found.rounds == 4
    assert found.notes == []
    # Later rounds hold the best, what they are held against, and nothing else.
    later = {m.candidate for m in found.runs if m.round_number == 3}
    assert Candidate("gcn") in later
    assert Candidate("mlp") in later
    assert len(later) <= 8
    assert max(backbone.calls) > 36  # trained together, not one by one


def test_a_short_budget_is_kept_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = Slow(1.0, monkeypatch)
    found = search(backbone, two_camps(), NETWORKS, budget=2)
    assert backbone.now <= 120
    tried = {m.candidate for m in found.runs}
    assert 3 < len(tried) < 36
    assert f"room for {len(tried)} of 36 candidates" in " ".join(found.notes)


def test_the_essential_runs_even_if_nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = Slow(100.0, monkeypatch)
    found = search(backbone, two_camps(), NETWORKS, budget=1)
    assert [m.candidate for m in found.runs] == [Candidate("gcn"), Candidate("gcn", 0.25, 0.25), Candidate("mlp")]
    assert "1 of 5 folds" in found.notes[0]


def test_more_minutes_mean_more_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = [search(Slow(0.01, monkeypatch), two_camps(), [Candidate("gcn")], budget=b).rounds for b in (2, 4)]
    assert rounds == [4, 8]


@pytest.mark.parametrize("budget", [0, -1, float("nan"), float("inf")])
def test_no_time_at_all_is_refused(budget: float, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="budget is"):
        search(Slow(1, monkeypatch), two_camps(), [Candidate("gcn")], budget=budget)


class Compiling(Slow):
    """One whose first run of a model takes long, and the next ones do not."""

    def train(self, graph: Graph, runs: Sequence[Run]) -> list[Run]:
        if not self.calls:
            self.now += 15
        return super().train(graph, runs)


def test_what_compiling_takes_is_not_the_price_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = Compiling(0.05, monkeypatch)
    found = search(backbone, two_camps(), NETWORKS, budget=0.6)
    assert len({m.candidate for m in found.runs}) == 36
    assert backbone.now <= 36


class Busy(Slow):
    """A machine that others begin to use: after a while everything takes four times as long."""

    def train(self, graph: Graph, runs: Sequence[Run]) -> list[Run]:
        if self.now > 30:
            self.seconds = 2.0
        return super().train(graph, runs)


def test_the_budget_is_kept_where_the_machine_becomes_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = Busy(0.5, monkeypatch)
    search(backbone, two_camps(), NETWORKS, budget=2)
    assert backbone.now <= 1.5 * 120


def test_time_that_is_left_is_used_for_what_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first runs are slow, so that the forecast is dark; then everything is fast."""

    class Waking(Slow):
        def train(self, graph: Graph, runs: Sequence[Run]) -> list[Run]:
            self.seconds = 3.0 if self.now < 40 else 0.05
            return super().train(graph, runs)

    backbone = Waking(3.0, monkeypatch)
    found = search(backbone, two_camps(), NETWORKS, budget=2)
    assert len({m.candidate for m in found.runs}) == 36
    assert not any("candidates" in note for note in found.notes)


class Interrupted(Slow):
    """One that is interrupted after so many calls."""

    def __init__(self, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(1.0, monkeypatch)
        self.after = after

    def train(self, graph: Graph, runs: Sequence[Run]) -> list[Run]:
        if len(self.calls) >= self.after:
            self.now += 40
            raise KeyboardInterrupt
        return super().train(graph, runs)


def test_an_interrupted_search_keeps_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    found = search(Interrupted(2, monkeypatch), two_camps(), NETWORKS, budget=2, tell=said.append)
    assert len(found.runs) > 1
    assert (
        found.notes[0]
        == f"stopped after {int(found.seconds) // 60}:{int(found.seconds) % 60:02d} by Ctrl-C; the best so far is used"
    )
    assert "candidates" in found.notes[1]
    assert said[-1].startswith("Stopping: the best so far is used")
    assert any("best so far: " in line for line in said)


def test_one_bar_is_drawn_for_the_whole_search(monkeypatch: pytest.MonkeyPatch) -> None:
    bars, said, ticks, others = [], [], [], []

    class Seen(BudgetBar):
        visible = True

        def __init__(self, seconds: float, show: bool) -> None:
            super().__init__(seconds, show=False)
            bars.append((seconds, show))

        def tick(self, member_epochs: int = 0) -> None:
            ticks.append(member_epochs)

        def found(self, best: str) -> None:
            said.append(best)

    class Other(ProgressBar):
        def __init__(self, member_epochs: int, show: object) -> None:
            super().__init__(member_epochs, show)
            others.append(show)

    monkeypatch.setattr("sharpen.fitting.backbone.BudgetBar", Seen)
    monkeypatch.setattr("sharpen.training.trials.ProgressBar", Other)
    options = {"hidden": 4, "epochs": 3, "budget": 0.5, "device": "cpu", "progress": lambda line: None}
    NodeClassifier(["mlp", "gcn"], lam=0.25, balance=0.0, **options).fit(two_camps())
    assert bars == [(30.0, True)]
    assert sum(ticks) > 0
    assert others
    assert all(callable(show) for show in others)  # none of these draws one of its own
    assert " %, " in said[-1]


def test_a_bar_without_validation_nodes_does_not_speak_of_them() -> None:
    population = SimpleNamespace(alive=torch.tensor([True]), members=1, best_val=torch.tensor([-torch.inf]))
    assert _state(population) == "1 runs"


def test_one_that_has_found_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt):
        search(Interrupted(0, monkeypatch), two_camps(), NETWORKS, budget=2)


def test_an_estimator_at_the_head_gives_a_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    backbone = Slow(0.2, monkeypatch)
    found = search(backbone, two_camps(), [Candidate("logistic"), *NETWORKS], budget=2, tell=said.append)
    assert said[0].startswith(
        "first answer after 1.0 s: logistic regression on S²GC features, 75.0 % of held-out labels"
    )
    assert backbone.calls[0] == 5
    assert [run.candidate for run in found.runs[:5]] == [Candidate("logistic")] * 5
    assert not any("candidates" in note for note in found.notes)


class Punctual(Slow):
    """One that does not like to be asked for nothing."""

    def train(self, graph: Graph, runs: Sequence[Run]) -> list[Run]:
        assert runs, "nothing to train"
        return super().train(graph, runs)


def test_without_time_left_nothing_is_run_on_all_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    late = search(Punctual(100.0, monkeypatch), two_camps(), NETWORKS, budget=1)
    assert late.on_all == {}
    early = search(Punctual(0.01, monkeypatch), two_camps(), NETWORKS, budget=2)
    assert {len(runs) for runs in early.on_all.values()} == {5}
    assert len({run.seed for runs in early.on_all.values() for run in runs}) == 5


def test_a_model_that_is_clearly_behind_is_tried_once_and_the_others_get_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backbone = Slow(0.01, monkeypatch)
    found = search(backbone, two_camps(), NETWORKS, budget=2, selective=True)
    tried = [m.candidate for m in found.runs if m.round_number == 0]
    assert {c.model for c in tried} == {"mlp", "gcn", "sage", "gat"}
    # Ten and six of forty wrong, where a GCN has two and GraphSAGE four.
    assert {(c.lam, c.balance) for c in tried if c.model in ("mlp", "gat")} == {(0.0, 0.0)}
    assert [len({c.rough for c in tried if c.model == model}) for model in ("gcn", "sage")] == [9, 9]
    said = "16 candidates of models that are clearly behind plain GCN by held-out labels were not tried: MLP, GAT"
    assert said in found.notes


def test_the_cost_of_each_model_is_what_its_runs_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trained together, one model takes fifty times what its place in the registry says: the budget is kept all the same."""

    class Uneven(Slow):
        def train(self, graph: Graph, runs: Sequence[Run]) -> list[Run]:
            took = [1.0 if run.candidate.model == "mlp" else 0.02 for run in runs]
            self.now += sum(took)
            y = graph.y.numpy()
            return [
                replace(trained(run, y, np.arange(0 if run.candidate.model == "mlp" else 9)), seconds=seconds)
                for run, seconds in zip(runs, took, strict=True)
            ]

    backbone = Uneven(0.0, monkeypatch)
    found = search(backbone, two_camps(), NETWORKS, budget=1)
    assert backbone.now <= 60
    assert {c.model for c in found.on_all} == {"mlp"}  # there was time kept for it


def test_what_an_estimator_prepares_once_does_not_make_networks_look_fast() -> None:
    clock = module._Clock(1.0, lambda model: 1.0)

    def runs(**took: float) -> list[Run]:
        return [Run(Candidate(model), Split("s", [0], [], [1]), seconds=s) for model, s in took.items()]

    clock.measure(runs(logistic=24.0), 24.0)
    clock.measure(runs(gcn=2.0, gat=4.0), 6.0)
    clock.measure(runs(logistic=0.1, gcn=2.0), 2.1)
    assert [round(clock.forecast([Candidate(model)]), 6) for model in ("logistic", "gcn", "gat")] == [0.1, 2.0, 4.0]
    clock.measure(runs(gcn=6.0), 6.0)  # three times as slow, and so is what was not timed
    assert round(clock.forecast([Candidate("gat")]), 6) == 12.0
