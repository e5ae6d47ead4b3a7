"""How large a page gets, and how long until it answers: the largest comparison there can be, in headless Chromium.

``python benchmarks/page.py [PAGE.html ...]`` measures these pages, or without any the largest one of ``sharpen compare``: as many
nodes and edges as are drawn, 40 classes, 9 values of λ on 100 pairs. Complete: the script has run.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sharpen import Dataset, Graph, Record, Split, Trial, to_frame
from sharpen.datasets import Splits
from sharpen.evaluation import compare_lams
from sharpen.report.page import comparison_page, write_page
from sharpen.report.page.nodes import MOST_DRAWN, MOST_EDGES
from tests.browser import Browser, find_browser

CLASSES, PAIRS, EPOCHS = 40, 100, 500
LAMS = (0.05, 0.1, 0.15, 0.25, 0.35, 0.5, 0.75, 1.0)
TRACES = ("loss", "cross_entropy", "entropy_labeled", "entropy_unlabeled", "train", "val")


def largest(path: Path) -> None:
    """Write the page of a comparison that no one trained."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, MOST_DRAWN)
    near = rng.integers(0, MOST_DRAWN, (2, 8 * MOST_EDGES))
    alike = near[:, y[near[0]] == y[near[1]]]
    edges = np.concatenate([alike, near[:, : MOST_EDGES - alike.shape[1]]], axis=1)
    graph = Graph(
        x=np.ones((MOST_DRAWN, 1)), edge_index=edges, y=y, class_names=[f"a class called {c}" for c in range(CLASSES)]
    )
    order = rng.permutation(MOST_DRAWN)
    split = Split("only", order[:800], order[800:1600], order[1600:])
    dataset = Dataset("largest", graph, splits=Splits([split]))
    fall = np.exp(-np.arange(EPOCHS) / 100)

    def runs(lam: float) -> list[Record]:
        found = []
        for seed in range(PAIRS):
            logits = (rng.normal(size=(MOST_DRAWN, CLASSES)) + 4 * np.eye(CLASSES)[y]).astype(np.float32)
            traces = {name: fall + 0.02 * rng.random(EPOCHS) for name in TRACES}
            scores = 0.8 + 0.02 * rng.random(2)
            trial = Trial(dataset="largest", split="only", seed=seed, lam=lam, epochs=EPOCHS)
            found.append(Record(trial, *scores, 300, "ok", 1.0, "cpu", "float32", traces=traces, logits=logits))
        return found

    plain, sharp = runs(0.0), {lam: runs(lam) for lam in LAMS}
    comparison = compare_lams(to_frame(plain), {lam: to_frame(own) for lam, own in sharp.items()}, choose=True)
    result = {
        "notes": [], "settings": {}, "pairs": [{"split": "only", "seed": i} for i in range(PAIRS)], "split_ids": {"only": "0" * 8},
        "fingerprint": graph.fingerprint, "device": "cpu", "precision": "float32", "seconds": 1.0, "versions": {}, "command": "",
    }  # fmt: skip
    start = time.perf_counter()
    write_page(comparison_page(comparison, dataset, plain, sharp, result=result), path)
    print(f"made in {time.perf_counter() - start:.1f} s")


def measure(page: Path) -> None:
    """Open a page three times, and print the best time until it answers."""
    browser = find_browser()
    if browser is None:
        raise SystemExit("no Chromium; apt-get install chromium, or name one in SHARPEN_BROWSER")
    times = []
    with Browser(browser) as running:
        for _ in range(3):
            with running.open(page, 1280) as tab:
                loaded = tab.run("performance.getEntriesByType('navigation')[0].domComplete")
                start = time.perf_counter()
                tab.hover(*tab.centre(".plot"))
                times.append((loaded, 1000 * (time.perf_counter() - start)))
        loaded, answered = min(times)
    print(
        f"{page}: {page.stat().st_size / 1e6:.2f} MB, complete after {loaded:.0f} ms, a hover answered after {answered:.0f} ms more"
    )


def main() -> None:
    if pages := [Path(name) for name in sys.argv[1:]]:
        for page in pages:
            measure(page)
        return
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        largest(page)
        measure(page)


if __name__ == "__main__":
    main()
