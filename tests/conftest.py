"""Fixtures shared by all tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from tests.browser import Browser, find_browser

settings.register_profile("no deadline", deadline=None)  # a busy machine is no failure
settings.load_profile("no deadline")
# Without a GPU the kernels run in Triton's interpreter, which must be chosen before they are imported.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real benchmark graphs, or a skip that says how to have it."""
    root = os.environ.get("SHARPEN_DATA")
    if not root or not Path(root).is_dir():
        pytest.skip("SHARPEN_DATA does not name a folder of benchmark graphs")
    return Path(root)


@pytest.fixture
def kernel_device() -> torch.device:
    """Where fused kernels are tested: a GPU, or the CPU in Triton's interpreter."""
    pytest.importorskip("triton", reason="the fused kernels need Triton")
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium, or a skip that says how to have it."""
    path = find_browser()
    if path is None:
        pytest.skip("no Chromium: apt-get install chromium, or name one in SHARPEN_BROWSER")
    with Browser(path) as running:
        yield running
