"""The page of studies: the paper's table with ours in it, opened in a browser."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from sharpen.analysis.curves import Curve, Point
from sharpen.analysis.outcome import Outcome, outcome
from sharpen.analysis.ranking import Entry, Ranking
from sharpen.cli.app import app
from sharpen.report.blocks import Report
from sharpen.report.cells import Value, signed
from sharpen.report.lambda_charts import gain_charts, glass_charts
from sharpen.report.page import Page, study_page, write_page
from sharpen.report.page.sheets import sheet
from sharpen.report.study import ranking_report, study_report
from sharpen.report.study_charts import ranking_charts
from sharpen.report.tables import Column, Table
from sharpen.studies import load_study
from tests.browser import Browser, Tab
from tests.studies.conftest import TINY
from tests.studies.fake import records, traces

NAMES = ("main", "universal", "offset", "entropy-dynamics", "retune", "arxiv")


@pytest.fixture(scope="module")
def reports(told: Callable[[str, str], Outcome]) -> list[Report]:
    found = []
    for name in NAMES:
        study = load_study(name)
        protocols = ("paper", "paired") if name in ("main", "universal") else ("paper",)
        traced = traces(records(study, "paper", datasets=["cora", "citeseer"])) if study.traces else None
        found += [study_report(told(name, protocol), traced) for protocol in protocols]
    return [*found, ranking_report(load_study("comparison"), told("main", "paper"))]


@pytest.fixture(scope="module")
def page(reports: list[Report]) -> Page:
    return study_page(reports, reports[0].outcome.costs, "sharpen study report")


@pytest.fixture(scope="module")
def path(page: Page, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "page.html"
    write_page(page, path)
    return path


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of one's own, really run and reported; its title means harm."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "tiny.yaml").write_text(TINY.replace("title: Tiny", "title: '</script><img src=x onerror=window.hit=1>'"))
    for arguments in (
        ("run", folder / "tiny.yaml", "--store", folder / "store", "--device", "cpu"),
        ("report", folder / "tiny.yaml", "--store", folder / "store", "--out", folder / "out"),
    ):
        result = CliRunner().invoke(app, ["study", *(str(argument) for argument in arguments)])
        assert result.exit_code == 0, result.output
    return folder / "out" / "page.html"


def chapter(page: Page, name: str) -> dict:
    return next(chapter for chapter in page.chapters if chapter["id"] == name)


def charts(page: Page, name: str, kind: str, view: int = 0) -> list[dict]:
    sections = chapter(page, name)["views"][view]["sections"]
    return [chart for part in sections for view in part["views"] for chart in view["charts"] if chart["kind"] == kind]


def test_every_study_is_a_chapter_and_every_protocol_a_view(page: Page) -> None:
    assert [chapter["id"] for chapter in page.chapters] == [*NAMES, "comparison"]
    names = [view["name"] for view in chapter(page, "main")["views"]]
    assert [name.split(" protocol")[0] for name in names] == ["paired", "the paper's"]


def test_every_cell_of_the_papers_table_has_a_number_or_a_reason(page: Page, reports: list[Report]) -> None:
    sheet = charts(page, "main", "sheet", view=1)[0]
    assert len(sheet["rows"]) == 13
    assert all(place for row in sheet["rows"] for place in row)
    outcome = next(report.outcome for report in reports if report.name == "main-paper")
    d = outcome.cell("cora", "gcn").effects[0].difference
    (line,) = sheet["rows"][0][2]  # one line, and the rest where somebody points at it
    assert line["gain"] == signed(d.difference)
    assert Value.gain(d.difference, d.t_interval, d.n, tell_n=False).text in line["more"]
    low, high = d.t_interval
    assert line.get("tone") == ("gain" if low > 0 else "loss" if high < 0 else None)
    assert line["sure"] == (not low <= 0 <= high)
    assert "data not at hand" in json.dumps(sheet["rows"][7])  # WikiCS


def test_a_cell_opens_to_its_runs_and_its_curve(page: Page, reports: list[Report]) -> None:
    detail = charts(page, "main", "sheet", view=1)[0]["details"][0][2]
    dots, curve, _ = detail["charts"]
    outcome = next(report.outcome for report in reports if report.name == "main-paper")
    cell = outcome.cell("cora", "gcn")
    assert len(dots["rows"][0]["values"]) == 5
    assert sum(dots["rows"][0]["values"]) / 5 == pytest.approx(cell.effects[0].difference.difference, abs=0.01)
    assert curve["series"][0]["x"] == pytest.approx([0.05 * i for i in range(41)])
    assert curve["marks"][0]["x"] == cell.sides["ts-tuned"].trial.lam


def test_a_study_without_a_grid_of_lam_borrows_the_curve_and_says_so(page: Page) -> None:
    detail = charts(page, "universal", "sheet", view=1)[0]["details"][0][1]
    assert any("From the study main" in chart.get("note", "") for chart in detail["charts"])


def test_cells_without_pairs_do_not_open(page: Page) -> None:
    assert charts(page, "main", "sheet", view=1)[0]["details"][7][1:] == [None] * 4


def test_the_figures_of_the_paper_are_there(page: Page) -> None:
    assert len(charts(page, "main", "forest", view=1)[0]["rows"]) == 4
    assert {chart["title"] for chart in charts(page, "main", "lines", view=1)} >= {"Cora", "CiteSeer"}
    assert charts(page, "entropy-dynamics", "lines")[-1]["title"] == "H_L − H_U"
    assert charts(page, "offset", "lines")
    assert len(charts(page, "retune", "heat")[0]["values"]) == 5
    ranked = charts(page, "comparison", "forest")[0]["rows"]
    means = [row["mean"] for row in ranked]
    assert means == sorted(means, reverse=True)
    assert {row["name"].split(" ")[1] for row in ranked if row["strong"]} >= {"GCN", "GCN+TS"}


def test_what_is_missing_is_said(page: Page) -> None:
    assert "data not at hand" in json.dumps(charts(page, "main", "words"))
    assert "not run yet: ogbn-arxiv (3 cells)." in json.dumps(charts(page, "arxiv", "words"))


def test_the_headline_counts_cells_of_the_strictest_protocol(page: Page, told: Callable[[str, str], Outcome]) -> None:
    effects = [e for _, e in told("main", "paired").effects("ts-tuned - baseline") if e.complete]
    gains = [e for e in effects if e.verdict == "gain"]
    sure = [e for e in effects if e.corrected_p < 0.05]
    assert len(effects) == 4
    assert 0 < len(sure) <= len(gains)
    assert page.headline.startswith(f"Main results: {len(gains)} of 4 cells gain")
    assert f", {len(sure)} after correction; none loses. " in page.headline
    assert page.headline.endswith("(λ by validation against plain training, paired protocol).")
    assert page.tiles[0] == (f"{len(gains)} of 4", f"cells gain, {len(sure)} after correction; none loses")
    assert page.tiles[1] == ("6 of 7", "studies have results")  # ogbn-arxiv was not run


def test_what_has_no_results_yet_is_named_and_does_not_lead(told: Callable[[str, str], Outcome]) -> None:
    page = study_page([study_report(told(name, "paper")) for name in ("arxiv", "universal")], [], "")
    assert page.headline.startswith("One λ for all: ")
    assert " of 3 cells gain" in page.headline
    assert page.opened == 1
    assert page.below[-1] == "Without a complete cell yet: ogbn-arxiv."


def test_a_table_without_numbers_is_not_the_first_to_be_seen() -> None:
    study = load_study("main")
    few: dict = {"datasets": ["cora"], "models": ["gcn"]}
    frame = records(study, "paper", keep=lambda trial: trial.lam == 0, **few)
    page = study_page([study_report(outcome(study, "paper", frame, **few))], [], "")
    table = next(part for part in page.chapters[0]["views"][0]["sections"] if part["title"] == "The table")
    assert table["views"][table["view"]]["name"] == "scores of plain training"
    assert [view["name"] for view in table["views"]] == [
        "λ by validation against plain training",
        "scores of plain training",
    ]


def look(tab: Tab, width: int) -> None:
    assert tab.run("document.documentElement.scrollWidth") <= width
    marks = tab.run("""[...document.querySelectorAll('figure')].map(figure => [figure.dataset.kind, figure.innerText.slice(0, 60),
        [...figure.querySelectorAll('.mark')].filter(mark => mark.getClientRects().length).length])""")
    assert marks
    assert [name for name in marks if not name[2]] == []


@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_chapter_and_protocol_can_be_looked_at(browser: Browser, path: Path, width: int, dark: bool) -> None:
    with browser.open(path, width, dark=dark) as tab:
        for index in range(len(NAMES) + 1):
            tab.run(f"document.querySelectorAll('nav button')[{index}].click()")
            for view in range(tab.run("document.querySelectorAll('.chapter .choices button').length") or 1):
                tab.run(f"document.querySelectorAll('.chapter .choices button')[{view}]?.click()")
                tab.settle()
                look(tab, width)
        assert tab.run("location.hash") == "#comparison"
        assert tab.complaints == []
        assert len(tab.requests) == 1


def test_a_chapter_has_an_address(browser: Browser, path: Path) -> None:
    with browser.open(path, fragment="#universal") as tab:
        assert tab.run("document.querySelector('.chapter h2').textContent") == "One λ for all"


def test_the_chapter_of_the_headline_is_open(
    browser: Browser, told: Callable[[str, str], Outcome], tmp_path: Path
) -> None:
    write_page(
        study_page([study_report(told(n, "paper")) for n in ("arxiv", "universal")], [], ""), tmp_path / "p.html"
    )
    with browser.open(tmp_path / "p.html") as tab:
        assert tab.run("document.querySelector('.chapter h2').textContent") == "One λ for all"
        assert tab.run("document.querySelector('nav [aria-pressed=true]').textContent") == "One λ for all"


def test_the_protocol_toggle_changes_the_numbers(browser: Browser, path: Path) -> None:
    first = "document.querySelector('.sheet tbody').innerText"
    with browser.open(path) as tab:
        before = tab.run(first)
        tab.click(".chapter .choices button[aria-pressed=false]")
        assert tab.run(first) != before


def test_a_cell_opens_and_closes(browser: Browser, path: Path) -> None:
    with browser.open(path) as tab:
        assert tab.run("document.querySelector('.panel').hidden")
        tab.click("button.cell")
        assert tab.run("document.querySelector('.panel h3').textContent").startswith("Cora GCN")
        assert tab.run("document.querySelectorAll('.panel .dot').length") == 20
        assert tab.run("document.querySelector('button.cell').getAttribute('aria-expanded')") == "true"
        x, y = tab.centre(".panel .dot")
        tab.hover(x, y)
        assert "seed" in tab.run("document.getElementById('tip').innerText")
        tab.click(".panel .close")
        assert tab.run("document.querySelector('.panel').hidden")
        assert tab.run("document.activeElement.className").startswith("cell")


def test_tables_can_be_taken_along(browser: Browser, path: Path) -> None:
    with browser.open(path) as tab:
        tab.click(".exports summary")
        assert tab.run("document.querySelector('.exports textarea').value").startswith("**Main results")
        for index, start in ((1, "dataset"), (2, "\\documentclass")):
            tab.run(f"document.querySelectorAll('.exports .choices button')[{index}].click()")
            assert start in tab.run("document.querySelector('.exports textarea').value")[:200]


def test_pointing_at_a_difference_tells_what_it_rests_on(browser: Browser, path: Path) -> None:
    with browser.open(path) as tab:
        x, y = tab.centre("[data-kind=forest] .point")
        tab.hover(x, y)
        said = tab.run("document.getElementById('tip').innerText")
        assert "20 pairs" in said
        assert "paper" in said


def test_a_study_of_ones_own_that_means_harm(browser: Browser, own: Path) -> None:
    with browser.open(own) as tab:
        look(tab, 1280)
        assert "onerror" in tab.run("document.querySelector('h1').textContent")
        assert tab.run("window.hit === undefined")
        assert tab.run("document.querySelectorAll('img').length") == 0
        assert tab.complaints == []
        assert len(tab.requests) == 1


def test_the_page_is_small_enough_to_send(path: Path) -> None:
    assert path.stat().st_size < 6_000_000


def test_losses_do_not_flatten_the_gains():
    """A model that sharpening ruins leaves the picture; the axis is made for those that it helps."""
    gains = {"gcn": [0.0, 0.3, 0.1], "mlp": [0.0, -4.0, -12.0]}
    lams = (0.0, 1.0, 2.0)
    points = {
        m: tuple(Point(lam, 80 + g, 1.0, 5, g, None, g) for lam, g in zip(lams, gains[m], strict=True)) for m in gains
    }
    (chart,) = gain_charts([Curve("cora", model, "accuracy", points[model], 5) for model in gains]).views[""]
    assert -1.2 < chart["y"]["min"] < -1.0


def test_datasets_with_every_lambda_have_a_line_of_their_own_on_one_scale():
    def curve(dataset: str, model: str, *lams: float) -> Curve:
        return Curve(dataset, model, "accuracy", tuple(Point(lam, 80, 1.0, 5, lam, None, lam) for lam in lams), 5)

    whole = [curve(name, "gcn", -1.0, 0.0, 2.0) for name in ("cora", "citeseer", "pubmed")]
    curves = [*whole, curve("cs", "gcn", 0.0, 2.0), curve("cs", "sage", 0.0, 1.0)]
    first, second = glass_charts(curves).views[""]
    assert [(s["name"], s["x"]) for s in first["series"]] == [
        ("median over datasets", [0, 2]),
        ("the 3 with every λ", [-1, 0, 2]),
    ]
    assert len(second["series"]) == 1
    assert {(chart["x"]["min"], chart["x"]["max"]) for chart in (first, second)} == {(-1, 2)}


def test_what_may_be_chance_and_what_rounds_to_zero_is_neither_gain_nor_loss():
    gains = [
        Value.gain(-0.001, (-0.002, -0.001)),
        Value.gain(-0.5, (-0.9, 0.1)),
        Value.gain(0.5, None),
        Value.gain(0.5, (0.1, 0.9)),
        Value.gain(-1, (-2, -0.5)),
    ]
    made = sheet(Table("t", (Column("d", "d"),), tuple((gain,) for gain in gains)))["rows"]
    assert [row[0][0].get("tone") for row in made] == [None, None, None, "gain", "loss"]


def test_a_method_far_behind_does_not_squeeze_the_others(
    browser: Browser, told: Callable[[str, str], Outcome], tmp_path: Path
) -> None:
    """It is an arrow at the left end, and its score stands in the column of scores."""
    entries = [Entry(f"M{rank}", 90.0 - rank, 0.5, ours=False, rank=rank) for rank in range(1, 6)]
    ranking = Ranking("cora", (*entries, Entry("MLP", 60.0, 2.0, ours=True, rank=6)))
    page = study_page([ranking_report(load_study("comparison"), told("main", "paper"))], [], "")
    sections = page.chapters[0]["views"][0]["sections"]
    chart = next(
        c for part in sections for view in part.get("views", []) for c in view["charts"] if c["kind"] == "forest"
    )
    chart.update(ranking_charts([ranking]).views["Cora"][0])
    write_page(page, tmp_path / "p.html")
    with browser.open(tmp_path / "p.html", 1000) as tab:
        drawn = "document.querySelector('[data-kind=forest] svg.plot')"
        points = tab.run(f"[...{drawn}.querySelectorAll('circle.mark')].map(c => +c.getAttribute('cx'))")
        assert len(points) == 5
        assert max(points) - min(points) > 400
        assert tab.run(f"{drawn}.querySelectorAll('.beyond').length") == 1
        assert "60.00 ± 2.00" in tab.run(f"{drawn}.textContent")


def test_a_study_of_ones_own_is_told_without_the_paper(tmp_path: Path) -> None:
    asks = TINY.replace("title: Tiny", "title: Does it help?")
    (tmp_path / "asks.yaml").write_text(asks)
    (tmp_path / "other.yaml").write_text(TINY.replace("[0.25, 0.5]", "[0.75]"))
    for command, name in (("run", "asks"), ("run", "other"), ("report", "asks")):
        more = ["--device", "cpu"] if command == "run" else ["--out", str(tmp_path / "out")]
        arguments = ["study", command, str(tmp_path / f"{name}.yaml"), "--store", str(tmp_path / "store"), *more]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
    text = (tmp_path / "out" / "page.html").read_text()
    runs = pd.concat(pd.read_parquet(path) for path in (tmp_path / "store" / "records").glob("*.parquet"))
    assert "the paper's below" not in text
    assert re.search(r"Does it help\? (none|\d+) of", text, re.IGNORECASE)
    assert "protocol: 4 runs a variant" in text
    shown = int(re.search(r"<b>([0-9,]+)</b><span>training runs", text)[1])
    assert 0 < shown < len(runs)
