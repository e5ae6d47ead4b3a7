"""What a newcomer changes to add something: a model, a term of the objective, a dataset, a table of a report.

Each change is made to a copy of the package, in as few files as stand here; everything else has to know of it by itself.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "sharpen"

MODEL = {
    "models/registry.py": (
        '    Model("appnp"',
        '    Model("blend", "Blend", "blend:Blend", "an MLP and its mean over neighbours", "ours"),\n'
        '    Model("appnp"',
    ),
    "models/blend.py": '''"""Half of what a node says, half of what its neighbours say."""

from torch import Tensor, nn

from sharpen.models.blocks import Perceptron
from sharpen.models.inputs import Inputs


class Blend(nn.Module):
    def __init__(self, num_features: int, num_classes: int, layers: int = 2, hidden: int = 64, dropout: float = 0.5):
        super().__init__()
        self.mlp = Perceptron([num_features, *[hidden] * (layers - 1), num_classes], dropout)

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        h = self.mlp(x)
        return 0.5 * h + 0.5 * graph.propagate(h)
''',
}  # fmt: skip

# The mean square of the labeled logits: a part, its weight, whether kernels know it; and the field of a trial.
TERM = {
    "objective.py": (
        "    divergence: Tensor | None = None\n",
        "    divergence: Tensor | None = None\n    size: Tensor | float = 0.0\n",
        "        entropy_mean=torch.where(known_mean, entropy_mean, 0),\n",
        "        entropy_mean=torch.where(known_mean, entropy_mean, 0),\n"
        "        size=(logits.square().mean(-1) * labeled_weight).sum(-1),\n",
        "    prior: Tensor | None = None\n\n    @classmethod",
        "    prior: Tensor | None = None\n    shrink: Tensor | float = 0.0\n\n    @classmethod",
        '            lam=column("lam"),\n',
        '            lam=column("lam"),\n'
        "            shrink=torch.tensor([trial.shrink or 0.0 for trial in trials], dtype=dtype, device=device),\n",
        "        return self.q == 2.0 and self.balance == 0\n",
        "        return self.q == 2.0 and self.balance == 0 and not torch.as_tensor(self.shrink).any()\n",
        "        return combine(parts, self.lam, self.lam_labeled, self.balance)\n",
        "        return combine(parts, self.lam, self.lam_labeled, self.balance) + self.shrink * parts.size\n",
    ),
    "trial.py": (
        "    sharpen_val: bool = True\n",
        "    sharpen_val: bool = True\n    shrink: float | None = None\n",
        "OBJECTIVE = (",
        'OBJECTIVE = ("shrink", ',
        '    "sharpen_val": "Sharpen',
        '    "shrink": "Weight of the squared logits of labeled nodes.",\n    "sharpen_val": "Sharpen',
    ),
}

DATASET = {
    "datasets/catalog.py": (
        '    DatasetInfo("digits"',
        '    DatasetInfo("ring", 60, 60, 2, 2, "accuracy", "made here", "CC0", "Ring", "ring",\n'
        '                SplitNames(("balanced-5-20-30-seed0",), 5, "balanced-5-20-30-seed{seed}")),\n'
        '    DatasetInfo("digits"',
    ),
    "datasets/ring.py": '''"""Sixty nodes in a ring, the halves of two classes."""

import torch

from sharpen.datasets.dataset import Dataset, Splits
from sharpen.graph import Graph


def files(name, /):
    return ()


def load(name, root=None, /):
    y = torch.arange(60) // 30
    x = torch.nn.functional.one_hot(y, 2) + 0.5 * torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    here = torch.arange(60)
    graph = Graph(x=x, edge_index=torch.stack([here, (here + 1) % 60]), y=y, name=name)
    drawn = "balanced-5-20-30-seed{seed}"
    return Dataset(name, graph, splits=Splits(y=y, paper=[drawn.format(seed=0)], paired=drawn))
''',
}

TABLE = {
    "report/study_tables.py": (
        "def is_heterophilous(",
        'def run_counts(outcome: Outcome) -> Table:\n'
        '    rows = tuple((cell.dataset, str(sum(side.n for side in cell.sides.values()))) for cell in outcome.cells)\n'
        '    return Table("How many runs", (Column("dataset", "dataset"), Column("runs", "runs", "right")), rows)\n\n\n'
        "def is_heterophilous(",
    ),
    "report/study.py": (
        "import details, ", "import details, run_counts, ",
        "    blocks.append(_tables(outcome, curves, is_curve))\n",
        "    blocks.append(_tables(outcome, curves, is_curve))\n"
        '    blocks.append(Tables("How many", {"how many": run_counts(outcome)}))\n',
    ),
}  # fmt: skip

# Runs in the copy. No other file was touched, and yet: training, options, help, completion, and every form of a report.
USED = """
import json, sys
from pathlib import Path
import torch
from typer.testing import CliRunner
import sharpen
from sharpen.cli.app import app

assert Path(sharpen.__file__).is_relative_to(sys.argv[1])
small = dict(hidden=8, epochs=5, device="cpu", progress=False)

result = sharpen.compare("ring", "blend", 0.5, splits=2, **small)
assert "on ring with Blend" in result.headline, result.headline

from sharpen import Trial, train, load_dataset
ring = load_dataset("ring")
plain, shrunk = train(ring, [Trial(model="gcn", hidden=8, epochs=30, dropout=0.0, shrink=s) for s in (None, 5.0)], device="cpu")
size = [float(abs(record.logits).mean()) for record in (plain, shrunk)]
assert size[1] < 0.7 * size[0], size
assert Trial().id == Trial(shrink=None).id != Trial(shrink=5.0).id

def run(*words):
    done = CliRunner().invoke(app, [*words])
    assert done.exit_code == 0, done.output
    return done.output

assert "--shrink" in run("compare", "--help")
out = str(Path(sys.argv[1]) / "out")
told = json.loads(run("compare", "ring", "--model", "blend", "--shrink", "0.1", "--splits", "2", "--epochs", "3", "--hidden", "8",
                      "--device", "cpu", "--out", out, "--json"))
assert told["settings"]["shrink"] == 0.1
assert "ring" in run("datasets") and "blend" in run("models")

mine = Path(sys.argv[1]) / "mine.yaml"
mine.write_text("title: Mine\\nmodels: [blend]\\ndatasets: [ring]\\nruns: 2\\ntrial: {epochs: 2, hidden: 4}\\n"
                "variants: {plain: {lam: 0}, shrunk: {lam: 0.25, shrink: 0.5}}\\nbaseline: plain\\ncompare: [shrunk - plain]\\n")
store, report = str(Path(sys.argv[1]) / "store"), Path(sys.argv[1]) / "report"
run("study", "run", str(mine), "--protocol", "paired", "--store", store, "--device", "cpu")
run("study", "report", str(mine), "--protocol", "paired", "--store", store, "--out", str(report))
(text,) = (path.read_text("utf-8") for path in report.glob("mine*.md"))
assert "How many runs" in text and "| ring" in text.lower(), text
assert "How many runs" in (report / "page.html").read_text("utf-8")
assert "How many runs" in next(report.glob("mine*.tex")).read_text("utf-8")
print("all of it")
"""


@pytest.mark.parametrize(("change", "files"), [(MODEL, 2), (TERM, 2), (DATASET, 2), (TABLE, 2)])
def test_an_addition_takes_two_files(change: dict[str, object], files: int) -> None:
    assert len(change) == files


def test_additions_are_known_everywhere(tmp_path: Path) -> None:
    copy = tmp_path / "sharpen"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for change in (MODEL, TERM, DATASET, TABLE):
        for name, edit in change.items():
            path = copy / name
            if isinstance(edit, str):
                assert not path.exists()
                path.write_text(edit, encoding="utf-8")
                continue
            text = path.read_text("utf-8")
            for old, new in zip(edit[::2], edit[1::2], strict=True):
                assert text.count(old) == 1, f"{name} has {text.count(old)} times {old!r}"
                text = text.replace(old, new)
            path.write_text(text, encoding="utf-8")
    script = tmp_path / "used.py"
    script.write_text(USED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all of it\n")
