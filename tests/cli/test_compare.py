"""``sharpen compare`` from the command line to the files it leaves, on small runs of the real trainer."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from typer.testing import CliRunner, Result

import sharpen
from sharpen.cli.app import app
from sharpen.cli.compare import parse_lams
from sharpen.cli.outputs import write_together
from sharpen.comparison_plan import AUTO_LAMS, few_pairs, plan_pairs
from sharpen.datasets import Dataset, Splits
from sharpen.errors import InputError
from sharpen.graph import Graph
from sharpen.graph.splits import Split

SMALL = ("--epochs", "4", "--hidden", "8", "--device", "cpu", "--no-page")


def run(folder: Path, *options: str) -> Result:
    result = CliRunner().invoke(app, ["compare", *SMALL, "--out", str(folder), *options])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """One comparison on digits, for the tests that look at what it leaves."""
    folder = tmp_path_factory.mktemp("out") / "new" / "folder"
    return folder, run(folder, "digits", "--splits", "4", "--lam", "0.5", "--lr", "0.05", "--page")


def test_the_first_line_is_the_headline_and_a_table_follows(finished: tuple[Path, Result]) -> None:
    folder, result = finished
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0].startswith("Sharpening (λ = 0.5) ")
    assert lines[0].endswith("4 paired splits.")
    assert lines[3].startswith("baseline ")
    assert lines[4].startswith("0.5 ")
    assert str(folder) in lines[-1]


def test_the_files_hold_every_run_and_give_the_printed_numbers(finished: tuple[Path, Result]) -> None:
    folder, _ = finished
    assert sorted(path.name for path in folder.iterdir()) == [
        "comparison.json",
        "page.html",
        "records.parquet",
        "traces.npz",
    ]
    frame = pd.read_parquet(folder / "records.parquet")
    plain, sharp = frame[frame["lam"] == 0], frame[frame["lam"] == 0.5]
    assert len(frame) == 8
    assert plain[["split", "seed"]].to_numpy().tolist() == sharp[["split", "seed"]].to_numpy().tolist()
    assert plain["seed"].is_unique
    assert set(frame["epochs"]) == {4}
    assert set(frame["lr"]) == {0.05}
    result = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    difference = result["comparison"]["variants"][0]["difference"]
    assert difference["difference"] == pytest.approx(100 * (sharp["test"].mean() - plain["test"].mean()))
    assert difference["t_p"] == pytest.approx(stats.ttest_rel(sharp["test"], plain["test"]).pvalue)
    assert result["settings"]["hidden"] == 8
    assert result["fingerprint"] == sharpen.load_dataset("digits").graph.fingerprint
    assert set(result["split_ids"]) == set(frame["split"])
    assert result["versions"]["torch"] == torch.__version__
    traces = np.load(folder / "traces.npz")
    assert traces["loss"].shape == traces["val"].shape == (8, 4)
    np.testing.assert_allclose(traces["val"].max(axis=1), frame["val"])


def test_an_independent_call_of_train_gives_the_same_scores(finished: tuple[Path, Result]) -> None:
    frame = pd.read_parquet(finished[0] / "records.parquet")
    row = frame[frame["lam"] == 0.5].iloc[2]
    trial = sharpen.Trial(split=row["split"], seed=int(row["seed"]), lam=0.5, lr=0.05, epochs=4, hidden=8)
    (record,) = sharpen.train(sharpen.load_dataset("digits"), [trial], device="cpu", progress=False)
    assert record.test == pytest.approx(row["test"], abs=0.002)  # a node of 1,000 may turn with the order of sums


def test_json_is_all_that_is_printed(tmp_path: Path) -> None:
    result = run(tmp_path, "--splits", "2", "--json")
    printed = json.loads(result.stdout)
    assert result.stderr == ""
    assert printed == json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    assert printed["settings"]["lam"] == [0.5]


def test_quiet_prints_the_headline(tmp_path: Path) -> None:
    result = run(tmp_path, "--splits", "2", "--quiet")
    assert result.stderr == ""
    assert result.stdout == json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))["headline"] + "\n"


def test_the_page_can_be_left_out(tmp_path: Path) -> None:
    result = run(tmp_path, "--splits", "2", "--model", "mlp")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["comparison.json", "records.parquet", "traces.npz"]
    assert "page.html" not in result.stdout


def test_several_lams_share_one_baseline(tmp_path: Path) -> None:
    result = run(tmp_path, "--splits", "2", "--lam", "0.25,0,1,0.25", "--model", "mlp")
    frame = pd.read_parquet(tmp_path / "records.parquet")
    assert frame["lam"].tolist() == [0, 0, 0.25, 0.25, 1, 1]
    assert result.stdout.startswith("Of 2 values of λ on digits with an MLP, ")
    assert "p (Holm)" in result.stdout


def test_auto_takes_the_best_mean_validation_score(tmp_path: Path) -> None:
    result = run(tmp_path, "--splits", "2", "--lam", "auto", "--json")
    frame = pd.read_parquet(tmp_path / "records.parquet")
    means = frame.groupby("lam")["val"].mean()
    assert means.index.tolist() == [0, *AUTO_LAMS]
    assert json.loads(result.stdout)["comparison"]["chosen"] == means[means == means.max()].index.min()


def test_the_objective_of_the_sharpened_runs_leaves_the_baseline_alone(tmp_path: Path) -> None:
    run(
        tmp_path,
        "--splits",
        "1",
        "--lam",
        "0",
        "--lam-labeled",
        "0.1",
        "--balance",
        "0.2",
        "--q",
        "1",
        "--no-sharpen-val",
    )
    frame = pd.read_parquet(tmp_path / "records.parquet")
    plain, sharp = frame.iloc[0], frame.iloc[1]
    assert (plain["lam"], plain["lam_labeled"], plain["balance"]) == (0, 0, 0)
    assert (sharp["lam"], sharp["lam_labeled"], sharp["balance"], sharp["q"]) == (0, 0.1, 0.2, 1)
    assert not sharp["sharpen_val"]


def test_a_diverging_run_is_reported(tmp_path: Path) -> None:
    result = run(tmp_path, "--splits", "2", "--lr", "1e30", "--norm", "none")
    assert "Diverged, of 2 runs each: 2 of the baseline, 2 of λ = 0.5" in result.stdout
    assert json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))["comparison"]["test"] is None


def test_files_of_an_earlier_comparison_stay_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "a").write_text("earlier")

    def fail(file: object) -> None:
        raise OSError("disk full")

    with pytest.raises(InputError, match=r"disk full\); the results are in .*elsewhere.* \(a, but not b\)"):
        write_together(folder, {"a": lambda path: path.write_bytes(b"new"), "b": fail})
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("a", "earlier")]
    assert [path.read_text() for path in (tmp_path / "elsewhere").glob("*/*")] == ["new"]


def two_given() -> Dataset:
    graph = Graph(x=torch.eye(6), edge_index=[[0, 1, 3, 4], [1, 2, 4, 5]], y=[0, 0, 0, 1, 1, 1])
    splits = [Split(f"given-{i}", [0, 3], [1, 4], [2, 5]) for i in range(2)]
    return Dataset("pair", graph, splits=Splits(splits))


def test_seeds_make_up_for_splits_that_are_not_there() -> None:
    pairs, notes = plan_pairs(two_given(), 5, None)
    assert pairs == [("given-0", 0), ("given-0", 1), ("given-0", 2), ("given-1", 3), ("given-1", 4), ("given-1", 5)]
    assert notes == ["pair comes with 2 splits, not 5; 3 seeds on each are averaged, so that there are 2 pairs."]


def test_few_pairs_are_called_few() -> None:
    for count in (2, 3, 4, 5):  # the smallest p there is: all gains of one sign
        least = stats.wilcoxon(np.arange(1, count + 1), method="exact").pvalue
        for pairs in ([(f"s{i}", i) for i in range(count)], [("s", i) for i in range(count)]):
            assert f"With {count} pairs" in few_pairs(pairs)[0]
            assert f"cannot go below p = {least:g}." in few_pairs(pairs)[0]
    assert few_pairs([("a", 0), ("a", 1), ("b", 2), ("b", 3), ("b", 4)])[0].startswith("With 2 pairs")
    assert few_pairs([("s", i) for i in range(6)]) == few_pairs([("s", 0)]) == []


def test_splits_that_are_there_take_the_seeds_asked_for() -> None:
    assert plan_pairs(two_given(), 2, None) == ([("given-0", 0), ("given-1", 1)], [])
    assert len(plan_pairs(two_given(), 2, 4)[0]) == 8


def test_the_papers_splits_take_seeds_enough_for_a_comparison() -> None:
    assert len(plan_pairs(two_given(), None, None)[0]) == 10
    assert len(plan_pairs(two_given(), None, 3)[0]) == 6


def test_the_papers_split_of_cora(tmp_path: Path, data_root: Path) -> None:
    run(tmp_path, "cora", "--splits", "paper", "--seeds", "2", "--data", str(data_root), "--epochs", "1")
    frame = pd.read_parquet(tmp_path / "records.parquet")
    assert set(frame["split"]) == {"balanced-20-500-1000-seed123"}
    assert frame["lam"].tolist() == [0, 0, 0.25, 0.25]
    assert frame["seed"].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("corra",), "did you mean 'cora'"),
        (("--model", "gnc"), "did you mean 'gcn'"),
        (("--lam", "strong"), "--lam has 'strong', which is not a number"),
        (("--lam", "0.1,"), "--lam has '', which is not a number"),
        (("--lam", "nan"), "--lam is nan, which is not finite"),
        (("--lam", "0"), "--lam is 0, which is the baseline itself"),
        (("--splits", "0"), "--splits is '0'; give a number of at least 1"),
        (("--splits", "few"), "--splits is 'few'"),
        (("--seeds", "-2"), "--seeds is -2; give a number of at least 1"),
        (("--layers", "0"), "layers is 0"),
        (("--dropout", "1"), "dropout is 1"),
        (("--norm", "layers"), "did you mean 'layer'"),
        (("--device", "tpu"), "choose auto, cpu or cuda"),
        (("--precision", "float8"), "precision is 'float8'"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(tmp_path, "--splits", "1", *options)
    assert list(tmp_path.iterdir()) == []


def test_a_data_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = run(tmp_path, "--data", "not-there")
    assert result.exit_code == 2
    assert "not-there" in result.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_named_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--device is 'cuda', .*; choose cpu, or install"):
        run(tmp_path, "--device", "cuda")


def test_an_output_folder_that_cannot_be_is_named_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write to --out .*file"):
        run(tmp_path / "file", "--epochs", "1000000")


def test_lams_keep_their_order_and_their_sign() -> None:
    assert parse_lams(" 0.5, -0.25,0.5") == [0.5, -0.25, 0.5]  # each is compared once
    assert parse_lams("0,0.5") == [0, 0.5]
