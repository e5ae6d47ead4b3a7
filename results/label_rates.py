"""The numbers of ``docs/guide/few-labels.md``, made from the records of the study of the number of labels.

Markers and way of working are those of ``findings.py``. It also prints the rule that each half of the graphs gives and what it
does on the other half: that of ``src/sharpen/advice.py`` follows from it. Run it from the root of the repository:

    python results/label_rates.py docs/guide/few-labels.md --store results/store
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from findings import fill

from sharpen.report.blocks import Report
from sharpen.report.builder import Reader
from sharpen.report.study_text import sentences
from sharpen.report.tables import to_markdown
from sharpen.store import Store
from sharpen.studies import load_study
from sharpen.studies.protocol import ALL

_NOT_RUN = "The study has not been run yet."


def blocks(report: Report) -> dict[str, Callable[[], str]]:
    """What makes each block, by its name."""

    def tables(word: str) -> str:
        found = [to_markdown(table) for table in report.tables if word in table.title]
        return "\n\n".join(found) or _NOT_RUN

    return {
        "label-rates": lambda: sentences(report.findings) if report.findings else _NOT_RUN,
        "label-rates-gains": lambda: tables("last epoch"),
        "label-rates-calibration": lambda: tables("calibration"),
    }


def filled(path: Path, reader: Reader) -> str:
    """The text of a file with its numbers made anew from a store."""
    report = reader.report(load_study("label-rates"), ALL)
    return fill(path.read_text(encoding="utf-8"), blocks(report))


def main() -> None:
    """Fill the markers of a file, and print what the study found."""
    parser = argparse.ArgumentParser(description="Update the numbers of the number of labels in a Markdown file.")
    parser.add_argument("file", type=Path, help="the file, such as docs/guide/few-labels.md")
    parser.add_argument("--store", type=Path, default=Path(__file__).parent / "store", help="folder of records")
    given = parser.parse_args()
    reader = Reader(Store(given.store), {})
    given.file.write_bytes(filled(given.file, reader).encode())  # the same line ends everywhere
    print(blocks(reader.report(load_study("label-rates"), ALL))["label-rates"]())


if __name__ == "__main__":
    main()
