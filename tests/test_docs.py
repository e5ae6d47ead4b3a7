"""The documents: every example runs, every link leads somewhere, every public name is in the reference."""

import importlib.util
import os
import re
import shlex
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
import torch
from markdown_it import MarkdownIt
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from typer.testing import CliRunner

import sharpen
from sharpen import evaluation
from sharpen.cli.app import app
from sharpen.datasets.catalog import CATALOG
from sharpen.datasets.registry import find_dataset
from sharpen.store import Store
from sharpen.studies import load_study, plan
from sharpen.trial import Record
from tests.browser import Browser
from tests.studies.fake import bump, score

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def blocks(path: Path, language: str) -> list[str]:
    """The blocks of code on a page that are of a language."""
    tokens = MarkdownIt("commonmark").parse(path.read_text(encoding="utf-8"))
    return [token.content for token in tokens if token.type == "fence" and token.info.strip() == language]


COMMANDS = [
    (path, line)
    for path in [*PAGES, ROOT / "README.md", ROOT / "examples" / "karate" / "README.md"]
    for block in blocks(path, "")
    for line in block.splitlines()
    if line.startswith("sharpen ")
]
# What makes a command short enough for a test; what stands later on the line counts.
SHORTER = {
    "compare": "--splits 2 --seeds 1 --epochs 2 --hidden 8 --device cpu --no-page",
    "fit": "--epochs 5 --hidden 8 --model gcn --lam 0.25 --balance 0 --device cpu --no-page",
    "bench": "--datasets digits --models gcn --seconds 0.01 --members 2 --device cpu",
}


class Links(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.fetched: list[str] = []
        self.ids: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.ids.add(named.get("id") or "")
        self.found += [named[name] or "" for name in ("href", "src") if name in named]
        self.fetched += [named[name] or "" for name in ("href", "src") if name in named and tag != "a"]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Links]:
    """Every page of the site, built strictly: a link between pages that leads nowhere fails here."""
    pytest.importorskip("mkdocstrings", reason="the site needs mkdocs-material and mkdocstrings")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    out = tmp_path_factory.mktemp("docs") / "site"
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(out)))
    pages = (
        path for path in out.rglob("*.html") if "results" not in path.relative_to(out).parts and path.name != "404.html"
    )
    return {path: Links(path.read_text(encoding="utf-8")) for path in pages}


def test_every_link_of_the_site_leads_to_a_file_and_a_heading(site: dict[Path, Links]) -> None:
    assert len(site) >= 15
    for path, page in site.items():
        for link in page.found:
            address, _, anchor = link.partition("#")
            if re.match(r"https?:|data:|mailto:", address):
                continue
            target = (path.parent / unquote(address)).resolve() if address else path
            assert target.is_file(), (path.name, link)
            if anchor and target in site:
                assert unquote(anchor) in site[target].ids, (path.name, link)


def test_every_page_can_be_reached_from_every_page(site: dict[Path, Links]) -> None:
    for path, page in site.items():
        assert {(path.parent / link).resolve() for link in page.found if link.endswith(".html")} >= set(site)


def test_every_public_name_is_in_the_reference(site: dict[Path, Links]) -> None:
    page = next(page for path, page in site.items() if path.name == "sharpen.html")
    assert {f"sharpen.{name}" for name in sharpen.__all__} <= page.ids
    page = next(page for path, page in site.items() if path.name == "evaluation.html")
    assert {f"sharpen.evaluation.{name}" for name in evaluation.__all__} <= page.ids
    for path, page in site.items():
        assert not re.search(r":(class|func|meth|math):`|\.\. math::|``", page.text), path.name


def test_every_command_is_in_the_reference(site: dict[Path, Links]) -> None:
    page = next(page for path, page in site.items() if path.name == "commands.html")
    for name in ("compare", "fit", "predict", "evaluate", "serve", "datasets", "bench", "study-run", "study-report"):
        assert f"sharpen-{name}" in page.ids
    assert "[bold]" not in page.text


def test_nothing_is_fetched(site: dict[Path, Links]) -> None:
    for path, page in site.items():
        assert not [link for link in page.fetched if link.startswith(("http", "//"))], path


def test_the_site_is_searched_from_disk_and_fetches_nothing(site: dict[Path, Links], browser: Browser) -> None:
    start = next(path for path in site if path.name == "index.html")
    with browser.open(start, 1400) as tab:
        tab.run("document.querySelector('.md-search__input').focus()")
        tab.run("document.querySelector('.md-search__input').value = 'Glass'")
        tab.run("document.querySelector('.md-search__input').dispatchEvent(new Event('keyup'))")
        for _ in range(50):
            tab.settle()
            found = tab.run("document.querySelector('.md-search-result').innerText")
            if "glass_delta" in found:
                break
        assert "glass_delta" in found
        assert tab.complaints == []
        assert all(str(request).startswith("file:") for request in tab.requests)


def fill_store(folder: Path) -> None:
    """Records of one study for the examples that read them."""
    for protocol in ("paper", "paired"):
        for cell in plan(load_study("universal"), protocol, datasets=["cora"]):
            trials = {trial.id: trial for variant in cell.trials.values() for trial in variant}.values()
            Store(folder).add(
                [
                    Record(t, score(t, bump, "val"), score(t, bump, "test"), 1, "ok", 0.5, "cpu", "float32")
                    for t in trials
                ]
            )


def prepare_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a cluster of one's own start, and its workers import what is tested here."""
    if importlib.util.find_spec("ray") is None:  # not imported here: Ray reads on import whether it keeps to itself
        pytest.skip("the package ray is not installed")
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", str(Path(sharpen.__file__).parents[1]))


@pytest.mark.parametrize("path", [path for path in PAGES if blocks(path, "python")], ids=lambda path: path.stem)
def test_python_examples_run_from_top_to_bottom(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem == "ray":
        prepare_workers(monkeypatch)
    monkeypatch.chdir(tmp_path)
    if path.stem == "own-model":
        (tmp_path / "my_net.py").write_text(blocks(path, "python")[0], encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
    if path.stem == "studies":
        fill_store(tmp_path / "results" / "store")
    data = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]), y=torch.tensor([0, 0, 1, 1]))
    data.train_mask = torch.tensor([True, False, True, False])
    names: dict[str, object] = {
        "data": data,
        "model": GCNConv(4, 2),
    }  # what the first example of a page may take for granted
    for block in blocks(path, "python"):
        exec(compile(block, str(path), "exec"), names)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples in it, in which commands leave what later ones need."""
    folder = tmp_path_factory.mktemp("desk")
    shutil.copytree(ROOT / "examples", folder / "examples")
    for file in (ROOT / "examples" / "karate").iterdir():
        shutil.copy(file, folder)
    own_model = ROOT / "docs" / "guide" / "own-model.md"
    (folder / "my_net.py").write_text(blocks(own_model, "python")[0], encoding="utf-8")
    (folder / "mine.yaml").write_text(blocks(ROOT / "docs" / "studies.md", "yaml")[0], encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("path", "line"), COMMANDS, ids=[f"{path.stem}: {line.split('#')[0].strip()}" for path, line in COMMANDS]
)
def test_commands_run(path: Path, line: str, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(line, comments=True)[1:]
    if words[0] == "compare" and len(words) > 1 and words[1] in CATALOG and find_dataset(words[1]) is None:
        pytest.skip(f"SHARPEN_DATA does not hold {words[1]}")
    if words[0] == "fit" and "ray" in words:
        prepare_workers(monkeypatch)
    monkeypatch.chdir(desk)
    asked: list[dict] = []
    if words[:2] == ["study", "run"]:  # what it asks for counts here; that studies run is tested elsewhere
        monkeypatch.setattr("sharpen.studies.runner.run", lambda *_, **options: asked.append(options))
        monkeypatch.setattr("sharpen.cli.study._conclude", lambda *_: None)
    if words[0] == "serve":  # that it answers is tested elsewhere
        monkeypatch.setattr("uvicorn.run", lambda *_, **__: None)
    shorter = SHORTER.get(words[0], "").replace(
        "--balance 0", "--balance 0.25" if "--class-prior" in words else "--balance 0"
    )
    result = CliRunner().invoke(app, [*words, *shorter.split()], env=dict(os.environ))
    if words[:2] == ["study", "report"] and "there are no records" in str(result.exception):
        return  # understood; a store comes with studies that were run
    assert result.exception is None or result.exit_code == 0, (line, result.output, result.exception)
    assert result.exit_code == 0
    assert bool(asked) == (words[:2] == ["study", "run"])


def test_the_citation_names_the_paper() -> None:
    import yaml

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["preferred-citation"]["title"].startswith("Graph Transductive Sharpening")
    assert len(citation["preferred-citation"]["authors"]) == 5
    assert citation["version"] in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_pictures_are_small() -> None:
    for picture in (ROOT / "docs" / "images").iterdir():
        assert picture.stat().st_size < 400_000, picture.name


def test_the_readme_shows_before_it_explains() -> None:
    first = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[0]
    code, picture = first.index("```python"), first.index("![")
    assert max(code, picture) < first.index("It trains graph neural networks")
    assert (ROOT / re.search(r"!\[.*?\]\((.*?)\)", first)[1]).is_file()
