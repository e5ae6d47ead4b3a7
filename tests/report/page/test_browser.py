"""Pages made by real runs, opened in a browser: they show something, they answer, and they keep to themselves."""

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from sharpen.cli.app import app
from tests.browser import Browser, Tab

EXAMPLES = Path(__file__).parents[3] / "examples" / "karate"
TINY = ("--epochs", "8", "--hidden", "8", "--device", "cpu", "--quiet")
FIT = (*TINY, "--model", "gcn,mlp", "--lam", "0.25", "--balance", "0")
EVIL = ("<script>window.hit=1</script>", "</script><img src=x onerror=window.hit=2>", '"><svg onload=window.hit=3>',
        "=HYPERLINK(\"http://127.0.0.1/\")", "javascript:window.hit=4", "&lt;i&gt;")  # fmt: skip


def call(*arguments: str | Path) -> None:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    call("compare", "digits", "--splits", "3", "--lam", "0.25,0.5", *TINY, "--out", folder)
    return folder / "page.html"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fit")
    call("fit", EXAMPLES / "members.csv", EXAMPLES / "friendships.csv", *FIT, "--abstain", "0.6", "--out", folder)
    return folder / "page.html"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The karate club, its members and sides named by somebody who means harm."""
    folder = tmp_path_factory.mktemp("evil")
    members, ties = pd.read_csv(EXAMPLES / "members.csv"), pd.read_csv(EXAMPLES / "friendships.csv")
    names = {number: f"{EVIL[number % len(EVIL)]} {number}" for number in members["id"]}
    members = members.assign(
        id=members["id"].map(names), label=members["label"].map({"Mr. Hi": EVIL[0], "Officer": EVIL[1]})
    )
    members.to_csv(folder / "<img onerror=x>.csv", index=False)
    ties.apply(lambda column: column.map(names)).to_csv(folder / "edges.csv", index=False)
    call("fit", folder / "<img onerror=x>.csv", folder / "edges.csv", *FIT, "--out", folder / "out")
    return folder / "out" / "page.html"


@pytest.fixture(params=["compared", "fitted", "hostile"])
def any_page(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


def unfold(tab: Tab) -> None:
    """Opens what is folded, which is drawn when it is first seen."""
    tab.run("document.querySelectorAll('details.fold').forEach(fold => { fold.open = true; })")
    tab.wait("[...document.querySelectorAll('details.fold')].every(fold => fold.querySelector('figure'))")


def tip(tab: Tab) -> str:
    return tab.run("document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
def test_a_page_opens_without_complaint_and_without_a_request(
    browser: Browser, any_page: Path, width: int, dark: bool
) -> None:
    with browser.open(any_page, width, dark=dark) as tab:
        assert tab.run("document.documentElement.dataset.ready") == "yes"
        assert tab.complaints == []
        assert tab.requests == [any_page.resolve().as_uri()]
        # Nothing is wider than the screen; what must be, scrolls in a box of its own.
        assert tab.run("document.documentElement.scrollWidth") <= width
        narrow = """[...document.querySelectorAll('.plot text, td, th, dd, p, h1, h2, button')]
            .filter(e => e.getClientRects().length && parseFloat(getComputedStyle(e).fontSize) < 10).length"""
        assert tab.run(narrow) == 0


@pytest.mark.parametrize("width", [400, 1600])
def test_every_chart_has_data_and_stays_in_its_box(browser: Browser, any_page: Path, width: int) -> None:
    with browser.open(any_page, width) as tab:
        unfold(tab)
        charts = tab.run("""[...document.querySelectorAll('figure')].map(figure => {
            const boxes = [...figure.querySelectorAll('.mark')].map(mark => mark.getBoundingClientRect());
            return [figure.dataset.kind, boxes.filter(box => box.width + box.height > 0).length];
        })""")
        assert len(charts) >= 9
        assert {kind for kind, _ in charts} >= {"dots", "lines", "matrix", "nodes", "facts"}
        assert all(marks > 0 for _, marks in charts)
        outside = tab.run("""[...document.querySelectorAll('svg.plot')].flatMap(svg => {
            const box = svg.getBoundingClientRect();
            return [...svg.querySelectorAll('text')].filter(t => {
                const b = t.getBoundingClientRect();
                return b.left < box.left - 12 || b.right > box.right + 12;
            }).map(t => t.textContent);
        })""")
        assert outside == []


def test_no_two_words_of_a_chart_cover_each_other(browser: Browser, any_page: Path) -> None:
    for width in (400, 1600):
        with browser.open(any_page, width) as tab:
            overlaps = tab.run("""[...document.querySelectorAll('svg.plot')].flatMap(svg => {
                const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
                const shared = (p, q, low, high) => Math.min(p[high], q[high]) - Math.max(p[low], q[low]);
                const cover = (p, q) => shared(p, q, 'left', 'right') > 2 && shared(p, q, 'top', 'bottom') > 4;
                return texts.flatMap(([a, p], i) => texts.slice(i + 1).filter(([b, q]) => cover(p, q)).map(([b]) => [a, b]));
            })""")
            assert overlaps == [], width


def test_the_numbers_of_the_page_are_those_of_the_run(browser: Browser, compared: Path) -> None:
    result = json.loads((compared.parent / "comparison.json").read_text(encoding="utf-8"))
    with browser.open(compared) as tab:
        assert tab.run("document.querySelector('h1').textContent") == result["headline"]
        assert tab.run("document.querySelectorAll('[data-kind=dots] .dot').length") == 6
        assert tab.run("document.querySelectorAll('.network .node').length") == 1797
        assert result["fingerprint"] in tab.run("document.querySelector('.facts').innerText")
        assert tab.run("document.querySelector('.command').textContent") == result["command"]


def test_the_table_sorts_and_searches(browser: Browser, fitted: Path) -> None:
    rows = "[...document.querySelectorAll('[data-kind=nodes] .rows tbody tr')].map(r => [...r.children].map(c => c.textContent))"
    frame = pd.read_csv(fitted.parent / "predictions.csv")
    with browser.open(fitted) as tab:
        least = frame.sort_values("probability", kind="stable")
        assert [row[0] for row in tab.run(rows)][:5] == [str(i) for i in least["id"][:5]]
        tab.click("[data-kind=nodes] .rows thead th:nth-child(3) button")
        most = [float(row[2]) for row in tab.run(rows)]
        assert most == sorted(most, reverse=True)
        assert most[0] == pytest.approx(frame["probability"].max(), abs=0.001)
        head = "document.querySelector('[data-kind=nodes] .rows thead th:nth-child(3)').getAttribute('aria-sort')"
        assert tab.run(head) == "descending"
        tab.click("[data-kind=nodes] .rows thead th:nth-child(1) button")
        assert [row[0] for row in tab.run(rows)][:3] == ["1", "2", "3"]  # by number, not 1, 10, 11
        tab.type("[data-kind=nodes] input[type=search]", "3")
        assert [row[0] for row in tab.run(rows)] == ["3", "13", "23", "30", "31", "32", "33", "34"]
        assert tab.run("document.querySelector('[data-kind=nodes] .count').textContent") == "8 of 34 nodes"
        tab.type("[data-kind=nodes] input[type=search]", " is not there")
        assert tab.run(rows) == []


def test_more_rows_come_when_asked_for(browser: Browser, compared: Path) -> None:
    count = "document.querySelectorAll('[data-kind=nodes] .rows tbody tr').length"
    with browser.open(compared) as tab:
        assert tab.run(count) == 25
        tab.click("[data-kind=nodes] .more")
        assert tab.run(count) == 125


def test_choices_change_what_is_seen(browser: Browser, compared: Path) -> None:
    section = "[...document.querySelectorAll('section')].find(s => s.querySelector('h2').textContent === {!r})"
    training = section.format("Training")
    with browser.open(compared) as tab:
        assert tab.run(f"{training}.querySelector('.choices').innerText.split('\\n').filter(Boolean)") == [
            "λ = 0.25",
            "λ = 0.5",
        ]
        shown = f"{training}.querySelector('.legend').innerText"
        pressed = f"[...{training}.querySelectorAll('.choices button')].map(b => b.getAttribute('aria-pressed'))"
        assert sorted(tab.run(pressed)) == ["false", "true"]
        before = tab.run(shown)
        tab.run(f"{training}.querySelector('.choices button[aria-pressed=false]').click()")
        tab.settle()
        assert tab.run(shown) != before
        assert sorted(tab.run(pressed)) == ["false", "true"]
        fill = "getComputedStyle(document.querySelector('.network .node')).fill"
        colors = "new Set([...document.querySelectorAll('.network .node')].map(n => getComputedStyle(n).fill)).size"
        assert tab.run(colors) > 2
        tab.run(
            "[...document.querySelectorAll('.drawing .choices button')].find(b => b.textContent === 'right or wrong').click()"
        )
        assert tab.run(colors) == 2
        assert tab.run(fill)
        assert tab.complaints == []


@pytest.mark.parametrize("width", [400, 1400])
def test_an_id_of_five_digits_is_not_broken(browser: Browser, fitted: Path, width: int) -> None:
    with browser.open(fitted, width) as tab:
        tab.run("document.querySelectorAll('.rows .pick').forEach((pick, i) => { pick.textContent = 48439 + i; })")
        lines = tab.run(
            "[...document.querySelectorAll('.rows .pick')].map(pick => pick.getBoundingClientRect().height)"
        )
        assert lines
        line = tab.run("parseFloat(getComputedStyle(document.querySelector('.rows .pick')).fontSize)")
        assert max(lines) < 2 * line


@pytest.mark.parametrize("kind", ["dots", "lines", "matrix", "nodes"])
def test_pointing_at_a_chart_tells_its_values(browser: Browser, fitted: Path, kind: str) -> None:
    target = {"dots": "[data-kind=dots] .dot", "lines": "[data-kind=lines] .plot", "matrix": ".matrix td.mark",
              "nodes": ".network .node"}[kind]  # fmt: skip
    with browser.open(fitted) as tab:
        assert tip(tab) == ""
        x, y = tab.centre(target)
        tab.hover(x, y)
        said = tip(tab)
        assert {"dots": "held-out", "lines": "confidence", "matrix": "predicted ", "nodes": "probability: "}[
            kind
        ] in said
        assert any(character.isdigit() for character in said)
        tab.hover(1, 1)
        assert tip(tab) == ""


def test_the_keyboard_reads_charts(browser: Browser, fitted: Path) -> None:
    with browser.open(fitted) as tab:
        unfold(tab)
        tab.run("[...document.querySelectorAll('.fold button')].find(b => b.textContent === 'score against λ').click()")
        tab.run("document.querySelector('.fold [data-kind=lines] .plot').focus()")
        tab.settle()  # it scrolls there, which hides what was told
        tab.press("ArrowRight")
        first = tip(tab)
        tab.press("ArrowRight")
        assert first
        assert tip(tab) not in ("", first)
        tab.press("Escape")
        assert tip(tab) == ""


def test_the_numbers_of_a_chart_can_be_had_as_a_table(browser: Browser, fitted: Path) -> None:
    with browser.open(fitted) as tab:
        tab.click("[data-kind=lines] summary")
        assert tab.run("document.querySelectorAll('[data-kind=lines] .numbers tbody tr').length") >= 2


def test_a_row_of_the_table_is_found_in_the_drawing(browser: Browser, fitted: Path) -> None:
    with browser.open(fitted) as tab:
        name = tab.run("document.querySelector('.pick').textContent")
        tab.click(".pick")
        assert tab.run("document.querySelector('.network .ring').getAttribute('visibility')") == "visible"
        assert f"node: {name}" in tip(tab)


def test_the_drawing_zooms_and_moves(browser: Browser, fitted: Path) -> None:
    where = "document.querySelector('.network .node').getBoundingClientRect().x"
    wide = "document.querySelector('.network .edges').getBoundingClientRect().width"
    with browser.open(fitted) as tab:
        before = tab.run(wide)
        tab.click(".tools button")
        assert tab.run(wide) > 1.3 * before
        tab.run("document.querySelector('.network').focus()")
        place = tab.run(where)
        tab.press("ArrowRight")
        assert tab.run(where) == pytest.approx(place - 60, abs=2)
        tab.run("document.querySelector('.tools button:last-child').click()")
        assert tab.run(wide) == pytest.approx(before, abs=1)


def test_hostile_names_are_text_and_nothing_else(browser: Browser, hostile: Path) -> None:
    with browser.open(hostile) as tab:
        tab.run("document.querySelectorAll('details').forEach(d => d.open = true)")
        tab.run("document.querySelectorAll('button').forEach(b => b.click())")
        x, y = tab.centre(".network .node")
        tab.hover(x, y)
        assert any(name.split(" ")[0] in tip(tab) for name in EVIL)
        assert tab.run("window.hit === undefined")
        assert (
            tab.run("document.querySelectorAll('img, iframe, script, object, embed, a:not([download])').length") == 2
        )  # our two scripts
        assert tab.run("document.querySelectorAll('svg[onload]').length") == 0
        text = tab.run("document.body.textContent")
        for name in EVIL[:2]:
            assert name in text
        assert "<img onerror=x>.csv" in text
        assert tab.complaints == []
        assert len(tab.requests) == 1


def test_it_can_be_printed(browser: Browser, any_page: Path, tmp_path: Path) -> None:
    with browser.open(any_page, 1000, dark=True) as tab:
        tab.send(
            "Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}]
        )
        assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert tab.run("getComputedStyle(document.querySelector('.tools')).display") == "none"
        tab.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes()[:5] == b"%PDF-"
    assert (tmp_path / "page.pdf").stat().st_size > 20_000


def test_pages_are_small(compared: Path, fitted: Path) -> None:
    assert compared.stat().st_size < 1_000_000
    assert fitted.stat().st_size < 200_000
