"""The page as a file: nothing in it can run but its own script, and nothing can be fetched."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from sharpen.report.page import Page, render
from sharpen.report.page.document import embedded
from sharpen.report.page.sections import facts, section
from sharpen.report.palette import PALETTE

HOSTILE = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>", '"><svg onload=alert(3)>', "&lt;b&gt;",
           "=HYPERLINK(\"http://example.org\")", "a\u2028b\u2029c", "<!--", "]]>", "\ud800", "\x00"]  # fmt: skip


class Elements(HTMLParser):
    """All elements of a page, and the text of its scripts, as a parser of its own sees them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside in ("script", "style"):
            (self.scripts if self.inside == "script" else self.styles).append(data)


def page(text: str) -> Page:
    return Page(text, text, [text], [(text, text)], [section(text, facts([(text, text)]), text=text)], text)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_makes_no_element(text: str) -> None:
    plain, hostile = Elements(render(page("harmless"))), Elements(render(page(text)))
    assert [tag for tag, _ in hostile.found] == [tag for tag, _ in plain.found]
    assert len(hostile.scripts) == 2


@pytest.mark.parametrize("text", [text for text in HOSTILE if text != "\ud800"])
def test_the_data_comes_back_as_it_was(text: str) -> None:
    data = json.loads(Elements(render(page(text))).scripts[0])
    assert data["sections"][0]["title"] == text
    assert data["sections"][0]["views"][0]["charts"][0]["entries"] == [[text, text]]


def test_the_policy_allows_this_script_and_this_style_and_nothing_else() -> None:
    parsed = Elements(render(page("harmless")))
    policy = next(a["content"] for tag, a in parsed.found if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))

    def digest(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == digest(parsed.scripts[1])
    assert rules["style-src"] == digest(parsed.styles[0])
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert not {"connect-src", "frame-src", "font-src", "object-src"} & set(rules)  # they fall back on default-src


def test_nothing_in_the_page_points_elsewhere() -> None:
    text = render(page("harmless"))
    assert set(re.findall(r"https?://[^\s\"'`)]+", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"@import|url\(|<link rel=\"stylesheet|<iframe|<img", text)


def test_the_scripts_never_parse_markup_or_code() -> None:
    for asset in (files("sharpen.report.page") / "assets").iterdir():
        if asset.name.endswith(".js"):
            found = re.findall(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function|fetch\(|XMLHttpRequest"
                r"|WebSocket|sendBeacon|import\(|createContextualFragment|srcdoc",
                asset.read_text(encoding="utf-8"),
            )
            assert not found, asset.name


def test_json_cannot_end_its_element() -> None:
    text = embedded({"<": [">", "&", "\u2028", "\u2029", "</script>"]})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"<": [">", "&", "\u2028", "\u2029", "</script>"]}


def test_numbers_that_are_none_cannot_slip_in() -> None:
    with pytest.raises(ValueError, match="JSON"):
        embedded([float("nan")])


def luminance(color: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", [name for name in PALETTE if name not in ("yellow", "other", "sky", "amber")])
def test_lines_stand_out_from_their_background(name: str) -> None:
    light, dark = PALETTE[name]
    assert 1.05 / (luminance(light) + 0.05) >= 2.9  # about the 3 : 1 that graphics need
    assert (luminance(dark) + 0.05) / (luminance("#1a1e24") + 0.05) >= 3
