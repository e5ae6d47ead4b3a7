"""Makes the example: 1,797 handwritten digits, ten of each labeled, each joined to the five images most like it.

    python examples/make_digits.py

The images are those that ship with scikit-learn (UCI, "Optical Recognition of Handwritten Digits": 8 × 8 pixels from 0 to
16, written by 43 people). Everything in the files follows from them by the rules below; nothing is drawn at random.

- ``digits-nodes.csv``: id, label, and one column per pixel, by its row and column. The label is blank but for ten images of
  each digit, spread evenly over the file: images that follow each other are by the same hand, and labels of a few hands
  only would promise more than they keep.
- ``digits-edges.csv``: source, target. Each image and its five nearest by the distance of their pixels; of images at the
  same distance, the one that comes first.
- ``digits-truth.csv``: id and label of every image, for `sharpen evaluate`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

LABELED = 10
NEIGHBORS = 5
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def main(folder: Path) -> None:
    """Write the three files."""
    bunch = load_digits()
    pixels = bunch.data.astype(np.int64)
    ids = [f"image-{i:04d}" for i in range(len(pixels))]
    digits = pd.Series([WORDS[digit] for digit in bunch.target])
    rank, count = digits.groupby(digits).cumcount(), digits.groupby(digits).transform("size")
    shown = (rank * LABELED // count) != ((rank + 1) * LABELED // count)  # the last image of each tenth
    nodes = pd.DataFrame(pixels, columns=[f"pixel_{row}_{column}" for row in range(8) for column in range(8)])
    nodes.insert(0, "id", ids)
    nodes.insert(1, "label", digits.where(shown, ""))

    norms = (pixels**2).sum(axis=1)
    distance = norms[:, None] + norms - 2 * pixels @ pixels.T  # squared and whole, so that ties are the same everywhere
    np.fill_diagonal(distance, np.iinfo(np.int64).max)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :NEIGHBORS]
    pairs = np.column_stack([np.repeat(np.arange(len(ids)), NEIGHBORS), nearest.reshape(-1)])
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)  # an edge that both ends chose is written once
    edges = pd.DataFrame({"source": [ids[u] for u, _ in pairs], "target": [ids[v] for _, v in pairs]})

    nodes.to_csv(folder / "digits-nodes.csv", index=False, lineterminator="\n")
    edges.to_csv(folder / "digits-edges.csv", index=False, lineterminator="\n")
    truth = pd.DataFrame({"id": ids, "label": digits})
    truth.to_csv(folder / "digits-truth.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main(Path(__file__).parent)
