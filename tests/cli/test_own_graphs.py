"""``compare`` and studies on a graph of the user's own: files, PyG's Data, a Graph."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

import sharpen
from sharpen.cli.app import app
from sharpen.errors import InputError
from sharpen.store import Store
from sharpen.studies import load_study
from sharpen.studies.plan import plan

FEW = ["--splits", "3", "--hidden", "4", "--layers", "2", "--epochs", "3", "--device", "cpu"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    party = np.repeat(["red", "blue"], 30)
    nodes = pd.DataFrame({"id": [f"n{i}" for i in range(60)], "age": rng.normal(size=60), "party": party})
    nodes.loc[::6, "party"] = None
    nodes.to_csv(tmp_path / "people.csv", index=False)
    ends = rng.integers(60, size=(2, 200))
    pd.DataFrame({"source": [f"n{i}" for i in ends[0]], "target": [f"n{i}" for i in ends[1]]}).to_csv(
        tmp_path / "friends.csv", index=False
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str):
    return CliRunner().invoke(app, [*arguments])


def test_compare_reads_the_files_that_fit_reads(folder):
    result = call("compare", "people.csv", "friends.csv", "--label", "party", *FEW)
    assert result.exit_code == 0, result.output
    written = json.loads((folder / "sharpen-out/compare-people-gcn/comparison.json").read_text())
    assert written["settings"]["dataset"] == "people"
    assert len(written["pairs"]) == 3
    graph = sharpen.compare(
        ("people.csv", "friends.csv"),
        columns=sharpen.files.Columns(label="party"),
        splits=3,
        hidden=4,
        layers=2,
        epochs=3,
        device="cpu",
        progress=False,
    )
    assert graph.summary["fingerprint"] == written["fingerprint"]
    assert json.loads(json.dumps(graph.summary["comparison"])) == written["comparison"]


def test_compare_takes_data_of_pyg(folder):
    data = pytest.importorskip("torch_geometric").data.Data(
        x=torch.randn(40, 3), edge_index=torch.randint(40, (2, 80)), y=torch.arange(40) % 2
    )
    options = {"splits": 2, "hidden": 4, "layers": 2, "epochs": 2, "device": "cpu", "progress": False}
    found = sharpen.compare(data, **options).comparison
    assert found == sharpen.compare(sharpen.Graph.from_pyg(data), **options).comparison


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.csv"], "nothing.csv does not exist"),
        (["people.csv", "nothing.csv"], "nothing.csv does not exist"),
        (["people.csv", "friends.csv", "--label", "sect"], "'sect'"),
        (["people.csv", "friends.csv", "--label", "party", "--splits", "paper"], "no splits of the paper"),
    ],
)
def test_what_is_wrong_with_the_files_is_told(folder, arguments, message):
    result = call("compare", *arguments, *(FEW[2:] if "--splits" in arguments else FEW))
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


STUDY = """\
title: Mine
datasets:
  - {entry}
models: [gcn]
runs: 3
trial: {{hidden: 4, epochs: 3, layers: 2}}
variants:
  baseline: {{lam: 0}}
  ts: {{lam: 0.25}}
baseline: baseline
compare: [ts - baseline]
"""
ENTRY = "{nodes: people.csv, edges: friends.csv, label: party, name: friends, metric: balanced-accuracy}"


def write(folder, entry: str = ENTRY):
    (folder / "mine.yaml").write_text(STUDY.format(entry=entry))
    return folder / "mine.yaml"


def test_a_study_of_ones_own_graph_is_run_resumed_and_reported(folder):
    path = write(folder)
    options = ["--store", "store", "--protocol", "paired"]
    first = call("study", "run", str(path), *options, "--device", "cpu")
    assert first.exit_code == 0, first.output
    again = call("study", "run", str(path), *options, "--device", "cpu", "--datasets", "friends")
    assert "0 trials trained, 6 recorded before" in again.output
    report = call("study", "report", str(path), *options, "--out", "report")
    assert report.exit_code == 0, report.output
    assert "friends" in next((folder / "report").rglob("*.md")).read_text()
    frame = Store(folder / "store").frame()
    assert set(frame["split"]) == {f"stratified-60-20-20-seed{seed}" for seed in range(3)}


def test_records_of_another_state_of_the_graph_do_not_count(folder):
    path = write(folder)
    before = plan(load_study(path), "paired")[0].trials["ts"]
    people = pd.read_csv("people.csv")
    people.loc[1, "age"] += 1
    people.to_csv("people.csv", index=False)
    after = plan(load_study(path), "paired")[0].trials["ts"]
    assert {trial.id for trial in before}.isdisjoint({trial.id for trial in after})


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{edges: friends.csv}", "has a file of nodes"),
        ("{nodes: nothing.csv}", "line 3: .*nothing.csv does not exist"),
        ("{nodes: people.csv, edges: friends.csv, label: party, metric: f1}", "metric is 'f1'"),
        ("{nodes: people.csv, edges: friends.csv, label: party, name: cora}", "'cora', which is a dataset of its own"),
        ("{nodes: people.csv, edges: friends.csv, label: [party]}", "label is .*; give the name of a column"),
        ("{nodes: people.csv, edges: friends.csv, label: party, splits: half}", "cannot be drawn"),
        ("{nodes: people.csv, edgse: friends.csv}", "did you mean 'edges'"),
        ("people.csv", "names the files of a graph of your own as"),
    ],
)
def test_a_mistake_in_a_study_is_named_with_its_place(folder, entry, message):
    with pytest.raises(InputError, match=message):
        load_study(write(folder, entry))


def test_splits_of_a_study_can_be_chosen(folder):
    path = write(folder, "{nodes: people.csv, edges: friends.csv, label: party, splits: balanced-5-10-10}")
    assert plan(load_study(path), "paired")[0].trials["ts"][1].split == "balanced-5-10-10-seed1"


def test_splits_for_pairs_are_splits():
    digits = sharpen.load_dataset("digits")
    first, second = digits.splits.paired(2)
    assert isinstance(first, sharpen.Split)
    assert sharpen.Trial(split=second) == sharpen.Trial(split=second.name)
