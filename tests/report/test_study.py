"""The report of a study reads well and says what is missing, also when only part of it was run."""

import csv
import io
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from sharpen.analysis.curves import Curve, Point, lambda_curves
from sharpen.analysis.outcome import outcome
from sharpen.analysis.provenance import Provenance
from sharpen.paper import published
from sharpen.report.cells import number, signed
from sharpen.report.missing import missing_lams, missing_lines
from sharpen.report.page import study_page
from sharpen.report.special_tables import lambda_table
from sharpen.report.study import ranking_report, study_report
from sharpen.report.study_text import agreement, band_sentences, gain_sentence, provenance_sentence
from sharpen.report.tables import to_csv
from sharpen.report.text import index_markdown, report_csv, report_latex, report_markdown
from sharpen.studies import load_study
from tests.studies.fake import records, traces


def page(report: object) -> str:
    return report_markdown(report, "figures")


def test_every_cell_of_the_main_table_has_a_number_or_a_reason(told):
    text = page(study_report(told("main")))
    grid = text.split("**Main results: λ by validation against plain training")[1].split("scores of plain training")[0]
    rows = [line for line in grid.splitlines() if line.startswith("|")][2:]
    assert len(rows) == 13
    places = [place.strip() for row in rows for place in row.strip("|").split("|")[1:]]
    assert len(places) == 52
    for place in places:
        ours, paper = place.rsplit("<br>", 1)
        assert paper.startswith("*paper ")
        assert re.search(r"[−+]\d+\.\d\d|not run yet|data not at hand|candidates run", ours), place


def test_published_numbers_of_the_table_are_all_there(told):
    text = page(study_report(told("main")))
    for row in published("main").values():
        assert f"paper {number(row.mean)} ± {number(row.sd)}" in text


def test_what_is_missing_is_said_once_with_its_reason(told):
    lines = missing_lines(told("universal"))
    assert "data not at hand: WikiCS, Amazon-Ratings, Roman-Empire (9 cells)." in lines
    (not_run,) = [line for line in lines if line.startswith("not run yet")]
    assert "Cora SAGE, CiteSeer SAGE, PubMed" in not_run
    text = page(study_report(told("universal")))
    assert "diverged: 2 of 5" in text
    assert "5 of 10 not run yet" in text


def test_a_cell_with_part_of_its_runs_is_named_as_such(told):
    (partly,) = [line for line in missing_lines(told("universal")) if line.startswith("part of the runs not run yet")]
    assert "Squirrel GCN and Squirrel GAT (2 cells)" in partly
    assert "Squirrel" in next(line for line in missing_lines(told("main")) if line.startswith("part of the runs"))
    report = study_report(told("main"))
    assert "205 of 410 runs not run yet" in page(report)
    (said,) = [line for line in report.findings if line.startswith("plain training")]
    counts = dict(re.findall(r"(\d+) cells \(([^)]+)\)", said.split("Not compared: ")[1]))
    assert {text: int(n) for n, text in counts.items()}["data not at hand"] == 12


def test_a_range_of_lambda_that_was_not_run_is_named_wherever_the_rest_is_shown():
    study = load_study("lambda-curves")
    few = {"datasets": ["cora", "photo"], "models": ["gcn", "gat"]}
    keep = lambda t: t.dataset == "cora" and t.lam >= 0 and (t.model == "gcn" or t.lam != 0.3)  # noqa: E731
    found = outcome(study, "paper", records(study, "paper", keep=keep, **few), **few)
    lines = missing_lines(found)
    assert lines == [
        "λ from −1 to −0.05 not run yet: Cora GCN (1 cell).",
        "λ from −1 to −0.05, = 0.3 not run yet: Cora GAT (1 cell).",
        "not run yet: Photo (2 cells).",
    ]
    curves = lambda_curves(found)
    assert missing_lams(found, curves[:1]) == "λ from −1 to −0.05 not run yet"
    assert "λ from −1 to −0.05 not run yet in 1 cell; λ from" in missing_lams(found, curves)
    report = study_report(found)
    assert report.findings[0].startswith("λ from −1 to −0.05 not run yet in 1 cell; ")
    assert "GCN (1 dataset): the median Δ" in report.findings[0]
    below = study_page([study_report(found), study_report(outcome_of_universal())], [], "").below
    assert below[-1].startswith("Without a complete cell yet: The effect of λ (λ from −1 to −0.05 not run yet")


def outcome_of_universal():
    study = load_study("universal")
    return outcome(study, "paper", records(study, "paper", datasets=["cora"], models=["gcn"]), datasets=["cora"])


def test_a_cell_is_named_once_for_what_was_not_run():
    study = load_study("offset")
    few = {"datasets": ["cora"], "models": ["gcn"]}
    found = outcome(study, "paper", records(study, "paper", keep=lambda t: t.lam == 1.35, **few), **few)
    assert missing_lines(found) == ["offset-0.10, offset-0.05, offset+0.05 and offset+0.10 not run yet: Cora (1 cell)."]
    study = load_study("retune")
    found = outcome(study, "paper", records(study, "paper", keep=lambda t: t.lr == 0.001, **few), **few)
    assert missing_lines(found) == ["20 of 26 variants not run yet: Cora (1 cell)."]


def test_a_study_of_many_comparisons_tells_those_that_were_run():
    study = load_study("lambda-curves")
    few = {"datasets": ["cora"], "models": ["gcn"]}
    found = outcome(study, "paper", records(study, "paper", keep=lambda t: t.lam in (0, 0.25), **few), **few)
    report = study_report(found)
    assert [line[:20] for line in report.findings] == ["λ = 0.25 against pla", "59 other comparisons"]
    assert ["λ = 0.25" in table.title for table in report.tables[:-1]] == [True]


def test_a_table_without_rows_is_left_out(told):
    assert not any("in detail" in table.title for table in study_report(told("arxiv")).tables)


def test_bold_is_where_the_interval_excludes_zero(told):
    text = page(study_report(told("universal")))
    for _, effect in told("universal").effects("ts-0.25 - baseline"):
        if effect.difference is None:
            continue
        low, high = effect.difference.t_interval
        shown = f"{signed(effect.difference.difference)} [{signed(low)}, {signed(high)}]"
        assert (f"**{shown}" in text) == (low > 0 or high < 0)


def test_the_csv_holds_every_cell_with_all_numbers(told):
    rows = list(csv.DictReader(io.StringIO(report_csv(study_report(told("main"))))))
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


@pytest.mark.parametrize("name", ["main", "offset", "universal"])
def test_the_columns_of_the_csv_do_not_depend_on_what_was_run(name, told):
    empty = outcome(load_study(name), "paper", pd.DataFrame(), datasets=["cora"])
    headers = [report_csv(study_report(found)).splitlines()[0] for found in (empty, told(name), told("main"))]
    assert headers[0] == headers[1] == headers[2]
    names = headers[0].split(",")
    assert len(set(names)) == len(names)
    assert {"comparison", "gain_low", "chosen_lam", "bootstrap_high", "consistent", "note"} <= set(names)


def test_the_columns_of_scores_and_ranks_do_not_depend_on_what_was_run(told, tmp_path: Path):
    (tmp_path / "six.yaml").write_text(SIX)
    six = load_study(tmp_path / "six.yaml")
    texts = [
        report_csv(study_report(outcome(six, "paper", frame))) for frame in (pd.DataFrame(), records(six, "paper"))
    ]
    study = load_study("comparison")
    texts += [report_csv(ranking_report(study, found)) for found in (told("main"), told("arxiv"))]
    headers = [text.splitlines()[0] for text in texts]
    assert headers[0] == headers[1]
    assert headers[2] == headers[3]


def test_nobody_is_ranked_where_none_of_ours_has_a_score(told):
    report = ranking_report(load_study("comparison"), told("main"))
    rows = list(csv.DictReader(io.StringIO(report_csv(report))))
    assert {row["rank"] for row in rows if row["dataset"] == "wikics"} == {""}
    assert "1" in {row["rank"] for row in rows if row["dataset"] == "cora"}
    (table,) = [table for table in report.tables if "homophilous graphs" in table.title and "hetero" not in table.title]
    place = [column.key for column in table.columns].index("wikics")
    shown = " ".join(str(row[place]) for row in table.rows)
    assert "Ranked" not in shown
    assert "80.93" in shown  # the best of the others


def test_what_the_paper_retuned_stands_beside_what_validation_chose(told):
    (table,) = [table for table in study_report(told("retune")).tables if "what was chosen" in table.title]
    rows = {(row[0].numbers[""], row[1].numbers[""]): [place.text for place in row[2:]] for row in table.rows}
    chosen = told("retune").cell("cora", "gcn").sides["retuned"].trial
    assert rows["cora", "gcn"] == ["0.001", "0.7", f"{chosen.lr:g}", f"{chosen.dropout:g}", "0.001", "0.65"]
    assert rows["cora", "sage"][2:] == ["not run yet", "", "0.00025", "0.7"]
    assert not any("what was chosen" in table.title for table in study_report(told("main")).tables)


def test_cells_are_counted_only_when_all_their_pairs_are_there(told):
    sentence = gain_sentence(told("universal"), "ts-0.25 - baseline")
    assert "of 3 cells," in sentence
    assert "1 cell with diverged runs not counted (2 of 5 pairs)" in sentence
    assert "2 cells of which only part was run left out" in sentence


def test_n_is_told_as_runs_on_splits(told):
    text = page(study_report(told("universal", "paired")))
    assert "Squirrel<br>20 runs on 10 splits" in re.sub(r"[*_]", "", text)
    assert "(n = 20)" in text  # Cora, a split each


def test_the_range_of_lambda_is_the_unbroken_one_from_zero():
    medians = {0.0: 0.0, 0.5: 1.0, 1.0: -1.0, 1.5: 2.0}
    points = tuple(Point(lam, 80 + value, 1.0, 5, value, None, value) for lam, value in medians.items())
    (line,) = band_sentences([Curve("cora", "gcn", "accuracy", points, 5)])
    assert "at least 0 from λ = 0 to λ = 0.5, at 2 of 3 positive λ in all, and largest at λ = 1.5" in line
    assert "negative" not in line


@pytest.fixture
def partly() -> list[Curve]:
    """Three datasets with negative λ, where the score falls with λ, and one without."""

    def curve(dataset: str, lams: tuple[float, ...]) -> Curve:
        points = (Point(lam, 80, 1.0, 5, lam, (lam - 0.1, lam + 0.1), lam) for lam in lams)
        return Curve(dataset, "gcn", "accuracy", tuple(points), 5)

    whole = [curve(dataset, (-1.0, -0.5, 0.0, 0.5)) for dataset in ("cora", "citeseer", "pubmed")]
    return [*whole, curve("cs", (0.0, 0.5))]


def test_negative_lambda_is_told_of_the_datasets_that_have_it(partly):
    (line,) = band_sentences(partly)
    assert line.startswith("GCN (4 datasets): ")
    negative = "below 0 at 2 of 2 negative λ, and largest there at λ = −0.5 (−0.50)."
    assert line.endswith(f"Over the 3 with every λ it is {negative}")
    (line,) = band_sentences(partly[:3])
    assert line.startswith("GCN (3 datasets): ")
    assert line.endswith(f"It is {negative}")


def test_the_table_over_lambda_keeps_datasets_apart(partly):
    table = lambda_table(partly, "Effect")
    assert [column.title for column in table.columns] == ["λ", "GCN (4 datasets)", "GCN (3 with every λ)"]
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert [row["lam"] for row in rows] == ["-1", "-0.5", "0.5"]
    assert (rows[0]["gcn_reason"], rows[0]["gcn_median"]) == ("not run for all", "")
    assert [rows[0][f"gcn_whole_{name}"] for name in ("median", "lower", "upper", "up", "down", "of")] == [
        "-1", "-1", "-1", "0", "3", "3",
    ]  # fmt: skip
    assert [rows[2][f"{name}_of"] for name in ("gcn", "gcn_whole")] == ["4", "3"]
    (plain,) = {len(row) for row in lambda_table(partly[:3], "Effect").rows}
    assert plain == 2


def test_agreement_with_the_paper_is_counted_in_combined_deviations(told):
    within, beyond, open_ = agreement(told("main"), "baseline")
    assert len(within) + len(beyond) + len(open_) == 52
    for cell in within + beyond:
        side = cell.sides["baseline"]
        distance = abs(side.mean - side.published.mean) / (side.sd**2 + side.published.sd**2) ** 0.5
        assert (distance <= 2) == (cell in within)


def test_time_is_the_sum_of_the_runs(told):
    report = study_report(told("universal"))
    assert report.cost == "30 s on NVIDIA H200 (tf32, 60 runs)."
    assert "60 of 354" in page(report)


@pytest.mark.parametrize(
    ("revision", "said"),
    [
        ("f86c75d9fc85", "Code f86c75d9fc85."),
        ("f86c75d9fc85+changes", "Code f86c75d9fc85 with uncommitted changes."),
        ("f86c75d9fc85e9a3b1c2d4e5f60718293a4b5c6d+changes", "Code f86c75d9fc85 with uncommitted changes."),
        ("source-0123456789ab", "Code source-0123456789ab."),
    ],
)
def test_code_that_was_not_committed_is_said_to_be(revision, said):
    assert provenance_sentence(Provenance((revision,), (), None, None)) == said


def test_both_kinds_of_code_of_one_study_are_told():
    study = load_study("universal")
    frame = records(study, "paper", datasets=["cora"], models=["gcn"])
    frame.loc[:2, "revision"] += "+changes"
    text = study_report(outcome(study, "paper", frame)).provenance
    assert text.startswith("Code 0123456789ab (7 runs), 0123456789ab with uncommitted changes (3 runs); ")


def test_a_study_of_lambda_has_the_table_of_deltas(told):
    report = study_report(told("lambda-curves"))
    assert "Glass's Δ by λ" in page(report)
    assert set(report.figures) == {"curves", "glass", "improvements"}
    assert len(list(csv.reader(io.StringIO(report_csv(report))))) == 1 + 4 * 3 * 60


def test_a_study_with_traces_has_the_table_of_gaps(told):
    study = load_study("entropy-dynamics")
    frame = records(study, "paper", datasets=["cora"], models=["gcn"])
    report = study_report(told("entropy-dynamics"), traces(frame))
    assert "change of the gap" in page(report)
    assert any("run without traces" in line and "Cora GAT" in line for line in report.missing)
    assert not any("run without traces" in line and "Cora GCN" in line for line in report.missing)
    assert set(report.figures) == {"entropy", "shannon"}  # it is not about test scores


def test_the_comparison_names_every_method_and_cites_it_as_published(told):
    report = ranking_report(load_study("comparison"), told("main"))
    text = page(report)
    for _, method, _ in published("comparison"):
        assert method in text
    assert "84.29 ± 0.39" in text  # ELU-GCN on Cora
    assert "data not at hand" in text
    rows = list(csv.DictReader(io.StringIO(report_csv(report))))
    assert len(rows) == 243


def test_an_empty_study_is_a_page_of_reasons(told):
    report = study_report(outcome(load_study("universal"), "paper", pd.DataFrame()))
    assert report.figures == {}
    assert "not run yet" in page(report)
    assert "figures/" not in page(report)


def test_a_quick_look_says_that_it_is_one():
    study = load_study("universal")
    frame = records(study, "paper", datasets=["cora"], max_epochs=5)
    text = page(study_report(outcome(study, "paper", frame, max_epochs=5)))
    assert "At most 5 epochs a run: a quick look" in text


def test_the_index_links_every_page(told):
    reports = [study_report(told("universal")), ranking_report(load_study("comparison"), told("main"))]
    text = index_markdown(reports, "1 minute.")
    assert "(universal-paper.md)" in text
    assert "(comparison-paper.md)" in text


def test_the_index_tells_the_runs_that_a_study_has_to_itself(told):
    reports = [study_report(told(name)) for name in ("universal", "labeled-term")]
    ids = [set(report.runs) for report in reports]
    rows = [line.split("|") for line in index_markdown(reports, "").splitlines() if "-paper.md)" in line]
    assert ids[0] & ids[1]
    for row, own, other in zip(rows, ids, reversed(ids), strict=True):
        assert row[3].strip().startswith(f"{len(own)} of ")
        assert int(row[4]) == len(own - other) < len(own)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("name", ["main", "comparison", "universal"])
def test_latex_compiles_as_it_is(name, told, tmp_path: Path):
    report = ranking_report(load_study(name), told("main")) if name == "comparison" else study_report(told(name))
    (tmp_path / "study.tex").write_text(report_latex(report), encoding="utf-8")
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


SIX = """\
title: Six ablations
datasets: [digits]
models: [gcn]
trial: {epochs: 3}
variants:
  plain: {lam: 0}
  a: {lam: 0.25, q: 1}
  b: {lam: 0.25, lam_labeled: 0}
  c: {lam: 0.25, sharpen_val: false}
  d: {lam: 0.25, lr: 0.02}
  e: {lam: 0.25, dropout: 0.2}
  f: {lam: 0.5}
baseline: plain
"""


@pytest.mark.parametrize("compare", ["compare: ['* - plain']", "compare: [a - plain]", ""])
def test_no_study_is_a_page_without_tables(tmp_path: Path, compare: str):
    (tmp_path / "six.yaml").write_text(SIX + compare)
    study = load_study(tmp_path / "six.yaml")
    found = outcome(study, "paper", records(study, "paper"))
    report = study_report(found)
    text = page(report)
    (cell,) = found.cells
    for side in cell.sides.values():  # the score of every variant is in the page, whatever is compared
        assert f"{number(side.mean)} ± {number(side.sd)}" in text
    for contrast in study.compare:
        assert f"{contrast.variant} against plain" in text or f"{contrast.variant} − plain" in text
        assert signed(cell.effect(contrast.name).difference.difference) in text
    assert report_csv(report).count("digits,gcn") == (len(study.compare) or 7)
    chapter = study_page([study_report(found)], found.costs, "")
    assert str(chapter.chapters).count("'kind': 'sheet'") >= 2


def test_what_was_chosen_is_told_by_what_it_changes_and_not_by_its_name(tmp_path: Path):
    text = SIX.replace("[digits]", "[cora]").replace("  f: {lam: 0.5}", "  weak: {lam: 0.1}\n  strong: {lam: 0.5}")
    choices = "choose: {mine: [plain, weak, strong], any: [plain, a, strong]}\ncompare: [mine - plain, any - plain]"
    (tmp_path / "own.yaml").write_text(text + choices)
    study = load_study(tmp_path / "own.yaml")
    found = outcome(study, "paper", records(study, "paper", lambda t: 20 * t.lam))
    rows = list(csv.DictReader(io.StringIO(report_csv(study_report(found)))))
    mine, other = rows
    assert (float(mine["chosen_lam"]), float(mine["lambda_star"])) == (0.5, 1.35)  # only λ was to choose
    assert (other["chosen_lam"], other["lambda_star"]) == ("", "")
    assert "strong" in other.values()
