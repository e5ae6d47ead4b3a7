"""The numbers and the figures of ``docs/guide/few-labels.md``, made from the records of studies of the number of labels.

Markers and way of working are those of ``findings.py``. Among the findings is the rule that each half of the graphs gives, and what
it does on the other half. Run it from the root of the repository, as ``make results`` does:

    python results/label_rates.py docs/guide/few-labels.md --figures docs/images
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
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

_RESULTS = Path(__file__).parent
# What markers begin with, and the study whose numbers stand there with the folder of its records.
_STUDIES = {
    "label-rates": ("label-rates", _RESULTS / "store"),
    "small": ("label-rates-small", _RESULTS / "few-labels" / "store"),
    "layer-norm": ("label-rates-layer-norm", _RESULTS / "few-labels" / "store"),
}


def blocks(reports: Mapping[str, Report]) -> dict[str, Callable[[], str]]:
    """What makes each block, by its name."""

    def table(report: Report, ending: str) -> str:
        """One for each model, of those whose title ends so."""
        return "\n\n".join(to_markdown(each).strip() for each in report.tables if each.title.endswith(ending))

    made: dict[str, Callable[[], str]] = {}
    for name, report in reports.items():
        made[name] = partial(sentences, report.findings)
        made[f"{name}-cost"] = partial(str, f"{report.progress} runs of its plan are recorded: {report.cost}")
        if name == "label-rates":  # the tables of the others are in their reports
            made[f"{name}-last"] = partial(table, report, "last epoch")
            made[f"{name}-validation"] = partial(table, report, "epoch by validation")
            made[f"{name}-calibration"] = partial(table, report, "calibration at the selected epoch")
    return made


def reports_of() -> dict[str, Report]:
    """The reports of the studies, each over all of its numbers of labels, by what their markers begin with."""
    readers = {store: Reader(Store(store), {}) for _, store in _STUDIES.values()}
    return {name: readers[store].report(load_study(study), ALL) for name, (study, store) in _STUDIES.items()}


def filled(path: Path, reports: Mapping[str, Report]) -> str:
    """The text of a file with its numbers made anew from the reports."""
    return fill(path.read_text(encoding="utf-8"), blocks(reports))


def main() -> None:
    """Fill the markers of a file, draw the figures, and print what the studies found."""
    parser = argparse.ArgumentParser(description="Update the numbers of the number of labels in a Markdown file.")
    parser.add_argument("file", type=Path, help="the file, such as docs/guide/few-labels.md")
    parser.add_argument("--figures", type=Path, help="folder in which to draw the gain against the number of labels")
    given = parser.parse_args()
    reports = reports_of()
    text = filled(given.file, reports)
    given.file.write_bytes(text.encode())  # the same line ends everywhere
    for name, report in reports.items():
        picture = f"{report.study.name}.png"
        if given.figures is not None and picture in text:
            save_figure(draw(report.figures["label-rates"]), given.figures / picture)
        print(blocks(reports)[name]())


if __name__ == "__main__":
    main()
