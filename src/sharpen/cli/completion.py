"""What the shell offers after the Tab key; known without importing torch, which takes seconds."""

from collections.abc import Callable

from sharpen.datasets.catalog import DATASETS as DATASETS

DEVICES = ("auto", "cpu", "cuda")
PRECISIONS = ("float32", "tf32", "float64")
METRICS = ("accuracy", "balanced-accuracy")


def offer(*words: str) -> Callable[[], list[str]]:
    """Completes with these words.

    >>> offer("cpu", "cuda")()
    ['cpu', 'cuda']
    """
    return lambda: list(words)
