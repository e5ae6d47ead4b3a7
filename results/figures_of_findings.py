"""The two figures of the findings: the gain on ten graphs, and what two splits do to an ablation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from split_story import PLANETOID, Found

from sharpen.analysis.graphs import graph_effects
from sharpen.analysis.outcome import Outcome
from sharpen.evaluation import unpaired_difference
from sharpen.report.blocks import Charts, Layout
from sharpen.report.cells import Value
from sharpen.report.charts import Chart, forest, forest_row
from sharpen.report.figures import draw, save_figure
from sharpen.report.names import dataset_title

# Ablations whose published losses on Planetoid compare two splits.
_ABLATIONS = {"labeled-term": "no labeled term", "test-only": "test nodes only", "meta-lambda": "meta-learned λ"}
_LABELS = {
    "cora": "20 labels per class",
    "citeseer": "20 labels per class",
    "pubmed": "20 labels per class",
    "squirrel": "48 % labeled",
    "chameleon": "48 % labeled",
    "minesweeper": "50 % labeled",
}


def graphs_figure(found: Found) -> Charts | None:
    """λ = 0.25 against plain training on ten graphs; None if nothing is there."""
    effects = graph_effects(found("universal", "paired"), "ts-0.25 - baseline")
    rows = []
    for e in sorted(effects, key=lambda e: -e.difference.difference):
        gain = Value.gain(e.difference.difference, e.difference.t_interval, tell_n=False)
        rows.append(
            forest_row(
                f"{dataset_title(e.dataset)}\n{_LABELS.get(e.dataset, '60 % labeled')}",
                "",
                "blue" if e.sure else "ink",
                e.difference.difference,
                e.difference.t_interval,
                quoted=e.published,
                sure=e.sure,
                strong=e.sure,
                tail=gain.text,
                marker="o",
            )
        )
    if not rows:
        return None
    legend: list[Chart] = [
        {"name": "clear after Holm’s correction", "color": "blue"},
        {"name": "not clear", "color": "ink", "open": True},
        {"name": "the paper’s mean", "quoted": True},
    ]
    chart = forest("", rows, "gain of λ = 0.25 over plain training (points of test score)", zero=True, legend=legend)
    text = (
        "GCN, SAGE and GAT averaged on every draw of the split, then the mean over draws with its 95 % t interval: 20 draws, or "
        "ten given splits with two seeds each (Squirrel, Chameleon, Minesweeper)."
    )
    return Charts("", {"": [chart]}, text=text, layout=Layout("graphs", (7.2, 0.42 * len(rows) + 0.5), legend=True))


def splits_figure(found: Found) -> Charts | None:
    """The paper's ablations on Planetoid, remade across its two splits and on the same draws; None if nothing is there."""
    rows: list[Chart] = []
    for name, title in _ABLATIONS.items():
        paired = found(name, "paired")
        contrast = paired.study.compare[0]
        for e in graph_effects(paired, contrast.name):
            crossed = _crossed(
                found(name, "ablation"), contrast.variant, found(name, "paper"), contrast.against, e.dataset
            )
            if e.dataset not in PLANETOID or crossed is None:
                continue
            group = f"{dataset_title(e.dataset)}, {title}"
            options = {"sure": True, "strong": False}
            across = Value.gain(*crossed, tell_n=False)
            same = Value.gain(e.difference.difference, e.difference.t_interval, tell_n=False)
            rows += [
                forest_row(group, "", "amber", *crossed, quoted=e.published, tail=across.text, marker="o", **options),
                forest_row(
                    group, "", "blue", e.difference.difference, e.difference.t_interval, quoted=None,
                    tail=same.text, marker="o", **options
                ),
            ]  # fmt: skip
    if not rows:
        return None
    legend: list[Chart] = [
        {"name": "ours, on the paper’s two splits", "color": "amber"},
        {"name": "ours, both on the same 20 draws", "color": "blue"},
        {"name": "the paper’s", "quoted": True},
    ]
    chart = forest("", rows, "ablation − what it is compared with (points of test score)", zero=True, legend=legend)
    text = (
        "GCN, SAGE and GAT averaged. Amber: the ablation on the split of seed 42 minus what it is compared with on that of seed "
        "123, as in the paper, with Welch’s 95 % interval over five seeds. Blue: paired on 20 draws of the split, 95 % t interval."
    )
    return Charts("", {"": [chart]}, text=text, layout=Layout("splits", (7.2, 0.27 * len(rows) + 0.8), legend=True))


def _crossed(
    ablation: Outcome, variant: str, paper: Outcome, against: str, dataset: str
) -> tuple[float, tuple[float, float] | None] | None:
    """A variant on one split minus another on another split, models averaged seed by seed."""
    scores = []
    for outcome, name in ((ablation, variant), (paper, against)):
        sides = [cell.sides[name] for cell in outcome.cells if cell.dataset == dataset]
        if not sides or not all(side.complete and side.n == side.planned for side in sides):
            return None
        by_seed = [{run.seed: run.test or 0.0 for run in side.runs} for side in sides]
        scores.append([float(np.mean([runs[seed] for runs in by_seed])) for seed in sorted(by_seed[0])])
    difference = unpaired_difference(*scores)
    return difference.difference, difference.t_interval


def draw_figures(found: Found, folder: Path) -> None:
    """Both figures, as PNG and SVG."""
    for charts in (graphs_figure(found), splits_figure(found)):
        if charts is not None and charts.layout is not None:
            figure = draw(charts)
            for ending in ("png", "svg"):
                save_figure(figure, folder / f"findings-{charts.layout.name}.{ending}")
