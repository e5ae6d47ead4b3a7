"""Numbers of the findings that compare splits: what one split says, what another, and what draws of the split say.

The paper's ablations on Planetoid ran on another split than what they are compared with; here both are remade from records.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sharpen.analysis.outcome import NOT_RUN, CellOutcome, Effect, Outcome
from sharpen.analysis.runs import Side, pairs_of_runs, scores_of_pairs
from sharpen.evaluation import UnpairedDifference, paired_difference, unpaired_difference
from sharpen.report.cells import Value
from sharpen.report.names import cell_title, minus
from sharpen.report.study_tables import own_score
from sharpen.report.study_text import sentences
from sharpen.report.tables import Column, Place, Table, to_markdown

Found = Callable[[str, str], Outcome]

PLANETOID = ("cora", "citeseer", "pubmed")


def split_story(found: Found) -> str:
    """What two splits alone do: the paper's ablation numbers on Planetoid, remade across two splits and on one."""
    parts = []
    spread = _draw_spread(found("universal", "paired"))
    if spread:
        parts.append(sentences(spread))
    two = _two_splits(found)
    if two.rows:
        parts.append(to_markdown(two))
    single = _single_splits(found)
    if single.rows:
        parts.append(to_markdown(single))
    rows: list[tuple[Place, ...]] = []
    for name in ("labeled-term", "test-only", "entropy-order", "meta-lambda"):
        rows += _crossed(found, name)
    if rows:
        columns = (
            Column("comparison", "comparison"),
            Column("cell", "cell"),
            Column("paper", "paper", "right"),
            Column("crossed", "ours, across two splits (unpaired)", "right"),
            Column("one", "ours, both on seed 42 (paired)", "right"),
            Column("draws", "ours, 20 draws (paired)", "right"),
        )
        notes = (
            "Across two splits: the variant on the split of seed 42 minus the symmetric objective on that of seed 123, "
            "with Welch's 95 % interval. Paired: the same splits and seeds on both sides, "
            "with the 95 % t interval. Bold where an interval excludes zero.",
        )
        parts.append(to_markdown(Table("The paper's ablations on Planetoid, remade", columns, tuple(rows), notes)))
    return "\n\n".join(part.strip() for part in parts) or "Not run yet."


def tuned_elsewhere(found: Found) -> str:
    """What the paper's λ*, chosen on one split, is worth over draws of the split: against none, and against λ = 0.25."""
    rows: list[tuple[Place, ...]] = []
    for cell, plain in _same_cells(found("meta-lambda", "paired"), found("universal", "paired")):
        star, trial = cell.sides["ts-tuned"], cell.sides["ts-tuned"].trial
        others = [plain.sides[name] for name in ("baseline", "ts-0.25")]
        if cell.dataset not in PLANETOID or trial is None or not all(_whole(side) for side in (star, *others)):
            continue
        rows.append(
            (cell_title(cell.dataset, cell.model), Value.number(trial.lam), *(_of_sides(star, o) for o in others))
        )
    if not rows:
        return "Not run yet."
    columns = (
        Column("cell", "cell"),
        Column("lam", "the paper's λ*", "right"),
        Column("plain", "λ* − no sharpening", "right"),
        Column("fixed", "λ* − λ = 0.25", "right"),
    )
    notes = (
        "Paired on the same 20 draws of the split, with the 95 % t interval, bold where it excludes zero; not corrected.",
    )
    return to_markdown(Table("The paper's λ* over draws of the split", columns, tuple(rows), notes))


def _draw_spread(paired: Outcome) -> list[str]:
    """How far the draw of a split alone moves the baseline."""
    lines = []
    for cell in paired.cells:
        side = cell.sides["baseline"]
        if cell.dataset in PLANETOID and cell.model == "gcn" and side.n > 2 and side.sd is not None:
            lines.append(
                f"{cell_title(cell.dataset, cell.model)}, no sharpening: from {min(side.tests):.1f} to "
                f"{max(side.tests):.1f} over {side.n} draws of the split, standard deviation {side.sd:.2f}. Two draws "
                f"differ by {2 * side.sd / np.sqrt(np.pi):.1f} "
                "points on average, if they are normal."
            )
    return lines


def _two_splits(found: Found) -> Table:
    """λ = 0 and λ = 0.25 on the split of seed 123 and on that of seed 42."""
    rows: list[tuple[Place, ...]] = []
    paper, ablation = found("universal", "paper"), found("universal", "ablation")
    for name in ("baseline", "ts-0.25"):
        for cell, other in _same_cells(paper, ablation):
            a, b = other.sides[name], cell.sides[name]
            if cell.dataset not in PLANETOID or not _whole(a) or not _whole(b):
                continue
            difference = _apart(a, b)
            rows.append((name, cell_title(cell.dataset, cell.model), own_score(b), own_score(a), difference))
    columns = (
        Column("variant", "variant"),
        Column("cell", "cell"),
        Column("main", "split of seed 123", "right"),
        Column("ablation", "split of seed 42", "right"),
        Column("difference", "difference (unpaired)", "right"),
    )
    return Table("The same training on two splits", columns, tuple(rows), ("With Welch's 95 % interval.",))


def _single_splits(found: Found) -> Table:
    """The gain of λ = 0.25 on each of two splits, and over draws: how far one split speaks for others."""
    rows: list[tuple[Place, ...]] = []
    outcomes = [found("universal", protocol) for protocol in ("paper", "ablation", "paired")]
    contrast = outcomes[0].study.compare[0].name
    for cell in outcomes[1].cells:
        key = (cell.dataset, cell.model)
        same = [next((c for c in outcome.cells if (c.dataset, c.model) == key), None) for outcome in outcomes]
        effects = [None if c is None else c.effect(contrast) for c in same]
        if cell.dataset in PLANETOID and sum(e is not None and e.complete for e in effects) > 1:
            rows.append((cell_title(*key), *(_paired(e) for e in effects)))
    columns = (
        Column("cell", "cell"),
        Column("main", "split of seed 123", "right"),
        Column("ablation", "split of seed 42", "right"),
        Column("draws", "20 draws", "right"),
    )
    notes = (
        "Paired, with the 95 % t interval, bold where it excludes zero: over seeds on the single splits, over splits in the last "
        "column.",
    )
    return Table(f"One comparison ({minus(contrast)}) on single splits and over draws", columns, tuple(rows), notes)


def _paired(effect: Effect | None) -> Value:
    if effect is None or effect.difference is None:
        return Value.reason(NOT_RUN if effect is None or effect.reason is None else effect.reason)
    return Value.gain(effect.difference.difference, effect.difference.t_interval, effect.n, splits=effect.splits)


def _of_sides(side: Side, against: Side) -> Value:
    pairs, _ = pairs_of_runs(side, against)
    if not pairs:
        return Value.reason(NOT_RUN)
    d = paired_difference(*scores_of_pairs(pairs), resamples=0)
    return Value.gain(d.difference, d.t_interval, len(pairs), splits=len({run.split for run, _ in pairs}))


def _crossed(found: Found, name: str) -> list[tuple[Place, ...]]:
    paper, ablation, paired = (found(name, protocol) for protocol in ("paper", "ablation", "paired"))
    contrast = paper.study.compare[0]
    rows: list[tuple[Place, ...]] = []
    for cell, other in _same_cells(paper, ablation):
        variant, against = other.sides[contrast.variant], cell.sides[contrast.against]
        if cell.dataset not in PLANETOID or not _whole(variant):
            continue
        effect = other.effect(contrast.name)
        draws = next(c for c in paired.cells if (c.dataset, c.model) == (cell.dataset, cell.model)).effect(
            contrast.name
        )
        rows.append(
            (
                minus(contrast.name),
                cell_title(cell.dataset, cell.model),
                None
                if effect.published is None
                else Value.quoted("", effect.published, effect.published_sd, difference=True),
                _apart(variant, against) if _whole(against) else Value.reason(against.reason or NOT_RUN),
                *(_paired(e) for e in (effect, draws)),
            )
        )
    return rows


def _same_cells(a: Outcome, b: Outcome) -> list[tuple[CellOutcome, CellOutcome]]:
    others = {(cell.dataset, cell.model): cell for cell in b.cells}
    return [(cell, others[cell.dataset, cell.model]) for cell in a.cells if (cell.dataset, cell.model) in others]


def _apart(a: Side, b: Side) -> Value:
    """The unpaired difference of two sides; the column says that it is."""
    difference: UnpairedDifference = unpaired_difference(a.tests, b.tests)
    return Value.gain(difference.difference, difference.t_interval, tell_n=False)


def _whole(side: Side) -> bool:
    return side.complete and side.n > 0
