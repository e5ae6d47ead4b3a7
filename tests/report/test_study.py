"""The report of a study reads well and says what is missing, also when only part of it was run."""

import csv
import io
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from sharpen.paper import published
from sharpen.report.study import comparison_sheet, index_markdown, sheet_csv, sheet_latex, sheet_markdown, study_sheet
from sharpen.report.study_text import agreement, gain_sentence, missing_lines
from sharpen.report.tables import number, signed
from sharpen.studies import load_study
from sharpen.studies.outcome import outcome
from tests.studies.fake import records, traces


def page(sheet: object) -> str:
    return sheet_markdown(sheet, "figures")


def test_every_cell_of_the_main_table_has_a_number_or_a_reason(told):
    text = page(study_sheet(told("main")))
    grid = text.split("ts-tuned against baseline")[1].split("in detail")[0]
    rows = [line for line in grid.splitlines() if line.startswith("|")][2:]
    assert len(rows) == 13
    places = [place.strip() for row in rows for place in row.strip("|").split("|")[1:]]
    assert len(places) == 52
    for place in places:
        ours, paper = place.rsplit("<br>", 1)
        assert paper.startswith("*paper ")
        assert re.search(r"[−+]\d+\.\d\d|not run yet|data not at hand|candidates run", ours), place


def test_published_numbers_of_the_table_are_all_there(told):
    text = page(study_sheet(told("main")))
    for row in published("main").values():
        assert f"paper {number(row.mean)} ± {number(row.sd)}" in text


def test_what_is_missing_is_said_once_with_its_reason(told):
    lines = missing_lines(told("universal"))
    assert "data not at hand: WikiCS, Amazon-Ratings, Roman-Empire (9 cells)." in lines
    (not_run,) = [line for line in lines if line.startswith("not run yet")]
    assert "Cora SAGE, CiteSeer SAGE, PubMed" in not_run
    text = page(study_sheet(told("universal")))
    assert "diverged: 2 of 5" in text
    assert "5 of 10 not run yet" in text


def test_bold_is_where_the_interval_excludes_zero(told):
    text = page(study_sheet(told("universal")))
    for _, effect in told("universal").effects("ts-0.25 - baseline"):
        if effect.difference is None:
            continue
        low, high = effect.difference.t_interval
        shown = f"{signed(effect.difference.difference)} [{signed(low)}, {signed(high)}]"
        assert (f"**{shown}" in text) == (low > 0 or high < 0)


def test_the_csv_holds_every_cell_with_all_numbers(told):
    rows = list(csv.DictReader(io.StringIO(sheet_csv(study_sheet(told("main"))))))
    assert len(rows) == 52
    cells = {(row["dataset"], row["model"]): row for row in rows}
    cora = cells["cora", "gcn"]
    effect = told("main").cell("cora", "gcn").effects[0]
    assert float(cora["gain_difference"]) == pytest.approx(effect.difference.difference, abs=1e-4)
    assert float(cora["p_holm"]) == pytest.approx(effect.corrected_p, rel=1e-4)
    assert float(cora["chosen_lam"]) == told("main").cell("cora", "gcn").sides["ts-tuned"].trial.lam
    assert float(cora["lambda_star"]) == 1.35
    assert cells["wikics", "mlp"]["note"] == "data not at hand"
    assert float(cells["wikics", "mlp"]["paper"]) == 1.52


def test_cells_are_counted_only_when_all_their_pairs_are_there(told):
    sentence = gain_sentence(told("universal"), "ts-0.25 - baseline")
    assert "of 4 cells," in sentence
    assert "2 cells with part of the runs not counted" in sentence


def test_agreement_with_the_paper_is_counted_in_combined_deviations(told):
    within, beyond, open_ = agreement(told("main"), "baseline")
    assert len(within) + len(beyond) + len(open_) == 52
    for cell in within + beyond:
        side = cell.sides["baseline"]
        distance = abs(side.mean - side.published.mean) / (side.sd**2 + side.published.sd**2) ** 0.5
        assert (distance <= 2) == (cell in within)


def test_time_is_the_sum_of_the_runs(told):
    sheet = study_sheet(told("universal"))
    assert sheet.cost == "30.0 seconds on NVIDIA H200 (tf32, 60 runs)."
    assert "60 of 354" in page(sheet)


def test_a_study_of_lambda_has_the_table_of_deltas(told):
    sheet = study_sheet(told("lambda-curves"))
    assert "Glass's Δ by λ" in page(sheet)
    assert set(sheet.figures) == {"curves", "glass", "improvements"}
    assert len(list(csv.reader(io.StringIO(sheet_csv(sheet))))) == 1 + 4 * 3 * 60


def test_a_study_with_traces_has_the_table_of_gaps(told):
    study = load_study("entropy-dynamics")
    frame = records(study, "paper", datasets=["cora"])
    sheet = study_sheet(told("entropy-dynamics"), traces(frame))
    assert "change of the gap" in page(sheet)
    assert "entropy" in sheet.figures


def test_the_comparison_names_every_method_and_cites_it_as_published(told):
    sheet = comparison_sheet(load_study("comparison"), told("main"))
    text = page(sheet)
    for _, method, _ in published("comparison"):
        assert method in text
    assert "84.29 ± 0.39" in text  # ELU-GCN on Cora
    assert "data not at hand" in text
    rows = list(csv.DictReader(io.StringIO(sheet_csv(sheet))))
    assert len(rows) == 243


def test_an_empty_study_is_a_page_of_reasons(told):
    sheet = study_sheet(outcome(load_study("universal"), "paper", pd.DataFrame()))
    assert sheet.figures == {}
    assert "not run yet" in page(sheet)
    assert "figures/" not in page(sheet)


def test_a_quick_look_says_that_it_is_one():
    study = load_study("universal")
    frame = records(study, "paper", datasets=["cora"], max_epochs=5)
    text = page(study_sheet(outcome(study, "paper", frame, max_epochs=5)))
    assert "At most 5 epochs a run: a quick look" in text


def test_the_index_links_every_page(told):
    sheets = [study_sheet(told("universal")), comparison_sheet(load_study("comparison"), told("main"))]
    text = index_markdown(sheets, "1 minute.")
    assert "(universal-paper.md)" in text
    assert "(comparison-paper.md)" in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("name", ["main", "comparison", "universal"])
def test_latex_compiles_as_it_is(name, told, tmp_path: Path):
    sheet = comparison_sheet(load_study(name), told("main")) if name == "comparison" else study_sheet(told(name))
    (tmp_path / "study.tex").write_text(sheet_latex(sheet), encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "study.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull \\hbox" not in done.stdout
    assert "Float too large" not in done.stdout
