"""Class proportions and collapsing runs on the command line."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sharpen
from sharpen.comparison_plan import AUTO_LAMS
from sharpen.errors import InputError
from sharpen.fitting.backbone import USUAL, Backbone
from sharpen.fitting.candidates import Candidate
from tests.cli.test_compare import run as run_compare
from tests.cli.test_fit import COLUMNS, run, write_club

SMALL = ("--hidden", "8", "--epochs", "20", "--device", "cpu", "--model", "gcn", "--lam", "0.25", "--no-page")


@pytest.mark.parametrize("how", ["by name", "file", "labels", "uniform"])
def test_fit_takes_class_proportions(how: str, tmp_path: Path) -> None:
    nodes, edges, _ = write_club(tmp_path)
    (tmp_path / "shares.csv").write_text("class,share\nOfficer,0.5\nMr. Hi,0.5\n")
    given = {"by name": "Mr. Hi=0.5,Officer=0.5", "file": str(tmp_path / "shares.csv")}.get(how, how)
    out = tmp_path / "out"
    result = run("fit", nodes, edges, *COLUMNS, *SMALL, "--class-prior", given, "--out", out)
    assert result.exit_code == 0
    names = {candidate["name"] for candidate in json.loads((out / "summary.json").read_text())["candidates"]}
    assert "GCN with λ = 0.25 and balance 0.25" in names
    assert "GCN with λ = 0.25" not in names  # who gives proportions wants them used
    assert run("predict", out / "model.safetensors", nodes, edges, "--out", tmp_path / "again.csv").exit_code == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("Officer=0.5", "--class-prior has no share for class 'Mr. Hi'"),
        ("Officer=0.5,Mr. Hi=0.6", "--class-prior sums to 1.1"),
        ("unifrom", "--class-prior is 'unifrom'; did you mean 'uniform'"),
    ],
)
def test_fit_refuses_proportions_that_do_not_fit(given: str, message: str, tmp_path: Path) -> None:
    nodes, edges, _ = write_club(tmp_path)
    with pytest.raises(InputError, match=message):
        run("fit", nodes, edges, *COLUMNS, *SMALL, "--class-prior", given, "--out", tmp_path / "out")
    assert not (tmp_path / "out" / "summary.json").exists()


def test_proportions_without_a_balance_are_refused_before_a_file_is_read() -> None:
    with pytest.raises(InputError, match="class-prior is 'labels', but balance is 0, so that it would do nothing"):
        run("fit", "nowhere.csv", *SMALL, "--class-prior", "labels", "--balance", "0")


def test_compare_takes_a_prior(tmp_path: Path) -> None:
    options = ("digits", "--splits", "2", "--lam", "0.25", "--balance", "0.25", "--prior", "labels")
    assert run_compare(tmp_path, *options).exit_code == 0
    frame = pd.read_parquet(tmp_path / "records.parquet")
    assert frame["prior"].fillna("none").tolist() == ["none"] * 2 + ["labels"] * 2


def test_compare_says_where_classes_are_emptied() -> None:
    options = {"splits": 2, "hidden": 8, "epochs": 60, "lr": 0.05, "device": "cpu", "progress": False}
    result = sharpen.compare("digits", lam=[0.25, 20.0], lam_labeled=0.0, **options)
    notes = [note for note in result.notes if "empties classes" in note]
    assert len(notes) == 1
    assert notes[0].startswith("λ = 20 empties classes in 2 of 2 runs: at the last epoch")
    assert "plain training" in notes[0]
    assert notes[0] in repr(result).replace("\n", " ")
    assert result.records[-1].metrics["class_use_last"] < 0.5 < result.records[0].metrics["class_use_last"]


@pytest.mark.parametrize(("lam", "lams"), [(None, [0.25]), ("auto", AUTO_LAMS)])
def test_compare_has_a_balance_where_labels_are_few(lam: str | None, lams: list[float]) -> None:
    """Three labels for each of two classes: a balance, unless somebody says otherwise; with forty, none."""
    rng = np.random.default_rng(0)
    graph = sharpen.Graph(x=rng.normal(size=(100, 3)), edge_index=[[0, 1], [1, 2]], y=np.arange(100) % 2)
    few = sharpen.Split("few", train=range(6), val=range(6, 20), test=range(20, 100))
    many = sharpen.Split("many", train=range(80), val=range(80, 90), test=range(90, 100))
    options = {"seeds": 2, "hidden": 4, "epochs": 2, "device": "cpu", "progress": False}
    result = sharpen.compare(graph, lam=lam, splits=[few], **options)
    assert [record.trial.balance for record in result.records] == [0, 0, *[0.25] * 2 * len(lams)]
    assert [record.trial.lam for record in result.records[2::2]] == list(lams)
    assert any(note.startswith("With 3 labels per class a balance of 0.25 keeps") for note in result.notes)
    for settings in ({"splits": [many]}, {"splits": [few], "balance": 0.0}):
        other = sharpen.compare(graph, lam=lam, **settings, **options)
        assert {record.trial.balance for record in other.records} == {0.0}
        assert not any("emptying classes" in note for note in other.notes)


def test_fit_says_where_the_chosen_empty_classes() -> None:
    backbone = Backbone(USUAL | {"lr": 0.01, "weight_decay": 0.0, "epochs": 1, "q": 2.0})
    sharp, plain = Candidate("gcn", lam=1.0), Candidate("gcn")
    backbone._uses = {sharp: [0.1, 0.9], plain: [0.95, 0.95]}
    (note,) = backbone.collapses([Candidate("gcn", lam=1.0, spread=True)])
    assert note.startswith("GCN with λ = 1 empties classes in 1 of 2 runs")
    assert not note.endswith(".")
    assert backbone.collapses([plain]) == []
    backbone._uses = {sharp: [0.3], plain: [0.4]}  # the classes are that unequal
    assert backbone.collapses([sharp]) == []
    backbone._uses = {sharp: [np.nan]}
    assert backbone.collapses([sharp]) == []
