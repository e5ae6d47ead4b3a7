"""The field on one set of splits: choose configurations, and make the numbers of ``docs/field.md``.

Run it from the root of the repository, as ``make field`` (which trains) and ``make results`` (which does not) do:

    python results/field.py choose src/sharpen/studies/own/field-chosen.csv --store results/store
    python results/field.py report docs/field.md --store results/store
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path

from field_figure import plot
from findings import fill

from sharpen.analysis.leaderboard import Leaderboard, leaderboards, mean_ranks
from sharpen.analysis.outcome import Outcome
from sharpen.models.registry import MODELS, REGISTRY
from sharpen.models.zoo.settings import settings_of
from sharpen.paper import published
from sharpen.report.builder import Reader
from sharpen.report.cells import Value
from sharpen.report.leaderboard import board_sentences, board_table, gains_table, ranks_table
from sharpen.report.names import dataset_title, model_title
from sharpen.report.study_text import cost_sentence, sentences
from sharpen.report.tables import Column, Place, Table, to_markdown
from sharpen.store import Store
from sharpen.studies import load_study
from sharpen.studies.reproduction import target

FIGURE = Path("results/figures/field-time.png")
# Of so many runs a mean is held against a published one; the paper itself has three on the large graphs.
_RUNS = 3


def choices(tuning: Outcome) -> list[tuple[str, str, int]]:
    """The configuration that validation chose in every cell whose candidates are all finished."""
    found = []
    for cell in tuning.cells:
        side = cell.sides.get("chosen")
        if side is not None and side.variant is not None and side.complete:
            found.append((cell.dataset, cell.model, int(side.variant.rpartition("-")[2])))
    return found


def reproduced(found: Outcome) -> str:
    """Every pair that was run under its own published protocol: ours beside what was published."""
    rows: list[tuple[Place, ...]] = []
    near, models = 0, []
    for cell in found.cells:
        side, known = cell.sides.get("published"), target(cell.dataset, cell.model)
        if side is None or known is None or side.n < _RUNS or side.diverged or side.mean is None:
            continue
        far = abs(side.mean - known.mean) > 2 * math.hypot(side.sd or 0.0, known.sd or 0.0)
        near += not far
        models.append(cell.model)
        rows.append(
            (
                model_title(cell.model),
                dataset_title(cell.dataset),
                "public" if known.split == "public" else "the paper's",
                Value.score(side.mean, side.sd, side.n),
                Value.score(known.mean, known.sd),
                Value.number(side.mean - known.mean, sign=True),
                "no" if far else "yes",
                (known.why or "not explained") if far else "",
            )
        )
    if not rows:
        return "Nothing was run under its published protocol yet."
    columns = ("method", "graph", "split", "ours", "published", "difference", "within two combined sd", "why not")
    table = Table("Under the published protocol", tuple(Column(name, name) for name in columns), tuple(rows))
    ours = [row for row, model in zip(rows, models, strict=True) if not REGISTRY[model].paper]
    told = (
        f"{near} of {len(rows)} pairs are within two combined standard deviations; without the paper's own "
        f"four networks, which are the most of them, {sum(row[6] == 'yes' for row in ours)} of {len(ours)}. "
        f"{len(found.cells) - len(rows)} pairs have no score. Where no deviation was published it counts as 0; "
        "n says where runs are missing."
    )
    return f"{told}\n\n{to_markdown(table)}"


def blocks(
    field: Outcome, tuning: Outcome, published_protocol: Outcome, boards: list[Leaderboard]
) -> dict[str, Callable[[], str]]:
    """What makes each block, by its name."""
    run = [board for board in boards if board.ranked]

    def tables() -> str:
        if not run:
            return "There is no table yet."
        return "\n\n".join(
            [
                to_markdown(ranks_table(mean_ranks(boards))),
                to_markdown(gains_table(boards)),
                *(to_markdown(board_table(board)) for board in run),
            ]
        )

    def cost() -> str:
        reported = f"{field.finished:,} reported runs and {tuning.finished:,} of tuning are in the store"
        named = (("Reported, with runs that were made twice", field), ("Tuning", tuning))
        times = " ".join(f"{name}: {cost_sentence(each.costs)}" for name, each in named if each.costs)
        return f"{reported}. {times}".strip()

    def methods() -> str:
        cited = {method for _, method, _ in published("comparison")}
        here = [name for name in MODELS if settings_of(name) is not None]
        titles = [model_title(name) for name in here]
        left = sorted(cited - set(titles) - {f"{title}+TS" for title in titles})
        quoted = f" Quoted only, as their equations or code could not be had: {', '.join(left)}." if left else ""
        return f"{len(titles)} methods are in the study: {', '.join(titles)}.{quoted}"

    return {
        "field": lambda: sentences(board_sentences(boards)),
        "field-cost": cost,
        "field-methods": methods,
        "field-tables": tables,
        "field-published": lambda: reproduced(published_protocol),
    }


def filled(path: Path, reader: Reader) -> str:
    """The text of a file with its numbers made anew from a store."""
    field = reader.outcome(load_study("field"), "paired")
    tuning = reader.outcome(load_study("field-tuning"), "tuning")
    made = blocks(field, tuning, reader.outcome(load_study("field-published"), "published"), leaderboards(field))
    return fill(path.read_text(encoding="utf-8"), made)


def main() -> None:
    """Choose configurations, or fill the markers of a file."""
    parser = argparse.ArgumentParser(description="The field: choose configurations, or update the numbers of a file.")
    parser.add_argument("what", choices=("choose", "report"))
    parser.add_argument("file", type=Path, help="the CSV file of choices, or the Markdown file")
    parser.add_argument("--store", type=Path, default=Path(__file__).parent / "store", help="folder of records")
    given = parser.parse_args()
    reader = Reader(Store(given.store), {})
    if given.what == "choose":
        tuning = reader.outcome(load_study("field-tuning"), "tuning")
        rows = ["dataset,model,configuration", *(",".join(map(str, row)) for row in choices(tuning))]
        given.file.write_bytes(("\n".join(rows) + "\n").encode())
        print(f"{len(rows) - 1} of {len(tuning.cells)} cells are tuned; {given.file}")
        return
    given.file.write_bytes(filled(given.file, reader).encode())  # the same line ends everywhere
    boards = leaderboards(reader.outcome(load_study("field"), "paired"))
    if any(board.ranked for board in boards):
        plot([board for board in boards if board.ranked], FIGURE)
    print(sentences(board_sentences(boards)))


if __name__ == "__main__":
    main()
