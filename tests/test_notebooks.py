"""The notebooks under examples/ run from top to bottom."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1] / "src"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(path, as_version=4)
    for name in ("members.csv", "friendships.csv", "later.csv"):
        target = tmp_path / "karate" / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((EXAMPLES / "karate" / name).read_bytes())
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("against" in output.get("data", {}).get("text/html", "") for output in shown)  # the headline of the fit
    assert (tmp_path / "karate.html").exists()


def test_a_progress_bar_is_drawn_and_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1] / "src"))
    code = "import sharpen; sharpen.compare(splits=2, hidden=4, layers=2, epochs=3, device='cpu')"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=600).execute()
    bars = [
        output["data"]["text/html"] for output in notebook.cells[0].outputs if "<progress" in str(output.get("data"))
    ]
    assert any('value="1.000"' in bar and "training 100 %" in bar for bar in bars), bars
