"""The tables and findings kept in the repository are those of the records kept beside them."""

from pathlib import Path

import pytest

from tests.scripts import findings as script
from tests.scripts import label_rates

ROOT = Path(__file__).parents[1]
STORE = ROOT / "results" / "store"


@pytest.mark.skipif(not STORE.is_dir(), reason="there are no records under results/store yet")
def test_pages_and_findings_are_up_to_date(data_root):
    """Without the data folder a cell could not say whether it lacks data or was only not run."""
    from sharpen.report.builder import Reader, unavailable
    from sharpen.report.text import report_markdown
    from sharpen.store import Store
    from sharpen.studies import list_studies

    studies = list_studies()
    reader = Reader(Store(STORE), unavailable(studies, data_root))
    pages = {}
    for study in studies:
        for protocol in reader.protocols(study):
            report = reader.report(study, protocol)
            pages[f"{report.name}.md"] = report_markdown(report, "figures")
    kept = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "results").glob("*-*.md")}
    assert kept.keys() == pages.keys(), "make results"
    for name, page in pages.items():
        assert kept[name] == page, f"results/{name} is not what the records say; make results"
    blocks = script.made_from(reader, data_root)
    for name in ("findings.md", "evidence.md"):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert script.fill(text, blocks) == text, f"docs/{name} is not what the records say; make results"
    index = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    assert script.readme(index) == index, "make results"


def test_the_page_on_few_labels_is_up_to_date():
    from sharpen.report.text import report_markdown

    reports = label_rates.reports_of()
    page = ROOT / "docs" / "guide" / "few-labels.md"
    assert label_rates.filled(page, reports) == page.read_text(encoding="utf-8"), "make results"
    for name, report in reports.items():
        kept = ROOT / "results" / ("label-rates" if name == "label-rates" else "few-labels")
        text = (kept / f"{report.name}.md").read_text(encoding="utf-8")
        assert report_markdown(report, "figures") == text, "make results"
