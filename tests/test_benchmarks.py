"""The benchmarks: that each can be started; of those of fit, the labels they draw, what they read back, and their tables."""

import importlib
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

import tests.scripts  # noqa: F401  (programs of the repository can be imported)
from sharpen import Graph
from sharpen.errors import InputError

bench, peers = importlib.import_module("fit"), importlib.import_module("peers")
BENCHMARKS = sorted(path.stem for path in Path(bench.__file__).parent.glob("*.py"))
PEERS = [name for name in peers.PEERS if name not in ("gcn", "grand")]


def camps() -> Graph:
    random = np.random.default_rng(0)
    y = np.arange(40) // 20
    x = random.normal(size=(40, 3)) + 2 * y[:, None]
    return Graph(x=x, edge_index=random.integers(0, 20, (2, 80)) + 20 * random.integers(0, 2, 80), y=y)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_finds_all_that_it_uses_of_the_package(name: str) -> None:
    importlib.import_module(name)


def test_draws_show_so_many_of_each_class_and_never_more_than_half() -> None:
    y = np.array([0] * 50 + [1] * 6)
    known = bench.drawn(y, 5, draw=3)
    assert np.bincount(known[known >= 0]).tolist() == [5, 3]
    assert (known[known >= 0] == y[known >= 0]).all()
    assert (bench.drawn(y, 5, draw=3) == known).all()
    assert (bench.drawn(y, 5, draw=4) != known).any()


def test_neighbours_are_summed_up_without_the_node_and_its_own_label() -> None:
    path = Graph(x=[[1.0], [2.0], [4.0], [8.0]], edge_index=[[0, 1], [1, 2]], y=[0, 1, 0, 1])
    x = peers.Bench(path, 1.0).beside_labels(np.array([0, 1, -1, -1]))
    # its column; log(1 + neighbours); mean, max and min over these; shares of labels among them
    assert x[1] == pytest.approx([2, np.log(3), 2.5, 4, 1, 0.5, 0])
    assert x[0] == pytest.approx([1, np.log(2), 2, 2, 2, 0, 1])
    assert x[3] == pytest.approx([8, 0, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("method", PEERS)
def test_peers_give_probabilities_and_are_right_where_it_is_easy(method: str) -> None:
    graph = camps()
    known = bench.drawn(graph.y.numpy(), 8, draw=0)
    p = peers.PEERS[method][1](peers.Bench(graph, 1.0), known, 0)
    assert p.sum(1) == pytest.approx(np.ones(40))
    assert (p.argmax(1) == graph.y.numpy())[known < 0].mean() > 0.7


def test_one_class_alone_is_always_answered() -> None:
    p = peers.answered(None, np.eye(3), np.array([1, -1, -1]), 2)
    assert p.tolist() == [[0, 1]] * 3


def test_a_line_that_was_cut_off_is_not_read_and_the_rest_is_compared(tmp_path: Path) -> None:
    path, lines = tmp_path / "fit.jsonl", []
    for draw, (ours, theirs) in enumerate([(0.8, 0.7), (0.9, 0.7)]):
        for method, accuracy in (("fit", ours), ("s2gc", theirs)):
            line = {"graph": "cora", "rate": 5, "draw": draw, "method": method, "accuracy": accuracy}
            lines.append(json.dumps(line | {"macro_f1": 0.5, "ece": 0.1, "seconds": 1.0, "mb": 100}))
    path.write_text("\n".join([*lines, lines[0][:20]]))
    frame = bench.read(path)
    assert len(frame) == 4
    text = "\n".join(bench.tables(frame))
    assert "| cora | 5 | 2 | 70.0 | 85.0 |" in text
    assert "| cora | 5 | +15.0 [-48.5, +78.5] |" in text
    assert "| **mean over graphs and rates** | | +15.0 |" in text


def test_methods_that_were_timed_are_not_timed_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    speed, file = importlib.import_module("field_speed"), tmp_path / "field.csv"
    asked = {
        "datasets": "digits",
        "models": "s2gc,normprop",
        "device": "cpu",
        "precision": "",
        "members": 2,
        "seconds": 0.0,
    }
    speed.main(**asked, out=file)
    before = file.read_text()
    ratios = list(speed.known(file).values())
    assert len(ratios) == 2
    assert f"geometric mean {np.sqrt(np.prod(ratios)):.1f} of 2" in capsys.readouterr().out
    file.write_text(before[:-8])  # a line that was cut off
    speed.main(**asked, out=file)
    assert capsys.readouterr().out.count("measured before") == len(speed.known(file)) - 1


def test_of_other_graphs_no_public_split_is_asked_for() -> None:
    assert bench._rates_of("citeseer", [5, bench.PUBLIC]) == [5, bench.PUBLIC]
    assert bench._rates_of("us-counties", [5, bench.PUBLIC]) == [5]


def test_tasks_run_side_by_side_on_cores_of_their_own_and_nothing_starts_after_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "load", lambda name: camps())
    asked = lambda b, known, draw: (np.full((40, 2), 0.5), {"cores": sorted(os.sched_getaffinity(0))})  # noqa: E731
    monkeypatch.setitem(bench.METHODS, "s2gc", ("asked", asked))
    cores, out = sorted(os.sched_getaffinity(0)), tmp_path / "fit.jsonl"
    tasks = [bench.Task("camps", "s2gc", draw, [1, 3]) for draw in range(3)]
    bench._side_by_side(tasks[:2], len(cores), 1, 1.0, out, time.time() + 60)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted((line["draw"], line["rate"]) for line in lines) == [(0, 1), (0, 3), (1, 1), (1, 3)]
    assert {core for line in lines for core in line["cores"]} <= set(cores)
    assert all(len(line["cores"]) == 1 for line in lines)
    bench._side_by_side(tasks[2:], 1, 1, 1.0, out, time.time() - 1)
    assert len(out.read_text().splitlines()) == 4
    with pytest.raises(InputError, match="cores"):
        bench._side_by_side(tasks, len(cores) + 1, 1, 1.0, out, time.time() + 60)
