"""The numbers that a page shows, against independent ways to have them."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from sharpen.evaluation.calibration import reliability_of_confidence
from sharpen.graph import Graph
from sharpen.report.charts import matrix, rounded, series
from sharpen.report.page.confidence import coverage_of, reliability_chart
from sharpen.report.page.curves import training_charts
from sharpen.report.page.nodes import MOST_DRAWN, MOST_LISTED, nodes_section
from sharpen.report.palette import CLASSES, class_colors


def test_what_is_not_finite_becomes_nothing() -> None:
    assert rounded([1 / 3, float("inf"), -0.0]) == [0.33333, None, 0.0]
    assert series("a", "blue", [0], [float("nan")])["y"] == [None]


def test_very_many_classes_keep_every_count() -> None:
    rng = np.random.default_rng(0)
    true, predicted = rng.integers(0, 60, 5000), rng.integers(0, 60, 5000)
    counts = confusion_matrix(true, predicted, labels=range(60))
    chart = matrix("", [f"c{i}" for i in range(60)], counts)
    assert np.sum(chart["counts"]) == 5000
    kept = [int(name[1:]) for name in chart["names"][:-1]]
    assert np.array(chart["counts"])[:-1, :-1].tolist() == counts[np.ix_(kept, kept)].tolist()
    assert min(counts.sum(1)[kept]) >= max(counts.sum(1)[[c for c in range(60) if c not in kept]])


def test_coverage_answers_the_surest_first() -> None:
    rng = np.random.default_rng(0)
    confidence, hit = rng.choice([0.5, 0.6, 0.9, 0.95], 400), rng.random(400) < 0.7
    threshold, share, right = coverage_of(confidence, hit)
    assert len(threshold) <= 4  # nodes that are equally sure are answered together
    for level, part, accuracy in zip(threshold, share, right, strict=True):
        answered = confidence >= level
        assert part == pytest.approx(answered.mean())
        assert accuracy == pytest.approx(hit[answered].mean())
    assert share[-1] == 1


def test_reliability_counts_every_node_once() -> None:
    rng = np.random.default_rng(0)
    confidence, hit = rng.uniform(0.3, 1, 500), rng.random(500) < 0.8
    chart = reliability_chart(*(reliability_of_confidence(sure, hit) for sure in (confidence, confidence**0.5)))
    counts = [int(note.split()[0]) for note in chart["series"][0]["notes"]]
    assert sum(counts) == 500
    assert np.average(chart["series"][0]["y"], weights=counts) == pytest.approx(hit.mean(), abs=1e-4)


def traces(epochs: int, shift: float) -> dict[str, np.ndarray]:
    fall = np.linspace(1, 0.1, epochs) + shift
    return {"entropy_unlabeled": fall, "entropy_labeled": fall / 2, "train": 1 - fall / 2, "val": 1 - fall / 1.5}


def test_curves_are_means_and_the_gap_is_their_difference() -> None:
    runs = [traces(1000, shift) for shift in (0.0, 0.02, 0.04)]
    charts = training_charts(runs[:1], runs, "λ = 1", metric="accuracy", q=2.0, plain_q=2.0, chosen=10)
    unsure, gap, score = (chart["series"] for chart in charts)
    assert len(unsure[0]["x"]) <= 160
    assert unsure[0]["x"][-1] == 999
    middle = runs[1]["entropy_unlabeled"][np.array(unsure[0]["x"], dtype=int)]
    assert unsure[0]["y"] == pytest.approx(middle.tolist(), rel=1e-4)
    assert np.array(gap[0]["y"]) == pytest.approx(np.array(unsure[1]["y"]) - np.array(unsure[0]["y"]), abs=1e-4)
    assert score[0]["name"] == "validation, λ = 1"
    assert "low" in unsure[0]
    assert "low" not in unsure[2]  # one plain run has no spread


def test_uncertainties_of_different_orders_are_not_put_beside_each_other() -> None:
    runs = [traces(10, 0.0)]
    charts = training_charts(runs, runs, "λ = 1", metric="accuracy", q=1.0, plain_q=2.0, chosen=None)
    assert not any("plain" in curve["name"] for chart in charts[:2] for curve in chart["series"])
    assert any("plain" in curve["name"] for curve in charts[2]["series"])


def test_a_run_that_died_leaves_a_gap_and_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    dead = {name: np.where(np.arange(10) < 5, values, np.nan) for name, values in traces(10, 0.0).items()}
    charts = training_charts([], [dead], "λ = 1", metric="accuracy", q=2.0, plain_q=2.0, chosen=None)
    assert charts[0]["series"][0]["y"][5:] == [None] * 5
    assert not recwarn.list


def test_training_without_validation_nodes_shows_what_there_is() -> None:
    run = traces(10, 0.0) | {"val": np.full(10, np.nan)}
    charts = training_charts([], [run], "λ = 1", metric="accuracy", q=2.0, plain_q=2.0, chosen=None)
    assert [curve["name"] for curve in charts[2]["series"]] == ["training, λ = 1"]


def ring(nodes: int, classes: int = 2) -> Graph:
    i = np.arange(nodes)
    return Graph(x=np.ones((nodes, 1)), edge_index=[i, (i + 1) % nodes], y=i % classes)


def test_a_large_graph_is_listed_from_both_ends() -> None:
    graph = ring(MOST_DRAWN + 1)
    first = np.linspace(0.5, 1, graph.num_nodes)
    part = nodes_section(graph, np.arange(graph.num_nodes), np.stack([first, 1 - first], 1), text="")
    chart = part["views"][0]["charts"][0]
    assert "network" not in chart
    ids = [int(name) for name in chart["table"]["columns"][0]["values"]]
    assert ids == [*range(MOST_LISTED // 2), *range(graph.num_nodes - MOST_LISTED // 2, graph.num_nodes)]


def test_a_small_graph_is_drawn_with_each_edge_once() -> None:
    graph = ring(10)
    p = np.full((10, 2), 0.5)
    network = nodes_section(graph, list("abcdefghij"), p, text="", truth=graph.y.numpy())["views"][0]["charts"][0][
        "network"
    ]
    assert len(network["source"]) == 10
    assert network["unsure"] == [1.0] * 10
    assert [coloring["name"] for coloring in network["colorings"]] == ["predicted", "true", "right or wrong"]
    assert np.array(network["colorings"][2]["values"]).tolist() == graph.y.tolist()  # all are taken for class 0


def test_unknown_labels_have_a_colour_of_their_own() -> None:
    graph = Graph(x=np.eye(3), edge_index=[[0, 1], [1, 2]], y=[0, 1, -1])
    p = np.array([[0.9, 0.1], [0.1, 0.9], [0.6, 0.4]])
    chart = nodes_section(graph, ["a", "b", "c"], p, text="", given=graph.y.numpy())["views"][0]["charts"][0]
    given = chart["network"]["colorings"][1]
    assert given["values"] == [0, 1, 2]
    assert given["legend"][2] == {"name": "unknown", "color": "other"}
    assert chart["network"]["given"] == [1, 1, 0]


def test_every_frequent_class_has_its_own_colour() -> None:
    colors = class_colors([3, 1, 2] + [0] * 9)
    assert colors[:3] == [CLASSES[0], CLASSES[2], CLASSES[1]]
    assert len(set(colors[:10])) == 10
    assert colors[10:] == ["other", "other"]
