"""A study so small that it can be run, killed and run again."""

from pathlib import Path

import pytest

TINY = """\
title: Tiny
datasets: [digits]
models: [mlp, gcn]
runs: 4
trial: {hidden: 4, layers: 2, epochs: 6, dropout: 0.2}
variants:
  baseline: {lam: 0}
  ts-{lam}: {lam: [0.25, 0.5]}
baseline: baseline
compare:
  - ts-* - baseline
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """The file of a study of 24 trials on digits."""
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY, encoding="utf-8")
    return path
