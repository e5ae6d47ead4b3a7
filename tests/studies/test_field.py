"""The field: the same tuning for all, a choice by validation, and a leaderboard; from the file of a study to the page."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sharpen import InputError
from sharpen.analysis.leaderboard import Leaderboard, Standing, leaderboards, mean_ranks, rank_intervals
from sharpen.analysis.outcome import Effect, outcome
from sharpen.analysis.runs import Run
from sharpen.evaluation import paired_difference
from sharpen.report.builder import Reader
from sharpen.report.leaderboard import board_sentences, board_table, gains_table
from sharpen.report.tables import to_markdown
from sharpen.report.text import report_markdown
from sharpen.store import Store
from sharpen.studies import load_study, tuning
from sharpen.studies.plan import plan
from sharpen.studies.runner import run
from sharpen.studies.spec import Contrast

ROOT = Path(__file__).parents[2]
MODELS = ("s2gc", "gcn", "normprop")
TUNING = """
title: Tuned alike
datasets: [digits]
models: [s2gc, gcn, normprop]
protocols: [tuning]
runs: 2
variants:
  configuration-{configuration}: {configuration: [0, 1], lam: 0}
baseline: configuration-0
choose: {chosen: [configuration-*]}
compare: [chosen - configuration-0]
"""
FIELD = """
title: The field
datasets: [digits]
models: [s2gc, gcn, normprop]
protocols: [paired]
runs: 3
variants:
  plain: {configuration: chosen, lam: 0}
  sharpened: {configuration: chosen, lam: 0.25}
baseline: plain
compare: [sharpened - plain]
"""


def test_every_method_of_the_field_has_four_configurations_on_draws_that_are_not_reported():
    tuned, reported = load_study("field-tuning"), load_study("field")
    assert tuned.models == reported.models
    assert len(tuned.models) >= 16
    assert tuned.datasets == reported.datasets
    drawn = {
        (cell.cell.dataset, trial.split)
        for cell in plan(tuned, "tuning")
        for some in cell.trials.values()
        for trial in some
    }
    from sharpen.studies.protocol import runs

    shown = {
        (dataset, split)
        for dataset in reported.datasets
        for split, _ in runs(dataset, "paired", reported.runs[dataset])
    }
    assert drawn
    assert not drawn & shown
    for cell in plan(tuned, "tuning", ["cora", "squirrel"]):
        assert [len(some) for some in cell.trials.values()] == [3, 3, 3, 3], cell.cell


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "results"))
    monkeypatch.delitem(sys.modules, "field", raising=False)
    import field

    return field


def test_the_page_says_what_the_store_says(script):
    page = ROOT / "docs" / "field.md"
    reader = Reader(Store(ROOT / "results" / "store"), {})
    assert script.filled(page, reader) == page.read_text(encoding="utf-8"), "make results"
    report = report_markdown(reader.report(load_study("field"), "paired")).split("## Missing")[0]
    kept = (ROOT / "results" / "field" / "field-paired.md").read_text(encoding="utf-8")
    assert kept.startswith(report.split("## Tables")[0]), "make results"


def test_a_published_mean_is_told_beside_ours(script):
    found = outcome(load_study("field-published"), "published")
    cell = found.cell("cora", "normprop")  # 85.46 ± 0.51 in the paper's comparison
    for score, verdict in ((85.0, "yes"), (80.0, "no")):
        runs_of = [Run(f"{k}", "public", k, val=score, test=score + k / 10) for k in range(5)]
        side = replace(cell.sides["published"], runs=tuple(runs_of))
        told = script.reproduced(replace(found, cells=(replace(cell, sides={"published": side}),)))
        assert f"{int(verdict == 'yes')} of 1 pairs" in told
        assert "| 85.46 ± 0.51 |" in told
        assert f"| {verdict} |" in told
    assert "Nothing was run" in script.reproduced(found)


def test_from_tuning_to_the_leaderboard(script, tmp_path, monkeypatch):
    monkeypatch.setattr(tuning, "_table", lambda: {})
    for name, text in (("tuning", TUNING), ("field", FIELD)):
        (tmp_path / f"{name}.yaml").write_text(text)
    store = Store(tmp_path / "store")
    tuned = load_study(tmp_path / "tuning.yaml")
    assert load_study(tmp_path / "field.yaml").skip.keys() == {("digits", model) for model in MODELS}
    few = {"device": "cpu", "max_epochs": 6}
    run(tuned, store, protocol="tuning", **few)

    found = outcome(tuned, "tuning", store.frame(), max_epochs=6)
    chosen = script.choices(found)
    assert [(dataset, model) for dataset, model, _ in chosen] == [("digits", model) for model in MODELS]
    for cell, (_, _, number) in zip(found.cells, chosen, strict=True):
        vals = [cell.sides[f"configuration-{k}"].val for k in (0, 1)]
        assert vals[number] == max(vals)

    monkeypatch.setattr(tuning, "_table", lambda: {(dataset, model): k for dataset, model, k in chosen})
    study = load_study(tmp_path / "field.yaml")
    assert not study.skip
    run(study, store, protocol="paired", **few)
    reported = outcome(study, "paired", store.frame(), max_epochs=6)
    (board,) = leaderboards(reported)
    assert sorted(one.rank for one in board.ranked) == [1, 2, 3]
    means = [one.mean for one in board.ranked]
    assert means == sorted(means, reverse=True)
    for one in board.ranked:
        assert one.low <= one.rank <= one.high
        side = reported.cell("digits", one.model).sides["plain"]
        assert one.mean == pytest.approx(np.mean(side.tests))
        assert one.gain.difference.n == 3
    assert "NormProp" in to_markdown(board_table(board))
    assert "3 pairs of a method and a graph" in board_sentences([board])[0]
    report = Reader(store, {}, max_epochs=6).report(study, "paired")
    assert report.findings == tuple(board_sentences([board]))
    assert [block.title for block in report.blocks][:3] == ["What it found", "The leaderboard", "Over graphs"]
    made = script.blocks(reported, found, reported, [board])
    assert "Digits" in made["field-tables"]()
    assert "18 reported runs and 12 of tuning" in made["field-cost"]()
    script.plot([board], tmp_path / "time.svg")
    assert "NormProp" in (tmp_path / "time.svg").read_text()


def test_a_rank_is_as_sure_as_the_draws_say():
    rng = np.random.default_rng(0)
    hard = rng.normal(0, 5, 40)  # what a draw does to all methods alike is no doubt about their order
    scores = {
        name: {("s", k): base + hard[k] + own for k, own in enumerate(rng.normal(0, sd, 40))}
        for name, base, sd in (("best", 90.0, 0.1), ("near", 80.0, 1.0), ("nearer", 80.1, 1.0), ("last", 70.0, 0.1))
    }
    found = rank_intervals(scores)
    assert found["best"] == (1, 1, 1)
    assert found["last"] == (4, 4, 4)
    assert {found["near"][1:], found["nearer"][1:]} == {(2, 3)}


def test_critical_difference_is_that_of_nemenyi():
    boards = [
        Leaderboard(d, tuple(Standing(m, 90.0 - k, rank=k + 1) for k, m in enumerate(("gcn", "sage", "gat", "mlp"))))
        for d in ("cora", "citeseer", "pubmed", "photo", "cs")
    ]
    found = mean_ranks(boards)
    assert list(found.ranks.values()) == [1, 2, 3, 4]
    q = stats.studentized_range.ppf(0.95, 4, np.inf) / np.sqrt(2)
    assert q == pytest.approx(2.569, abs=2e-3)  # Demšar 2006, table 5
    assert found.critical == pytest.approx(q * np.sqrt(4 * 5 / (6 * 5)))


def test_agreement_with_the_published_order():
    places = [Standing(m, 90.0 - k, rank=k + 1, place=4 - k) for k, m in enumerate(("gcn", "sage", "gat", "mlp"))]
    assert Leaderboard("cora", tuple(places)).agreement == -1
    assert Leaderboard("cora", tuple(places[:3])).agreement is None


def gained(model, mean, rank, by, place=None):
    """A method whose ten draws all gain about so much by sharpening."""
    difference = paired_difference(by + np.arange(10) / 100, np.zeros(10))
    effect = Effect(Contrast("sharpened", "plain"), difference, 0.001, planned=10, finished=10, n=10)
    return Standing(model, mean, 0.5, 10, rank=rank, low=rank, high=rank, place=place, gain=effect)


def test_what_is_said_of_the_order_and_of_sharpening():
    rows = (("gcn", 90.0, 0.0, 2), ("sage", 89.0, 1.5, 3), ("gat", 88.0, 2.0, 4), ("mlp", 70.0, 19.99, 1))
    found = [gained(model, mean, k + 1, by, place) for k, (model, mean, by, place) in enumerate(rows)]
    board = Leaderboard("cora", (*found, Standing("bunn", reason="not run yet")))
    assert board.waiting == 1
    assert board.moves == (("gcn", 1, 2), ("sage", 2, 3), ("gat", 3, 4), ("mlp", 4, 1))
    assert board.leaning == pytest.approx(-1)
    assert max(board.sharpened, key=board.sharpened.get) == "sage"
    said = " ".join(board_sentences([board]))
    assert "GCN is first of 4 (no score yet: 1)." in said
    assert "of 4 published methods the first, MLP, is 4 here" in said
    assert "Cora 4 gain, 0 lose of 4" in said
    assert "Corrected over the 4 pairs (Holm), 4 gain and 0 lose" in said
    table = gains_table([board])
    assert [row[0] for row in table.rows] == ["MLP", "GAT", "SAGE", "GCN"]
    assert table.rows[0][1].text.startswith("+20.03")
    assert table.rows[0][1].bold


def test_configurations_that_cannot_be_had_are_named(monkeypatch):
    with pytest.raises(InputError, match="configuration is 99, but fsgnn has"):
        tuning.configuration("cora", "fsgnn", 99)
    monkeypatch.setattr(tuning, "_table", lambda: {})
    with pytest.raises(InputError, match="none is chosen for cora fsgnn"):
        tuning.configuration("cora", "fsgnn", "chosen")
