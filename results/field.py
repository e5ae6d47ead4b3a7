"""The field on one set of splits: choose every method's configuration, and make the numbers of ``docs/field.md``.

Run it from the root of the repository, as ``make field`` (which trains) and ``make results`` (which does not) do:

    python results/field.py choose src/sharpen/studies/own/field-chosen.csv --store results/store
    python results/field.py report docs/field.md --store results/store
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from findings import fill

from sharpen.analysis.leaderboard import Leaderboard, leaderboards, mean_ranks
from sharpen.analysis.outcome import Outcome
from sharpen.models.registry import MODELS
from sharpen.models.zoo.settings import settings_of
from sharpen.paper import published
from sharpen.report.builder import Reader
from sharpen.report.figures.style import new_figure, save_figure
from sharpen.report.leaderboard import board_sentences, board_table, ranks_table
from sharpen.report.names import dataset_title, model_title
from sharpen.report.study_text import cost_sentence, sentences
from sharpen.report.tables import to_markdown
from sharpen.store import Store
from sharpen.studies import load_study

FIGURE = Path("results/figures/field-time.svg")


def choices(tuning: Outcome) -> list[tuple[str, str, int]]:
    """The configuration that validation chose in every cell whose candidates are all finished."""
    found = []
    for cell in tuning.cells:
        side = cell.sides.get("chosen")
        if side is not None and side.variant is not None and side.complete:
            found.append((cell.dataset, cell.model, int(side.variant.rpartition("-")[2])))
    return found


def blocks(field: Outcome, tuning: Outcome, boards: list[Leaderboard]) -> dict[str, Callable[[], str]]:
    """What makes each block, by its name."""
    run = [board for board in boards if board.ranked]

    def tables() -> str:
        if not run:
            return "There is no table yet."
        return "\n\n".join(
            [to_markdown(ranks_table(mean_ranks(boards))), *(to_markdown(board_table(board)) for board in run)]
        )

    def cost() -> str:
        reported = f"{field.finished:,} reported runs and {tuning.finished:,} of tuning are in the store"
        times = " ".join(cost_sentence(each.costs) for each in (field, tuning) if each.costs)
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
    }


def plot(boards: list[Leaderboard], path: Path) -> None:
    """Score against the time of a run: a panel for each graph, a named point for each method."""
    rows = -(-len(boards) // 2)
    figure = new_figure(9, 3.4 * rows)
    for axes, board in zip(figure.subplots(rows, 2, squeeze=False).ravel(), [*boards, None], strict=False):
        if board is None:
            axes.set_axis_off()
            continue
        for one in board.ranked:
            if one.seconds is not None and one.mean is not None:
                axes.plot(one.seconds, one.mean, "o", color="#333333", markersize=3)
                axes.annotate(
                    model_title(one.model),
                    (one.seconds, one.mean),
                    xytext=(3, 2),
                    textcoords="offset points",
                    fontsize=6,
                )
        axes.set(title=dataset_title(board.dataset), xscale="log", xlabel="seconds per run", ylabel="test score, %")
    save_figure(figure, path)


def main() -> None:
    """Choose configurations, or fill the markers of a file."""
    parser = argparse.ArgumentParser(description="The field: choose configurations, or update the numbers of a file.")
    parser.add_argument("what", choices=("choose", "report"))
    parser.add_argument("file", type=Path, help="the CSV file of choices, or the Markdown file")
    parser.add_argument("--store", type=Path, default=Path(__file__).parent / "store", help="folder of records")
    given = parser.parse_args()
    reader = Reader(Store(given.store), {})
    tuning = reader.outcome(load_study("field-tuning"), "tuning")
    if given.what == "choose":
        rows = ["dataset,model,configuration", *(",".join(map(str, row)) for row in choices(tuning))]
        given.file.write_bytes(("\n".join(rows) + "\n").encode())
        print(f"{len(rows) - 1} of {len(tuning.cells)} cells are tuned; {given.file}")
        return
    field = reader.outcome(load_study("field"), "paired")
    boards = leaderboards(field)
    made = blocks(field, tuning, boards)
    given.file.write_bytes(fill(given.file.read_text(encoding="utf-8"), made).encode())  # the same line ends everywhere
    if any(board.ranked for board in boards):
        plot([board for board in boards if board.ranked], FIGURE)
    print(made["field"]())


if __name__ == "__main__":
    main()
