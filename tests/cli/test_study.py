"""``sharpen study`` from the command line: what it prints, and that nothing is lost however it ends."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import sharpen
from sharpen.cli.app import app
from sharpen.errors import InputError
from sharpen.store import Store, StoreError
from sharpen.studies import list_studies, load_study, own_studies
from sharpen.studies.work import Work

TINY = """\
title: Tiny
datasets: [digits, wikics]
models: [gcn]
runs: 2
trial: {hidden: 4, layers: 2, epochs: 4}
variants:
  baseline: {lam: 0}
  ts-{lam}: {lam: [0.25, 0.5]}
baseline: baseline
"""


def call(*arguments: object) -> Result:
    result = CliRunner().invoke(app, ["study", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study on a machine without data."""
    monkeypatch.setenv("SHARPEN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY, encoding="utf-8")
    return path


def test_the_list_names_every_study():
    lines = call("list").stdout.splitlines()
    assert lines[1].split() == ["main", "Main", "results", "52", "9,676", "42,640"]
    assert any(line.startswith("comparison ") and "reads main" in line for line in lines)
    studies = json.loads(call("list", "--json").stdout)
    assert [each["name"] for each in studies] == [each.name for each in (*list_studies(), *own_studies())]
    assert studies[0]["trials"] == {"paper": 9676, "paired": 42640}


def test_the_list_counts_every_trial_once():
    studies = json.loads(call("list", "--json").stdout)
    for name, protocol in (("retune", "paper"), ("offset", "paper"), ("universal", "ablation")):
        (counted,) = (each["trials"][protocol] for each in studies if each["name"] == name)
        assert counted == len(Work([load_study(name)], protocol).trials)


@pytest.mark.parametrize(("option", "value", "near"), [("protocol", "pared", "paired"), ("precision", "tf23", "tf32")])
def test_status_names_what_it_does_not_know(tmp_path, option, value, near):
    with pytest.raises(InputError, match=f"no {option} '{value}'; did you mean '{near}'"):
        call("status", f"--{option}", value, "--store", tmp_path / "none", "--device", "cpu")


def test_status_refuses_what_run_refuses(tmp_path, tiny):
    for command in ("run", "status"):
        with pytest.raises(InputError, match="'tf32' exists on GPUs only"):
            call(command, tiny, "--precision", "tf32", "--device", "cpu", "--store", tmp_path / "none")


def test_a_time_limit_that_is_too_short_for_anything_says_what_is_needed(tmp_path, tiny):
    result = call("run", tiny, "--store", tmp_path / "store", "--device", "cpu", "--time-limit", "0.001")
    assert result.exit_code == 0
    assert "0 trials trained, 0 recorded before, 6 left" in result.stdout
    assert re.search(
        r"too short for any of them: .* needs about \d+ s; give --time-limit [\d.]+ or more", result.stdout
    )
    assert "To go on" not in result.stdout


def test_no_cell_left_names_those_that_there_are(tmp_path, tiny):
    with pytest.raises(InputError, match="no cell is left to run; tiny has digits, wikics with gcn"):
        call("run", tiny, "--models", "gat", "--store", tmp_path / "store", "--device", "cpu")


def test_run_status_and_run_again(tmp_path, tiny):
    store = tmp_path / "store"
    result = call("run", tiny, "--store", store, "--device", "cpu")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("tiny (paper): 12 trials, 0 recorded, 6 to train in 1 population, about ")
    assert re.match(r"digits gcn: 6 runs in \d+\.\d s, best validation \d+\.\d\d$", lines[1])
    assert lines[2].startswith("Left out: wikics gcn: its files are not on this machine; ")
    assert lines[3] == f"6 trials trained, 0 recorded before, 0 left; in {store}"
    shown = call("status", tiny, "--store", store, "--device", "cpu").stdout.splitlines()
    assert shown[1].split() == ["tiny", "digits", "gcn", "6", "/", "6"]
    assert shown[2].split()[:6] == ["tiny", "wikics", "gcn", "0", "/", "6"]
    assert "not on this machine" in shown[2]
    content = json.loads(call("status", tiny, "--store", store, "--device", "cpu", "--json").stdout)
    assert [cell["done"] for cell in content["studies"]["tiny"]] == [6, 0]
    assert content["problems"] == []
    assert "0 trials trained, 6 recorded before, 0 left" in call("run", tiny, "--store", store).stdout


def test_a_part_of_a_study_is_run_now_and_the_rest_later(tmp_path, tiny):
    store = tmp_path / "store"
    base = ("run", tiny, "--datasets", "digits", "--device", "cpu", "--store", store)
    assert "1 trials trained, 0 recorded before" in call(*base, "--variants", "ts-0.5", "--runs", 1).output
    (record,) = Store(store).frame().itertuples()
    assert (record.lam, record.seed) == (0.5, 0)
    assert "3 trials trained, 1 recorded before" in call(*base, "--variants", "baseline,ts-0.5").output
    assert "2 trials trained, 4 recorded before" in call(*base).output  # the ids are those of the whole study
    with pytest.raises(InputError, match=r"there is no variant 'ts-0.3'; did you mean 'ts-0.5'"):
        call(*base, "--variants", "ts-0.3")
    with pytest.raises(InputError, match="--variants is empty"):
        call(*base, "--variants", "")


def test_status_needs_neither_records_nor_data(tmp_path, tiny):
    result = call("status", "--store", tmp_path / "none", "--device", "cpu", "--max-epochs", "1")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:12]][:2] == ["main", "lambda-curves"]
    assert "0 / 9676" in lines[1]
    assert not (tmp_path / "none").exists()


def test_a_damaged_file_is_named_by_status_and_set_aside_by_run(tmp_path, tiny):
    store = tmp_path / "store"
    call("run", tiny, "--store", store, "--device", "cpu")
    before = Store(store).frame()
    (path,) = (store / "records").iterdir()
    path.write_bytes(path.read_bytes()[:1000])
    (store / "records" / "notes.txt").write_text("mine")
    shown = call("status", tiny, "--store", store).stdout
    assert f"cut off or damaged ({''.join(re.findall('damaged .(.*).: ', shown))}): {path}" in shown
    assert "notes.txt" in shown
    assert "0 / 6" in shown
    for left in (store / "records").iterdir():  # a file that has just changed may still be on its way in
        os.utime(left, (1, 1))
    result = call("run", tiny, "--store", store, "--device", "cpu")
    assert result.stdout.count("Not trusted, because ") == 2
    assert sorted(kept.name for kept in (store / "set-aside").iterdir()) == [
        f"records-{path.name}",
        "records-notes.txt",
    ]
    same = ["id", "val", "test", "best_epoch"]
    pd.testing.assert_frame_equal(Store(store).frame()[same], before[same])


def test_a_study_of_the_paper_on_real_data(tmp_path, data_root):
    options = ["--datasets", "cora", "--models", "gcn", "--max-epochs", "1", "--device", "cpu", "--data", data_root]
    result = call("run", "labeled-term", "universal", "--store", tmp_path, *options)
    assert result.exit_code == 0
    assert "15 trials trained" in result.stdout  # five runs of three variants: λ = 0.25 is in both studies
    frame = Store(tmp_path).frame()
    assert set(frame["split"]) == {"balanced-20-500-1000-seed123"}
    assert sorted(set(zip(frame["lam"], frame["lam_labeled"], strict=True))) == [(0, 0), (0.25, -0.25), (0.25, 0)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "mian"), "did you mean 'main'"),
        (("run", "main", "--datasets", "coral"), "did you mean 'cora'"),
        (("run", "main", "--models", "gnc"), "did you mean 'gcn'"),
        (("run", "main", "--protocol", "pared"), "did you mean 'paired'"),
        (("run", "main", "--datasets", "digits"), "no cell is left to run"),
        (("run", "arxiv"), "nothing could be run"),
        (("run", "nowhere.yaml"), "nowhere.yaml cannot be read"),
        (("status", "mian"), "did you mean 'main'"),
        (("run", "main", "--models", ""), "--models is empty; name some, or leave it out"),
        (("status", "main", "--datasets", " , "), "--datasets is empty"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, tiny, arguments, message):
    with pytest.raises(sharpen.InputError, match=message):
        call(*arguments, "--store", tmp_path / "store")


def test_a_file_without_its_ending_is_found(tmp_path, tiny, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sharpen.InputError, match=r"no study 'tiny', but there is a file tiny\.yaml"):
        call("run", "tiny")


@pytest.mark.parametrize("command", ["run", "status", "report"])
def test_a_store_that_is_a_file_is_named(tiny, command):
    with pytest.raises(StoreError, match="is a file; name a folder with --store"):
        call(command, tiny, "--store", tiny)


def test_status_says_that_there_is_no_store_and_which_protocols_there_are(tmp_path, tiny):
    said = call("status", tiny, "--store", tmp_path / "typo").stdout
    assert (
        f"There is no store {tmp_path / 'typo'} yet, protocol paper (--protocol paired, --protocol all for others);"
        in said
    )


def test_the_study_that_reads_another_stands_for_it(tmp_path, tiny):
    result = call("status", "comparison", "--store", tmp_path / "none", "--datasets", "cora", "--models", "mlp")
    assert "comparison has no trials of its own: it reads those of main." in result.stderr
    assert result.stdout.splitlines()[1].startswith("main   cora mlp  0 / 205")


# However it ends


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Sixty trials, run undisturbed, killed, killed where it hurts, by two at once, and interrupted."""
    if not hasattr(os, "fork"):
        pytest.skip("processes cannot be forked on this system")
    folder = tmp_path_factory.mktemp("ends")
    source = str(Path(sharpen.__file__).parents[1])
    script = Path(__file__).with_name("nursery.py")
    environment = os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(script), str(folder)], capture_output=True, text=True, env=environment, timeout=500
    )
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def scores(folder: Path) -> pd.DataFrame:
    """What the records say, and the check that there is one for each trial, in whole files, and nothing else."""
    files = list((folder / "records").glob("*.parquet"))
    assert sum(pq.read_metadata(path).num_rows for path in files) == 60
    store = Store(folder)
    assert store.problems() == []
    assert store.claims() == []
    frame = store.frame()
    assert len(frame) == 60
    return frame.sort_values("id", ignore_index=True)[["id", "lam", "seed", "val", "test", "best_epoch", "status"]]


def trained(folder: Path, name: str) -> list[int]:
    text = (folder / f"{name}.txt").read_text(encoding="utf-8")
    return [int(count) for count in re.findall(r"^(\d+) trials trained", text, flags=re.MULTILINE)]


def test_killed_ten_times_it_ends_with_the_records_of_an_undisturbed_run(ends):
    folder, codes = ends
    assert codes["undisturbed"] == codes["after the kills"] == 0
    assert codes["kills"] == [-9] * 10
    assert 0 < codes["done when the killing ended"] < 60
    pd.testing.assert_frame_equal(scores(folder / "killed"), scores(folder / "undisturbed"))
    # What was finished was not trained again.
    assert trained(folder, "killed") == [60 - codes["done when the killing ended"]]


def test_killed_at_the_worst_points_nothing_is_lost_or_doubled(ends):
    folder, codes = ends
    assert codes["points"] == [-9] * 5
    assert codes["after the points"] == 0
    found, expected = scores(folder / "points"), scores(folder / "undisturbed")
    assert found["id"].tolist() == expected["id"].tolist()
    assert (found["test"] - expected["test"]).abs().max() <= 0.002  # a node of 1,000 may turn with the order of sums
    assert Store(folder / "points").traced_ids() == set(expected["id"])


def test_two_runners_share_the_work(ends):
    folder, codes = ends
    assert codes["two"] == [0, 0]
    assert sum(trained(folder, "two")) == 60
    assert scores(folder / "two")["id"].tolist() == scores(folder / "undisturbed")["id"].tolist()


@pytest.mark.parametrize("how", ["interrupted", "twice"])
def test_interrupted_it_ends_soon_and_says_how_to_go_on(ends, how):
    folder, codes = ends
    assert codes[how] == 130
    text = (folder / f"{how}.txt").read_text(encoding="utf-8")
    assert f"To go on:\n  sharpen study run {folder / 'nursery.yaml'} --device cpu --store {folder / how}" in text
    assert "Traceback" not in text
    store = Store(folder / how)
    assert 0 < len(store.frame()) < 60
    assert len(store.frame()) == text.count(" run in ")
    assert store.claims() == []
    assert store.problems() == []
