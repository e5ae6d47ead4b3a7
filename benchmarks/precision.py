"""Do TF32 and float32 give the same answers? Paired test scores over seeds, cell by cell.

python benchmarks/precision.py --datasets cora,citeseer,chameleon --seeds 20 --out precision.csv     # needs a GPU
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import torch

from sharpen import Trial, load_dataset, to_frame, train
from sharpen.evaluation import paired_difference
from sharpen.paper import setting


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--datasets", default="cora,citeseer,chameleon,squirrel")
    options.add_argument("--models", default="gcn,sage,gat")
    options.add_argument("--seeds", type=int, default=20)
    options.add_argument("--lam", type=float, default=0.25)
    options.add_argument("--epochs", type=int, default=None, help="at most so many; by default the paper's")
    options.add_argument("--out", type=Path, default=None)
    given = options.parse_args()
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}; test scores in %, TF32 − float32, paired on seeds"
    )
    print(f"{'cell':<20}{'float32':>9}{'tf32':>9}{'difference':>12}   95 % CI")
    rows: list[dict[str, object]] = []
    apart = 0
    for name in given.datasets.split(","):
        dataset = load_dataset(name)
        for model in given.models.split(","):
            epochs = int(setting(name, model)["epochs"])
            epochs = min(epochs, given.epochs or epochs)
            trials = [Trial(model=model, lam=given.lam, epochs=epochs, seed=seed) for seed in range(given.seeds)]
            scores = {}
            for precision in ("float32", "tf32"):
                records = train(dataset, trials, device="cuda", precision=precision)
                scores[precision] = 100 * to_frame(records)["test"].to_numpy()
            d = paired_difference(scores["tf32"], scores["float32"])
            low, high = d.t_interval if d.t_interval is not None else (float("nan"), float("nan"))
            apart += not low <= 0 <= high
            rows.append(
                {
                    "dataset": name,
                    "model": model,
                    "epochs": epochs,
                    "float32": scores["float32"].mean(),
                    "tf32": scores["tf32"].mean(),
                    "difference": d.difference,
                    "low": low,
                    "high": high,
                }
            )
            print(
                f"{name + ' ' + model:<20}{d.mean_b:>9.2f}{d.mean_a:>9.2f}{d.difference:>+12.2f}   [{low:+.2f}, {high:+.2f}]",
                flush=True,
            )
            if given.out:
                write(given.out, rows)
    print(f"{apart} of {len(rows)} intervals exclude 0 (at 95 %, about {0.05 * len(rows):.1f} would by chance)")


def write(path: Path, rows: list[dict[str, object]]) -> None:
    """All rows so far: a run that is cut short leaves what it has measured."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
