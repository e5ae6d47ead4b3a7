"""What the shell offers after the Tab key; known without importing torch, which takes seconds."""

from collections.abc import Callable

DATASETS = (
    "cora", "citeseer", "pubmed", "computer", "photo", "cs", "physics", "wikics", "squirrel", "chameleon", "amazon-ratings",
    "roman-empire", "minesweeper", "ogbn-arxiv", "ogbn-products", "digits",
)  # fmt: skip
DEVICES = ("auto", "cpu", "cuda")
PRECISIONS = ("float32", "tf32", "float64")
METRICS = ("accuracy", "balanced-accuracy")


def offer(*words: str) -> Callable[[], list[str]]:
    """Completes with these words.

    >>> offer("cpu", "cuda")()
    ['cpu', 'cuda']
    """
    return lambda: list(words)
