"""A table says the same in Markdown, CSV and LaTeX, whatever stands in it."""

import csv
import io
import shutil
import subprocess
from pathlib import Path

import pytest

from sharpen.errors import InputError
from sharpen.report.cells import Value, number, signed
from sharpen.report.tables import Column, Table, latex_document, latex_text, to_csv, to_latex, to_markdown

NASTY = r"50 % & more_of <script>alert(1)</script> | {x}^2 ~ \end{document} #1 $y$ λ − ± [a](b) * ` 中 é"


@pytest.fixture
def table() -> Table:
    return Table(
        title=f"Gains: {NASTY}",
        columns=(
            Column("dataset", "Dataset"),
            Column("base", "GCN", "right", group="baseline"),
            Column("gain", "GCN", "center", group="λ = 0.25"),
            Column("p", "p"),
        ),
        rows=(
            (
                "Cora",
                Value.score(84.5444444, 0.86, 5),
                (Value.gain(1.2, (0.3, 2.1), 5), Value.quoted("paper", -3.8, 0.97, difference=True)),
                Value.chance(0.03),
            ),
            (
                NASTY,
                Value.score(50.0, None, 1),
                (Value.gain(0.5, None, 1), Value.reason("one pair")),
                Value.chance(None),
            ),
            ("[x]", Value.reason("data not at hand"), (Value.reason("not run yet"), Value.quoted("paper", 0.0)), None),
        ),
        notes=("Mean ± sd.", NASTY),
        rules=(1,),
    )


def test_numbers_are_rounded_once_and_signed_where_they_are_differences():
    assert [number(v) for v in (84.545, -0.004, 0.0, -12.3)] == ["84.55", "0.00", "0.00", "−12.30"]
    assert [signed(v) for v in (0.004, -0.004, 0.005001, -0.3)] == ["0.00", "0.00", "+0.01", "−0.30"]
    assert number(1234.5678, 0) == "1235"
    assert Value.number(float("nan")).text == ""


@pytest.mark.parametrize(
    ("interval", "bold"),
    [((0.01, 2.0), True), ((-2.0, -0.01), True), ((-0.1, 2.0), False), ((0.0, 1.0), False), (None, False)],
)
def test_bold_is_where_the_interval_excludes_zero(interval, bold):
    assert Value.gain(1.0, interval, 5).bold is bold


def test_markdown_keeps_every_row_in_its_columns(table):
    lines = to_markdown(table).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 2 + 3
    for row in rows:
        assert row.replace("\\|", "").count("|") == 5
    assert "<script>" not in to_markdown(table)
    assert "[a](b)" not in to_markdown(table)
    assert "**+1.20 [+0.30, +2.10] (n = 5)**<br>*paper −3.80 ± 0.97*" in to_markdown(table)
    assert "*data not at hand*" in to_markdown(table)


def test_csv_reads_back_as_the_numbers_that_went_in(table):
    cora, nasty, missing = csv.DictReader(io.StringIO(to_csv(table)))
    assert float(cora["base_mean"]) == pytest.approx(84.5444444, abs=1e-4)
    assert [float(cora[f"gain_{name}"]) for name in ("difference", "low", "high", "n")] == [1.2, 0.3, 2.1, 5]
    assert float(cora["gain"]) == -3.8
    assert nasty["dataset"] == NASTY
    assert nasty["gain_low"] == nasty["p"] == ""
    assert missing["base_reason"] == "data not at hand"
    assert missing["gain_reason"] == "not run yet"
    assert None not in cora  # no value without a column


def test_a_row_of_another_length_is_named():
    with pytest.raises(InputError, match="row 1 of table 'T' has 2 places for 1 columns"):
        Table("T", (Column("a", "a"),), (("x",), ("x", "y")))


def test_latex_has_as_many_places_as_columns(table):
    body = to_latex(table).split(r"\midrule")[1]
    row = body.split(r"\begin{tabular}[t]")[0]
    assert row.count(" & ") == 2
    assert latex_text("a\nb") == "a b"
    assert latex_text("中") == "U+4E2D"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles_as_it_is(table, tmp_path: Path):
    (tmp_path / "table.tex").write_text(latex_document([to_latex(table, "tab:a"), to_latex(table)]), encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Output written on table.pdf (2 pages" in done.stdout
    assert "Overfull" not in done.stdout
