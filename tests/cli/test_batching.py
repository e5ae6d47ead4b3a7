"""``--batching`` of compare and fit: what it does, and that a graph too large for memory is cut without being asked."""

import json

import pandas as pd
import pytest

from sharpen.errors import InputError
from sharpen.training import in_batches, memory
from tests.cli.test_compare import run as compare
from tests.cli.test_fit import COLUMNS, SMALL, run, write_club


def test_compare_in_clusters_says_so_and_records_it(tmp_path):
    result = compare(tmp_path, "digits", "--splits", "2", "--batching", "clusters-16-4")
    assert result.exit_code == 0
    assert "training in batches, clusters-16-4" in result.stderr
    assert set(pd.read_parquet(tmp_path / "records.parquet")["batching"]) == {"clusters-16-4"}
    assert json.loads((tmp_path / "comparison.json").read_text())["settings"]["batching"] == "clusters-16-4"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["comparison.json", "records.parquet", "traces.npz"]


def test_an_interrupted_compare_goes_on(tmp_path, monkeypatch):
    whole = compare(tmp_path / "whole", "digits", "--splits", "2", "--batching", "clusters-16-4", "--json")
    original, calls = in_batches.BatchedPopulation.epoch, []

    def epoch(self):
        calls.append(int(self.epoch_number))
        if len(calls) == 4:
            raise KeyboardInterrupt
        original(self)

    monkeypatch.setattr(in_batches.BatchedPopulation, "epoch", epoch)
    command = ("digits", "--splits", "2", "--batching", "clusters-16-4", "--json")
    stopped = compare(tmp_path / "stopped", *command)
    assert stopped.exit_code == 130
    assert "the same command resumes" in stopped.stderr
    resumed = compare(tmp_path / "stopped", *command)
    assert calls[:5] == [0, 1, 2, 3, 3], "the epoch in flight is done again, and nothing before it"
    assert json.loads(resumed.stdout)["comparison"] == json.loads(whole.stdout)["comparison"]
    assert not (tmp_path / "stopped" / "checkpoints").exists()


def test_what_does_not_fit_is_cut_and_a_line_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "memory_left", lambda device: 10**5)
    result = compare(tmp_path, "digits", "--splits", "2")
    (line,) = [line for line in result.stderr.splitlines() if "full batch" in line]
    assert line.startswith(
        "the full batch would need about 0.0 GB, but 0.0 GB are free on cpu; training in batches, clusters-248-4"
    )
    whole = compare(tmp_path, "digits", "--splits", "2", "--batching", "full")
    assert "batches" not in whole.stderr


def test_what_was_cut_goes_on_cut_when_there_is_more_memory(tmp_path, monkeypatch):
    original, epochs = in_batches.BatchedPopulation.epoch, []

    def epoch(self):
        epochs.append(int(self.epoch_number))
        if len(epochs) == 3:
            raise KeyboardInterrupt
        original(self)

    monkeypatch.setattr(in_batches.BatchedPopulation, "epoch", epoch)
    with monkeypatch.context() as patch:
        patch.setattr(memory, "memory_left", lambda device: 10**5)
        assert compare(tmp_path, "digits", "--splits", "1", "--seeds", "2").exit_code == 130
    result = compare(tmp_path, "digits", "--splits", "1", "--seeds", "2")
    assert epochs[:4] == [0, 1, 2, 2]
    assert "training in batches, clusters-248-4" in result.stderr
    assert not (tmp_path / "checkpoints").exists()
    assert "batches" not in compare(tmp_path, "digits", "--splits", "1", "--seeds", "2").stderr, "until it is done"


def test_fit_in_clusters_labels_and_predicts(tmp_path):
    nodes, edges, _ = write_club(tmp_path)
    out = tmp_path / "out"
    result = run("fit", nodes, edges, *COLUMNS, *SMALL, "--batching", "clusters-4-2", "--out", out)
    assert result.exit_code == 0
    assert result.stderr.count("training in batches, clusters-4-2") == 1
    assert "training in batches, clusters-4-2" in json.loads((out / "summary.json").read_text())["notes"]
    again = run("predict", out / "model.safetensors", nodes, edges, "--out", tmp_path / "again.csv")
    assert again.exit_code == 0
    first, second = pd.read_csv(out / "predictions.csv"), pd.read_csv(tmp_path / "again.csv")
    assert first["label"].tolist() == second["label"].tolist()


def test_an_unknown_batching_is_named(tmp_path):
    with pytest.raises(InputError, match="choose auto, full, clusters or neighbors"):
        compare(tmp_path, "digits", "--batching", "clumps")


def test_fit_is_not_for_torchrun(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="without torchrun"):
        run("fit", *write_club(tmp_path)[:2])
