"""Blocks of the evidence that the records held all along: easy splits, what tuning buys, λ beside λ*, seeds that pair or do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from by_graph import CONVOLUTIONS, gradient_norms, message_passing, overheads
from scipy import stats
from split_story import PLANETOID, Found

from sharpen.analysis.outcome import CellOutcome
from sharpen.analysis.ranking import rankings
from sharpen.paper import lambda_star
from sharpen.report.cells import Value, signed
from sharpen.report.names import cell_title, dataset_title, model_title
from sharpen.report.study_tables import own_score
from sharpen.report.tables import Column, Place, Table, to_markdown
from sharpen.studies import load_study

NOT_YET = "Not run yet."
# The graphs that the paper has one split of.
_SINGLE = (*PLANETOID, "computer", "photo", "cs", "physics")


def easy_splits(found: Found) -> str:
    """How far the paper's one split lies above the mean of draws, without sharpening."""
    main, paired = found("main", "paper"), found("universal", "paired")
    rows: list[tuple[Place, ...]] = []
    above, apart = [], []
    for cell in main.cells:
        if cell.dataset not in _SINGLE or cell.model not in CONVOLUTIONS:
            continue
        side, draws = cell.sides["baseline"], paired.cell(cell.dataset, cell.model).sides["baseline"]
        if not (side.complete and draws.complete) or side.mean is None or draws.mean is None or not draws.sd:
            continue
        above.append(side.mean - draws.mean)
        apart.append(above[-1] / draws.sd)
        rows.append(
            (
                cell_title(cell.dataset, cell.model),
                own_score(side),
                own_score(draws),
                Value.number(above[-1], sign=True),
                Value.number(apart[-1], 1, sign=True),
            )
        )
    if not rows:
        return NOT_YET
    columns = (
        Column("cell", "cell"),
        Column("one", "the paper's split", "right"),
        Column("draws", "20 draws", "right"),
        Column("points", "above, points", "right"),
        Column("sd", "in sd of a draw", "right"),
    )
    text = (
        f"The paper's split lies above the mean of draws in {sum(a > 0 for a in above)} of {len(above)} cells, by "
        f"{min(above):.2f} to {max(above):.2f} points, {np.mean(above):.2f} on average; in standard deviations of a draw by "
        f"{min(apart):.1f} to {max(apart):.1f}."
    )
    return f"{text}\n\n{to_markdown(Table('Plain training on the paper’s split and on draws', columns, tuple(rows))).strip()}"


def ranks_by_draws(found: Found) -> str:
    """Where the best of our plain models stands among published scores, by the paper's split and by the mean of draws."""
    main, paired = found("main", "paper"), found("universal", "paired")
    rows: list[tuple[Place, ...]] = []
    for ranking in rankings(load_study("comparison"), main):
        entry = next((e for e in ranking.entries if e.ours and e.mean is not None and "+" not in e.method), None)
        cells = [cell for cell in paired.cells if cell.dataset == ranking.dataset]
        whole = [c for c in cells if all(c.sides[n].complete and c.sides[n].n for n in ("baseline", "ts-0.25"))]
        if ranking.dataset not in _SINGLE or entry is None or not whole:
            continue
        places: list[Place] = []
        for name in ("baseline", "ts-0.25"):
            mean, model = max((cell.sides[name].mean or 0.0, cell.model) for cell in whole)
            place, of = ranking.place(replace(entry, mean=mean))
            places.append(f"{model_title(model)} {mean:.2f}, place {place} of {of}")
        place, of = ranking.place(entry)
        here = f"{entry.method} {entry.mean:.2f}, place {place} of {of}"
        rows.append((dataset_title(ranking.dataset), here, *places))
    if not rows:
        return NOT_YET
    columns = (
        Column("graph", "graph"),
        Column("one", "plain, the paper's split", "right"),
        Column("draws", "plain, mean of draws", "right"),
        Column("sharp", "λ = 0.25, mean of draws", "right"),
    )
    return to_markdown(Table("Our best model among published scores, by split", columns, tuple(rows)))


def tuning(found: Found, study: str = "main", protocol: str = "paper") -> str:
    """What choosing λ by validation buys on test nodes, what validation said it would, and what fixed values give."""
    outcome = found(study, protocol)
    cells = [c for c in outcome.cells if c.model in CONVOLUTIONS and c.sides["ts-tuned"].complete]
    if not cells:
        return NOT_YET
    every = [name for name in outcome.study.variants if name != "baseline"]
    shown = every if len(every) < 5 else ["ts-0.25", "ts-0.3"]
    gains = pd.DataFrame(
        [
            {
                "graph": c.dataset,
                "validation": _val(c, "ts-tuned") - _val(c, "baseline"),
                "test": _test(c, "ts-tuned") - _test(c, "baseline"),
                **{name: _test(c, name) - _test(c, "baseline") for name in every},
            }
            for c in cells
        ]
    )
    over = gains.drop(columns="graph").mean()
    best = max(every, key=lambda name: over[name])
    fixed = ", ".join(f"a fixed {name.removeprefix('ts-')} {signed(over[name])}" for name in shown)
    text = (
        f"Over {len(cells)} convolutional cells λ by validation gains {signed(over['test'])} on test nodes, where validation "
        f"nodes promise {signed(over['validation'])}; {fixed}. The best of {len(every)} fixed ones, by hindsight, is λ = "
        f"{best.removeprefix('ts-')}."
    )
    by = gains[["graph", "validation", "test", *shown]].groupby("graph", sort=False).mean()
    models = {g: [model_title(c.model) for c in cells if c.dataset == g] for g in by.index}
    rows = tuple(
        (
            dataset_title(str(g)) + ("" if len(models[g]) == len(CONVOLUTIONS) else f" ({', '.join(models[g])})"),
            *(Value.number(float(v), sign=True) for v in row),
        )
        for g, row in by.iterrows()
    )
    titles = ("validation nodes say", "test nodes say", *(f"fixed λ = {name.removeprefix('ts-')}" for name in shown))
    columns = (Column("graph", "graph"), *(Column(k, t, "right") for k, t in zip(by.columns, titles, strict=True)))
    title = f"The gain of λ by validation, and of a fixed λ, mean over models, {protocol} protocol"
    return f"{text}\n\n{to_markdown(Table(title, columns, rows)).strip()}"


def lambda_beside(found: Found) -> str:
    """The λ that our validation chose beside the paper's λ*."""
    cells = [c for c in found("main", "paper").cells if c.model in CONVOLUTIONS and c.sides["ts-tuned"].complete]
    if len(cells) < 3:
        return NOT_YET
    ours = {(c.dataset, c.model): c.sides["ts-tuned"].trial.lam for c in cells if c.sides["ts-tuned"].trial}
    theirs = {key: lambda_star(*key) for key in ours}
    both = [(lam, theirs[key]) for key, lam in ours.items() if theirs[key] is not None]
    rho = stats.spearmanr(*zip(*both, strict=True)).statistic
    apart = np.abs(np.subtract(*zip(*both, strict=True)))
    text = (
        f"Rank correlation {rho:.2f} over {len(both)} cells; the same in {int((apart < 1e-9).sum())}, within 0.1 in "
        f"{int((apart < 0.1 + 1e-9).sum())}, more than 0.5 apart in {int((apart > 0.5).sum())}."
    )
    rows = tuple(
        (dataset_title(d), *(f"{theirs[d, m]:g} / {ours[d, m]:g}" if (d, m) in ours else "" for m in CONVOLUTIONS))
        for d in dict.fromkeys(cell.dataset for cell in cells)
    )
    columns = (Column("graph", "graph"), *(Column(m, model_title(m), "right") for m in CONVOLUTIONS))
    return f"{text}\n\n{to_markdown(Table('λ*: the paper’s / ours', columns, rows)).strip()}"


def no_message_passing(found: Found) -> str:
    """An MLP with sharpening against a GCN without."""
    rows = tuple(
        (
            dataset_title(e.dataset),
            lam,
            Value.gain(e.difference.difference, e.difference.t_interval, e.runs),
            Value.number(said, sign=True),
        )
        for e, lam, said in message_passing(found)
    )
    if not rows:
        return NOT_YET
    columns = (
        Column("graph", "graph"),
        Column("lam", "λ of the MLP", "right"),
        Column("ours", "MLP with sharpening − GCN without", "right"),
        Column("paper", "paper", "right"),
    )
    return to_markdown(Table("Does sharpening replace message passing?", columns, rows))


def seeds(found: Found, frame: pd.DataFrame) -> str:
    """Whether a seed pairs runs where splits have two, and how far the same run falls from itself."""
    paired = found("universal", "paired")
    within = {}
    for cell in paired.cells:
        if cell.dataset in ("squirrel", "chameleon") and all(s.complete for s in cell.sides.values()):
            within[cell_title(cell.dataset, cell.model)] = _within_splits(cell)
    lines = []
    if within:
        told = ", ".join(f"{name} {value:.2f}".replace("-", "−") for name, value in within.items())
        lines.append(
            "Correlation between λ = 0 and λ = 0.25 over seeds, the mean of each split taken off (two seeds on each of ten "
            f"splits): {told}."
        )
    again = frame[frame["id"].duplicated(keep=False)] if len(frame) else frame
    for (dataset, model), own in again.groupby(["dataset", "model"], sort=False) if len(again) else ():
        scores = own.groupby("id", sort=False)["test"].agg(["first", "last"]) * 100
        apart = (scores["last"] - scores["first"]).to_numpy()
        spread = f"standard deviation {apart.std(ddof=1):.1f} points, at most {np.abs(apart).max():.1f}"
        same = "the same to the last digit" if not apart.any() else spread
        lines.append(f"{cell_title(str(dataset), str(model))}, {len(apart)} runs made twice: {same}.")
    return "\n".join(f"- {line}" for line in lines) or NOT_YET


def gradients() -> str:
    """The norms of both entropies' gradients by the logits."""
    rows: list[tuple[Place, ...]] = []
    for classes in (2, 7, 40):
        places = [gradient_norms(classes, q) for q in (1.0, 2.0)]
        rows.append((str(classes), *(f"{value:.3f}" for value, _ in places), *(f"{value:.1e}" for _, value in places)))
    columns = (
        Column("classes", "classes", "right"),
        Column("s", "Shannon", "right", group="largest"),
        Column("g", "Gini", "right", group="largest"),
        Column("s1", "Shannon", "right", group="at p = 1 − 10⁻⁶"),
        Column("g1", "Gini", "right", group="at p = 1 − 10⁻⁶"),
    )
    return to_markdown(
        Table("Norm of an entropy's gradient by the logits, one class standing out", columns, tuple(rows))
    )


def overhead() -> str:
    """CPU time with and without sharpening."""
    rows: list[tuple[Place, ...]] = [
        (
            cell_title(row["dataset"], row["model"]),
            row["way"],
            *(f"{float(row[name]):.3g}" for name in ("epoch_ms", "plain_ms", "sharpened_ms")),
            f"{signed(float(row['overhead_percent']), 1)} %",
        )
        for row in overheads()
    ]
    columns = (
        Column("cell", "cell"),
        Column("way", "way"),
        Column("epoch", "epoch, ms", "right"),
        Column("plain", "plain, ms", "right"),
        Column("sharp", "sharpened, ms", "right"),
        Column("more", "of an epoch", "right"),
    )
    return to_markdown(Table("CPU time with and without sharpening", columns, tuple(rows)))


def _within_splits(cell: CellOutcome) -> float:
    sides = []
    for name in ("baseline", "ts-0.25"):
        runs = pd.DataFrame(
            [(r.split, r.seed, r.test) for r in cell.sides[name].runs], columns=["split", "seed", "test"]
        )
        own = runs.set_index(["split", "seed"])["test"]
        sides.append(own - own.groupby("split").transform("mean"))
    return float(sides[0].corr(sides[1]))


def _test(cell: CellOutcome, name: str) -> float:
    return float(cell.sides[name].mean or np.nan)


def _val(cell: CellOutcome, name: str) -> float:
    return float(cell.sides[name].val or np.nan)
