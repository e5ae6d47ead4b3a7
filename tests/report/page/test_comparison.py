"""The page of a comparison shows what its runs gave, counted again by other means."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.metrics import confusion_matrix

from sharpen.datasets import Dataset, Splits
from sharpen.evaluation import compare_lams
from sharpen.graph import Graph
from sharpen.graph.splits import Split
from sharpen.report.page import Page, comparison_page
from sharpen.trial import Record, Trial, to_frame

RNG = np.random.default_rng(0)
NODES, CLASSES = 30, 3
RESULT = {
    "notes": ["A note."], "settings": {"lam": [0.5], "lam_labeled": None, "hidden": 8}, "pairs": [{"split": "s0", "seed": 0}],
    "split_ids": {"s0": "abcdef0123456789"}, "fingerprint": "f" * 64, "device": "cpu", "precision": "float32", "seconds": 1.5,
    "versions": {"torch": "2"}, "command": "sharpen compare toy",
}  # fmt: skip


def toy() -> Dataset:
    y = np.arange(NODES) % CLASSES
    edges = [np.arange(NODES - 1), np.arange(1, NODES)]
    order = [RNG.permutation(NODES) for _ in range(3)]
    splits = [Split(f"s{i}", each[:6], each[6:14], each[14:]) for i, each in enumerate(order)]
    return Dataset("toy", Graph(x=torch.eye(NODES), edge_index=edges, y=y), splits=Splits(splits))


def records(dataset: Dataset, lam: float) -> list[Record]:
    found = []
    for seed, name in enumerate(dataset.splits.given):
        logits = RNG.normal(size=(NODES, CLASSES)) + 1.5 * np.eye(CLASSES)[dataset.graph.y.numpy()]
        split = dataset.splits[name]
        hit = logits.argmax(1) == dataset.graph.y.numpy()
        traces = {
            key: RNG.random(5)
            for key in ("loss", "cross_entropy", "entropy_labeled", "entropy_unlabeled", "train", "val")
        }
        trial = Trial(dataset="toy", split=name, seed=seed, lam=lam, epochs=5)
        val, test = hit[split.val.numpy()].mean(), hit[split.test.numpy()].mean()
        found.append(Record(trial, val, test, 3, "ok", 0.1, "cpu", "float32", traces=traces, logits=logits))
    return found


@pytest.fixture(scope="module")
def made() -> tuple[Dataset, list[Record], list[Record], Page]:
    dataset = toy()
    plain, sharp = records(dataset, 0.0), records(dataset, 0.5)
    comparison = compare_lams(to_frame(plain), {0.5: to_frame(sharp)})
    return dataset, plain, sharp, comparison_page(comparison, dataset, plain, {0.5: sharp}, result=RESULT)


def charts(page: Page, title: str) -> list[dict]:
    part = next(part for part in page.sections if part["title"] == title)
    return [chart for view in part["views"] for chart in view["charts"]]


def test_a_dot_is_the_difference_of_a_pair(made: tuple) -> None:
    _, plain, sharp, page = made
    (row,) = charts(page, "The gain of each pair")[0]["rows"]
    assert row["values"] == pytest.approx(
        [100 * (a.test - b.test) for a, b in zip(sharp, plain, strict=True)], abs=0.01
    )
    assert row["mean"] == pytest.approx(np.mean(row["values"]), abs=0.01)


def test_the_confusion_is_that_of_all_test_nodes(made: tuple) -> None:
    dataset, plain, sharp, page = made
    y = dataset.graph.y.numpy()
    for chart, runs in zip(charts(page, "Confusion matrix"), (sharp, plain), strict=True):
        tests = [dataset.splits[run.trial.split].test.numpy() for run in runs]
        true = np.concatenate([y[test] for test in tests])
        taken = np.concatenate([run.logits[test].argmax(1) for run, test in zip(runs, tests, strict=True)])
        assert chart["counts"] == confusion_matrix(true, taken, labels=range(CLASSES)).tolist()


def test_reliability_before_calibration_is_that_of_the_plain_softmax(made: tuple) -> None:
    dataset, _, sharp, page = made
    chart = charts(page, "Calibration")[0]
    tests = [dataset.splits[run.trial.split].test.numpy() for run in sharp]
    confidence = np.concatenate([softmax(run.logits[test], 1).max(1) for run, test in zip(sharp, tests, strict=True)])
    counts = [int(note.split()[0]) for note in chart["series"][0]["notes"]]
    assert sum(counts) == len(confidence)
    assert np.average(chart["series"][0]["x"], weights=counts) == pytest.approx(confidence.mean(), abs=1e-3)


def test_a_node_is_judged_by_runs_that_did_not_know_it(made: tuple) -> None:
    dataset, _, sharp, page = made
    columns = {c["name"]: c["values"] for c in charts(page, "The graph and its nodes")[0]["table"]["columns"]}
    for node in range(NODES):
        strangers = sum(node in dataset.splits[run.trial.split].test.numpy() for run in sharp)
        assert columns["runs"][node] == (strangers or len(sharp))
    assert columns["true"] == dataset.graph.y.tolist()


def test_the_bottom_says_how_to_have_it_again(made: tuple) -> None:
    page = made[3]
    entries = dict(charts(page, "Settings and versions")[0]["entries"])
    assert page.command == "sharpen compare toy"
    assert entries["fingerprint of the graph"] == "f" * 64
    assert entries["lam_labeled"] == "−λ"
    assert entries["version of torch"] == "2"
    assert "A note." in page.below


def test_runs_that_all_diverged_leave_a_page_that_says_so() -> None:
    dataset = toy()
    plain = records(dataset, 0.0)
    nan = float("nan")
    dead = [replace(run, val=nan, test=nan, best_epoch=-1, status="diverged") for run in records(dataset, 0.5)]
    comparison = compare_lams(to_frame(plain), {0.5: to_frame(dead)})
    page = comparison_page(comparison, dataset, plain, {0.5: dead}, result=RESULT)
    assert "cannot be judged" in page.headline
    titles = [part["title"] for part in page.sections]
    assert titles == ["The gain of each pair", "Accuracy against λ", "Settings and versions"]


def test_the_chosen_lam_is_marked_and_shown() -> None:
    dataset = toy()
    plain, weak, strong = (records(dataset, lam) for lam in (0.0, 0.25, 1.0))
    better = [replace(run, val=1.0) for run in strong]
    comparison = compare_lams(to_frame(plain), {0.25: to_frame(weak), 1.0: to_frame(better)}, choose=True)
    page = comparison_page(comparison, dataset, plain, {0.25: weak, 1.0: better}, result=RESULT)
    curve = charts(page, "Accuracy against λ")[0]
    assert curve["marks"] == [{"x": 1.0, "label": "chosen: 1"}]
    assert curve["series"][0]["x"] == [0, 0.25, 1.0]
    training = next(part for part in page.sections if part["title"] == "Training")
    assert [view["name"] for view in training["views"]] == ["λ = 0.25", "λ = 1"]
    assert training["view"] == 1
