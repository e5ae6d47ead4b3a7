"""``sharpen study report`` from a store on disk."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sharpen.cli.app import app
from sharpen.errors import InputError
from sharpen.store import Store
from sharpen.studies import load_study, plan
from sharpen.trial import Record
from tests.studies.fake import bump, score

STUDY = """
title: Mine | yours <b>
datasets: [digits]
models: [gcn]
trial: {epochs: 3}
variants:
  baseline: {lam: 0}
  ts-{lam}: {lam: [0.25, 0.5, 1]}
baseline: baseline
choose: {tuned: [baseline, ts-*]}
compare: [tuned - baseline, ts-0.25 - baseline]
"""


def sharpen(*args: str) -> str:
    result = CliRunner().invoke(app, ["study", *args])
    if isinstance(result.exception, InputError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with the paired runs of a study of one's own."""
    (tmp_path / "mine.yaml").write_text(STUDY)
    study = load_study(tmp_path / "mine.yaml")
    for cell in plan(study, "paired"):
        trials = {t.id: t for variant in cell.trials.values() for t in variant}.values()
        Store(tmp_path / "store").add(
            [
                Record(
                    t,
                    score(t, bump, "val"),
                    score(t, bump, "test"),
                    1,
                    "ok",
                    0.5,
                    "cpu",
                    "float32",
                    versions={"torch": "2"},
                )
                for t in trials
            ]
        )
    return tmp_path / "store"


def test_a_data_folder_that_is_gone_does_not_keep_records_from_being_reported(store, tmp_path, monkeypatch):
    monkeypatch.setenv("SHARPEN_DATA", str(tmp_path / "gone"))
    said = sharpen(
        "report", "universal", str(tmp_path / "mine.yaml"), "--store", str(store), "--out", str(tmp_path / "o")
    )
    assert "mine-paired: λ by validation against plain training: of 1 cell," in said
    assert "data not at hand" in (tmp_path / "o" / "universal-paper.md").read_text(encoding="utf-8")


def test_a_study_of_ones_own_is_reported_under_the_protocol_that_has_records(store, tmp_path):
    out = tmp_path / "out"
    said = sharpen("report", str(tmp_path / "mine.yaml"), "--store", str(store), "--out", str(out), "--figures")
    assert "mine-paired: λ by validation against plain training: of 1 cell," in said
    names = {path.name for path in out.iterdir()}
    assert names == {"mine-paired.md", "mine-paired.csv", "mine-paired.tex", "figures", "page.html"}
    page = (out / "mine-paired.md").read_text(encoding="utf-8")
    assert page.startswith("# Mine \\| yours &lt;b>")
    for figure in (out / "figures").iterdir():
        assert figure.stat().st_size > 1000
    linked = {line.split("(figures/")[1][:-1] for line in page.splitlines() if line.startswith("![")}
    assert linked == {path.name for path in (out / "figures").iterdir() if path.suffix == ".png"}
    assert {path.suffix for path in (out / "figures").iterdir()} == {".png", ".svg"}


def test_the_same_records_give_the_same_files(store, tmp_path):
    for out in ("a", "b"):
        sharpen("report", str(tmp_path / "mine.yaml"), "--store", str(store), "--out", str(tmp_path / out), "--figures")
    for path in (tmp_path / "a").rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()


def test_a_store_without_records_is_named(tmp_path):
    with pytest.raises(InputError, match="there are no records in"):
        sharpen("report", "--store", str(tmp_path / "none"))


def test_a_misspelt_protocol_is_named(store):
    with pytest.raises(InputError, match="did you mean 'paired'"):
        sharpen("report", "universal", "--store", str(store), "--protocol", "pared")


def test_runs_with_a_limit_are_found_with_it(store, tmp_path):
    said = sharpen("report", "arxiv", "--store", str(store), "--out", str(tmp_path / "out"))
    assert "None of the 80 records belongs to these studies" in said
    assert "runs of 3 epochs" in said


def test_what_no_run_belongs_to_is_said_so(store, tmp_path):
    mine, options = str(tmp_path / "mine.yaml"), ("--store", str(store), "--out", str(tmp_path / "out"))
    assert "None of the" not in sharpen("report", mine, *options)
    said = sharpen("report", mine, "--max-epochs", "2", *options)
    assert "look at --protocol and --max-epochs (there are runs of 3 epochs)" in said
    with pytest.raises(InputError, match="none of these studies is run under ablation; leave --protocol out"):
        sharpen("report", "main", "--protocol", "ablation", *options)


def test_a_study_that_reads_another_has_that_ones_records(tmp_path):
    trials = plan(load_study("main"), "paper", ["cora"], ["gcn"])[0].trials["baseline"]
    Store(tmp_path / "store").add([Record(t, 0.8, 0.8, 1, "ok", 0.5, "cpu", "float32") for t in trials])
    options = ("--store", str(tmp_path / "store"), "--out", str(tmp_path / "out"), "--no-page", "--protocol", "paper")
    assert "None of the" not in sharpen("report", "comparison", *options)
    assert "None of the 5 records belongs to these studies" in sharpen("report", "arxiv", *options)
    assert "None of the" not in sharpen("report", "main", *options)
    assert "None of the" in sharpen("report", "main", *options[:-1], "paired")


def test_two_different_studies_of_one_name_would_share_their_files(store, tmp_path):
    (tmp_path / "main.yaml").write_text(STUDY)
    with pytest.raises(InputError, match="two different studies are called 'main'"):
        sharpen("report", "main", str(tmp_path / "main.yaml"), "--store", str(store), "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_the_list_counts_only_what_a_protocol_has():
    found = {each["name"]: each["trials"] for each in json.loads(sharpen("list", "--json"))}
    assert found["labeled-term"]["ablation"] == 3 * 3 * 2 * 5
    assert set(found["main"]) == {"paper", "paired"}


def test_the_option_that_became_a_script_says_where_it_went(store, tmp_path):
    with pytest.raises(InputError, match=r"python results/findings\.py FILE --store STORE"):
        sharpen("report", "--store", str(store), "--findings", str(tmp_path / "findings.md"))
