"""Models written for one run, as populations, beside the plain loop over the same module: milliseconds per epoch of one run.

    python benchmarks/any_model.py                # this machine: a GPU if there is one
    python benchmarks/any_model.py --seconds 0.3 --members 8

Four models of the literature in a few lines each, and three modules of PyG's own layers. Both sides train with λ = 0.25 at hidden
width 64, one training step and one evaluation an epoch; the loop has the features dense on its device, its dropout is torch's,
and its optimizer torch's Adam. Ours has the contract's keyed dropout. Which way a population takes is printed where it is not the
fastest.
"""

from __future__ import annotations

import csv
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import torch
import torch.nn.functional as F
import typer
from torch import Tensor, nn

from sharpen import load_dataset
from sharpen.bench.cells import Timing, geometric_mean, time_cells
from sharpen.kernels.linear_attention import linear_attention
from sharpen.models.inputs import Inputs
from sharpen.training.device import describe_device, resolve_device

HIDDEN = 64


class GPRGNN(nn.Module):
    """Σ_k γ_k Â^k MLP(X)."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(num_features, HIDDEN), nn.Linear(HIDDEN, num_classes)
        self.gamma = nn.Parameter(0.1 * 0.9 ** torch.arange(11.0))

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        z = self.outer(F.dropout(F.relu(self.inner(x)), 0.5, self.training))
        out = self.gamma[0] * z
        for gamma in self.gamma[1:]:
            z = graph.propagate(z)
            out = out + gamma * z
        return out


class SGFormer(nn.Module):
    """Linear attention of all nodes, averaged with a graph convolution."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.inner, self.local = nn.Linear(num_features, HIDDEN), nn.Linear(num_features, HIDDEN)
        self.query, self.key, self.value = (nn.Linear(HIDDEN, HIDDEN) for _ in range(3))
        self.norm, self.head = nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, num_classes)

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        h = F.dropout(F.relu(self.inner(x)), 0.5, self.training)
        h = self.norm((linear_attention(self.query(h), self.key(h), self.value(h)) + h) / 2)
        near = F.relu(graph.propagate(self.local(x)))
        return self.head(F.dropout((h + near) / 2, 0.5, self.training))


class H2GCN(nn.Module):
    """The node, its neighbours and the nodes two steps off kept apart, two rounds of it."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.inner, self.head = nn.Linear(num_features, HIDDEN), nn.Linear(7 * HIDDEN, num_classes)

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        r = [F.relu(self.inner(x))]
        for _ in range(2):
            r.append(torch.cat([graph.propagate(r[-1], "one-hop"), graph.propagate(r[-1], "two-hop")], dim=1))
        return self.head(F.dropout(torch.cat(r, dim=1), 0.5, self.training))


class FSGNN(nn.Module):
    """A linear map of each of X, A X, Ã X, …, weighed by a softmax over them."""

    HOPS = 3

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        count = 2 * self.HOPS + 1
        self.maps = nn.ModuleList(nn.Linear(num_features, HIDDEN) for _ in range(count))
        self.weight = nn.Parameter(torch.ones(count))
        self.head = nn.Linear(count * HIDDEN, num_classes)

    def forward(self, x: Tensor, graph: Inputs) -> Tensor:
        stack = [*graph.stack(self.HOPS), *graph.stack(self.HOPS, "one-hop")[1:]]
        share = self.weight.softmax(0)
        parts = [s * F.normalize(m(each), dim=1) for s, m, each in zip(share, self.maps, stack, strict=True)]
        return self.head(F.dropout(F.relu(torch.cat(parts, dim=1)), 0.5, self.training))


def pyg(conv: str) -> type[nn.Module]:
    """Two layers of PyG's, exactly as they are."""

    class Layers(nn.Module):
        def __init__(self, num_features: int, num_classes: int) -> None:
            import torch_geometric.nn

            super().__init__()
            make = getattr(torch_geometric.nn, conv)
            self.first, self.second = make(num_features, HIDDEN), make(HIDDEN, num_classes)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            x = F.dropout(F.relu(self.first(x, edge_index)), 0.5, self.training)
            return self.second(x, edge_index)

    Layers.__name__ = f"PyG-{conv.removesuffix('Conv')}"
    return Layers


OURS = {"cora": 205, "photo": 64, "squirrel": 128, "minesweeper": 128}
PYG = {"cora": 64, "photo": 16, "minesweeper": 32}


def main(
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    precision: Annotated[str, typer.Option(help="float32 or tf32; by default tf32 on a GPU.")] = "",
    members: Annotated[
        int, typer.Option(help="Runs per population; 0: those of the table, on a CPU what suits it.")
    ] = 0,
    seconds: Annotated[float, typer.Option(help="How long to time each side of a cell.")] = 1.0,
    only: Annotated[str, typer.Option(help="Comma-separated datasets; by default all.")] = "",
    out: Annotated[Path | None, typer.Option(help="A CSV file that gets a line per cell.")] = None,
) -> None:
    """Print the table, and the geometric mean of the ratio for each of the two kinds of model."""
    where = resolve_device(device)
    precision = precision or ("tf32" if where.type == "cuda" else "float32")
    print(f"{describe_device(where)}, torch {torch.__version__}, {precision}; milliseconds per epoch of one run")
    rows: list[Timing] = []
    for kind, models, sizes in (
        ("models of ours", (GPRGNN, SGFormer, H2GCN, FSGNN), OURS),
        ("PyG's layers as they are", tuple(map(pyg, ("GATv2Conv", "GCNConv", "SAGEConv"))), PYG),
    ):
        print(f"\n{kind}\n{'cell':<26}{'members':>8}{'loop':>10}{'ours':>10}{'ratio':>8}  way")
        timings: list[Timing] = []
        for name, size in sizes.items():
            if only and name not in only.split(","):
                continue
            dataset = load_dataset(name)
            wanted = members or (size if where.type == "cuda" else None)
            for model in models:
                for t in time_cells([(dataset, model)], where, precision, wanted, seconds, ceiling=False):
                    timings.append(t)
                    print(
                        f"{t.dataset + ' ' + t.model:<26}{t.members:>8}{1e3 * t.plain:>10.3f}{1e3 * t.population:>10.4f}"
                        f"{t.ratio:>8.1f}  {t.way}",
                        flush=True,
                    )
        if timings:
            print(f"geometric mean {geometric_mean(timings):.1f}, least {min(t.ratio for t in timings):.1f}")
        rows += timings
    if out is not None:
        with out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [*asdict(rows[0]), "ratio"])
            writer.writeheader()
            writer.writerows(asdict(t) | {"ratio": t.ratio} for t in rows)


if __name__ == "__main__":
    typer.run(main)
