"""``sharpen predict`` with a model that was changed after it was saved: one sentence, exit code 2, and no output."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from sharpen.cli.app import main
from tests.cli.test_fit import SMALL, run

Header, Tensors = dict[str, Any], dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def rings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that spreads labels over two rings, whose features are noise; edges have weights."""
    folder = tmp_path_factory.mktemp("rings")
    side = np.where(np.arange(60) % 4 == 0, np.repeat(["inner", "outer"], 30), "")
    noise = np.random.default_rng(0).normal(size=60)
    pd.DataFrame({"id": np.arange(60), "noise": noise, "label": side}).to_csv(folder / "nodes.csv", index=False)
    pd.DataFrame({"id": np.arange(60), "noise": noise}).to_csv(folder / "bare.csv", index=False)
    ring = pd.DataFrame([(i, (i + 1) % 30 + 30 * (i // 30), 2 + i % 2) for i in range(60)])
    ring.columns = ["source", "target", "weight"]
    ring.to_csv(folder / "edges.csv", index=False)
    run("fit", folder / "nodes.csv", folder / "edges.csv", *SMALL, "--no-page", "--quiet", "--out", folder / "out")
    return folder


def edited(rings: Path, path: Path, edit: Callable[[Header, Tensors], object]) -> Path:
    """The model with something changed; what the change returns is its header, if it is text."""
    with safe_open(rings / "out" / "model.safetensors", framework="pt") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    header = json.loads(metadata["sharpen"])
    text = edit(header, tensors)
    metadata["sharpen"] = text if isinstance(text, str) else json.dumps(header)
    metadata["format"] = "sharpen-5"  # of before checksums, so that what else is checked is told
    del metadata["checksum"]
    save_file({name: value.contiguous() for name, value in tensors.items()}, path, metadata=metadata)
    return path


def predict(model: Path, nodes: Path, edges: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of the command itself."""
    monkeypatch.setattr(
        sys, "argv", ["sharpen", "predict", *map(str, (model, nodes, edges)), "--out", str(out), "--quiet"]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def weights(tensors: Tensors) -> list[str]:
    return [name for name in tensors if name != "known"]


def first(header: Header) -> dict[str, Any]:
    return header["fitted"]["ensemble"]["parts"][0]


def column(header: Header) -> dict[str, Any]:
    return header["extra"]["encoder"]["columns"][0]


EDITS: dict[str, Callable[[Header, Tensors], object]] = {
    "all weights NaN": lambda h, t: [t[name].fill_(float("nan")) for name in weights(t)],
    "one weight infinite": lambda h, t: t[weights(t)[0]].view(-1)[0].fill_(float("inf")),
    "weights of another type": lambda h, t: t.update({n: t[n].bfloat16() for n in weights(t)}),
    "complex weights": lambda h, t: t.update({n: t[n].cfloat() for n in weights(t)}),
    "temperature 0": lambda h, t: h["fitted"]["ensemble"].update(temperature=0),
    "isolated temperature 0": lambda h, t: h["fitted"]["ensemble"].update(isolated=0),
    "isolated temperature of text": lambda h, t: h["fitted"]["ensemble"].update(isolated="cold"),
    "temperature NaN": lambda h, t: h["fitted"]["ensemble"].update(temperature=float("nan")),
    "temperature of text": lambda h, t: h["fitted"]["without_labels"].update(temperature="hot"),
    "temperature too large": lambda h, t: h["fitted"]["ensemble"].update(temperature=10**400),
    "nested JSON": lambda h, t: "[" * 100_000 + "]" * 100_000,
    "no JSON": lambda h, t: "{",
    "a list": lambda h, t: "[]",
    "one layer more": lambda h, t: h["params"].update(layers=3),
    "layers without end": lambda h, t: h["params"].update(layers=10**12),
    "another width": lambda h, t: h["params"].update(hidden=9),
    "a width of text": lambda h, t: h["params"].update(hidden="8"),
    "no width": lambda h, t: h["params"].update(hidden=None),
    "an enormous width": lambda h, t: h["params"].update(hidden=10**18),
    "another norm": lambda h, t: h["params"].update(norm="batch"),
    "an unknown norm": lambda h, t: h["params"].update(norm="group"),
    "a parameter too few": lambda h, t: h["params"].pop("hidden"),
    "a place to train": lambda h, t: h["params"].update(on="ray://elsewhere:10001"),
    "whom to tell": lambda h, t: h["params"].update(progress="print"),
    "a tensor missing": lambda h, t: t.pop(weights(t)[0]),
    "a tensor too many": lambda h, t: t.update({"0.more": torch.zeros(len(t[weights(t)[0]]), 2)}),
    "a tensor of another name": lambda h, t: t.update(more=torch.zeros(2)),
    "a tensor without runs": lambda h, t: t.update({weights(t)[0]: torch.zeros(0, 2)}),
    "a tensor of one number": lambda h, t: t.update({weights(t)[0]: torch.tensor(1.0)}),
    "an unknown model": lambda h, t: first(h).update(model="gnc"),
    "a model that is no text": lambda h, t: first(h).update(model=["gcn"]),
    "another model": lambda h, t: first(h).update(model="gat"),
    "λ of text": lambda h, t: first(h).update(lam="much"),
    "counts short": lambda h, t: first(h).update(counts=first(h)["counts"][:1]),
    "counts NaN": lambda h, t: first(h).update(counts=[float("nan")] * 2),
    "counts below 0": lambda h, t: first(h).update(counts=[-1, 1]),
    "shares that sum to 2": lambda h, t: first(h).update(share=first(h)["share"] + 1),
    "a share of text": lambda h, t: first(h).update(share="all"),
    "a share below 0": lambda h, t: first(h).update(share=-1),
    "spread of text": lambda h, t: first(h).update(spread="yes"),
    "weights of nobody": lambda h, t: first(h).update(weights=9),
    "nobody at all": lambda h, t: h["fitted"]["ensemble"].update(parts=[]),
    "nobody without labels": lambda h, t: h["fitted"].update(without_labels=None),
    "spreading without labels": lambda h, t: h["fitted"].update(without_labels=h["fitted"]["ensemble"]),
    "three classes": lambda h, t: h["fitted"].update(num_classes=3),
    "no classes": lambda h, t: h["fitted"].update(num_classes=0),
    "classes of text": lambda h, t: h["fitted"].update(num_classes="2"),
    "features more": lambda h, t: h["fitted"].update(num_features=7),
    "a class name too few": lambda h, t: h["classes"].pop(),
    "a class name twice": lambda h, t: h.update(classes=["inner", "inner"]),
    "class names that are lists": lambda h, t: h.update(classes=[["inner"], ["outer"]]),
    "classes of an odd type": lambda h, t: h.update(classes_dtype="V8"),
    "classes of no type": lambda h, t: h.update(classes_dtype="nothing"),
    "known short": lambda h, t: t.update(known=t["known"][:5]),
    "class 7 in known": lambda h, t: t["known"][0].fill_(7),
    "class −2 in known": lambda h, t: t["known"][1].fill_(-2),
    "known of fractions": lambda h, t: t.update(known=t["known"].float()),
    "known of two dimensions": lambda h, t: t.update(known=t["known"][None]),
    "known missing": lambda h, t: t.pop("known"),
    "a batching of no kind": lambda h, t: h["fitted"].update(cuts={"gcn": "clumps"}),
    "cuts that are a list": lambda h, t: h["fitted"].update(cuts=["gcn"]),
    "columns missing": lambda h, t: h["extra"].pop("columns"),
    "columns that are a list": lambda h, t: h["extra"].update(columns=["id"]),
    "a column that is a number": lambda h, t: h["extra"]["columns"].update(id=7),
    "edges missing": lambda h, t: h["extra"].pop("edges"),
    "edges of text": lambda h, t: h["extra"].update(edges="many"),
    "no encoder": lambda h, t: h["extra"].pop("encoder"),
    "an encoder that is a list": lambda h, t: h["extra"].update(encoder=[]),
    "a scale of 0": lambda h, t: column(h).update(scale=0),
    "a mean of text": lambda h, t: column(h).update(mean="x"),
    "a mean NaN": lambda h, t: column(h).update(mean=float("nan")),
    "an indicator of text": lambda h, t: column(h).update(indicator="no"),
    "an encoding of no kind": lambda h, t: column(h).update(kind="evil"),
    "a unit of 0": lambda h, t: h["extra"]["encoder"].update(unit=0),
    "a structure of nothing": lambda h, t: h["extra"]["encoder"].update(structural={"anchors": [1], "mean": [], "scale": []}),
    "a structure that is a number": lambda h, t: h.update(structure=7),
    "structure missing": lambda h, t: h.pop("structure"),
    "extra missing": lambda h, t: h.pop("extra"),
    "extra that is a number": lambda h, t: h.update(extra=7),
}  # fmt: skip


@pytest.mark.parametrize("what", EDITS)
def test_a_damaged_model_is_named(
    what: str, rings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = edited(rings, tmp_path / "model.safetensors", EDITS[what])
    assert predict(model, rings / "bare.csv", rings / "edges.csv", tmp_path / "p.csv", monkeypatch) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("sharpen: ")
    assert any(way in line for way in ("fit again", "save the model again", "fit and save", "has saved", "give"))
    assert not (tmp_path / "p.csv").exists()


def test_an_unchanged_model_predicts(rings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or nothing would be shown above."""
    model = edited(rings, tmp_path / "model.safetensors", lambda header, tensors: None)
    assert predict(model, rings / "bare.csv", rings / "edges.csv", tmp_path / "p.csv", monkeypatch) == 0
    again, fitted = (pd.read_csv(path) for path in (tmp_path / "p.csv", rings / "out" / "predictions.csv"))
    assert again["probability"].equals(fitted["probability"])
