"""The search keeps to its budget, trains every candidate on the same folds, and says what it left out."""

from collections.abc import Sequence

import numpy as np
import pytest

from sharpen.errors import InputError
from sharpen.fitting import search as module
from sharpen.fitting.candidates import Candidate, list_candidates
from sharpen.fitting.members import Job, Member
from sharpen.fitting.search import search
from sharpen.graph import Graph
from tests.fitting.camps import member, two_camps


class Slow:
    """A backbone that takes as long as it is told, by a clock of its own, and is right where its candidate should be."""

    def __init__(self, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.seconds, self.calls = 0.0, seconds, []
        monkeypatch.setattr(module.time, "perf_counter", lambda: self.now)

    def train(self, graph: Graph, jobs: Sequence[Job]) -> list[Member]:
        self.calls.append(len(jobs))
        self.now += self.seconds * len(jobs)
        wrong = {"gcn": 2, "sage": 4, "gat": 6, "mlp": 10}
        y = graph.y.numpy()
        return [member(job.candidate, job, y, np.arange(wrong[job.candidate.model])) for job in jobs]


def test_with_time_enough_all_candidates_meet_the_same_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = Slow(0.01, monkeypatch)
    found = search(backbone, two_camps(), list_candidates(), budget=2)
    first = [m for m in found.members if m.round_number == 0]
    folds = {c: sorted(m.test.tolist() for m in first if m.candidate == c) for c in {m.candidate for m in first}}
    assert len(folds) == 36
    assert len(first) == 36 * 5
    assert all(tests == folds[Candidate("gcn")] for tests in folds.values())
    assert found.rounds == 4
    assert found.notes == []
    # Later rounds hold the best, what they are held against, and nothing else.
    later = {m.candidate for m in found.members if m.round_number == 3}
    assert Candidate("gcn") in later
    assert Candidate("mlp") in later
    assert len(later) <= 8
    assert max(backbone.calls) > 36  # trained together, not one by one


def test_a_short_budget_is_kept_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = Slow(1.0, monkeypatch)
    found = search(backbone, two_camps(), list_candidates(), budget=2)
    assert backbone.now <= 120
    tried = {m.candidate for m in found.members}
    assert 3 < len(tried) < 36
    assert f"room for {len(tried)} of 36 candidates" in " ".join(found.notes)


def test_the_essential_runs_even_if_nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = Slow(100.0, monkeypatch)
    found = search(backbone, two_camps(), list_candidates(), budget=1)
    assert [m.candidate for m in found.members] == [Candidate("gcn"), Candidate("mlp"), Candidate("gcn", 0.25)]
    assert "1 of 5 folds" in found.notes[0]


def test_more_minutes_mean_more_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = [search(Slow(0.01, monkeypatch), two_camps(), [Candidate("gcn")], budget=b).rounds for b in (2, 4)]
    assert rounds == [4, 8]


@pytest.mark.parametrize("budget", [0, -1, float("nan"), float("inf")])
def test_no_time_at_all_is_refused(budget: float, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="budget is"):
        search(Slow(1, monkeypatch), two_camps(), [Candidate("gcn")], budget=budget)
