"""The Python examples of the README and the guide run as they stand, with fewer epochs."""

import re
from pathlib import Path

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

ROOT = Path(__file__).parent.parent


def examples(name: str = "README.md") -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_line_for_your_own_loop():
    code = examples()[0]
    assert len([line for line in code.splitlines() if line]) <= 4
    data = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]), y=torch.tensor([0, 0, 1, 1]))
    data.train_mask = torch.tensor([True, False, True, False])
    names = {"data": data, "model": GCNConv(4, 2)}
    exec(code, names)
    names["loss"].backward()
    assert names["model"].lin.weight.grad.abs().sum() > 0


def test_hundreds_of_runs(capsys):
    code = examples()[1]
    shorter = code.replace("seed=seed)", "seed=seed, epochs=2)")
    assert shorter != code
    names: dict[str, object] = {}
    exec(shorter, names)
    assert len(names["frame"]) == 10
    assert "0.5" in capsys.readouterr().out
