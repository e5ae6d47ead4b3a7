"""Training in clusters as the graph grows: seconds and peak memory of an epoch, from 10⁵ to 10⁷·⁸ edges.

    python benchmarks/large.py --folder /tmp/graphs --out large.csv            # up to 10⁷ edges
    python benchmarks/large.py --folder /tmp/graphs --out large.csv --largest 61859140

Graphs of the kind of ogbn-products (25 edges per node, 100 features, 47 classes, 8 % labeled) are generated on disk and cut by
METIS, each once. Every measurement is a process of its own: it opens the stored graph, trains, evaluates layer by layer, and
reports its peak resident memory; mapped files that are in use count. Preparation is measured apart from it. On a shared machine,
set OMP_NUM_THREADS to the cores that are yours.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import torch
from synthetic import SIZES, generate

from sharpen import Trial
from sharpen.batching import Batching
from sharpen.large.parted import arrange
from sharpen.training.batched import BatchedPopulation
from sharpen.training.device import arithmetic, describe_device, resolve_device
from sharpen.training.trials import blueprint_of, resolve


def peak_gb() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def prepare(folder: Path, scale: float, batching: str) -> dict[str, float]:
    """Generates the graph and cuts it; seconds and peak memory of both."""
    start = time.perf_counter()
    graph = generate("ogbn-products", folder, scale).graph
    generated = time.perf_counter()
    arrange(graph, Batching.parse(batching).parts)
    return {
        "generate_s": generated - start,
        "cut_s": time.perf_counter() - generated,
        "prepare_gb": peak_gb(),
    }


def measure(folder: Path, scale: float, batching: str, given: argparse.Namespace) -> dict[str, float]:
    """Trains some epochs of one member; the first is not counted, since it reads the graph from disk."""
    device = resolve_device(given.device)
    dataset = generate("ogbn-products", folder, scale)
    trial = Trial(
        model=given.model, layers=given.layers, hidden=given.hidden, norm="layer", residual=True, input_linear=False,
        dropout=0.5, lr=0.003, weight_decay=0.0, epochs=given.epochs + 1, lam=0.25, batching=batching,
    )  # fmt: skip
    trial = resolve(trial, dataset)
    network = blueprint_of(dataset.graph.num_features, dataset.graph.num_classes, trial).network
    assert network is not None
    with arithmetic(given.precision, device) as dtype:
        population = BatchedPopulation(
            network,
            dataset.graph,
            Batching.parse(batching),
            "accuracy",
            [trial],
            [dataset.splits["given-0"]],
            device,
            dtype,
        )
        evaluations: list[float] = []
        original = population._evaluate

        def evaluate() -> list[torch.Tensor]:
            begin = time.perf_counter()
            scores = original()
            if device.type == "cuda":
                torch.cuda.synchronize()
            evaluations.append(time.perf_counter() - begin)
            return scores

        population._evaluate = evaluate  # type: ignore[method-assign]
        epochs: list[float] = []
        worked: list[float] = []
        for _ in range(given.epochs + 1):
            begin, work = time.perf_counter(), time.process_time()
            population.epoch()
            epochs.append(time.perf_counter() - begin)
            worked.append(time.process_time() - work)
    return {
        "first_s": epochs[0],
        "epoch_s": min(epochs[1:]),
        "cpu_s": min(worked[1:]),  # of all threads: what others on the machine do does not change it much
        "evaluation_s": min(evaluations[1:]),
        "peak_gb": peak_gb(),
        "device_gb": torch.cuda.max_memory_allocated() / 1e9 if device.type == "cuda" else 0.0,
        "batches": population.batches.per_epoch,
        "largest_batch": population.batches.largest,
        "val": float(population.best_val[0]),
    }


def child(task: str, folder: Path, scale: float, batching: str, rest: list[str]) -> dict[str, float]:
    """One task in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, __file__, "--task", task, "--folder", str(folder), "--scale", str(scale), *rest]
    done = subprocess.run([*command, "--batching", batching], stdout=subprocess.PIPE, check=True)
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--folder", type=Path, required=True, help="where graphs are generated")
    options.add_argument("--out", type=Path, default=Path("large.csv"))
    options.add_argument("--smallest", type=float, default=1e5, help="edges of the smallest graph")
    options.add_argument("--largest", type=float, default=1e7, help="edges of the largest graph")
    options.add_argument("--model", default="gcn")
    options.add_argument("--layers", type=int, default=2)
    options.add_argument("--hidden", type=int, default=64)
    options.add_argument("--epochs", type=int, default=2)
    options.add_argument("--device", default="auto")
    options.add_argument("--precision", default="float32")
    options.add_argument("--task", choices=("prepare", "measure"), help=argparse.SUPPRESS)
    options.add_argument("--scale", type=float, help=argparse.SUPPRESS)
    options.add_argument("--batching", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.task == "prepare":
        print(json.dumps(prepare(given.folder, given.scale, given.batching)))
        return
    if given.task == "measure":
        print(json.dumps(measure(given.folder, given.scale, given.batching, given)))
        return

    size, rows = SIZES["ogbn-products"], []
    targets = [10 ** (exponent / 10) for exponent in range(50, 78, 5)]
    targets = [t for t in targets if given.smallest <= t < 0.32 * given.largest] + [given.largest]
    shape = f"{given.model} of {given.layers} layers, width {given.hidden}"
    print(f"{describe_device(resolve_device(given.device))}, torch {torch.__version__}, {given.precision}, {shape}")
    heads = (
        "edges",
        "nodes",
        "cut s",
        "cut GB",
        "epoch s",
        "of it evaluation",
        "CPU s",
        "peak GB",
        "GPU GB",
        "CPU ns/edge",
    )
    print("".join(f"{head:>{max(9, len(head) + 2)}}" for head in heads))
    rest = [
        f"--{name}={getattr(given, name)}" for name in ("model", "layers", "hidden", "epochs", "device", "precision")
    ]
    for target in targets:
        scale = target / size.edges
        folder = given.folder / f"products-{round(target)}"
        nodes = size.scaled(scale).nodes
        parts = max(32, round(nodes / 1500))
        batching = f"clusters-{parts}-{max(1, parts // min(max(8, parts // 8), 64))}"
        row: dict[str, float | str] = {"edges": round(target), "nodes": nodes, "batching": batching, "model": shape}
        row |= child("prepare", folder, scale, batching, rest)
        row |= child("measure", folder, scale, batching, rest)
        rows.append(row)
        per_edge = 1e9 * float(row["cpu_s"]) / target
        figures = ("cut_s", "prepare_gb", "epoch_s", "evaluation_s", "cpu_s", "peak_gb", "device_gb")
        shown = [row["edges"], nodes, *(f"{row[name]:.2f}" for name in figures), f"{per_edge:.0f}"]
        print(
            "".join(f"{value:>{max(9, len(head) + 2)}}" for head, value in zip(heads, shown, strict=True)), flush=True
        )
        with given.out.open(
            "w", newline="", encoding="utf-8"
        ) as file:  # every time: a run that is cut short leaves something
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
