"""The numbers and the figure of ``docs/guide/few-labels.md``, made from the records of a study of the number of labels.

Markers and way of working are those of ``findings.py``. Among the findings is the rule that each half of the graphs gives, and what
it does on the other half. Run it from the root of the repository, as ``make results`` does:

    python results/label_rates.py docs/guide/few-labels.md --figure docs/images/label-rates-small.png
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from findings import fill

from sharpen.report.blocks import Report
from sharpen.report.builder import Reader
from sharpen.report.figures import draw, save_figure
from sharpen.report.study_text import sentences
from sharpen.report.tables import to_markdown
from sharpen.store import Store
from sharpen.studies import load_study
from sharpen.studies.protocol import ALL

_STUDY = "label-rates-small"
_STORE = Path(__file__).parent / "few-labels" / "store"


def blocks(report: Report) -> dict[str, Callable[[], str]]:
    """What makes each block, by its name."""

    def table(ending: str) -> str:
        return next(to_markdown(each) for each in report.tables if each.title.endswith(ending))

    return {
        "label-rates": lambda: sentences(report.findings),
        "label-rates-cost": lambda: f"{report.progress} runs of its plan are recorded: {report.cost}",
        "label-rates-last": lambda: table("last epoch"),
        "label-rates-validation": lambda: table("epoch by validation"),
        "label-rates-calibration": lambda: table("calibration at the selected epoch"),
    }


def report_of(store: Path = _STORE) -> Report:
    """The report of the study over all of its numbers of labels."""
    return Reader(Store(store), {}).report(load_study(_STUDY), ALL)


def filled(path: Path, report: Report) -> str:
    """The text of a file with its numbers made anew from a report."""
    return fill(path.read_text(encoding="utf-8"), blocks(report))


def main() -> None:
    """Fill the markers of a file, draw the figure, and print what the study found."""
    parser = argparse.ArgumentParser(description="Update the numbers of the number of labels in a Markdown file.")
    parser.add_argument("file", type=Path, help="the file, such as docs/guide/few-labels.md")
    parser.add_argument("--figure", type=Path, help="where to draw the gain against the number of labels")
    parser.add_argument("--store", type=Path, default=_STORE, help="folder of records")
    given = parser.parse_args()
    report = report_of(given.store)
    given.file.write_bytes(filled(given.file, report).encode())  # the same line ends everywhere
    if given.figure is not None:
        save_figure(draw(report.figures["label-rates"]), given.figure)
    print(blocks(report)["label-rates"]())


if __name__ == "__main__":
    main()
