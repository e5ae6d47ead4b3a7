"""The sentences of the findings that hold numbers."""

from __future__ import annotations

import numpy as np
from by_graph import CONVOLUTIONS, chosen_by_draw
from split_story import PLANETOID, Found

from sharpen.analysis.graphs import GraphEffect, graph_effects
from sharpen.report.cells import Value, signed
from sharpen.report.names import dataset_title
from sharpen.report.study_text import sentences

NOT_YET = "Not run yet."


def summary(found: Found) -> str:
    """What the records say, in three sentences."""
    effects = graph_effects(found("universal", "paired"), "ts-0.25 - baseline")
    main = found("main", "paper")
    cells = [c for c in main.cells if c.model in CONVOLUTIONS and c.sides["ts-tuned"].complete]
    if not effects or not cells:
        return NOT_YET
    large = sorted(
        (e for e in effects if e.sure and e.difference.difference >= 0.5), key=lambda e: -e.difference.difference
    )
    rest = [e for e in effects if e not in large]
    lines = [
        f"**λ = 0.25 gains half a point or more on {len(large)} of {len(effects)} graphs**: {' and '.join(map(_told, large))}, "
        f"with 20 labels per class. On the other {len(rest)} the mean lies between {signed(min(map(_mean, rest)))} and "
        f"{signed(max(map(_mean, rest)))}, and none loses clearly."
    ]
    parts = []
    for name in ("labeled-term", "test-only", "meta-lambda"):
        outcome = found(name, "paired")
        own = [e for e in graph_effects(outcome, outcome.study.compare[0].name) if e.dataset in PLANETOID]
        if own:
            paper = float(np.mean([e.published for e in own if e.published is not None]))
            parts.append(f"{signed(paper)} becomes {signed(float(np.mean([_mean(e) for e in own])))}")
    lines.append(
        "**The paper's large ablation losses on Cora, CiteSeer and PubMed compare two splits.** With both sides on the same 20 "
        f"draws, {parts[0]} (no labeled term), {parts[1]} (test nodes only), {parts[2]} (meta-learned λ)."
        if len(parts) == 3
        else "The ablations: not run yet."
    )

    def gain(name: str, of: str) -> str:
        values = [getattr(c.sides[name], of) - getattr(c.sides["baseline"], of) for c in cells]
        return signed(float(np.mean(values)))

    split = (
        f"On the paper's one split the best of 41 gains {gain('ts-tuned', 'mean')} over {len(cells)} cells; 0.3, by hindsight the "
        f"best fixed one, {gain('ts-0.3', 'mean')}; and validation nodes promise {gain('ts-tuned', 'val')}."
    )
    lines.append(f"{_over_draws(found)} {split}".strip())
    return sentences(lines)


def _over_draws(found: Found) -> str:
    """What λ by the validation nodes of each draw gives beyond a fixed one."""
    beyond, gains = (chosen_by_draw(found, against) for against in ("ts-0.25", "baseline"))
    large = [e for e in beyond if e.sure and _mean(e) >= 0.5]
    if not large:
        return ""
    where = " and ".join(dataset_title(e.dataset) for e in large)
    mean, more = (signed(float(np.mean([_mean(e) for e in effects]))) for effects in (gains, beyond))
    return (
        f"**Tuning λ pays on {where}, and hardly elsewhere.** The best of five values by the validation nodes of each draw gains "
        f"{' and '.join(map(_told, large))} beyond 0.25; over {len(beyond)} graphs it is {more} beyond 0.25, {mean} beyond plain "
        "training."
    )


def split_sentence(found: Found) -> str:
    """What a split alone does, in two sentences."""
    paper, ablation, paired = (found("universal", protocol) for protocol in ("paper", "ablation", "paired"))
    falls, above = [], []
    for cell in paper.cells:
        side, draws = cell.sides["baseline"], paired.cell(cell.dataset, cell.model).sides["baseline"]
        other = next((c for c in ablation.cells if (c.dataset, c.model) == (cell.dataset, cell.model)), None)
        if cell.splits > 1 or not side.complete or side.mean is None:
            continue
        if draws.complete and draws.mean is not None:
            above.append(side.mean - draws.mean)
        if other is not None and other.sides["baseline"].complete:
            falls.append((other.sides["baseline"].mean or np.nan) - side.mean)
    if not falls or not above:
        return NOT_YET
    return (
        f"The paper's ablations on Cora, CiteSeer and PubMed ran on the split of seed 42, what they are compared with on that of "
        f"seed 123: plain training alone scores {abs(float(np.mean(falls))):.1f} points lower there, on average over {len(falls)} "
        f"cells. And its one split is an easy one: in {sum(a > 0 for a in above)} of {len(above)} cells it lies above the mean "
        f"of draws, by up to {max(above):.1f} points."
    )


def _mean(effect: GraphEffect) -> float:
    return effect.difference.difference


def _told(effect: GraphEffect) -> str:
    return f"{Value.gain(_mean(effect), effect.difference.t_interval, tell_n=False).text} on {dataset_title(effect.dataset)}"
