"""Predictions over HTTP: the same as ``sharpen predict``, one at a time or two hundred at once, and nothing brings it down."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.test_fit import COLUMNS, SMALL, run, write_club

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def club(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    nodes, edges, _ = write_club(folder)
    run("fit", nodes, edges, *COLUMNS, *SMALL, "--no-page", "--out", folder / "out")
    return folder


@pytest.fixture(scope="module")
def address(club: Path) -> Iterator[str]:
    """A server in a process of its own, as a user starts it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "sharpen",
        "serve",
        club / "out" / "model.safetensors",
        club / "nodes.csv",
        club / "edges.csv",
    ]
    options = ["--port", str(port), "--device", "cpu", "--most-bytes", "20000"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen([*map(str, command), *options], env=environment, stderr=subprocess.PIPE, text=True)
    found = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            httpx.get(f"{found}/health")
            break
        except httpx.TransportError:
            assert server.poll() is None, server.stderr.read() if server.stderr else ""
            time.sleep(0.1)
    yield found
    assert server.poll() is None  # whatever was asked of it
    server.terminate()
    server.wait(timeout=30)


@pytest.fixture(scope="module")
def predicted(club: Path) -> pd.DataFrame:
    """What ``sharpen predict`` says of the same graph."""
    files = (club / "out" / "model.safetensors", club / "nodes.csv", club / "edges.csv")
    told = json.loads(run("predict", *files, "--json", "--device", "cpu").stdout)
    return pd.DataFrame(told["predictions"]).set_index("id")


def test_a_node_as_it_is_gets_the_label_that_predict_gives(address: str, predicted: pd.DataFrame) -> None:
    answer = httpx.post(f"{address}/predict", json={"nodes": [{"member": "m16"}], "every_class": True}, timeout=60)
    assert answer.status_code == 200
    (one,) = answer.json()["predictions"]
    assert one["label"] == predicted.loc["m16", "label"]
    assert one["probability"] == pytest.approx(predicted.loc["m16", "probability"], abs=1e-6)
    assert sum(one["probabilities"].values()) == pytest.approx(1)


def test_a_new_node_and_a_changed_one_are_answered_as_predict_answers_the_grown_files(
    address: str, club: Path, tmp_path: Path
) -> None:
    nodes = pd.read_csv(club / "nodes.csv", keep_default_na=False)
    nodes.loc[nodes["member"] == "m5", "belt"] = "black"
    nodes.loc[len(nodes)] = ["new", 2, "white", ""]
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    (tmp_path / "edges.csv").write_text((club / "edges.csv").read_text() + "new,m33\nnew,m5\n")
    model = club / "out" / "model.safetensors"
    told = json.loads(
        run("predict", model, tmp_path / "nodes.csv", tmp_path / "edges.csv", "--json", "--device", "cpu").stdout
    )
    expected = pd.DataFrame(told["predictions"]).set_index("id")
    asked = {
        "nodes": [{"member": "new", "handshakes": 2, "belt": "white"}, {"member": "m5", "belt": "black"}],
        "edges": [{"source": "new", "target": "m33"}, {"source": "new", "target": "m5"}],
    }
    answer = httpx.post(f"{address}/predict", json=asked, timeout=60).json()["predictions"]
    assert [one["id"] for one in answer] == ["new", "m5"]
    for one in answer:
        assert one["label"] == expected.loc[one["id"], "label"]
        assert one["probability"] == pytest.approx(expected.loc[one["id"], "probability"], abs=1e-6)


def test_two_hundred_at_once_get_the_labels_of_predict(address: str, club: Path, predicted: pd.DataFrame) -> None:
    """Half of them name a column of their node, as it is, so that they are no mere lookups."""
    ids = [f"m{i % 34}" for i in range(200)]
    belts = pd.read_csv(club / "nodes.csv", keep_default_na=False).set_index("member")["belt"]
    asked = [{"member": node} | ({"belt": belts[node]} if i % 2 else {}) for i, node in enumerate(ids)]
    with httpx.Client(timeout=300, limits=httpx.Limits(max_connections=200)) as client, ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(lambda node: client.post(f"{address}/predict", json={"nodes": [node]}), asked))
    assert {answer.status_code for answer in answers} == {200}
    assert [answer.json()["predictions"][0]["label"] for answer in answers] == predicted.loc[ids, "label"].tolist()


BAD = {
    "no JSON": (b"{", 422, "the request is not one JSON object"),
    "not an object": (b"[1, 2]", 422, "the request is not one JSON object"),
    "no nodes": (b"{}", 422, "nodes: Field required"),
    "an empty list": (b'{"nodes": []}', 422, "nodes"),
    "a stray key": (b'{"nodes": [{"member": "m1"}], "lable": 1}', 422, "lable"),
    "no id": (b'{"nodes": [{"belt": "white"}]}', 422, "has no 'member'"),
    "the same id twice": (b'{"nodes": [{"member": "m1"}, {"member": "m1"}]}', 422, "stands twice"),
    "an unknown column": (b'{"nodes": [{"member": "m1", "height": 3}]}', 422, "'height'"),
    "a word for a number": (b'{"nodes": [{"member": "m1", "handshakes": "many"}]}', 422, "handshakes"),
    "NaN": (b'{"nodes": [{"member": "m1", "handshakes": NaN}]}', 422, ""),
    "a record in a cell": (b'{"nodes": [{"member": {"a": 1}}]}', 422, "nodes.0.member"),
    "an edge with one end": (b'{"nodes": [{"member": "m1"}], "edges": [{"source": "m1"}]}', 422, "'target'"),
    "a probability of 2": (b'{"nodes": [{"member": "m1"}], "abstain": 2}', 422, "abstain"),
    "nested without end": (b'{"nodes":' + b"[" * 9000, 422, ""),
    "bytes": (bytes(range(256)), 422, "the request is not one JSON object"),
    "half a character": (b'{"nodes": [{"member": "\\ud800"}]}', 422, "half of a character"),
    "half a character as a column": (b'{"nodes": [{"member": "m1", "\\ud800": {}}]}', 422, "nodes.0."),
    "a number without end": (
        b'{"nodes": [{"member": "m1", "handshakes": ' + b"9" * 9000 + b"}]}",
        422,
        "not one JSON object",
    ),
    "too much": (b'{"nodes": [' + b" " * 30_000 + b"]}", 413, "larger than 20,000 bytes"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_answered_is_refused_in_json(what: str, address: str) -> None:
    body, status, says = BAD[what]
    answer = httpx.post(f"{address}/predict", content=body, headers={"content-type": "application/json"}, timeout=60)
    assert answer.status_code in (status, 400)
    assert says in answer.json()["error"]
    assert "Traceback" not in answer.text
    assert httpx.get(f"{address}/health", timeout=60).json() == {"status": "ok"}


def test_the_graph_as_it_is_is_predicted_once(club: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sharpen.prediction import Predictor
    from sharpen.serving.server import Asked, Served

    files = (str(club / name) for name in ("nodes.csv", "edges.csv"))
    served = Served.open(Predictor.load(club / "out" / "model.safetensors", "cpu"), *files)
    calls, predict = [], Predictor.predict
    monkeypatch.setattr(Predictor, "predict", lambda *given, **named: calls.append(1) or predict(*given, **named))
    (one,) = served.answer(Asked(nodes=[{"member": "m16"}])).predictions
    (same,) = served.answer(Asked(nodes=[{"member": "m16"}], every_class=True, abstain=1.0)).predictions
    assert len(calls) == 1
    assert (same.label, same.probability, one.probabilities) == (None, one.probability, None)
    assert same.probabilities[one.label] == pytest.approx(one.probability)
    served.answer(Asked(nodes=[{"member": "m16", "belt": "black"}]))
    served.answer(Asked(nodes=[{"member": "new"}]))
    served.answer(Asked(nodes=[{"member": "m16"}], edges=[{"source": "m16", "target": "m33"}]))
    assert len(calls) == 4
    assert served.answer(Asked(nodes=[{"member": "m16"}])).predictions == [one]


def test_a_fault_of_the_server_is_told_in_json(club: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastapi.testclient import TestClient

    from sharpen.prediction import Predictor
    from sharpen.serving.server import Served, make_app

    files = (str(club / name) for name in ("nodes.csv", "edges.csv"))
    served = Served.open(Predictor.load(club / "out" / "model.safetensors", "cpu"), *files)
    monkeypatch.setattr(Served, "answer", lambda self, asked: 1 / 0)
    client = TestClient(make_app(served, hosts=("*",)), raise_server_exceptions=False)
    answer = client.post("/predict", json={"nodes": [{"member": "m1"}]})
    assert answer.status_code == 500
    assert "ZeroDivisionError" in answer.json()["error"]


def test_a_body_that_lies_about_its_length_is_cut_off(address: str) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"nodes": ['
        for _ in range(100):
            yield b" " * 1000

    answer = httpx.post(
        f"{address}/predict", content=pieces(), headers={"content-type": "application/json"}, timeout=60
    )
    assert answer.status_code == 413


def test_it_is_described_for_people_and_programs(address: str) -> None:
    described = httpx.get(address, timeout=60).json()
    assert described["classes"] == ["Mr. Hi", "Officer"]
    assert (described["nodes"], described["edges"], described["id"]) == (34, 78, "member")
    assert "/predict" in httpx.get(f"{address}/openapi.json", timeout=60).json()["paths"]
    assert httpx.get(f"{address}/docs", timeout=60).status_code == 200
    assert "error" in httpx.get(f"{address}/nowhere", timeout=60).json()


def test_another_name_for_this_machine_is_refused(address: str) -> None:
    answer = httpx.get(f"{address}/health", headers={"host": "evil.example"}, timeout=60)
    assert answer.status_code == 400
