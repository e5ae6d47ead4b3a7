"""``sharpen fit``, ``predict`` and ``evaluate`` from two files to the files they leave."""

import json
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from sharpen.cli.app import app
from sharpen.errors import InputError

SMALL = ("--hidden", "8", "--epochs", "20", "--device", "cpu", "--model", "gcn,mlp", "--lam", "0.25", "--balance", "0")
KNOWN = (0, 1, 2, 3, 7, 33, 32, 31, 30, 29)


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def write_club(folder: Path, known: tuple[int, ...] = KNOWN) -> tuple[Path, Path, Path]:
    """Zachary's karate club: members with their distance to the teacher, friendships, and who went with whom."""
    club = networkx.karate_club_graph()
    far = dict(networkx.all_pairs_shortest_path_length(club))
    truth = [club.nodes[node]["club"] for node in club]
    nodes = pd.DataFrame(
        {
            "member": [f"m{node}" for node in club],
            "handshakes": [far[0][node] for node in club],
            "belt": [("white", "black")[node % 3 == 0] for node in club],
            "side": [label if node in known else "" for node, label in zip(club, truth, strict=True)],
        }
    )
    edges = pd.DataFrame([(f"m{a}", f"m{b}") for a, b in club.edges], columns=["source", "target"])
    later = pd.DataFrame({"member": nodes["member"], "side": truth})
    for name, frame in (("nodes", nodes), ("edges", edges), ("later", later)):
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder / "nodes.csv", folder / "edges.csv", folder / "later.csv"


CLASSES = ["probability of Mr. Hi", "probability of Officer"]
COLUMNS = ("--id", "member", "--label", "side")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("club")
    nodes, edges, _ = write_club(folder)
    return folder, run(
        "fit",
        nodes,
        edges,
        *COLUMNS,
        *SMALL,
        "--every-class",
        "--abstain",
        "0.6",
        "--suggest",
        "3",
        "--out",
        folder / "out",
    )


def test_a_fit_leaves_predictions_a_model_and_a_summary(finished: tuple[Path, Result]) -> None:
    folder, result = finished
    assert result.exit_code == 0
    assert sorted(p.name for p in (folder / "out").iterdir()) == [
        "model.safetensors",
        "page.html",
        "predictions.csv",
        "suggestions.csv",
        "summary.json",
    ]
    frame = pd.read_csv(folder / "out" / "predictions.csv")
    assert list(frame)[:7] == ["id", "label", "probability", "second", "margin", "entropy", "labeled"]
    assert list(frame)[7:] == [*CLASSES, "because_neighbors", "because_columns"]
    assert frame["id"].tolist() == [f"m{i}" for i in range(34)]
    assert frame.index[frame["labeled"]].tolist() == sorted(KNOWN)
    p = frame[CLASSES].to_numpy()
    assert p.max(1) == pytest.approx(frame["probability"])
    assert (p.max(1) - p.min(1)) == pytest.approx(frame["margin"])
    assert -(p * np.log(p)).sum(1) == pytest.approx(frame["entropy"], abs=1e-9)
    assert frame["label"].isna().tolist() == (frame["probability"] < 0.6).tolist()
    answered = frame["label"].notna()
    assert (frame["label"] != frame["second"])[answered].all()


def test_the_summary_says_what_is_printed(finished: tuple[Path, Result]) -> None:
    folder, result = finished
    summary = json.loads((folder / "out" / "summary.json").read_text(encoding="utf-8"))
    lines = result.stdout.splitlines()
    assert lines[0] == summary["expectation"]
    assert all(verdict["text"] in lines for verdict in summary["verdicts"])
    assert summary["graph"]["labeled"] == 10
    assert summary["abstain"]["threshold"] == 0.6
    assert any(line.startswith("Abstaining below 0.6") for line in lines)


def test_reasons_are_neighbours_and_columns_of_the_files_for_unlabeled_nodes(finished: tuple[Path, Result]) -> None:
    folder, result = finished
    frame = pd.read_csv(folder / "out" / "predictions.csv").set_index("id")
    club, summary = networkx.karate_club_graph(), json.loads((folder / "out" / "summary.json").read_text("utf-8"))
    assert frame.loc[frame["labeled"], ["because_neighbors", "because_columns"]].isna().all(axis=None)
    said = frame["because_neighbors"].dropna()
    assert len(said) > 12
    for node, text in said.items():
        named = [entry.split(" (+")[0] for entry in text.split("; ")]
        assert {int(name[1:]) for name in named} <= set(club[int(node[1:])])
        assert len(named) <= 3
    columns = {entry.split(" (+")[0] for text in frame["because_columns"].dropna() for entry in text.split("; ")}
    own = {name.removeprefix("low ").removesuffix(" of neighbours") for name in columns - {"labels of neighbours"}}
    assert own <= {"handshakes", "belt = black", "belt = white"}
    assert summary["reasons"]["method"] == "stand-in"
    assert summary["reasons"]["nodes"] == 24
    assert summary["reasons"]["text"] in result.stdout


def test_suggestions_are_unlabeled_nodes_in_the_file_the_summary_and_the_output(
    finished: tuple[Path, Result],
) -> None:
    folder, result = finished
    frame = pd.read_csv(folder / "out" / "suggestions.csv")
    assert list(frame) == ["id", "label", "probability", "left"]
    assert len(frame) == 3
    assert not set(frame["id"]) & {f"m{i}" for i in KNOWN}
    summary = json.loads((folder / "out" / "summary.json").read_text("utf-8"))
    assert [row["id"] for row in summary["suggestions"]] == frame["id"].tolist()
    assert f"Worth labeling next: {', '.join(frame['id'])};" in result.stdout
    assert "Worth labeling next" in (folder / "out" / "page.html").read_text("utf-8")


def test_predict_on_the_same_files_repeats_the_fit(finished: tuple[Path, Result], tmp_path: Path) -> None:
    folder, _ = finished
    model, out = folder / "out" / "model.safetensors", tmp_path / "again.parquet"
    result = run(
        "predict", model, folder / "nodes.csv", folder / "edges.csv", "--every-class", "--out", out, "--device", "cpu"
    )
    assert result.exit_code == 0
    before, after = pd.read_csv(folder / "out" / "predictions.csv"), pd.read_parquet(out)
    assert after["probability"].tolist() == pytest.approx(before["probability"].tolist(), abs=1e-12)
    assert after["labeled"].tolist() == before["labeled"].tolist()


def test_predict_on_a_grown_graph_without_labels(finished: tuple[Path, Result], tmp_path: Path) -> None:
    folder, _ = finished
    nodes = pd.read_csv(folder / "nodes.csv").drop(columns="side")
    nodes.loc[34] = ["new", 2, "red"]
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    (tmp_path / "edges.csv").write_text((folder / "edges.csv").read_text() + "new,m33\n")
    result = run("predict", folder / "out" / "model.safetensors", tmp_path / "nodes.csv", tmp_path / "edges.csv",
                 "--out", tmp_path / "p.csv")  # fmt: skip
    frame = pd.read_csv(tmp_path / "p.csv")
    assert frame["id"].tolist()[-1] == "new"
    assert frame["label"].iloc[-1] in ("Mr. Hi", "Officer")
    assert not frame["labeled"].any()
    assert "'red'" in result.stderr


def test_predict_refuses_a_table_without_a_column_it_learnt_from(finished: tuple[Path, Result], tmp_path: Path) -> None:
    folder, _ = finished
    pd.read_csv(folder / "nodes.csv").drop(columns="belt").to_csv(tmp_path / "nodes.csv", index=False)
    with pytest.raises(InputError, match="belt"):
        run("predict", folder / "out" / "model.safetensors", tmp_path / "nodes.csv", folder / "edges.csv",
            "--out", tmp_path / "p.csv")  # fmt: skip
    assert not (tmp_path / "p.csv").exists()


def test_predict_without_edges_is_refused_unless_they_are_said_to_be_none(
    finished: tuple[Path, Result], tmp_path: Path
) -> None:
    folder, _ = finished
    model, nodes, out = folder / "out" / "model.safetensors", folder / "nodes.csv", tmp_path / "p.csv"
    with pytest.raises(InputError, match=r"model\.safetensors: was fitted with 78 edges.* give the edges file after"):
        run("predict", model, nodes, "--out", out)
    assert not out.exists()
    (tmp_path / "none.csv").write_text("source,target\n")
    result = run("predict", model, nodes, tmp_path / "none.csv", "--out", out, "--device", "cpu")
    assert result.exit_code == 0
    assert "none.csv has a header but no row" in result.stderr
    assert len(pd.read_csv(out)) == 34


def test_predict_says_how_many_nodes_are_answered(finished: tuple[Path, Result], tmp_path: Path) -> None:
    folder, _ = finished
    files = (folder / "out" / "model.safetensors", folder / "nodes.csv", folder / "edges.csv")
    threshold = pd.read_csv(folder / "out" / "predictions.csv")["probability"].median()
    out = tmp_path / "p.csv"
    result = run("predict", *files, "--abstain", threshold, "--out", out, "--device", "cpu")
    blank = int(pd.read_csv(out)["label"].isna().sum())
    assert 0 < blank < 34
    assert f"{34 - blank} of 34 nodes are labeled in {out}; {blank} are left blank" in result.stderr


def test_predict_writes_parquet_as_fit_does(
    finished: tuple[Path, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = finished
    files = (folder / "out" / "model.safetensors", folder / "nodes.csv", folder / "edges.csv")
    monkeypatch.chdir(tmp_path)
    run("predict", *files, "--parquet", "--device", "cpu")
    assert len(pd.read_parquet("predictions.parquet")) == 34
    with pytest.raises(InputError, match=r"--parquet is given, but --out is p\.csv"):
        run("predict", *files, "--parquet", "--out", "p.csv")


def test_predict_prints_json_and_writes_nothing(
    finished: tuple[Path, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = finished
    files = (folder / "out" / "model.safetensors", folder / "nodes.csv", folder / "edges.csv")
    monkeypatch.chdir(tmp_path)
    result = run("predict", *files, "--json", "--abstain", "0.6", "--device", "cpu")
    told = json.loads(result.stdout)
    before = pd.read_csv(folder / "out" / "predictions.csv")
    assert [one["id"] for one in told["predictions"]] == before["id"].tolist()
    labels = [None if pd.isna(label) else label for label in before["label"]]
    assert [one["label"] for one in told["predictions"]] == labels
    assert [one["probability"] for one in told["predictions"]] == pytest.approx(before["probability"].tolist())
    assert "source and target columns: source, target (guessed)" in told["notes"]
    assert result.stderr == ""
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="--json prints the predictions and writes no file"):
        run("predict", *files, "--json", "--out", "p.csv")


def test_predict_without_a_model_asks_for_it_in_its_own_words(finished: tuple[Path, Result], tmp_path: Path) -> None:
    folder, _ = finished
    with pytest.raises(InputError, match="is not a model that sharpen saved, or is damaged; give the model") as error:
        run("predict", folder / "nodes.csv", folder / "edges.csv", "--out", tmp_path / "p.csv")
    assert "deserializing" not in str(error.value)


def test_evaluate_counts_what_the_fit_did_not_know(finished: tuple[Path, Result], tmp_path: Path) -> None:
    folder, _ = finished
    out = folder / "out" / "predictions.csv"
    result = run("evaluate", out, folder / "later.csv", "--id", "member", "--label", "side", "--json")
    scores = json.loads(result.stdout)
    frame, truth = pd.read_csv(out), pd.read_csv(folder / "later.csv")["side"]
    unknown = ~frame["labeled"]
    answered = unknown & frame["label"].notna()
    assert scores["nodes"] == 24
    assert scores["answered"] == pytest.approx(answered.sum() / 24)
    assert scores["accuracy"] == pytest.approx((frame["label"] == truth)[answered].mean())
    assert {"brier", "log_loss", "ece", "macro_f1"} <= set(scores)
    everything = json.loads(
        run("evaluate", out, folder / "later.csv", "--id", "member", "--label", "side", "--all", "--json").stdout
    )
    assert everything["nodes"] == 34
    (tmp_path / "other.csv").write_text("id,label\nz,a\ny,b\n")
    with pytest.raises(InputError, match="check that the ids are the same"):
        run("evaluate", out, tmp_path / "other.csv")


@pytest.mark.parametrize(
    ("known", "options", "message"),
    [
        ((), (), "every label is missing|no column looks like a label"),
        ((0,), (), "only one node has a label"),
        ((0, 1, 2, 3), (), "all 4 labels are 'Mr. Hi'"),
        (KNOWN, ("--abstain", "2"), "--abstain is 2.0"),
        (KNOWN, ("--lam", "much"), "--lam has 'much'"),
        (KNOWN, ("--model", "gnc"), "--model is 'gnc'; did you mean 'gcn'"),
        (KNOWN, ("--metric", "f1"), "--metric is 'f1'"),
        (KNOWN, ("--class-weight", "heavy"), "--class-weight is 'heavy'; give 'balanced'"),
        (KNOWN, ("--budget", "-1"), "--budget is -1; give"),
        (KNOWN, ("--device", "tpu"), "device is 'tpu'"),
        (KNOWN, ("--label", "party"), "party"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    known: tuple[int, ...], options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    nodes, edges, _ = write_club(tmp_path, known)
    with pytest.raises(InputError, match=message):
        run("fit", nodes, edges, *COLUMNS, *SMALL, "--out", tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()


def test_one_label_of_each_class_is_answered_and_promises_nothing(tmp_path: Path) -> None:
    nodes, edges, _ = write_club(tmp_path, (0, 33))
    options = ("--device", "cpu", "--suggest", "2", "--abstain", "0.6")
    result = run("fit", nodes, edges, *COLUMNS, *options, "--out", tmp_path / "out")
    assert result.exit_code == 0
    named = pd.read_csv(tmp_path / "out" / "suggestions.csv")["id"]
    assert f"Worth labeling next: {', '.join(named)};" in result.stdout
    assert "Abstaining below 0.6:" in result.stdout
    assert "Reasons are" in result.stdout
    assert result.stdout.startswith("How often predictions are right cannot be said")
    assert "Used: self-training on S²GC features." in result.stdout
    assert "give at least 3 labeled nodes in each of two classes" in result.stdout
    assert json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))["expected"]["accuracy"] is None
    assert (tmp_path / "out" / "page.html").exists()
    again = run("predict", tmp_path / "out" / "model.safetensors", nodes, edges, "--out", tmp_path / "p.csv")
    assert again.exit_code == 0
    assert pd.read_csv(tmp_path / "p.csv")["probability"].equals(
        pd.read_csv(tmp_path / "out" / "predictions.csv")["probability"]
    )


def test_options_are_refused_before_files_are_read(tmp_path: Path) -> None:
    for option, value in (
        ("--budget", "0"),
        ("--model", "gnc"),
        ("--hidden", "0"),
        ("--class-weight", "heavy"),
        ("--batching", "clumps"),
        ("--suggest", "0"),
        ("--explain", "-1"),
    ):
        with pytest.raises(InputError, match=f"^{option} is '?{value}"):
            run("fit", tmp_path / "nowhere.csv", option, value, "--device", "cpu")


def test_one_candidate_and_one_run_are_said_in_the_singular(tmp_path: Path) -> None:
    nodes, edges, _ = write_club(tmp_path)
    alone = (*COLUMNS, *SMALL, "--model", "gcn", "--lam", "0", "--no-page", "--explain", "0", "--out", tmp_path / "out")
    result = run("fit", nodes, edges, *alone)
    assert "10 labels, 1 candidate; the first run is timed" in result.stderr
    assert "round 1: 1 candidate, 4 runs" in result.stderr
    assert "because_columns" not in pd.read_csv(tmp_path / "out" / "predictions.csv")


def test_a_class_with_one_member_is_learnt_and_noted(tmp_path: Path) -> None:
    nodes, edges, _ = write_club(tmp_path)
    frame = pd.read_csv(nodes)
    frame.loc[16, "side"] = "neither"
    frame.to_csv(nodes, index=False)
    result = run("fit", nodes, edges, *COLUMNS, *SMALL, "--quiet", "--parquet", "--out", tmp_path / "out")
    assert "'neither' has 1 labeled node" in result.stdout
    assert (tmp_path / "out" / "predictions.parquet").exists()
    assert result.stderr == ""


def test_without_edges_nothing_is_said_about_the_graph_and_predict_needs_none(tmp_path: Path) -> None:
    nodes, _, _ = write_club(tmp_path)
    out = tmp_path / "out"
    result = run("fit", nodes, *COLUMNS, *SMALL, "--model", "auto", "--out", out)
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    models = {candidate["model"] for candidate in summary["candidates"]}
    assert models == {"mlp", "logistic", "linear", "trees"}  # which need no edges
    assert not any(candidate["spread"] for candidate in summary["candidates"])
    assert [verdict["question"] for verdict in summary["verdicts"]] == ["sharpening"]
    assert list(summary["baselines"]) == ["with sharpening", "without sharpening"]
    assert "Note: there are no edges, so models that need none are trained" in result.stdout
    asked = run("fit", nodes, *COLUMNS, *SMALL, "--out", tmp_path / "asked")  # a GCN and an MLP, as the user wants
    assert "The graph" not in asked.stdout
    assert "without the graph" not in asked.stdout
    run("predict", out / "model.safetensors", nodes, "--out", tmp_path / "p.csv", "--device", "cpu")
    again, fitted = (pd.read_csv(path)["probability"] for path in (tmp_path / "p.csv", out / "predictions.csv"))
    assert again.equals(fitted)


def test_with_neither_features_nor_edges_the_output_says_what_that_means(tmp_path: Path) -> None:
    nodes, _, _ = write_club(tmp_path)
    arguments = (*COLUMNS, *SMALL, "--ignore", "handshakes,belt", "--no-page", "--out", tmp_path / "out")
    result = run("fit", nodes, *arguments)
    assert "nothing tells nodes apart, so all get the same answer" in result.stderr
    assert pd.read_csv(tmp_path / "out" / "predictions.csv")["probability"].nunique() == 1


def test_weights_of_edges_count_and_the_output_says_for_whom(tmp_path: Path) -> None:
    nodes, edges, _ = write_club(tmp_path)
    frame = pd.read_csv(edges)
    frame["weight"] = np.where(np.arange(len(frame)) % 2, 9, 1)
    frame.to_csv(tmp_path / "weighted.csv", index=False)
    small = [*COLUMNS, *SMALL, "--model", "gcn", "--class-weight", "balanced"]
    run("fit", nodes, edges, *small, "--out", tmp_path / "plain")
    result = run("fit", nodes, tmp_path / "weighted.csv", *small, "--out", tmp_path / "weighted")
    assert "edge weights: 1 to 9, 5 in the mean; GCN and GraphSAGE use them, GAT and MLP do not" in result.stderr
    plain, weighted = (pd.read_csv(tmp_path / name / "predictions.csv") for name in ("plain", "weighted"))
    assert not np.allclose(plain["probability"], weighted["probability"])
    attentive = run("fit", nodes, tmp_path / "weighted.csv", *small, "--model", "gat", "--out", tmp_path / "gat")
    assert "Note: GAT, which is used, learns weights of its own" in attentive.stdout


def test_weights_are_divided_by_what_they_were_when_fitted(tmp_path: Path) -> None:
    nodes, edges, _ = write_club(tmp_path)
    frame = pd.read_csv(edges)
    frame["weight"] = np.where(np.arange(len(frame)) % 2, 9, 1)
    frame.to_csv(edges, index=False)
    fitted = run("fit", nodes, edges, *COLUMNS, *SMALL, "--model", "gcn", "--out", tmp_path / "out")
    assert "edge weights: divided by 5, their mean" in fitted.stderr
    frame["weight"] *= 10
    frame.to_csv(tmp_path / "tenfold.csv", index=False)
    p = {}
    for name in ("edges", "tenfold"):
        result = run("predict", tmp_path / "out" / "model.safetensors", nodes, tmp_path / f"{name}.csv",
                     "--out", tmp_path / "p.csv", "--device", "cpu")  # fmt: skip
        assert "edge weights are divided by 5, their mean when the model was fitted" in result.stderr
        p[name] = pd.read_csv(tmp_path / "p.csv")["probability"]
    assert p["edges"].equals(pd.read_csv(tmp_path / "out" / "predictions.csv")["probability"])
    assert not np.allclose(p["edges"], p["tenfold"])


def test_a_label_that_is_no_class_of_the_model_is_named(finished: tuple[Path, Result], tmp_path: Path) -> None:
    folder, _ = finished
    nodes = pd.read_csv(folder / "nodes.csv")
    nodes.loc[[4, 5], "side"] = "neither"
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    result = run("predict", folder / "out" / "model.safetensors", tmp_path / "nodes.csv", folder / "edges.csv",
                 "--out", tmp_path / "p.csv")  # fmt: skip
    assert "label 'neither' is no class of the model: 2 nodes with it count as unlabeled" in result.stderr
    assert not pd.read_csv(tmp_path / "p.csv")["labeled"][[4, 5]].any()


def test_known_labels_are_spread_by_fit_and_by_predict(tmp_path: Path) -> None:
    """Two rings whose features are noise: only labels tell them apart, and a table without labels is labeled all the same."""
    rng = np.random.default_rng(0)
    side = np.repeat(["inner", "outer"], 50)
    nodes = pd.DataFrame({"id": np.arange(100), "noise": rng.normal(size=100), "label": side})
    nodes.loc[nodes["id"] % 5 > 0, "label"] = ""
    ring = [(i, (i + 1) % 50 + 50 * (i // 50)) for i in range(100)]
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    nodes.drop(columns="label").to_csv(tmp_path / "bare.csv", index=False)
    pd.DataFrame(ring, columns=["source", "target"]).to_csv(tmp_path / "edges.csv", index=False)
    result = run("fit", tmp_path / "nodes.csv", tmp_path / "edges.csv", *SMALL, "--out", tmp_path / "out")
    assert "spread" in next(line for line in result.stdout.splitlines() if line.startswith("Used: "))
    fitted = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert (fitted["label"] == side).mean() > 0.95
    for table in ("nodes", "bare"):  # the same graph: its labels are remembered where the table has none
        run("predict", tmp_path / "out" / "model.safetensors", tmp_path / f"{table}.csv", tmp_path / "edges.csv",
            "--out", tmp_path / f"{table}-p.csv", "--device", "cpu")  # fmt: skip
        assert pd.read_csv(tmp_path / f"{table}-p.csv")["probability"].equals(fitted["probability"])
    pd.DataFrame(ring[:-1], columns=["source", "target"]).to_csv(tmp_path / "fewer.csv", index=False)
    other = run("predict", tmp_path / "out" / "model.safetensors", tmp_path / "bare.csv", tmp_path / "fewer.csv",
                "--out", tmp_path / "other.csv", "--device", "cpu")  # fmt: skip
    assert "no label of this graph is known" in other.stderr
    assert pd.read_csv(tmp_path / "other.csv")["label"].notna().all()
    nodes.drop(columns="label")[::-1].to_csv(tmp_path / "turned.csv", index=False)  # the same rows in another order
    turned = run("predict", tmp_path / "out" / "model.safetensors", tmp_path / "turned.csv", tmp_path / "edges.csv",
                 "--out", tmp_path / "other.csv", "--device", "cpu")  # fmt: skip
    assert "no label of this graph is known" in turned.stderr


def test_the_command_ends_with_code_2_and_one_line(tmp_path: Path) -> None:
    import subprocess
    import sys

    nodes, edges, _ = write_club(tmp_path, (0,))
    done = subprocess.run(
        [sys.executable, "-m", "sharpen", "fit", nodes, edges, *COLUMNS, "--out", tmp_path / "out"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("sharpen: ")
    assert "Traceback" not in done.stderr


def test_a_spreadsheet_with_decimal_commas_is_fitted_as_one_with_points(tmp_path: Path) -> None:
    nodes, edges, _ = write_club(tmp_path)
    people, links = pd.read_csv(nodes, keep_default_na=False), pd.read_csv(edges)
    people["handshakes"] += 0.25
    links["weight"] = 1.5 + np.arange(len(links)) % 3
    written = {}
    for mark, separator in ((".", ","), (",", ";")):
        out = tmp_path / f"out{separator}"
        people.to_csv(nodes, index=False, sep=separator, decimal=mark)
        links.to_csv(edges, index=False, sep=separator, decimal=mark)
        result = run(
            "fit", nodes, edges, *COLUMNS, *SMALL, "--epochs", "3", "--no-page", "--explain", "0", "--out", out
        )
        assert result.exit_code == 0, result.output
        assert (f"{nodes}: decimal commas in column handshakes" in result.output.replace("\n", " ")) == (mark == ",")
        assert run("predict", out / "model.safetensors", nodes, edges, "--out", out / "again.csv").exit_code == 0
        assert (out / "again.csv").read_bytes() == (out / "predictions.csv").read_bytes()
        written[mark] = (out / "predictions.csv").read_bytes()
    assert written[","] == written["."]
