"""``sharpen recipe`` on a small synthetic graph: by one process and by two."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from sharpen.errors import InputError
from sharpen.large.recipes import RECIPES, stored_dataset
from tests.cli.test_fit import run
from tests.datasets.test_readers import ARXIV, ogb_package, write_arxiv  # noqa: F401  # a fixture
from tests.scripts import synthetic

SMALL = ("--epochs", "1", "--model", "gcn", "--lam", "0.25", "--device", "cpu", "--json")


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_describes_trials(name):
    trial = RECIPES[name].trial("gcn", lam=0.25)
    assert None not in (trial.layers, trial.hidden, trial.lr, trial.epochs)
    assert (trial.batching is None) == ("clusters" not in name)


def test_it_lists_them():
    assert [line.split()[0] for line in run("recipe", "list").stdout.splitlines()] == list(RECIPES)


def test_a_recipe_runs_alone_and_under_torchrun_alike(tmp_path):
    synthetic.generate("ogbn-arxiv", tmp_path / "graph", 0.002)
    alone = run(
        "recipe", "run", "ogbn-arxiv-clusters", "--generated", tmp_path / "graph", *SMALL, "--out", tmp_path / "one"
    )
    records = json.loads(alone.stdout)
    assert [(r["lam"], r["status"]) for r in records] == [(0.25, "ok")]
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["records.parquet"]
    others = tmp_path / "two/checkpoints/others/kept.safetensors"
    others.parent.mkdir(parents=True)
    others.touch()
    root = Path(__file__).parents[2]
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m", "sharpen"]
    both = subprocess.run(
        [*start, "recipe", "run", "ogbn-arxiv-clusters", "--stored", str(tmp_path / "graph"), *SMALL,
         "--out", str(tmp_path / "two")],
        env=os.environ | {"PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}, capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert both.returncode == 0, both.stderr.decode()[-2000:]
    assert len(both.stdout.decode().strip().splitlines()) == 1, "one process prints"
    assert [path.name for path in (tmp_path / "two/checkpoints").iterdir()] == ["others"], (
        "its own are gone, others' are not"
    )
    one, two = (pd.read_parquet(tmp_path / folder / "records.parquet") for folder in ("one", "two"))
    assert one["test"].tolist() == pytest.approx(two["test"].tolist(), abs=0.02)


@pytest.mark.usefixtures("ogb_package")
def test_data_that_is_there_is_stored_once_and_used(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_arxiv(tmp_path, ARXIV)
    first = stored_dataset("ogbn-arxiv", tmp_path)
    (tmp_path / "ogb/arxiv.zip").unlink()
    again = stored_dataset("ogbn-arxiv", tmp_path)
    assert first.graph.fingerprint == again.graph.fingerprint
    assert again.graph.class_names == ("cs.NA", "cs.MM")
    assert again.splits["given-0"].train.tolist() == [0, 3]


@pytest.mark.usefixtures("ogb_package")
def test_another_folder_of_data_is_another_graph(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, features in (("a", "0.5,-1\n1,2\n3,4\n5,6.25\n"), ("b", "0.5,-1\n1,2\n3,4\n5,7\n")):
        (tmp_path / name).mkdir()
        write_arxiv(tmp_path / name, ARXIV | {"raw/node-feat.csv.gz": features})
    first, second = (stored_dataset("ogbn-arxiv", tmp_path / name) for name in "ab")
    assert first.graph.fingerprint != second.graph.fingerprint
    assert stored_dataset("ogbn-arxiv", tmp_path / "a").graph.folder == first.graph.folder


def test_the_help_says_which_recipes_go_on():
    text = " ".join(run("recipe", "run", "--help").stdout.split())
    assert "Cluster recipes keep checkpoints" in text
    assert "Full-batch recipes start over" in text


def test_mistakes_are_named(tmp_path):
    with pytest.raises(InputError, match="no recipe 'ogbn-mag'"):
        run("recipe", "run", "ogbn-mag")
    with pytest.raises(InputError, match="--stored FOLDER"):
        run("recipe", "run", "ogbn-arxiv", "--scale", "0.5")
    with pytest.raises(InputError, match=r"python benchmarks/synthetic\.py ogbn-arxiv"):
        run("recipe", "run", "ogbn-arxiv", "--stored", tmp_path / "none")
