"""The field on one set of splits: check methods, choose their configurations, and make the numbers of ``docs/field.md``.

Run it from the root of the repository, as ``make field`` (which trains) and ``make results`` (which does not) do:

    python results/field.py check docs/measurements/field-checks.csv --model normprop --dataset cora
    python results/field.py choose src/sharpen/studies/own/field-chosen.csv --store results/store
    python results/field.py report docs/field.md --store results/store
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev

from field_figure import plot
from findings import fill

from sharpen import InputError, Trial, load_dataset, train
from sharpen.analysis.leaderboard import Leaderboard, leaderboards, mean_ranks
from sharpen.analysis.outcome import Outcome
from sharpen.models.registry import MODELS
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

FIGURE = Path("results/figures/field-time.png")
CHECKS = Path(__file__).parents[1] / "docs" / "measurements" / "field-checks.csv"
CHECKED, CHECK_COLUMNS = 10, ["dataset", "model", "split", "n", "mean", "sd", "device"]


def choices(tuning: Outcome) -> list[tuple[str, str, int]]:
    """The configuration that validation chose in every cell whose candidates are all finished."""
    found = []
    for cell in tuning.cells:
        side = cell.sides.get("chosen")
        if side is not None and side.variant is not None and side.complete:
            found.append((cell.dataset, cell.model, int(side.variant.rpartition("-")[2])))
    return found


def check(file: Path, model: str, dataset: str) -> None:
    """Trains a method under the protocol that it was published with, and adds a row to a file."""
    known = settings_of(model)
    said = {} if known is None else known.scores.get(dataset, {})
    if known is None or "split" not in said:
        raise InputError(f"no split is published for {model} on {dataset}; see its file in models/zoo/settings")
    trials = [Trial(model=model, split=said["split"], seed=seed, **known.of(dataset)) for seed in range(CHECKED)]
    records = train(load_dataset(dataset), trials)
    scores = [100 * record.test for record in records if record.status == "ok"]
    row = [
        dataset,
        model,
        said["split"],
        len(scores),
        round(mean(scores), 2),
        round(stdev(scores), 2),
        records[0].device,
    ]
    rows = [] if not file.is_file() else list(csv.reader(file.read_text(encoding="utf-8").splitlines()))[1:]
    rows = sorted([*(old for old in rows if old[:2] != row[:2]), list(map(str, row))])
    file.write_bytes("".join(",".join(line) + "\n" for line in [CHECK_COLUMNS, *rows]).encode())


def checks(file: Path) -> str:
    """What was trained under published protocols, beside what was published."""
    rows: list[tuple[Place, ...]] = []
    for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
        known, title = settings_of(row["model"]), model_title(row["model"])
        said = {} if known is None else known.scores.get(row["dataset"], {})
        cited = published("comparison").get((row["dataset"], title, "published"))
        there, spread = (said["mean"], said.get("sd")) if "mean" in said or cited is None else (cited.mean, cited.sd)
        ours, sd = float(row["mean"]), float(row["sd"])
        far = abs(ours - there) > 2 * math.hypot(sd, spread or 0.0)
        split = row["split"] if row["split"] == "public" else "the paper's"
        verdict = "no" if far else "yes"
        rows.append(
            (
                title,
                dataset_title(row["dataset"]),
                split,
                Value.score(ours, sd, int(row["n"])),
                Value.score(there, spread),
                verdict,
            )
        )
    columns = ("method", "graph", "split", "ours", "published", "within two combined sd")
    return to_markdown(
        Table("Under the published protocol", tuple(Column(name, name) for name in columns), tuple(rows))
    )


def blocks(field: Outcome, tuning: Outcome, boards: list[Leaderboard]) -> dict[str, Callable[[], str]]:
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
        "field-checks": lambda: checks(CHECKS) if CHECKS.is_file() else "Nothing was checked yet.",
    }


def filled(path: Path, reader: Reader) -> str:
    """The text of a file with its numbers made anew from a store."""
    field = reader.outcome(load_study("field"), "paired")
    made = blocks(field, reader.outcome(load_study("field-tuning"), "tuning"), leaderboards(field))
    return fill(path.read_text(encoding="utf-8"), made)


def main() -> None:
    """Choose configurations, or fill the markers of a file."""
    parser = argparse.ArgumentParser(description="The field: choose configurations, or update the numbers of a file.")
    parser.add_argument("what", choices=("check", "choose", "report"))
    parser.add_argument("file", type=Path, help="the CSV file of choices, or the Markdown file")
    parser.add_argument("--store", type=Path, default=Path(__file__).parent / "store", help="folder of records")
    parser.add_argument("--model", default="", help="what to check")
    parser.add_argument("--dataset", default="", help="on which graph")
    given = parser.parse_args()
    if given.what == "check":
        check(given.file, given.model, given.dataset)
        return
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
