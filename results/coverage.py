"""How much of the paper is there: its cells with our number or the reason why not, and what the missing runs would take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pandas as pd
from split_story import Found

from sharpen.analysis.dynamics import Traces, dynamics
from sharpen.analysis.outcome import NO_DATA, NOT_RUN, CellOutcome, Outcome
from sharpen.analysis.provenance import costs
from sharpen.report.missing import kind
from sharpen.report.study_text import cost_sentence
from sharpen.report.tables import Column, Place, Table, to_markdown
from sharpen.studies import load_study
from sharpen.studies.cost import duration
from sharpen.studies.status import CellProgress

# The graphs whose files are at hand for this project's own records.
TEN = ("cora", "citeseer", "pubmed", "computer", "photo", "cs", "physics", "squirrel", "chameleon", "minesweeper")
Left = Callable[[str, str], Sequence[CellProgress]]
# Tables and figures of the paper by the study that remakes them.
_TABLES = {
    "main": "Table 1: λ by validation",
    "universal": "Table 2: λ = 0.25",
    "labeled-term": "Table 3: no labeled term",
    "offset": "Table 4: offsets",
    "entropy-order": "Table 5: Shannon",
    "meta-lambda": "Table 6: meta-learned λ",
    "test-only": "appendix: test nodes only",
    "retune": "appendix: retuning",
    "lambda-curves": "figures over λ, −1 to 2",
    "entropy-dynamics": "figure: entropy during training (it does not say of which cells)",
}
# Studies that are cut down from another: a cell that is whole in one of them has our number.
_CUT_DOWN = {"main": "main-five", "retune": "retune-nine"}
# What is still to run: study and protocol.
MISSING = (
    ("test-only", "paired"),
    ("entropy-dynamics", "paper"),
    ("entropy-order", "paired"),
    ("main-five", "paired"),
    ("retune-nine", "paper"),
    ("meta-lambda", "paper"),
    ("meta-lambda", "paired"),
    ("lambda-curves", "paper"),
    ("retune", "paper"),
    ("main", "paired"),
)


def coverage(found: Found, traced: Callable[[Outcome], Traces], frame: pd.DataFrame) -> str:
    """The paper's tables and figures, cell by cell: how many have our number, and why the others have none."""
    rows: list[tuple[Place, ...]] = []
    have = want = over_draws = 0
    for name, title in _TABLES.items():
        study = load_study(name)
        own = [(name, p) for p in (study.protocols[:1] if study.traces else study.protocols)]
        if cut := _CUT_DOWN.get(name):
            own += [(cut, p) for p in load_study(cut).protocols]
        sets = {each: _numbered(found(*each), traced if study.traces else None) for each in own}
        ours = set().union(*sets.values())
        drawn = set().union(*(cells for (_, protocol), cells in sets.items() if protocol == "paired"))
        cells = [c for c in found(name, study.protocols[0]).cells if c.dataset in TEN]
        have, want, over_draws = have + len(ours), want + len(cells), over_draws + len(drawn)
        absent = Counter(_why(c) for c in cells if (c.dataset, c.model) not in ours)
        rows.append(
            (
                title,
                str(len(study.datasets) * len(study.models)),
                str(len(cells)),
                str(len(ours)),
                str(len(drawn)),
                ", ".join(f"{count} {reason}" for reason, count in absent.items()),
            )
        )
    text = (
        f"**Of the {want} cells that the paper's tables and figures have on the ten graphs at hand, {have} have our number, "
        f"{over_draws} of them over draws of the split; {want - have} have none: the table says why.** WikiCS, Amazon-Ratings, "
        f"Roman-Empire and ogbn-arxiv are not at hand. All records, those beyond the paper too: {cost_sentence(costs(frame))}"
    )
    columns = (
        Column("table", "of the paper"),
        Column("cells", "cells", "right"),
        Column("ten", "on the ten graphs", "right"),
        Column("ours", "with our number", "right"),
        Column("draws", "over draws", "right"),
        Column("why", "without, and why"),
    )
    notes = (
        "λ by validation over draws: the best of five values, not of 41, on 20 draws or 10. Retuning: nine of the 25 settings. "
        "Entropy: in the objective's own measure.",
    )
    return f"{text}\n\n{to_markdown(Table('The paper’s cells, and ours', columns, tuple(rows), notes)).strip()}"


def _numbered(outcome: Outcome, traced: Callable[[Outcome], Traces] | None) -> set[tuple[str, str]]:
    """Cells in which all of a study's comparisons are complete, or whose runs were traced."""
    if traced is not None:
        return {(cell.dataset, cell.model) for cell in dynamics(outcome, traced(outcome)) if cell.dataset in TEN}
    return {
        (cell.dataset, cell.model)
        for cell in outcome.cells
        if cell.dataset in TEN and cell.effects and all(effect.complete for effect in cell.effects)
    }


def _why(cell: CellOutcome) -> str:
    """Why a cell has no number under any protocol."""
    if cell.reason is not None and kind(cell.reason) not in (NOT_RUN, NO_DATA):
        return cell.reason
    if any(effect.complete for effect in cell.effects):
        return "run in part, for want of GPU time"
    return "not run for want of GPU time"


def missing(left: Left) -> str:
    """What is still to run on the ten graphs, with the time that the cost model gives it and the command."""
    rows: list[tuple[Place, ...]] = []
    total = 0.0
    for name, protocol in MISSING:
        cells = [p for p in left(name, protocol) if p.cell.dataset in TEN and p.missing]
        if name == "main":
            cells = [p for p in cells if p.cell.model != "mlp"]
        if not cells:
            continue
        seconds = sum(p.seconds for p in cells)
        total += 0 if name in _CUT_DOWN.values() else seconds  # their runs are those of the whole study
        rows.append(
            (
                load_study(name).title,
                protocol,
                str(len(cells)),
                f"{sum(p.missing for p in cells):,}",
                duration(seconds),
                f"bash results/run_missing.sh {name}-{protocol}",
            )
        )
    if not rows:
        return "Nothing is missing on the ten graphs."
    columns = tuple(
        Column(key, key, "right" if key in ("cells", "runs", "GPU time") else "left")
        for key in ("study", "protocol", "cells", "runs", "GPU time", "command")
    )
    notes = (
        f"On one NVIDIA H200 in TF32, estimated from the records of the same cells; {duration(total)} in all, since the studies "
        "cut down are parts of the whole ones; a command runs its smallest cells first, and goes on where it was stopped.",
    )
    return to_markdown(Table("Not run: no GPU time was left", columns, tuple(rows), notes))


def clean(frame: pd.DataFrame) -> str:
    """From which code the records come."""
    if not len(frame):
        return "No records yet."
    changed = frame["revision"].str.endswith("+changes")
    source = frame["revision"].str.startswith("source-")
    return (
        f"Of {len(frame):,} runs, {int(changed.sum()):,} come from code that was not committed as it was and "
        f"{int(source.sum()):,} from a copy without a commit; to make them anew: `bash results/run_missing.sh again`."
    )
